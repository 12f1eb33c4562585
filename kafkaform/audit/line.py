"""One record as a line of the log: where its hash stands, and what it is a hash of.

A line can be as large as a plan of everything, so one that is long is not held: it is read piece
by piece, once to be checked and again if somebody wants to know what it says.
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
    rb'"run":(?P<run>"(?:[^"\\]|\\.)*"),"seq":(?P<seq>[1-9][0-9]{0,17}),"time":"[^"\\]*"\})'
)


class LongLine(Struct, frozen=True):
    """A line that is not held. size: its bytes, without the newline; end: the last of them, of
    which there are enough for the members after the body; pieces: reads all of it again."""

    size: int
    end: bytes
    pieces: Callable[[], Iterable[bytes]]


Line = bytes | LongLine


def match_last_members(line: Line) -> re.Match[bytes] | None:
    """The members after the body. Only the record's own "hash" can be the last one: `run` and
    `time` are strings, and a quote inside a string is escaped."""
    end = line.end if isinstance(line, LongLine) else line
    start = end.rfind(b'"hash":"')
    return _LAST.fullmatch(end, start) if start > 0 else None


def digest_line(line: Line, members: re.Match[bytes]) -> bytes:
    """The hash that the line should hold, over everything but that hash. members: its last."""
    hashed = hashlib.sha256()
    if isinstance(line, LongLine):
        left = line.size - (members.end() - members.start())
        for piece in line.pieces():
            hashed.update(memoryview(piece)[: max(left, 0)])
            left -= len(piece)
    else:
        hashed.update(memoryview(line)[: members.start()])
    hashed.update(members["rest"])
    return hashed.hexdigest().encode()


def read_line(line: Line) -> bytes:
    """All of it. Raises StorageError if a long one is no more what was read the first time."""
    if not isinstance(line, LongLine):
        return line
    whole = b"".join(line.pieces())
    members = match_last_members(whole)
    known = match_last_members(line)
    if members is None or known is None or digest_line(whole, members) != known["hash"]:
        raise StorageError(
            "a record of the audit log was changed while the log was read",
            "Find out who else writes to it, and check it with `kafkaform audit verify`.",
        )
    return whole
