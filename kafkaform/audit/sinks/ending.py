"""Find the end of a log in a file: after the last record that is certain to be written whole.

A power loss can leave any part of the last append, in any order: a line without its end, but also
zeros or garbage before lines that look sound. None of it was durable, so nothing was sent because
of it. It is left out like a torn line, and kept aside before anything is appended. Records of
earlier appends are judged by the chain alone, so that a changed one is reported as such. All
records of one append have the same time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO

from ..line import Line, digest_line, match_last_members

CHUNK = 1 << 16
Span = tuple[int, int]
"""The offsets at which a line begins and ends, without its newline."""


def find_end(file: BinaryIO, last: int, line: Callable[[int, int], Line]) -> int:
    """The offset after the newline of the last sound line.

    last: the offset after the newline of the last line; line: reads the line in a span.
    """
    before, spans = _find_last_append(file, last, line)
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


def _find_last_append(
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
