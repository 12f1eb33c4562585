"""Segments: old lines of a log, many in one compressed object, and the manifest that lists them.

    segments/FIRST-LAST.jsonl.gz   exactly the lines of the records FIRST to LAST
    manifest.json                  every segment with its digests and the heads around it
    checkpoints/SEQ.json.gz        what the records up to SEQ say together (`checkpoint`)

The lines stay what they were, byte for byte, so the chain goes through segments and lines that are
not sealed yet as if there were no border. A log without a manifest has no segments.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Iterator
from functools import partial
from itertools import islice

from msgspec import Struct

from ..core.canonical import Misfit, from_data, parse_json
from ..core.errors import StorageError
from ..core.head import GENESIS, Head
from ..core.objects import Objects
from ..core.value import FrozenMap
from .event import Line, split_lines

MANIFEST, SEGMENTS = "manifest.json", "segments"
FORMAT = 1
"""The format of manifest and segments; a reader refuses later ones."""
_DIGEST = re.compile(r"[0-9a-f]{64}")
ADVICE = (
    "Restore this object from a backup, or from an earlier version in the bucket. kafkaform never "
    "changes a segment, and `kafkaform audit verify` shows all that is damaged."
)


class Segment(Struct, frozen=True):
    """One object with the lines of many records."""

    first: int
    """The number of its first record."""
    last: int
    """The number of its last record."""
    head_in: str
    """The hash of the record before the first."""
    head_out: str
    """The hash of the last record."""
    length: int
    """How many bytes its lines have, with their newlines."""
    lines_sha256: str
    """The digest of these bytes, hexadecimal."""
    object_sha256: str
    """The digest of the compressed object, hexadecimal."""
    time: str
    """When it was sealed, RFC 3339, UTC."""
    archived: str | None = None
    """The place that has the object now, None if it is beside the manifest."""

    @property
    def key(self) -> str:
        """Its name beside the manifest."""
        return f"{SEGMENTS}/{self.first:020d}-{self.last:020d}.jsonl.gz"


class Manifest(Struct, frozen=True):
    """The sealed part of a log."""

    format: int = FORMAT
    """The format of manifest and segments."""
    lineage: str = ""
    """The state that the log belongs to."""
    segments: tuple[Segment, ...] = ()
    """From the first record on, without gaps."""
    version: str | None = None
    """Not stored: what a `replace` of the manifest has to name, None if there is none yet."""

    @property
    def head(self) -> Head:
        """The last sealed record."""
        if not self.segments:
            return GENESIS
        return Head(self.segments[-1].last, self.segments[-1].head_out)


# ── reading ─────────────────────────────────────────────────────────────────────────────


def read_manifest(objects: Objects) -> Manifest:
    """The manifest of a log, without segments if it has none. Raises StorageError."""
    stored = objects.read(MANIFEST)
    if stored is None:
        return Manifest()
    source = f"{objects.location}/{MANIFEST}"
    try:
        return _parse_manifest(stored.data, stored.version, source)
    except ValueError as error:
        raise StorageError(f"{source} cannot be used: {error}", ADVICE) from None


def _parse_manifest(data: bytes, version: str, source: str) -> Manifest:
    """Raises ValueError for anything that is no manifest."""
    document = parse_json(data)
    if not isinstance(document, FrozenMap) or type(document.get("format")) is not int:
        raise Misfit("is not the manifest of an audit log")
    if document["format"] != FORMAT:
        # Before the members, which a later format may define differently.
        raise StorageError(
            f"{source} has format {document['format']}; this version reads {FORMAT}",
            "A newer version of kafkaform wrote it. Use that version. Nothing was changed.",
        )
    manifest = from_data(Manifest, document.with_items({"version": version}))
    head = GENESIS
    for segment in manifest.segments:
        if segment.first != head.seq + 1 or segment.last < segment.first:
            raise Misfit(f"has a gap: no segment begins with record {head.seq + 1}")
        if segment.head_in != head.hash:
            raise Misfit(f"has a segment {segment.first} that does not follow the one before it")
        digests = (segment.head_out, segment.lines_sha256, segment.object_sha256)
        if not all(map(_DIGEST.fullmatch, digests)) or segment.length < 1:
            raise Misfit(f"has a segment {segment.first} with an impossible digest or length")
        head = Head(segment.last, segment.head_out)
    return manifest


def read_sealed(objects: Objects, manifest: Manifest, after: int = 0) -> Iterator[Line]:
    """The sealed lines of records with a number greater than `after`. Raises StorageError for a
    segment that is archived, missing or damaged."""
    for segment in manifest.segments:
        if segment.last > after:
            data = read_segment(objects, segment)
            lines = split_lines(data, partial(read_segment, objects, segment))
            yield from islice(lines, max(0, after + 1 - segment.first), None)


def read_last_sealed(objects: Objects, manifest: Manifest) -> bytes | None:
    """The last sealed line, None if there is none. Raises StorageError."""
    if not manifest.segments:
        return None
    data = read_segment(objects, manifest.segments[-1])
    return data[data.rfind(b"\n", 0, -1) + 1 : -1]


def read_segment(objects: Objects, segment: Segment) -> bytes:
    """The lines of a segment, each with its newline. Raises StorageError."""
    if segment.archived is not None:
        raise StorageError(
            f"{objects.location}: records {segment.first:,} to {segment.last:,} are archived in "
            f"{segment.archived}",
            f"Bring them back with `kafkaform audit archive --restore {segment.archived}`.",
        )
    stored = objects.read(segment.key)
    if stored is None:
        raise make_segment_error(objects, segment, "it is missing")
    return unpack_segment(objects, segment, stored.data)


def unpack_segment(objects: Objects, segment: Segment, data: bytes) -> bytes:
    """The lines in the bytes of a segment's object, which must be what the manifest says. Raises
    StorageError."""
    if hashlib.sha256(data).hexdigest() != segment.object_sha256:
        raise make_segment_error(objects, segment, "its bytes are not those that were sealed")
    lines = _unpack(data, segment.length)
    if lines is None or hashlib.sha256(lines).hexdigest() != segment.lines_sha256:
        raise make_segment_error(objects, segment, "its lines are not those that were sealed")
    if lines.count(b"\n") != segment.last + 1 - segment.first or not lines.endswith(b"\n"):
        raise make_segment_error(objects, segment, "it has another number of lines than its name")
    return lines


def _unpack(data: bytes, length: int) -> bytes | None:
    """The unpacked bytes of a gzip file, None unless it has exactly so many."""
    # A few bytes of a forged file can unpack to gigabytes, so never more than expected.
    unpacking = zlib.decompressobj(wbits=31)
    try:
        lines = unpacking.decompress(data, length + 1)
    except zlib.error:
        return None
    return lines if len(lines) == length and unpacking.eof and not unpacking.unused_data else None


def make_segment_error(objects: Objects, segment: Segment, damage: str) -> StorageError:
    """The error for a segment that is not what the manifest says."""
    return StorageError(
        f"the audit log is damaged: {objects.location}/{segment.key}: {damage}", ADVICE
    )
