"""Turn values and messages into text that is safe to print.

Names, configuration values, principals and server messages are foreign text
(`core/text.py`): they can contain terminal escapes, line breaks or log commands. Every
renderer passes them through `inline`, `render_block` or `render_value`. So are the pages of
providers, such as those of `describe`. `Paint` adds the colours of a terminal.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator
from decimal import Decimal
from itertools import zip_longest
from typing import Literal, TypeAlias

from msgspec import Struct

from ..core.canonical import dumps, render_number
from ..core.text import (
    Grid,
    Page,
    Prose,
    cell_width,
    escape_log_commands,
    render_quantity,
    render_with_exact,
)
from ..core.text import escape_formula as escape_formula
from ..core.text import inline as inline
from ..core.text import render_count as render_count
from ..core.value import FrozenMap, SecretRef, Value

ARROW = "→"
NOT_SET = "(not set)"
SENSITIVE = "(sensitive)"
_PLAIN = "\x1b[0m"
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_WORDS = re.compile(
    r' *(?:"(?:[^"\\]|\\.){0,400}"|`[^`]{0,80}`|\d (?:[KMGT]?i?B|ms|s|min|h|d)(?:/s)?\b|[^ ])+'
    r'(?: (?:\([^()"]{1,40}\)|\{[^{}"]{1,40}\})[^ ]*)?'
)
"""Words with the spaces before them. Quoted text, a command, an amount with its unit, and a word
with a short remark in parentheses or a short block are one word, so that people can copy them."""
_BARE_WORDS = re.compile(r" *[^ ]+")
_LOG_COMMAND = re.compile(r"[ \x1b\[0-9;m]*(::|##)")
_HANGS = {f"{mark} ": 4 if mark in "+-~=." else 2 for mark in "+-~=.!#?·"}
"""Sign before a text -> how much further in its next lines stand: prose goes on under its first
word, values stand further in than their names."""
MESSAGE_LIMIT = 500
"""Characters of a server's message that people see. Some servers answer with a stack trace."""

Detail: TypeAlias = Literal["concise", "grouped", "full"]
"""One line per change, everything with equal changes together, or everything for each change by
itself."""
# Names, so that the meaning of a colour is decided here alone. Codes 30 to 37 follow the colour
# scheme of the terminal; exact colours would be unreadable on some backgrounds.
SGR = {
    "create": "32",
    "update": "33",
    "delete": "31",
    "adopt": "36",
    "import": "36",
    "forget": "35",
    "refresh": "36",
    "noop": "",
    "blocked": "1;31",
    "kept": "35",
    "title": "1",
    "dim": "2",
    "error": "1;31",
    "warning": "1;33",
    "applied": "32",
    "failed": "1;31",
    "unknown": "1;33",
    "started": "36",
    "skipped": "33",
}
NARROWEST = 12
"""Columns that each column of a table keeps, however narrow the terminal is."""
PROSE_WIDTH = 96
"""Columns; longer lines of prose are hard to read, however wide the terminal is."""


def render_block(text: str) -> str:
    """`inline` for text of several lines, which stay separate lines."""
    return "\n".join(map(inline, text.split("\n")))


def quote(text: str) -> str:
    """Foreign text in double quotes, with quotes and backslashes escaped."""
    return '"' + inline(text.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def render_json(data: object) -> str:
    """JSON for programs, on one line."""
    # Build systems read commands such as `::add-mask::` from their logs, also inside JSON.
    return escape_log_commands(dumps(data))


def render_message(text: str) -> str:
    """A server's error message on one line. A long one is cut and says where all of it is."""
    whole = inline(text.strip())
    if len(whole) <= MESSAGE_LIMIT:
        return whole
    remainder = f"{len(whole):,} characters; --json and the audit log have them all"
    return f"{whole[:MESSAGE_LIMIT]}… ({remainder})"


def render_value(item: Value) -> str:
    """One value for people, complete: strings quoted, numbers exact."""
    if item is None:
        return NOT_SET
    # Before numbers: Python's bool is an int.
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, int | Decimal):
        return render_number(item)
    if isinstance(item, str):
        return quote(item)
    if isinstance(item, SecretRef):
        return _render_reference(item)
    if isinstance(item, FrozenMap):
        inner = ", ".join(f"{quote(key)} = {render_value(item[key])}" for key in sorted(item))
        return f"{{{inner}}}"
    return "[" + ", ".join(render_value(element) for element in item) + "]"


def render_spread(item: Value, width: int) -> Iterator[str]:
    """`render_value` as lines: a collection wider than `width` columns takes several."""
    text = render_value(item)
    if cell_width(text) <= width or not isinstance(item, FrozenMap | tuple):
        yield text
        return
    if isinstance(item, FrozenMap):
        begin, end, after = "{", "}", ""
        items = [(f"  {quote(key)} = ", item[key]) for key in sorted(item)]
    else:
        begin, end, after = "[", "]", ","
        items = [("  ", element) for element in item]
    yield begin
    for lead, value_item in items:
        first, *following = render_spread(value_item, width - cell_width(lead) - len(after))
        *lines, last = lead + first, *(f"  {line}" for line in following)
        yield from (*lines, last + after)
    yield end


def _render_reference(ref: SecretRef) -> str:
    """A secret as the configuration names it: `secret_env("NAME")`, `var.NAME`."""
    if ref.source == "variable":
        return f"var.{inline(ref.name)}"
    if ref.words:
        return f"secret_command([{', '.join(map(quote, ref.words))}])"
    return f"secret_{inline(ref.source)}({quote(ref.name)})"


