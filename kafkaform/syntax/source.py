"""One configuration text, how its offsets become lines, columns and excerpts, and how large it may
be, because pull requests can be hostile."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from functools import cached_property
from itertools import accumulate, chain

from ..core.diagnostics import Range

FILE_BYTES = 8 * 1024 * 1024
"""Size of one file."""
ALL_FILES_BYTES = 64 * 1024 * 1024
"""Size of all configuration files together, and of all files that functions read."""
TOKENS = 800_000
"""Tokens of one file. 10,000 ordinary blocks have 600,000, which take up to 4 s and 300 MB."""

COLLECTION_ELEMENTS = 100_000
"""Elements of one list or object."""
# Python's own limit is 1,000 frames, and a level of evaluation takes several of them.
NESTING = 100
"""Brackets, blocks and templates inside each other; also the depth of an expression, in which a
chain of binary operators counts as one level."""

STRING_CHARACTERS = 1024 * 1024
NUMBER_CHARACTERS = 1000
# `1e999999999` is short, but its digits would fill the memory.
NUMBER_EXPONENT = 1000
DIAGNOSTICS = 50
"""Syntax errors shown for one file; later ones are rarely new."""

EXCERPT_CHARACTERS = 200
"""Characters of a source line in a message."""


_SECRET_NAMES = r"(?:password|passphrase|secret|token|credential|jaas|private_?key)"
_SECRET_WORD = re.compile(_SECRET_NAMES)
# The first pattern is fast and finds few lines; only those are matched with the second one.
_SECRET_LINE = re.compile(rf"(?i)^(.*?{_SECRET_NAMES}[\w.\"-]*\s*[=:]\s*)\S.*")


def _encode_text(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


class Source:
    """A configuration text and its name. Nodes refer to it instead of copying their text."""

    def __init__(self, file: str, text: str, lead: int = 0, line: int = 1) -> None:
        self.file = file
        self.text = text
        """Decoded, without a byte order mark."""
        self._lead = lead
        """How many bytes of a byte order mark were cut off."""
        self._first_line = line
        """The number of the first line; the console counts on from earlier input."""

    def __repr__(self) -> str:
        return f"Source({self.file})"

    @cached_property
    def _starts(self) -> array[int]:
        """Offset of the first character of each line."""
        return array("q", chain((0,), (newline.end() for newline in re.finditer("\n", self.text))))

    @cached_property
    def _start_bytes(self) -> array[int]:
        """The same in bytes of UTF-8, for the `byte` of diagnostics in JSON."""
        if self.text.isascii():
            return self._starts
        sizes = (len(_encode_text(line)) + 1 for line in self.text.split("\n"))
        return array("q", accumulate(sizes, initial=0))

    def range(self, start: int, end: int) -> Range:
        """The place of text[start:end]."""
        line, column, start_byte = self._locate(start)
        if self._start_bytes is self._starts and "\n" not in self.text[start:end]:
            # Every block has such a place: a part of one line of ASCII.
            size = end - start
            return Range(
                self.file, line, column, line, column + size, start_byte, start_byte + size
            )
        end_line, end_column, end_byte = self._locate(end)
        return Range(self.file, line, column, end_line, end_column, start_byte, end_byte)

    def _locate(self, offset: int) -> tuple[int, int, int]:
        index = bisect_right(self._starts, offset) - 1
        begin, begin_byte = self._starts[index], self._start_bytes[index]
        size = offset - begin
        if self._start_bytes is not self._starts:
            size = len(_encode_text(self.text[begin:offset]))
        return index + self._first_line, offset - begin + 1, self._lead + begin_byte + size

    def excerpt(self, offset: int) -> str | None:
        """The line at `offset`, for a message.

        A very long line is cut; None if the cut would remove the place itself. What follows
        `password =` and similar names is hidden.
        """
        begin = self._starts[bisect_right(self._starts, offset) - 1]
        if offset - begin > EXCERPT_CHARACTERS:
            return None
        line = self.text[begin : begin + EXCERPT_CHARACTERS + 2].partition("\n")[0]
        line = line.rstrip("\r")[: EXCERPT_CHARACTERS + 1]
        if _SECRET_WORD.search(line.casefold()):
            line = _SECRET_LINE.sub(r"\1(hidden)", line)
        return line if len(line) <= EXCERPT_CHARACTERS else line[:EXCERPT_CHARACTERS] + "…"
