"""One configuration text and the way from offsets to lines, columns and excerpts."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property
from itertools import accumulate

from ..core.diagnostics import Range
from .limits import EXCERPT_CHARACTERS

_SECRET_LINE = re.compile(
    r"(?i)^(.*?(?:password|passphrase|secret|token|credential|jaas|private_?key)[\w.\"-]*\s*[=:]\s*)\S.*"
)


class Source:
    """text: decoded, without a byte order mark; lead: bytes of the mark that was cut off;
    line: the number of the first line (the console counts on from earlier input)."""

    def __init__(self, file: str, text: str, lead: int = 0, line: int = 1) -> None:
        self.file = file
        self.text = text
        self._lead = lead
        self._first_line = line

    def __repr__(self) -> str:
        return f"Source({self.file})"

    @cached_property
    def _starts(self) -> list[int]:
        """Offset of the first character of each line."""
        return [0, *(found.end() for found in re.finditer("\n", self.text))]

    @cached_property
    def _start_bytes(self) -> list[int]:
        if self.text.isascii():
            return self._starts
        sizes = (len(line.encode("utf-8", "surrogatepass")) + 1 for line in self.text.split("\n"))
        return [0, *accumulate(sizes)]

    def range(self, start: int, end: int) -> Range:
        """The place of text[start:end]."""
        line, column, start_byte = self._locate(start)
        end_line, end_column, end_byte = self._locate(end)
        return Range(self.file, line, column, end_line, end_column, start_byte, end_byte)

    def _locate(self, offset: int) -> tuple[int, int, int]:
        index = bisect_right(self._starts, offset) - 1
        before = self.text[self._starts[index] : offset]
        size = len(before.encode("utf-8", "surrogatepass"))
        return (
            index + self._first_line,
            len(before) + 1,
            self._lead + self._start_bytes[index] + size,
        )

    def excerpt(self, offset: int) -> str | None:
        """The line at `offset`, cut when very long, what follows `password =` and the like
        hidden; None when the cut would remove the place itself."""
        begin = self._starts[bisect_right(self._starts, offset) - 1]
        if offset - begin > EXCERPT_CHARACTERS:
            return None
        stop = self.text.find("\n", begin)
        line = self.text[begin : None if stop < 0 else stop].rstrip("\r")
        line = _SECRET_LINE.sub(r"\1(hidden)", line[: EXCERPT_CHARACTERS + 1])
        return line if len(line) <= EXCERPT_CHARACTERS else line[:EXCERPT_CHARACTERS] + "…"
