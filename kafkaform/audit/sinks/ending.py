"""Where a log in a file ends: behind the last record that is certain to have been written whole.

What a power loss leaves of the last append can be any part of it, in any order: a line without
its end, but also zeros or garbage with lines behind them that look well. None of it was durable,
so nothing was sent on its word; it is left out like a torn line, and kept aside before anything
is appended. Records of earlier appends are judged by the chain alone: who changes one of those
is told so. All records of one append bear the same time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO

from ..line import Line, digest_line, match_last_members

CHUNK = 1 << 16
Span = tuple[int, int]
"""Where a line begins and ends in the file, without its newline."""


def find_end(file: BinaryIO, last: int, line: Callable[[int, int], Line]) -> int:
    """Offset behind the newline of the last sound line. last: behind that of the last line;
    line: what stands in a span."""
    before, spans = _find_last_append(file, last, line)
    for span in spans:
        found = line(*span)
        if not _is_whole(found):
            return span[0]
        if not _is_successor(before, found):
            # Lost blocks leave no record whole that stands behind them: this one was written so.
            return last
        before = found
    return last


def find_line_end(file: BinaryIO, before: int) -> int:
    """Offset after the last newline that stands before this offset; 0 if there is none."""
    while before > 0:
        start = max(0, before - CHUNK)
        file.seek(start)
        found = file.read(before - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        before = start
    return 0


def _find_last_append(
    file: BinaryIO, end: int, line: Callable[[int, int], Line]
) -> tuple[Line | None, list[Span]]:
    """The lines of the last append, and the one before them, if there is one."""
    spans: list[Span] = []
    time: bytes | None = None
    while end:
        span = (find_line_end(file, end - 1), end - 1)
        found = line(*span)
        written = _get_time(found)
        if None not in (time, written) and written != time:
            return found, spans[::-1]
        time = time or written
        spans.append(span)
        end = span[0]
    return None, spans[::-1]


def _get_time(line: Line) -> bytes | None:
    """When the record was written, None if that cannot be told."""
    members = match_last_members(line)
    return members["rest"].rpartition(b'"time":')[2] if members else None


def _is_whole(line: Line) -> bool:
    members = match_last_members(line)
    return members is not None and digest_line(line, members) == members["hash"]


def _is_successor(before: Line | None, line: Line) -> bool:
    """True if this record names the one before it."""
    members = match_last_members(line)
    known = match_last_members(before) if before is not None else None
    return members is None or known is None or known["hash"] == members["prev"]
