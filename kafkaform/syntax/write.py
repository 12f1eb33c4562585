"""Values to HCL text that reads back as the same values; what `import` writes.

Every string is quoted with `${`, `%{`, quotes, backslashes and control characters escaped, so
that no value can become code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import TypeAlias

from msgspec import Struct, field

from ..core.canonical import render_number
from ..core.value import FrozenMap, SecretRef, Value
from .format import format_text
from .tokens import KEYWORDS

_LINE = 80
"""Lists longer than this, written out, get a line per element."""


class Code(Struct, frozen=True):
    """An expression that is text already, such as a reference: `var.prefix`."""

    text: str


Writable: TypeAlias = Value | Code


class NewBlock(Struct, frozen=True):
    """attributes: names in the order to write them; None is left out. labels: any strings."""

    type: str
    labels: tuple[str, ...] = ()
    attributes: Mapping[str, Writable] = field(default_factory=dict)
    blocks: tuple[NewBlock, ...] = ()


def write_blocks(blocks: Iterable[NewBlock]) -> str:
    """The blocks as formatted text, an empty line between them.

    Raises ValueError for a type or attribute name that is no identifier, or a number that is
    not finite.
    """
    return format_text("\n".join("\n".join(_render_block(block)) + "\n" for block in blocks))


def write_value(value: Writable) -> str:
    """One value as formatted text, over several lines where it is a map or a long list; keys of
    maps sorted."""
    return format_text(f"x = {_render_value(value)}\n").removeprefix("x = ").removesuffix("\n")


def quote_string(text: str) -> str:
    """The text as a quoted string; readers normalise it to NFC."""
    return f'"{_ESCAPED.sub(_escape_character, text)}"'


def is_identifier(text: str) -> bool:
    """Whether the text can stand without quotes as a name or key, whatever the place."""
    return bool(_IDENTIFIER.fullmatch(text)) and text not in KEYWORDS


_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
# The last: a command of build logs (`core.text.foreign`), wherever it stands in a line.
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


def _escape_character(found: re.Match[str]) -> str:
    character = found.group()
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
        case FrozenMap():
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


def _render_map(value: Mapping[str, Value]) -> str:
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
    return f"secret_{_check_name(reference.source)}({quote_string(reference.name)})"
