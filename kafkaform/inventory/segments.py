"""Closed pieces of an audit log: lines byte for byte, each file named by its first and last one.

A log lands as far as it is proven, or not at all: neither what was changed after it was written,
nor another log in the place of the one that landed before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ..audit.chain import parse_line_head, read_glances
from ..audit.event import Glance
from ..audit.line import read_line
from ..audit.sink import Sink
from ..core.errors import StorageError
from ..core.head import GENESIS, Head
from ..core.landing import AUDIT, ROOT, ROWS
from .landing import check_part, write_new
from .place import LandingPlace

MAX_RECORDS, MAX_BYTES = 10_000, 8 << 20
"""Of one file; a single record may have more bytes."""
_NAME = re.compile(r"(\d{12})-(\d{12})" + re.escape(ROWS))


def land_log(place: LandingPlace, lineage: str, sink: Sink, anchor: Head | None) -> tuple[str, ...]:
    """Write what the log has and the place lacks; the keys of the new files. anchor: the head that
    the state keeps. Raises StorageError for a log that is not what was written."""
    folder = f"{ROOT}/{AUDIT}/{check_part(lineage)}"
    landed = _find_last_landed(place, folder)
    sink.pass_over_torn()
    head = GENESIS
    for glance in _check_records(sink, anchor, landed):
        head = Head(glance.seq, glance.hash)
    if head.seq < landed.seq:
        raise StorageError(
            f"{sink.location} ends at record {head.seq}, but record {landed.seq} of it has landed",
            _ADVICE,
        )
    if head == landed:
        return ()
    keys = []
    for first, lines in _split_pieces(_check_records(sink, anchor, landed), landed.seq, head.seq):
        key = f"{folder}/{first:012d}-{first + len(lines) - 1:012d}{ROWS}"
        write_new(place, key, b"".join(lines))
        keys.append(key)
    return tuple(keys)


_ADVICE = (
    "Somebody or something changed the log. Put it back from a backup, or compare it with the "
    "landed files, which are copies of it; nothing of it was landed now."
)


def _find_last_landed(place: LandingPlace, folder: str) -> Head:
    """The last record that is there."""
    found = ((_NAME.fullmatch(e.key.rpartition("/")[2]), e.key) for e in place.names(folder))
    last = max(((int(match[2]), key) for match, key in found if match), default=None)
    if last is None:
        return GENESIS
    file = place.read(last[1])
    lines = file.data.splitlines() if file else []
    if not lines:
        raise StorageError(f"{place.location}/{last[1]} is empty", _ADVICE)
    return parse_line_head(lines[-1], f"{place.location}/{last[1]}")


def _check_records(sink: Sink, anchor: Head | None, landed: Head) -> Iterator[Glance]:
    """The records, each checked. Raises StorageError."""
    for glance in read_glances(sink.lines(), sink.location, anchor):
        if glance.seq == landed.seq and glance.hash != landed.hash:
            raise StorageError(
                f"{sink.location}: record {glance.seq} is not the one that has landed", _ADVICE
            )
        yield glance


def _split_pieces(
    records: Iterable[Glance], after: int, last: int
) -> Iterator[tuple[int, list[bytes]]]:
    """The number of the first line, and lines with their newlines, of each file. after: the last
    record that is there; last: the one up to which all was checked, since others may write on."""
    lines: list[bytes] = []
    first, size = after + 1, 0
    for record in records:
        if not after < record.seq <= last:
            continue
        line = read_line(record.line) + b"\n"
        if lines and (len(lines) == MAX_RECORDS or size + len(line) > MAX_BYTES):
            yield first, lines
            first, lines, size = record.seq, [], 0
        lines.append(line)
        size += len(line)
    if lines:
        yield first, lines
