"""Write values as HCL text that reads back as the same values, for `import`.

In every string, `${`, `%{`, quotes, backslashes and control characters are escaped, so that no
value of a live system can become code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import TypeAlias

from msgspec import Struct, field

from ..core.canonical import render_number
from ..core.value import SecretRef, Value
from .format import format_text
from .tokens import KEYWORDS

_LINE = 80
"""A list that is longer than this on one line gets a line for each element."""


class Code(Struct, frozen=True):
    """An expression that is already text, such as the reference `var.prefix`."""

    text: str


Writable: TypeAlias = "Value | Code | Mapping[str, Writable]"


class NewBlock(Struct, frozen=True):
    """A block to write."""

    type: str
    labels: tuple[str, ...] = ()
    """Any strings; they are quoted."""
    attributes: Mapping[str, Writable] = field(default_factory=dict)
    """In the order to write them; an attribute with the value None is left out."""
    blocks: tuple[NewBlock, ...] = ()


def write_blocks(blocks: Iterable[NewBlock]) -> str:
    """The blocks as formatted text, with an empty line between them.

    Raises ValueError for a type or attribute name that is not an identifier, and for a number that
    is not finite.
    """
    return format_text("\n".join("\n".join(_render_block(block)) + "\n" for block in blocks))


def write_value(value: Writable) -> str:
    """One value as formatted text, on several lines if it is a map or a long list. Keys are
    sorted."""
    return format_text(f"x = {_render_value(value)}\n").removeprefix("x = ").removesuffix("\n")


def quote_string(text: str) -> str:
    """The text as a quoted string."""
    # What reads it normalises it to NFC, so a text in another form comes back changed.
    return f'"{_ESCAPED.sub(_escape_character, text)}"'


def is_identifier(text: str) -> bool:
    """Whether the text can be a name or key without quotes in every place."""
    return bool(_IDENTIFIER.fullmatch(text)) and text not in KEYWORDS


_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")  # ASCII only, though HCL allows more
# The last alternative is a command to the logs of build servers (see `core.text.display`), which
# obey it wherever it stands in a line.
_ESCAPED = re.compile(r'["\\]|[$%](?=\{)|[^\x20-\x7e]|(?<=#)#(?=\w*\[)')
_SHORT: Mapping[str, str] = {
    '"': '\\"',
    "\\": "\\\\",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "$": "$$",
    "%": "%%",
    "#": "\\u0023",
}


def _escape_character(match: re.Match[str]) -> str:
    character = match.group()
    if character in _SHORT:
        return _SHORT[character]
    if character.isprintable():
        return character
    code = ord(character)
    if 0xD800 <= code <= 0xDFFF:
        raise ValueError("half of a surrogate pair is not text")
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _render_block(block: NewBlock) -> Iterator[str]:
    labels = "".join(f" {quote_string(label)}" for label in block.labels)
    header = f"{_check_name(block.type)}{labels} {{"
    lines = [
        f"{_check_name(name)} = {_render_value(value)}"
        for name, value in block.attributes.items()
        if value is not None
    ]
    for inner in block.blocks:
        lines.extend(["", *_render_block(inner)] if lines else _render_block(inner))
    if not lines:
        yield header + "}"
        return
    yield header
    yield from lines
    yield "}"


def _check_name(text: str) -> str:
    if not _IDENTIFIER.fullmatch(text):
        raise ValueError("not an identifier")
    return text


def _render_value(value: Writable) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | Decimal():
            return _render_number(value)
        case str():
            return quote_string(value)
        case tuple():
            return _render_list([_render_value(item) for item in value])
        case Mapping():
            return _render_map(value)
        case SecretRef():
            return _render_secret(value)
        case Code():
            return value.text


def _render_number(value: int | Decimal) -> str:
    if isinstance(value, Decimal) and not value.is_finite():
        raise ValueError("not a finite number")
    return render_number(value)


def _render_list(items: list[str]) -> str:
    line = f"[{', '.join(items)}]"
    if len(line) <= _LINE and "\n" not in line:
        return line
    return "[\n" + "".join(f"{item},\n" for item in items) + "]"


def _render_map(value: Mapping[str, Writable]) -> str:
    if not value:
        return "{}"
    items = (
        f"{key if is_identifier(key) else quote_string(key)} = {_render_value(value[key])}\n"
        for key in sorted(value)
    )
    return "{\n" + "".join(items) + "}"


def _render_secret(reference: SecretRef) -> str:
    if reference.source == "variable":
        return f"var.{_check_name(reference.name)}"
    if reference.words:
        return f"secret_command({_render_list(list(map(quote_string, reference.words)))})"
    return f"secret_{_check_name(reference.source)}({quote_string(reference.name)})"
