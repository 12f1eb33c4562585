"""The place of a log (`Sink`), and its old lines there: segments, many lines in one compressed
object, and the manifest that lists them.

    segments/FIRST-LAST.jsonl.gz   exactly the lines of the records FIRST to LAST
    manifest.json                  every segment with its digests and the heads around it
    checkpoints/SEQ.json.gz        what the records up to SEQ say together (`checkpoint`)

A sink stores lines and does not know what they say. The lines of a segment stay what they were,
byte for byte, so the chain goes through segments and lines that are not sealed yet as if there were
no border. A log without a manifest has no segments.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple, Protocol, runtime_checkable

from msgspec import Struct

from ..core.canonical import Misfit, from_data, parse_json
from ..core.errors import Locked, StorageError
from ..core.head import GENESIS, Head
from ..core.objects import Objects
from ..core.value import FrozenMap
from .records import Glance, Line, parse_line_head, parse_time, read_glances, split_lines

MANIFEST, SEGMENTS = "manifest.json", "segments"
FORMAT = 1
"""The format of manifest and segments; a reader refuses later ones."""
LARGEST = 1 << 40
"""More bytes of lines than any segment has."""
_DIGEST = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(rf"{SEGMENTS}/(\d{{20}})-(\d{{20}})\.jsonl\.gz")
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


class SealLimits(Struct, frozen=True):
    """When a log is sealed, and how."""

    pieces: int = 256
    """More objects than this that are not sealed, in a store."""
    live: int = 4 << 20
    """More bytes than this that are not sealed, in a file."""
    segment: int = 8 << 20
    """Bytes of lines in one segment; a single append can have more."""
    grace: float = 86_400.0
    """Seconds for which the objects of sealed lines stay in a store, for readers that are slow."""


LIMITS = SealLimits()


class ArchivedRecords(Struct, frozen=True):
    """The records at the beginning of a log that only an archive has."""

    head: Head = GENESIS
    """The last of them; GENESIS if there are none."""
    place: str = ""
    """Where they are."""

    @property
    def sentence(self) -> str:
        """What a reader says that did not look at them, "" if there are none."""
        if not self.place:
            return ""
        return (
            f"Records 1 to {self.head.seq:,} are archived in {self.place} and were not read: "
            f"`kafkaform audit archive --restore {self.place}` brings them back."
        )


class SegmentManifest(Struct, frozen=True):
    """The sealed part of a log."""

    format: int = FORMAT
    """The format of manifest and segments."""
    lineage: str = ""
    """The state that the log belongs to."""
    segments: tuple[Segment, ...] = ()
    """From the first record on, without gaps."""

    @property
    def head(self) -> Head:
        """The last sealed record."""
        if not self.segments:
            return GENESIS
        return Head(self.segments[-1].last, self.segments[-1].head_out)

    @property
    def archived(self) -> Head:
        """The last record that is in an archive only."""
        ends = [Head(s.last, s.head_out) for s in self.segments if s.archived is not None]
        return ends[-1] if ends else GENESIS

    @property
    def archive(self) -> str:
        """Where the last of those records is, "" if there are none."""
        places = [s.archived for s in self.segments if s.archived is not None]
        return places[-1] if places else ""

    @property
    def heads(self) -> tuple[Head, ...]:
        """The last record of each segment."""
        return tuple(Head(segment.last, segment.head_out) for segment in self.segments)


# ── reading ─────────────────────────────────────────────────────────────────────────────


def read_manifest(objects: Objects) -> SegmentManifest:
    """The manifest of a log, without segments if it has none. Raises StorageError."""
    return load_manifest(objects)[0]


def read_archived(objects: Objects | None) -> ArchivedRecords:
    """The records of a log that cannot be read here. objects: as in `Sink.sealed`. Raises
    StorageError."""
    manifest = SegmentManifest() if objects is None else read_manifest(objects)
    return ArchivedRecords(manifest.archived, manifest.archive)


def find_start(objects: Objects | None, *needed: Head | None) -> Head:
    """The record that the first readable line follows, if some are archived. objects: as in
    `Sink.sealed`; needed: heads that the log must contain.

    A needed head among archived records makes it the beginning of the log: reading then ends with
    the error that says how to bring them back. Raises StorageError.
    """
    archived = read_archived(objects).head
    later = all(
        head is None or head.seq > archived.seq or head in (archived, GENESIS) for head in needed
    )
    return archived if later else GENESIS


def load_manifest(objects: Objects) -> tuple[SegmentManifest, str | None]:
    """The manifest of a log, and the version that a write of it has to replace, None if there is
    none yet. Raises StorageError."""
    stored = objects.read(MANIFEST)
    if stored is None:
        return SegmentManifest(), None
    source = f"{objects.location}/{MANIFEST}"
    try:
        return _parse_manifest(stored.data, source), stored.version
    except ValueError as error:
        raise StorageError(f"{source} cannot be used: {error}", ADVICE) from None


def _parse_manifest(data: bytes, source: str) -> SegmentManifest:
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
    manifest = from_data(SegmentManifest, document)
    head = archived = GENESIS
    for segment in manifest.segments:
        if segment.first != head.seq + 1 or segment.last < segment.first:
            raise Misfit(f"has a gap: no segment begins with record {head.seq + 1}")
        if segment.head_in != head.hash:
            raise Misfit(f"has a segment {segment.first} that does not follow the one before it")
        # Only a beginning of the log can be elsewhere: readers begin behind it (`find_start`).
        if segment.archived is not None and head != archived:
            raise Misfit(f"has a segment {segment.first} in an archive, but not the one before it")
        # Before any segment is opened: its length limits how much a reader unpacks.
        digests = (segment.head_out, segment.lines_sha256, segment.object_sha256)
        if not all(map(_DIGEST.fullmatch, digests)) or not 0 < segment.length < LARGEST:
            raise Misfit(f"has a segment {segment.first} with an impossible digest or length")
        if not _is_time(segment.time):
            raise Misfit(f"has a segment {segment.first} with an impossible time")
        head = Head(segment.last, segment.head_out)
        archived = head if segment.archived is not None else archived
    return manifest


def _is_time(text: str) -> bool:
    try:
        parse_time(text)
    except ValueError:
        return False
    return text.endswith("Z")


def read_sealed(
    objects: Objects,
    manifest: SegmentManifest,
    after: int = 0,
    report: Callable[[int], None] = lambda count: None,
) -> Iterator[Line]:
    """The sealed lines of records with a number greater than `after`. report: is told how many
    segments were read. Raises StorageError for a segment that is archived, missing or damaged."""
    wanted = [segment for segment in manifest.segments if segment.last > after]
    for number, segment in enumerate(wanted, 1):
        data = read_segment(objects, segment)
        report(number)
        # A long line is not kept: whoever needs it reads its segment again (`LongLine`).
        lines = split_lines(data, partial(read_segment, objects, segment))
        yield from islice(lines, max(0, after + 1 - segment.first), None)


def read_last_sealed(objects: Objects, manifest: SegmentManifest) -> bytes | None:
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
    # The object first: nothing is unpacked that is not, byte for byte, what was sealed.
    if hashlib.sha256(data).hexdigest() != segment.object_sha256:
        raise make_segment_error(objects, segment, "its bytes are not those that were sealed")
    lines = unpack(data, segment.length)
    if lines is None or hashlib.sha256(lines).hexdigest() != segment.lines_sha256:
        raise make_segment_error(objects, segment, "its lines are not those that were sealed")
    if lines.count(b"\n") != segment.last + 1 - segment.first or not lines.endswith(b"\n"):
        raise make_segment_error(objects, segment, "it has another number of lines than its name")
    return lines


def unpack(data: bytes, length: int) -> bytes | None:
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


def list_segments(objects: Objects) -> Iterator[tuple[int, int]]:
    """First and last record in the names of the segments that are there, sorted."""
    for entry in objects.names(SEGMENTS):
        first, last = parse_range(entry.key)
        if first:
            yield first, last


def parse_range(key: str) -> tuple[int, int]:
    """First and last record in the name of a segment; zeros for a name that none can have."""
    match = _NAME.fullmatch(key)
    first, last = (int(match[1]), int(match[2])) if match else (0, 0)
    return (first, last) if 0 < first <= last else (0, 0)


class Torn(Struct, frozen=True):
    """The rest of an append that a crash cut short."""

    file: str
    """The file that keeps its bytes now."""
    length: int
    """How many bytes it has."""
    sha256: str
    """Their digest, hexadecimal."""


class Tail(NamedTuple):
    """The end of a log."""

    after: int
    """The number of the record before its first line."""
    lines: Iterator[Line]
    """As `Sink.lines` yields them."""
    archived: ArchivedRecords
    """The records that cannot be read here."""

    @property
    def whole(self) -> bool:
        """True if it has all lines that can be read here."""
        return self.after <= self.archived.head.seq


class Sink(Protocol):
    """An append-only list of lines, written by one process at a time, under the state's lock.

    An implementation must return from `append` only when the lines are durable, and must refuse
    all further appends after one has failed. It must never change or remove a whole line.
    """

    @property
    def location(self) -> str:
        """The name of the log in messages."""

    @property
    def sealed(self) -> Objects | None:
        """The segments and checkpoints of the log (`segments`); None for a log that has neither."""

    def lines(self, after: int = 0) -> Iterator[Line]:
        """The whole lines without newlines, the first one first, without a torn last line.

        after: only lines of records with a higher number; what is before them is not read. Memory
        is bounded: long lines are not kept. Raises StorageError.
        """

    def tail(self, count: int) -> Tail:
        """The last `count` lines that are not archived, or some more; all of them if there are
        fewer. Raises StorageError, also while the lines are read."""

    def last(self) -> bytes | None:
        """The last whole line, None if there is none. Raises StorageError."""

    def claim(self) -> bytes | None:
        """The last whole line. From now on lines are appended after it, or not at all."""

    def pass_over_torn(self) -> None:
        """Leave out, from now on, lines at the end that were never durable. Raises StorageError.

        A power loss can leave any part of the last append, so that even whole lines of it are no
        records. Readers that look for tampering do not ask for this.
        """

    def set_aside(self, seq: int) -> tuple[Torn, ...]:
        """Make the log end with a whole line before record `seq` is written.

        What a crash left after the last whole line is moved away. The answer names everything that
        was moved and that no record mentions yet. Raises Locked if another run is writing.
        """

    def append(self, lines: Sequence[bytes]) -> None:
        """Write lines together, after the claimed end and all lines that were appended since, and
        make them durable. Raises Locked if the log ends elsewhere, StorageError."""

    def check_writable(self, size: int = 0) -> None:
        """Raises StorageError if `size` bytes could not be appended. Called before anything is
        sent."""


@runtime_checkable
class SealableSink(Sink, Protocol):
    """A log whose old lines can be sealed in segments; only the run that has the lock asks it."""

    @property
    def sealed(self) -> Objects:
        """The segments and checkpoints of the log."""

    def is_long(self, after: int, limits: SealLimits) -> bool:
        """Whether more lines follow line `after` than a log should have that is not sealed."""

    def read_unsealed(self, after: int) -> Iterator[tuple[int, bytes]]:
        """What can be sealed: lines after line `after` in portions that stay together, each with
        the number of its first line. The last append is left out, because its end may be torn, and
        the next one has to find it. Raises StorageError."""

    def compare_sealed(self, manifest: SegmentManifest) -> tuple[str, ...]:
        """The names of objects in place of sealed lines whose bytes are not those of the segments;
        no reader of the log looks at them. Raises StorageError."""

    def remove_sealed(
        self,
        manifest: SegmentManifest,
        ensure: Callable[[float], None],
        older: Callable[[str], bool],
    ) -> tuple[str, ...]:
        """Remove lines that are in segments, after they were compared with them.

        ensure: raises Locked unless the lock is still ours; older: whether the grace of a segment
        that was sealed at this time has passed. Returns what `compare_sealed` does of those; they
        stay. Raises StorageError, Locked.
        """


def read_present(sink: Sink, anchor: Head | None = None) -> Iterator[Glance]:
    """The records of a log without those that are archived, each checked. anchor: a head that the
    log must contain. Raises StorageError."""
    start = find_start(sink.sealed, anchor)
    return read_glances(sink.lines(start.seq), sink.location, anchor, start)


def find_tail(sink: Sink, count: int) -> Tail:
    """`Sink.tail` of a sink that finds its last line soon."""
    line, archived = sink.last(), read_archived(sink.sealed)
    end = GENESIS if line is None else parse_line_head(line, sink.location)
    after = max(end.seq - count, archived.head.seq)
    return Tail(after, sink.lines(after), archived)


def make_overtaken_error(location: str) -> Locked:
    """The error of a run that has, or had, the lock although another run wrote to its log."""
    return Locked(
        f"{location}: another run has written to this log since this run read it",
        "Run the command again: it first finds out what became of this run's requests.",
    )


class MemorySink:
    """One log, which nobody else can reach."""

    location = "the log in memory"
    sealed = None

    def __init__(self) -> None:
        self._lines: list[bytes] = []

    def lines(self, after: int = 0) -> Iterator[Line]:
        # As of now: what is appended during the reading is not among them.
        return iter(tuple(self._lines[after:]))

    def tail(self, count: int) -> Tail:
        return find_tail(self, count)

    def last(self) -> bytes | None:
        return self._lines[-1] if self._lines else None

    def claim(self) -> bytes | None:
        return self.last()

    def pass_over_torn(self) -> None:
        """Nothing in memory is torn."""

    def set_aside(self, seq: int) -> tuple[Torn, ...]:
        return ()

    def append(self, lines: Sequence[bytes]) -> None:
        self._lines.extend(lines)

    def check_writable(self, size: int = 0) -> None:
        """There is always room."""