def mask_value(item: Value, sensitive: bool, unit: str = "") -> str:
    """`render_value`, with a unit `7 d (604800000)`. Of a sensitive value, only whether it is set,
    and its reference."""
    if sensitive and item is not None and not isinstance(item, SecretRef):
        return SENSITIVE
    if unit and render_quantity(item, unit):
        return render_with_exact(item, unit)
    return render_value(item)


def render_path(path: tuple[str, ...]) -> str:
    """A path for people: `config.retention.ms`. The empty path is the object itself."""
    return inline(".".join(path)) if path else "object"


def pad_text(text: str, width: int) -> str:
    """The text, padded with spaces to `width` columns."""
    return text + " " * (width - cell_width(text))


def wrap_text(text: str, width: int) -> list[str]:
    """The text in lines of at most `width` columns, broken after spaces and commas if possible."""
    lines = []
    while cell_width(text) > width:
        end = next(n for n in range(width, 0, -1) if n == 1 or cell_width(text[:n]) <= width)
        good = max(text.rfind(mark, 0, end) for mark in " ,") + 1
        lines.append(text[: good or end].rstrip(" "))
        text = text[good or end :].lstrip(" ")
    return [*lines, text]


def wrap_lines(lines: Iterable[str], width: int) -> Iterator[str]:
    """The lines in lines of at most `width` columns, broken at spaces and never in a name.

    lines: can contain colours. Further lines are indented more than the first one. A word or quoted
    text that is wider than the screen stays whole on a line of its own. What has several lines
    already stays as it is.
    """
    for line in lines:
        plain = _drop_colours(line)
        if "\n" in line or cell_width(plain) <= width:
            yield line
        else:
            yield from _wrap_line(line, plain, width)


def _wrap_line(line: str, plain: str, width: int) -> list[str]:
    """plain: the line without its colours."""
    indent = len(plain) - len(plain.lstrip(" "))
    hang = " " * (indent + _HANGS.get(plain[indent : indent + 2], 0 if indent else 2))
    lines, code, used = [" " * indent], "", indent
    for word in _list_words(line[indent:], width - len(hang)):
        size = cell_width(_drop_colours(word))
        # Build systems read commands from the beginnings of lines, so none may get there.
        if used + size > width and used > len(hang) and not _LOG_COMMAND.match(word):
            # Each line has its own colour codes: a pager shows lines one by one.
            lines[-1] += _PLAIN if code else ""
            lines.append(hang + code)
            word = word.lstrip(" ")
            used, size = len(hang), cell_width(_drop_colours(word))
        lines[-1] += word
        used += size
        for code in _COLOUR.findall(word):
            code = "" if code == _PLAIN else code
    return lines


def _drop_colours(text: str) -> str:
    return _COLOUR.sub("", text) if "\x1b" in text else text


def _list_words(text: str, width: int) -> Iterator[str]:
    """The words with the spaces before them; quoted text is one word if it fits into `width`."""
    for word in _WORDS.findall(text):
        fits = cell_width(_drop_colours(word).lstrip(" ")) <= width
        yield from [word] if fits else _BARE_WORDS.findall(word)


def render_table(rows: list[list[str]], right: frozenset[int] = frozenset()) -> list[str]:
    """The rows as lines with aligned columns, two spaces apart. right: columns aligned right."""
    if not rows:
        return []
    # Columns of the terminal, not characters: a CJK character takes two, a combining one none.
    widths = [max(map(cell_width, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        line = [
            " " * (width - cell_width(cell)) + cell if index in right else pad_text(cell, width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(line).rstrip())
    return lines


class Paint(Struct, frozen=True):
    """Called with a style of `SGR` and a text, returns the text in that style."""

    colour: bool
    """False returns every text unchanged."""

    def __call__(self, style: str, text: str) -> str:
        code = SGR.get(style, "")
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour and code and text else text


def render_page(page: Page, width: int | None = None) -> Iterator[str]:
    """The page line by line. width: of the terminal in columns, None for a pipe."""
    for item in page:
        if isinstance(item, Grid):
            rows = [[inline(cell) for cell in row] for row in item.rows]
            yield from render_table(wrap_cells(rows, width), item.right)
        elif isinstance(item, Prose):
            yield from textwrap.wrap(inline(item.text), min(PROSE_WIDTH, width or PROSE_WIDTH))
        else:
            yield inline(item)


def wrap_cells(rows: list[list[str]], width: int | None) -> list[list[str]]:
    """The rows with cells wrapped into further rows, so that lines fit into `width` columns."""
    # Nothing is wrapped for a pipe: `grep` and `awk` need a row on one line.
    if width is None or not rows:
        return rows
    widths = [max(map(cell_width, column)) for column in zip(*rows, strict=True)]
    while sum(widths) + 2 * (len(widths) - 1) > width and max(widths) > NARROWEST:
        # Down to the next narrower column, so that several wide ones shrink evenly.
        excess = sum(widths) + 2 * (len(widths) - 1) - width
        widest = widths.index(max(widths))
        second_widest = max((w for n, w in enumerate(widths) if n != widest), default=0)
        widths[widest] = max(
            NARROWEST, widths[widest] - excess, min(second_widest, widths[widest] - 1)
        )
    return [list(line) for row in rows for line in _wrap_row(row, widths)]


def _wrap_row(row: list[str], widths: list[int]) -> Iterable[tuple[str, ...]]:
    """One row as several, so that no cell is wider than its column. widths: in columns."""
    cells = [wrap_text(text, width) for text, width in zip(row, widths, strict=True)]
    return zip_longest(*cells, fillvalue="")
