"""The one place where values and messages become text for people.

Names, configuration values, principals and messages of servers are foreign, as `core.foreign` says.
Every renderer passes them through `inline`, `block` or `value`.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from ..core.canonical import dumps, number_text
from ..core.cell_width import cell_width
from ..core.foreign import inline as inline
from ..core.foreign import log_safe
from ..core.foreign import spreadsheet_safe as spreadsheet_safe
from ..core.value import FrozenMap, SecretRef, Value

ARROW = "→"
NOT_SET = "(not set)"
SENSITIVE = "(sensitive)"
MESSAGE_LIMIT = 500


def block(text: str) -> str:
    """`inline` for text that may have lines of its own."""
    return "\n".join(map(inline, text.split("\n")))


def quote(text: str) -> str:
    """Foreign text in double quotes, with quotes and backslashes escaped."""
    return '"' + inline(text.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def json_line(data: object) -> str:
    """JSON for programs, on one line, which may be printed into a build log."""
    return log_safe(dumps(data))


def message(text: str) -> str:
    """An error text from elsewhere, on one line; one that is too long is cut, and says so and
    where it is whole."""
    whole = inline(text.strip())
    if len(whole) <= MESSAGE_LIMIT:
        return whole
    told = f"{len(whole):,} characters, all of them with --json and in the audit log"
    return f"{whole[:MESSAGE_LIMIT]}… ({told})"


def value(item: Value) -> str:
    """One value for people, whole: strings quoted, numbers exact."""
    if item is None:
        return NOT_SET
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, int | Decimal):
        return number_text(item)
    if isinstance(item, str):
        return quote(item)
    if isinstance(item, SecretRef):
        return _reference(item)
    if isinstance(item, FrozenMap):
        inner = ", ".join(f"{quote(key)} = {value(item[key])}" for key in sorted(item))
        return f"{{{inner}}}"
    return "[" + ", ".join(value(element) for element in item) + "]"


def spread(item: Value, width: int) -> Iterator[str]:
    """`value`, over several lines if it is a collection that takes more than `width` columns."""
    one = value(item)
    if cell_width(one) <= width or not isinstance(item, FrozenMap | tuple):
        yield one
        return
    if isinstance(item, FrozenMap):
        begin, end, after = "{", "}", ""
        parts = [(f"  {quote(key)} = ", item[key]) for key in sorted(item)]
    else:
        begin, end, after = "[", "]", ","
        parts = [("  ", element) for element in item]
    yield begin
    for lead, part in parts:
        first, *rest = spread(part, width - cell_width(lead) - len(after))
        *lines, last = lead + first, *(f"  {line}" for line in rest)
        yield from (*lines, last + after)
    yield end


def _reference(ref: SecretRef) -> str:
    """A secret as the configuration names it: `secret_env("NAME")`, `var.NAME`."""
    if ref.source == "variable":
        return f"var.{inline(ref.name)}"
    return f"secret_{inline(ref.source)}({quote(ref.name)})"


def masked(item: Value, sensitive: bool) -> str:
    """`value`, or what may be said about a sensitive one: whether it is set, and its reference."""
    if item is None or isinstance(item, SecretRef) or not sensitive:
        return value(item)
    return SENSITIVE


def pair(before: Value, after: Value, sensitive: bool = False) -> tuple[str, str]:
    """Both sides of a change, whole."""
    return masked(before, sensitive), masked(after, sensitive)


def count(number: int, noun: str, plural: str = "") -> str:
    """`1 object`, `1,200 objects`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def dotted(path: tuple[str, ...]) -> str:
    """A path for people: `config.retention.ms`; the empty path is the object itself."""
    return inline(".".join(path)) if path else "object"


def pad(text: str, width: int) -> str:
    """The text, filled with spaces to `width` columns."""
    return text + " " * (width - cell_width(text))


def wrapped(text: str, width: int) -> list[str]:
    """The text in lines of at most `width` columns, broken after blanks and commas if possible."""
    lines = []
    while cell_width(text) > width:
        end = next(n for n in range(width, 0, -1) if n == 1 or cell_width(text[:n]) <= width)
        good = max(text.rfind(mark, 0, end) for mark in " ,") + 1
        lines.append(text[: good or end].rstrip(" "))
        text = text[good or end :].lstrip(" ")
    return [*lines, text]


def table(rows: list[list[str]], right: frozenset[int] = frozenset()) -> list[str]:
    """Lines of aligned columns, two spaces apart. right: columns set flush right."""
    if not rows:
        return []
    widths = [max(map(cell_width, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        line = [
            " " * (width - cell_width(cell)) + cell if index in right else pad(cell, width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(line).rstrip())
    return lines
