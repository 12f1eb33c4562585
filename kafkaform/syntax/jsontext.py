"""Decode the text of a JSON string, and map places in it back to places in the file."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from typing import TypeAlias

from ..core.diagnostics import Diagnostic, Range
from . import complaints, limits
from .faults import SyntaxFault, make_fault
from .source import Source

OffsetMarks: TypeAlias = tuple[tuple[int, int], ...]
"""Pairs (offset in the decoded text, offset in the JSON text): from each pair on, both texts are
the same until the next escape."""

_ESCAPE = re.compile(
    r"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})"
    r"|u([0-9a-fA-F]{4})|([\"\\/bfnrt])|(.))",
    re.DOTALL,
)
_SIMPLE: Mapping[str, str] = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_PART = re.compile(r'"(?:[^"\\\x00-\x1f]++|\\[^\x00-\x1f])*')


def decode_string(source: Source, start: int, end: int) -> tuple[str, OffsetMarks]:
    """Decode the string between the quotes at `start` and before `end`. Raises SyntaxFault."""
    raw = source.text[start + 1 : end - 1]
    if "\\" not in raw:  # most strings have no escapes
        return raw, ((0, start + 1),)
    pieces: list[str] = []
    marks = [(0, start + 1)]
    faults: list[Diagnostic] = []
    at = size = 0
    for escape in _ESCAPE.finditer(raw):
        character = _decode_escape(escape)
        if character is None:
            span = start + 1 + escape.start(), start + 1 + escape.end()
            faults.append(_make_escape_fault(source, *span, half=escape[3] is not None))
        pieces += [raw[at : escape.start()], character or ""]
        size += escape.start() - at + len(character or "")
        at = escape.end()
        marks.append((size, start + 1 + at))
    if faults:
        raise SyntaxFault(*faults[: limits.DIAGNOSTICS])
    pieces.append(raw[at:])
    return "".join(pieces), tuple(marks)


def _decode_escape(escape: re.Match[str]) -> str | None:
    """The character that an escape stands for; None if it is not a valid escape."""
    high, low, code, simple, _ = escape.groups()
    if high:  # JSON writes characters beyond U+FFFF as two halves, a surrogate pair
        return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00)
    if code:
        number = int(code, 16)
        return None if 0xD800 <= number <= 0xDFFF else chr(number)
    return _SIMPLE.get(simple, simple)


def _make_escape_fault(source: Source, start: int, end: int, half: bool) -> Diagnostic:
    if half:
        detail = "It is one half of a surrogate pair, and the other half is missing."
        return make_fault(source, start, end, "Half a character", detail)
    detail = 'Valid are \\", \\\\, \\/, \\b, \\f, \\n, \\r, \\t and \\uNNNN.'
    advice = "Write \\\\ for a backslash."
    return make_fault(source, start, end, "Invalid escape sequence", detail, advice)


def explain_string(source: Source, start: int) -> SyntaxFault:
    """The error for a quote at which no valid string begins."""
    match = _PART.match(source.text, start)
    assert match is not None
    at = match.end()
    character = source.text[at : at + 1]
    if character in ("", "\n", "\r", "\\"):
        summary, detail, _ = complaints.UNCLOSED_STRING
        advice = 'Add the closing ", or write \\n for a newline.'
        return SyntaxFault(make_fault(source, start, at, summary, detail, advice))
    summary = "A string cannot contain control characters"
    advice = f"Write \\u{ord(character):04x} instead."
    return SyntaxFault(make_fault(source, at, at + 1, summary, advice=advice))


class EmbeddedSource(Source):
    """The decoded text of a JSON string; its places are places in the file.

    So an error in a template is shown where the user wrote it, though escapes came before it.
    """

    def __init__(self, outer: Source, start: int, end: int) -> None:
        text, marks = decode_string(outer, start, end)
        super().__init__(outer.file, text)
        self._outer = outer
        self._inside = [inside for inside, _ in marks]
        self._outside = [outside for _, outside in marks]

    def range(self, start: int, end: int) -> Range:
        return self._outer.range(self._map_offset(start), self._map_offset(end))

    def excerpt(self, offset: int) -> str | None:
        return self._outer.excerpt(self._map_offset(offset))

    def _map_offset(self, offset: int) -> int:
        index = bisect_right(self._inside, offset) - 1
        return self._outside[index] + offset - self._inside[index]
