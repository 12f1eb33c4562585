"""Lines of a file: where they begin and end, found from its end or by their numbers, and long ones
that are read piece by piece."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import BinaryIO

from ..records import LONG, Line, LongLine, digest_line, match_last_members

CHUNK = 1 << 16
"""Bytes that are read at once where a newline is looked for; the end of a record is shorter."""
Span = tuple[int, int]
"""The offsets at which a line begins and ends, without its newline."""


def find_end(file: BinaryIO, last: int, line: Callable[[int, int], Line]) -> int:
    """The offset after the newline of the last sound line.

    last: the offset after the newline of the last line; line: reads the line in a span.
    """
    before, spans = find_last_append(file, last, line)
    for span in spans:
        content = line(*span)
        if not _is_whole(content):
            return span[0]
        if not _is_successor(before, content):
            # Both records are whole and do not follow each other. No power loss does that, so the
            # readers of the chain have to see it.
            return last
        before = content
    return last


def find_line_end(file: BinaryIO, before: int) -> int:
    """The offset after the last newline before this offset; 0 if there is none."""
    while before > 0:
        start = max(0, before - CHUNK)
        file.seek(start)
        newline = file.read(before - start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        before = start
    return 0


def find_line_after(file: BinaryIO, after: int, end: int) -> int:
    """The offset of the first line whose record has a number greater than `after`. end: that after
    the last line."""
    # Numbers grow from line to line, so a few looks are enough for a log of any size.
    low, high = 0, end
    while low < high:
        start = find_line_end(file, (low + high) // 2)
        stop = find_newline(file, (low + high) // 2)
        seq = read_seq(file, start, stop)
        if seq is None:
            # A line that is no record has no number. The readers of the chain have to see it,
            # unless sound records that nobody needs come after it.
            return _scan_for_line_after(file, after, end)
        low, high = (stop + 1, high) if seq <= after else (low, start)
    return low


def _scan_for_line_after(file: BinaryIO, after: int, end: int) -> int:
    start = offset = 0
    while start < end:
        stop = find_newline(file, start)
        seq = read_seq(file, start, stop)
        start = stop + 1
        if seq is not None and seq <= after:
            offset = start
    return offset


def find_newline(file: BinaryIO, offset: int) -> int:
    """The offset of the first newline from here on, which is there."""
    file.seek(offset)
    while piece := file.read(CHUNK):
        if (newline := piece.find(b"\n")) >= 0:
            return offset + newline
        offset += len(piece)
    return offset


def read_seq(file: BinaryIO, start: int, stop: int) -> int | None:
    """The number of the record in a line, None if it is no record."""
    file.seek(max(start, stop - CHUNK))
    members = match_last_members(file.read(stop - max(start, stop - CHUNK)))
    return int(members["seq"]) if members else None


def find_last_append(
    file: BinaryIO, end: int, line: Callable[[int, int], Line]
) -> tuple[Line | None, list[Span]]:
    """The lines of the last append, and the line before them, if there is one."""
    spans: list[Span] = []
    time: bytes | None = None
    while end:
        span = (find_line_end(file, end - 1), end - 1)
        content = line(*span)
        written = _get_time(content)
        if None not in (time, written) and written != time:
            return content, spans[::-1]
        time = time or written
        spans.append(span)
        end = span[0]
    return None, spans[::-1]


def _get_time(line: Line) -> bytes | None:
    """The time of the record, None if the line is no record."""
    members = match_last_members(line)
    return members["rest"].rpartition(b'"time":')[2] if members else None


def _is_whole(line: Line) -> bool:
    members = match_last_members(line)
    return members is not None and digest_line(line, members) == members["hash"]


def _is_successor(before: Line | None, line: Line) -> bool:
    """True if this record names the one before it."""
    members = match_last_members(line)
    previous = match_last_members(before) if before is not None else None
    return members is None or previous is None or previous["hash"] == members["prev"]


class _Descriptor:
    """An open file that is closed when nothing refers to it any more."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        os.close(self.number)


def read_line_at(file: BinaryIO, first: int, last: int) -> Line:
    """The whole line at these offsets."""
    file.seek(first)
    start = file.read(min(last - first, LONG))
    return start if len(start) == last - first else read_long_line(file, start) or start


def read_long_line(file: BinaryIO, start: bytes) -> LongLine | None:
    """The line that begins with `start`, read to its end; None if it was torn off."""
    size, end = len(start), start[-CHUNK:]
    first = file.tell() - size
    while piece := file.readline(LONG):
        size, end = size + len(piece), (end + piece)[-CHUNK:]
        if piece.endswith(b"\n"):
            # Not by its name: when it is read again, another file can have the name of the log.
            descriptor = _Descriptor(os.dup(file.fileno()))
            return LongLine(size - 1, end[:-1], partial(_read_span, descriptor, first, size - 1))
    return None


def _read_span(file: _Descriptor, first: int, size: int) -> Iterator[bytes]:
    """So many bytes from this offset on, as far as they exist."""
    while size and (piece := os.pread(file.number, min(size, LONG), first)):
        first, size = first + len(piece), size - len(piece)
        yield piece
