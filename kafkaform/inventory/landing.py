"""Write landing files (`core.landing`): snapshots, the register, and pieces of audit logs, in a
folder, a store or HDFS.

Rows are written first and the `.meta.json` last, so that half a snapshot is none. A log is copied
byte for byte in pieces named by first and last record. It lands as far as it is proven, or not at
all: neither an altered log nor another log in place of the one that landed before is copied.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from ..audit.chain import parse_line_head, read_glances
from ..audit.event import Glance, read_line, render_time
from ..audit.segments import find_start
from ..audit.sink import Sink
from ..core.canonical import dumps
from ..core.errors import StorageError
from ..core.head import GENESIS, Head
from ..core.landing import AUDIT, META, REGISTER, ROOT, ROWS, LandedRow, Meta
from ..core.objects import Entry, Folder, ObjectExists, Objects, StoredObject
from ..core.secret import mask_secrets
from ..state.backends.obstores import is_remote, open_objects
from .hdfs import SCHEME, open_hdfs


class LandingPlace(Protocol):
    """The part of `core.objects.Objects` that landing needs. Keys have `/` between their parts.
    Every method raises StorageError."""

    @property
    def location(self) -> str:
        """The name of the place in messages."""

    def read(self, key: str) -> StoredObject | None:
        """Return the file; None: there is none."""

    def create(self, key: str, data: bytes) -> str:
        """Write a new file, completely or not at all. Raises ObjectExists."""

    def names(self, prefix: str, after: str | None = None) -> tuple[Entry, ...]:
        """List the files below a folder, sorted by key; only keys > `after`."""


def open_place(root: str) -> LandingPlace:
    """Open a root. root: a folder, or a URL such as `s3://bucket/fleet`. Raises UsageError."""
    return open_remote(root) if is_remote(root) else Folder(Path(root))


def open_remote(url: str) -> Objects:
    """Open a root in a store or in HDFS. Raises UsageError."""
    return open_hdfs(url) if urlsplit(url).scheme == SCHEME else open_objects(url, {})


def make_exists_error(store: LandingPlace, key: str) -> StorageError:
    """The error for a file that exists already."""
    return StorageError(
        f"{store.location}/{key} already exists; it was not changed",
        "Landing files are written once. Take the snapshot again: it will get another name.",
    )


_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}", re.ASCII)
_ROW = ("kind", "key", "attrs", "instance", "scope_id", "address", "owner", "incarnation")
_META = (
    *("source", "subject", "snapshot", "started", "ended", "complete", "rows", "sha256"),
    *("scope_id", "coverage", "error", "scopes", "format"),
)


class Landed(Struct, frozen=True):
    """A snapshot that was written."""

    key: str
    """Of its `.meta.json`."""
    meta: Meta


def make_snapshot_name(seconds: float) -> str:
    """`20261122T051530.123456Z`: sorts by time, and is valid in every path."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y%m%dT%H%M%S.%f}Z"


def land_rows(store: LandingPlace, meta: Meta, rows: Iterable[LandedRow] | None) -> Landed:
    """Write a snapshot. rows: None if nothing could be read; then there is no file of rows.

    Raises StorageError, also if the file exists already.
    """
    base = "/".join(
        (ROOT, check_part(meta.source), check_part(meta.subject), check_part(meta.snapshot))
    )
    if rows is not None:
        lines = [render_row(row) for row in rows]
        # The checksum is of exactly these bytes; readers compute it again before they use a row.
        data = b"".join(lines)
        meta = replace(meta, rows=len(lines), sha256=hashlib.sha256(data).hexdigest())
        # Also without rows: "read, and nothing is there" must differ from "not read".
        write_new(store, base + ROWS, data)
    # The error is in the words of a broker or a client, which may repeat a password.
    meta = replace(meta, error=None if meta.error is None else mask_secrets(meta.error))
    write_new(store, base + META, _render_line(_list_members(meta, _META)))
    return Landed(base + META, meta)


def land_register(store: LandingPlace, snapshot_time: float, register: Mapping[str, Any]) -> str:
    """Write fleet.hcl as data; return its key. taken: seconds since the epoch."""
    key = f"{ROOT}/{REGISTER}/{make_snapshot_name(snapshot_time)}.json"
    write_new(store, key, _render_line({**register, "taken": render_time(snapshot_time)}))
    return key


def write_new(store: LandingPlace, key: str, data: bytes) -> None:
    """Write a file that must not exist. Raises StorageError."""
    try:
        store.create(key, data)
    except ObjectExists:
        raise make_exists_error(store, key) from None


def render_row(row: LandedRow) -> bytes:
    """Return the row as canonical JSON, with a newline."""
    return _render_line(_list_members(row, _ROW))


def check_part(segment: str) -> str:
    """Check a part of a path. Raises StorageError if it could lead elsewhere."""
    if not _PART.fullmatch(segment):
        raise StorageError(
            f"{segment!r} cannot be the name of a file or folder",
            "A name has at most 128 letters, digits, `.`, `_` and `-`, and begins with a letter, a "
            "digit or `_`.",
        )
    return segment


def _list_members(record: object, names: Iterable[str]) -> dict[str, Any]:
    """Return the members that have a value."""
    members = {name: getattr(record, name) for name in names}
    return {name: value for name, value in members.items() if value is not None}


def _render_line(value: Mapping[str, Any]) -> bytes:
    return dumps(value).encode("ascii") + b"\n"


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
    # Archived records cannot be read here, and need not be if they have landed.
    start = find_start(sink.sealed, anchor, landed) if landed != GENESIS else GENESIS
    for glance in read_glances(sink.lines(start.seq), sink.location, anchor, start):
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
