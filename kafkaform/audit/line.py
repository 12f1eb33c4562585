"""Lines of the log: find the last members of a record without parsing it, and compute its hash.

A line can be as large as a plan of everything. A long one is not kept in memory: it is read piece
by piece, once to check its hash, and again if somebody wants to know what it says.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable

from msgspec import Struct

from ..core.errors import StorageError

_LAST = re.compile(
    rb'"hash":"(?P<hash>[0-9a-f]{64})",'
    rb'(?P<rest>"kind":"(?P<kind>[a-z_]+)","prev":"(?P<prev>[0-9a-f]{64})",'
    rb'"run":(?P<run>"[^"\\]*(?:\\.[^"\\]*)*"),"seq":(?P<seq>[1-9][0-9]{0,17}),"time":"[^"\\]*"\})'
)


class LongLine(Struct, frozen=True):
    """A line that is not kept in memory."""

    size: int
    """How many bytes it has, without the newline."""
    end: bytes
    """The last of them: enough for the members after the body."""
    pieces: Callable[[], Iterable[bytes]]
    """Reads all of it again."""


Line = bytes | LongLine


def match_last_members(line: Line) -> re.Match[bytes] | None:
    """The members that follow the body, None for a line that is no record."""
    # Canonical JSON sorts the members, so "hash" comes after "actor" and "body". A body may contain
    # the same text, but the last occurrence is the record's own member: after it there are only
    # strings and a number, and a quote inside a string is escaped.
    end = line.end if isinstance(line, LongLine) else line
    start = end.rfind(b'"hash":"')
    return _LAST.fullmatch(end, start) if start > 0 else None


def digest_line(line: Line, members: re.Match[bytes]) -> bytes:
    """The hash that the line should contain, over everything but that hash. members: its last
    ones."""
    hashed = hashlib.sha256()
    if isinstance(line, LongLine):
        remaining = line.size - (members.end() - members.start())
        for piece in line.pieces():
            hashed.update(memoryview(piece)[: max(remaining, 0)])
            remaining -= len(piece)
    else:
        hashed.update(memoryview(line)[: members.start()])
    hashed.update(members["rest"])
    return hashed.hexdigest().encode()


def read_line(line: Line) -> bytes:
    """The whole line. Raises StorageError if a long one has changed since it was read first."""
    if not isinstance(line, LongLine):
        return line
    content = b"".join(line.pieces())
    members = match_last_members(content)
    first_members = match_last_members(line)
    # What was checked and what is used now are two reads, between which the file may change.
    if (
        members is None
        or first_members is None
        or digest_line(content, members) != first_members["hash"]
    ):
        raise StorageError(
            "a record of the audit log was changed while the log was read",
            "Find out who else writes to it, and check it with `kafkaform audit verify`.",
        )
    return content
