"""Offsets of a text as the positions of the Language Server Protocol, and the reverse."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Mapping
from functools import cached_property
from itertools import accumulate, chain
from typing import NamedTuple

UTF_16 = "utf-16"
"""The encoding of positions that every editor knows."""


class TextPosition(NamedTuple):
    """A place between two characters."""

    line: int
    """Counted from 0."""
    character: int
    """Units of the encoding before it in its line."""


class Span(NamedTuple):
    """A part of a text."""

    start: TextPosition
    end: TextPosition


_UNITS: Mapping[str, Callable[[str], int]] = {
    "utf-8": lambda text: len(text.encode("utf-8", "surrogatepass")),
    UTF_16: lambda text: len(text.encode("utf-16-le", "surrogatepass")) // 2,
    "utf-32": len,
}
"""Encoding of positions -> the number of its units in a text."""
STEP = 512
"""Characters between two places whose units are counted once."""
_MARK = "\ufeff"
_END = re.compile("\r\n?|\n")


class Text:
    """The text of a file."""

    def __init__(self, text: str, encoding: str = UTF_16) -> None:
        """text: as the editor or the file has it; encoding: what positions count."""
        self.mark = text.startswith(_MARK)
        """Whether a byte order mark stands before it, which editors count and `syntax` does not."""
        self.text = text[1:] if self.mark else text
        """Without the mark. All offsets are offsets into it."""
        self._count = _UNITS[encoding]

    @cached_property
    def _starts(self) -> array[int]:
        """Offset of the first character of each line."""
        # The protocol has a third line end, a carriage return alone.
        return array("q", chain((0,), (line_end.end() for line_end in _END.finditer(self.text))))

    @cached_property
    def _counted_starts(self) -> array[int]:
        """The same for the lines that messages count, which end with a newline."""
        if "\r" not in self.text:
            return self._starts
        return array("q", chain((0,), (newline.end() for newline in re.finditer("\n", self.text))))

    @cached_property
    def _counts(self) -> array[int] | None:
        """The units before every STEP-th character; None if each character is one unit."""
        if self.text.isascii():
            return None
        steps = (self.text[at : at + STEP] for at in range(0, len(self.text), STEP))
        return array("q", accumulate(map(self._count, steps), initial=0))

    def _count_before(self, offset: int) -> int:
        """The units before an offset. A file can be one line, so no line is counted as a whole."""
        if self._counts is None:
            return offset
        step = offset // STEP
        return self._counts[step] + self._count(self.text[step * STEP : offset])

    def locate(self, offset: int) -> TextPosition:
        """The position of an offset."""
        line = bisect_right(self._starts, offset) - 1
        count = self._count_before(offset) - self._count_before(self._starts[line])
        return TextPosition(line, count + self._get_lead(line))

    def locate_span(self, start: int, end: int) -> Span:
        """The positions of text[start:end]."""
        return Span(self.locate(start), self.locate(end))

    def find_offset(self, position: TextPosition) -> int:
        """The offset of a position; the nearest one in the text if it has no such place."""
        if position.line >= len(self._starts):
            return len(self.text)
        start = self._starts[max(0, position.line)]
        line_end = _END.search(self.text, start)
        line = self.text[start : len(self.text) if line_end is None else line_end.start()]
        target = position.character - self._get_lead(position.line)
        if line.isascii():
            return start + min(max(0, target), len(line))
        first = self._count_before(start)
        low, high = start, start + len(line)
        while low < high:  # the last place with at most as many units before it
            middle = (low + high + 1) // 2
            units = self._count_before(middle) - first
            low, high = (middle, high) if units <= target else (low, middle - 1)
        return low

    def find_line(self, line: int, column: int) -> int:
        """The offset of a line and a column of code points, both counted from 1."""
        index = min(max(0, line - 1), len(self._counted_starts) - 1)
        return min(self._counted_starts[index] + max(0, column - 1), len(self.text))

    def _get_lead(self, line: int) -> int:
        return self._count(_MARK) if self.mark and line == 0 else 0
