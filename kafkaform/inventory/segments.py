"""Copy an audit log to landing files, byte for byte, in pieces named by first and last record.

A log lands as far as it is proven, or not at all: neither an altered log nor another log in place
of the one that landed before is copied.
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
"""Limits of one file. A single record may have more bytes."""
_NAME = re.compile(r"(\d{12})-(\d{12})" + re.escape(ROWS))


def land_log(store: LandingPlace, lineage: str, sink: Sink, anchor: Head | None) -> tuple[str, ...]:
    """Write the records that have not landed yet; return the keys of the new files.

    anchor: the head that the state keeps. Raises StorageError for a log that was altered.
    """
    folder = f"{ROOT}/{AUDIT}/{check_part(lineage)}"
    landed = _find_last_landed(store, folder)
    # A line that a crash cut short is no record; the next run seals it.
    sink.pass_over_torn()
    head = GENESIS
    for glance in _check_records(sink, anchor, landed):
        head = Head(glance.seq, glance.hash)
    # Shorter than what has landed: records were removed, or it is another log.
    if head.seq < landed.seq:
        raise StorageError(
            f"{sink.location} ends at record {head.seq}, but record {landed.seq} has landed",
            _ADVICE,
        )
    if head == landed:
        return ()
    keys = []
    # Read a second time: verifying comes first, so that a bad end keeps even the good start out.
    for first, lines in _split_pieces(_check_records(sink, anchor, landed), landed.seq, head.seq):
        # Twelve digits, so that names sort by number.
        key = f"{folder}/{first:012d}-{first + len(lines) - 1:012d}{ROWS}"
        write_new(store, key, b"".join(lines))
        keys.append(key)
    return tuple(keys)


_ADVICE = (
    "Somebody or something changed the log. Restore it from a backup, or compare it with the "
    "landed files, which are copies of it. Nothing of it has landed now."
)


def _find_last_landed(store: LandingPlace, folder: str) -> Head:
    """Return the last record that has landed."""
    entries = ((_NAME.fullmatch(e.key.rpartition("/")[2]), e.key) for e in store.names(folder))
    last = max(((int(match[2]), key) for match, key in entries if match), default=None)
    if last is None:
        return GENESIS
    file = store.read(last[1])
    lines = file.data.splitlines() if file else []
    if not lines:
        raise StorageError(f"{store.location}/{last[1]} is empty", _ADVICE)
    return parse_line_head(lines[-1], f"{store.location}/{last[1]}")


def _check_records(sink: Sink, anchor: Head | None, landed: Head) -> Iterator[Glance]:
    """Yield the records, each verified. Raises StorageError."""
    for glance in read_glances(sink.lines(), sink.location, anchor):
        # The hash chain covers all earlier records: one equal hash proves that the whole start is
        # the same.
        if glance.seq == landed.seq and glance.hash != landed.hash:
            raise StorageError(
                f"{sink.location}: record {glance.seq} differs from the one that has landed",
                _ADVICE,
            )
        yield glance


def _split_pieces(
    records: Iterable[Glance], after: int, last: int
) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the number of the first record, and lines with their newlines, for each file.

    after: the last record that has landed; last: the one up to which everything was verified.
    Others may be appending meanwhile.
    """
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
