"""Seal a log: its old lines become segments (`sink`), and are removed where they were before.

Everything here is done by the run that has the lock, in an order that a crash cannot break: a
segment is written and read back, then the manifest names it, then the state says that its log is
sealed, and only then lines are removed that a segment contains. After a crash the lines are in both
places, and the next run goes on.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice

from msgspec import structs

from ..core.canonical import dumps
from ..core.errors import StorageError
from ..core.head import Head
from ..core.objects import ObjectChanged, ObjectExists, Objects
from .records import ADVICE as CHAIN_ADVICE
from .records import Line, digest_line, match_last_members, read_line
from .sink import (
    FORMAT,
    MANIFEST,
    SEGMENTS,
    SealableSink,
    Segment,
    SegmentManifest,
    list_segments,
    load_manifest,
    make_overtaken_error,
    make_segment_error,
    parse_range,
    read_sealed,
    read_segment,
    unpack,
)

LEVEL = 6
"""How hard gzip tries: of its levels, a usual one."""


def seal_lines(
    objects: Objects,
    portions: Iterable[tuple[int, bytes]],
    *,
    lineage: str,
    time: str,
    size: int,
    ensure: Callable[[float], None],
    report: Callable[[int], None] = lambda last: None,
) -> SegmentManifest:
    """Write lines that follow the sealed ones as segments, and return the manifest.

    portions: as `SealableSink.read_unsealed` gives them; size: of the lines of one segment, in
    bytes; ensure: raises Locked unless the lock is still ours; report: is told the number of the
    last line that was read. Raises StorageError for lines that do not follow the sealed ones, and
    for a place that does not keep what was written; Locked.
    """
    portions = iter(portions)
    new = next(portions, None)
    manifest, version = load_manifest(objects)
    if new is None:
        return manifest
    portions = chain((new,), portions)
    # Of a run that was interrupted before it could name them in the manifest.
    left_over = {f: last for f, last in list_segments(objects) if last > manifest.head.seq}
    last = manifest.segments[-1] if manifest.segments else None
    if last is not None and last.archived is None and last.length < size:
        # Logs are sealed often, and a log of years must not become thousands of small segments: the
        # last one is made again with more lines, until it is full.
        small = (last.first, read_segment(objects, last))
        manifest = structs.replace(manifest, segments=manifest.segments[:-1])
        portions = chain((small,), portions)
    for lines in _join_portions(portions, size, left_over, report):
        head = follow_lines(manifest.head, lines, objects.location)
        segment = _write_segment(objects, manifest.head, head, lines, time)
        # Asked after the segment was written, which can take long: it harms nobody.
        ensure(0.0)
        segments = (*manifest.segments, segment)
        manifest = SegmentManifest(FORMAT, lineage, segments)
        version = write_manifest(objects, manifest, version)
    return manifest


def _join_portions(
    portions: Iterable[tuple[int, bytes]],
    size: int,
    left_over: dict[int, int],
    report: Callable[[int], None],
) -> Iterator[bytes]:
    """The lines of each segment. left_over: first line -> last line of segments that an interrupted
    run wrote and no manifest names; the same ones are made again."""
    joined: list[bytes] = []
    begin = length = 0
    for first, lines in portions:
        begin = begin or first
        if joined and (first - 1 == left_over.get(begin) or length + len(lines) > size):
            yield b"".join(joined)
            joined, begin, length = [], first, 0
        joined.append(lines)
        length += len(lines)
        report(first - 1 + lines.count(b"\n"))
    if joined:
        yield b"".join(joined)


def follow_lines(head: Head, lines: bytes, source: str) -> Head:
    """The head after these lines. Raises StorageError if one does not follow the one before."""
    start = 0
    while start < len(lines):
        end = lines.index(b"\n", start)
        line = lines[start:end]
        members = match_last_members(line)
        if (
            members is None
            or digest_line(line, members) != members["hash"]
            or (int(members["seq"]), members["prev"].decode()) != (head.seq + 1, head.hash)
        ):
            problem = "is not what was written after the record before it"
            raise StorageError(f"{source}: record {head.seq + 1} {problem}", CHAIN_ADVICE)
        head, start = Head(head.seq + 1, members["hash"].decode()), end + 1
    return head


def _write_segment(objects: Objects, before: Head, head: Head, lines: bytes, time: str) -> Segment:
    """Write a segment, and read it back. Raises StorageError."""
    # Without a time in the header, the same lines become the same bytes in another run.
    data = gzip.compress(lines, LEVEL, mtime=0)
    digest = hashlib.sha256(lines).hexdigest()
    segment = Segment(
        before.seq + 1, head.seq, before.hash, head.hash, len(lines), digest, "", time
    )
    try:
        objects.create(segment.key, data)
    except ObjectExists as earlier:
        # A run was interrupted between this write and that of the manifest. Another version of the
        # library can have compressed the same lines to other bytes.
        if unpack(earlier.found.data, len(lines)) == lines:
            data = earlier.found.data
        else:
            _replace(objects, segment.key, data, earlier.found.version)
    stored = objects.read(segment.key)
    if stored is None or stored.data != data or unpack(stored.data, len(lines)) != lines:
        raise make_segment_error(objects, segment, "it is not what was just written")
    return structs.replace(segment, object_sha256=hashlib.sha256(data).hexdigest())


def write_manifest(objects: Objects, manifest: SegmentManifest, version: str | None) -> str:
    """Write a manifest over this version, and return the new one. Raises Locked, StorageError."""
    members = {
        "format": manifest.format,
        "lineage": manifest.lineage,
        "segments": manifest.segments,
    }
    data = dumps(members).encode("ascii") + b"\n"
    if version is not None:
        return _replace(objects, MANIFEST, data, version)
    try:
        return objects.create(MANIFEST, data)
    except ObjectExists:
        raise make_overtaken_error(objects.location) from None


def _replace(objects: Objects, key: str, data: bytes, version: str) -> str:
    try:
        return objects.replace(key, data, version)
    except ObjectChanged:
        raise make_overtaken_error(objects.location) from None


# ── removing ────────────────────────────────────────────────────────────────────────────


def remove_superseded(
    objects: Objects,
    manifest: SegmentManifest,
    ensure: Callable[[float], None],
    is_old: Callable[[float], bool],
) -> tuple[str, ...]:
    """Remove segments that no manifest names any more, after their lines were found in others.

    is_old: whether the grace of an object that was written at this time has passed. Returns the
    names of objects whose lines are not those of the log; they stay. Raises StorageError, Locked.
    """
    named, strays = {segment.key for segment in manifest.segments}, []
    for entry in objects.names(SEGMENTS):
        if entry.key in named or not is_old(entry.modified):
            continue
        if is_superseded(objects, manifest, entry.key):
            ensure(0.0)
            objects.delete(entry.key)
        elif parse_range(entry.key)[1] <= manifest.head.seq:
            strays.append(entry.key)
    return tuple(strays)


def is_superseded(objects: Objects, manifest: SegmentManifest, key: str) -> bool:
    """Whether the segments that the manifest names have all lines of this object. Raises
    StorageError."""
    first, last = parse_range(key)
    if not 0 < first <= last <= manifest.head.seq:
        return False
    return _has_lines(objects, key, read_sealed(objects, manifest, first - 1))


def _has_lines(objects: Objects, key: str, lines: Iterable[Line]) -> bool:
    """Whether an object has as many of these lines as its name says, from the first one on."""
    first, last = parse_range(key)
    stored = objects.read(key)
    content = b"".join(read_line(line) + b"\n" for line in islice(lines, last - first + 1))
    return stored is None or unpack(stored.data, len(content)) == content


def find_strays(sink: SealableSink, manifest: SegmentManifest, head: Head) -> tuple[str, ...]:
    """The names of objects beside a log that are not a part of it: no reader looks at them. What an
    interrupted run left has the same lines as the log, and is none of them. head: the end of the
    log. Raises StorageError."""
    named = {segment.key for segment in manifest.segments}
    strays = list(sink.compare_sealed(manifest))
    for entry in sink.sealed.names(SEGMENTS):
        first, _ = parse_range(entry.key)
        after = max(first - 1, 0)
        if entry.key not in named and not (
            first > 0
            and manifest.archived.seq <= after
            and _has_lines(sink.sealed, entry.key, sink.lines(after))
        ):
            strays.append(entry.key)
    return tuple(strays)
