"""Old lines of a log: at the end of a run they become segments, and are removed elsewhere; old
segments are moved to an archive, brought back, and read there; and all of a log is checked.

A segment is copied, read back and compared before the manifest says that it is elsewhere, and only
then removed here. The archive has a manifest of its own with the same entries.

The check covers chain, anchors, bodies, segments and manifest, and what is beside them and belongs
to no log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from ..apply.ledger import Ledger
from ..apply.stop import Stop
from ..audit.checkpoint import check_checkpoints, refuse_bad_checkpoints
from ..audit.records import Line, decode, parse_time, render_time, verify_log
from ..audit.sealing import find_strays, remove_superseded, seal_lines, write_manifest
from ..audit.sink import (
    ADVICE,
    LIMITS,
    MANIFEST,
    SealableSink,
    SealLimits,
    Segment,
    SegmentManifest,
    Sink,
    load_manifest,
    make_segment_error,
    read_last_sealed,
    read_manifest,
    read_sealed,
    read_segment,
    unpack_segment,
)
from ..core.clock import Clock
from ..core.errors import Interrupted, Locked, StorageError, UsageError
from ..core.head import GENESIS, Head
from ..core.objects import Folder, ObjectExists, Objects
from ..core.progress import Message, SlowTask
from ..render.text import render_count
from ..state.backends.obstores import is_remote, open_objects
from ..state.model import Lease, LockInfo
from .model import Announcer, Note
from .stores import Store, find_anchor
from .workspace import make_lock_info, make_run_id


def seal_log(
    sink: Sink,
    ledger: Ledger,
    lease: Lease,
    clock: Clock,
    announce: Announcer,
    stop: Stop,
    limits: SealLimits = LIMITS,
) -> None:
    """Seal what the log has too much of, and remove what was sealed long enough ago. The caller has
    the lock, and has saved its state. Never raises: whatever fails is announced, and the next run
    goes on."""
    if not isinstance(sink, SealableSink):
        return
    # What the run was to do is done. So nothing here can end it, neither a signal nor a screen.
    announce.sending = True
    try:
        with stop.listening():
            _seal(sink, ledger, lease, clock, announce, stop, limits)
    except Interrupted:
        announce(Note("The audit log was not sealed to its end; the next run goes on."))
    except (StorageError, Locked) as error:
        announce(
            Note(
                f"The audit log was not sealed: {error.message}. Everything else is complete. The "
                f"next run tries again. {error.advice}"
            )
        )


def _seal(
    sink: SealableSink,
    ledger: Ledger,
    lease: Lease,
    clock: Clock,
    announce: Announcer,
    stop: Stop,
    limits: SealLimits,
) -> None:
    """Raises StorageError, Locked, Interrupted."""

    def ensure(seconds: float) -> None:
        stop.check()
        lease.ensure(seconds)

    manifest = read_manifest(sink.sealed)
    if sink.is_long(manifest.head.seq, limits):
        begin, end = manifest.head.seq, ledger.journal.head.seq
        task = SlowTask("Sealing the audit log", "records", announce, clock)

        def report(last: int) -> None:
            stop.check()
            task.report(last - begin, end - begin)

        manifest = seal_lines(
            sink.sealed,
            sink.read_unsealed(begin),
            lineage=ledger.state.lineage,
            time=render_time(clock.now()),
            size=limits.segment,
            ensure=ensure,
            report=report,
        )
    if not manifest.segments:
        return
    # Before anything is removed: a version that knows no segments refuses this state.
    if not ledger.state.sealed:
        ledger.save_state(replace(ledger.state, sealed=True))
        announce(
            Message(
                f"Sealed records 1 to {manifest.head.seq:,} of the audit log in "
                f"{render_count(len(manifest.segments), 'segment')}; versions that know no "
                "segments refuse this state from now on"
            )
        )
    now = clock.now()
    strays = (
        *sink.remove_sealed(manifest, ensure, lambda time: now - parse_time(time) >= limits.grace),
        *remove_superseded(sink.sealed, manifest, ensure, lambda time: now - time >= limits.grace),
    )
    for name in strays:
        announce(
            Note(
                f"{name} at {sink.location} is not a part of the audit log, and nothing was sent "
                "because of it: a run wrote it that had lost its lock, or somebody else did. "
                "`kafkaform audit verify` says more."
            )
        )


ARCHIVE, RESTORE = "audit archive", "audit archive --restore"
CHECKPOINTS = "checkpoints"


class MovedSegments(Struct, frozen=True):
    """What was moved."""

    segments: int
    """How many segments."""
    last: int
    """The number of the last record in the archive, 0 if it is empty."""
    obstacle: str = ""
    """Which segment is the first that stays, and why, in one sentence; empty if all were moved."""


class LogArchive(Struct, frozen=True):
    """A place for old segments."""

    url: str
    """What a manifest calls it: an address without options, or an absolute path."""
    objects: Objects
    """Its objects."""


def open_archive(text: str) -> LogArchive:
    """The archive at an address or in a folder. Raises UsageError."""
    if not is_remote(text):
        folder = Path(text).absolute()
        return LogArchive(str(folder), Folder(folder))
    address = urlsplit(text)
    return LogArchive(address._replace(query="").geturl(), open_objects(text, {}))


def archive_log(
    store: Store,
    archive: LogArchive,
    before: str,
    clock: Clock,
    timeout: float,
    limits: SealLimits = LIMITS,
) -> MovedSegments:
    """Move the segments whose records are all older than `before`, RFC 3339 in UTC, or its
    beginning. Raises UsageError, Locked, StorageError."""
    sink = _require_sealable(store.sink)
    with store.backend.lock(_make_info(ARCHIVE, clock), timeout, clock) as lease:
        state = store.backend.load().state
        manifest, version = load_manifest(sink.sealed)
        if state is None or not state.sealed or not manifest.segments:
            raise UsageError(
                f"{sink.location} has no segments, so nothing can be archived",
                "An apply seals old records once there are enough of them.",
            )
        _refuse_other_log(archive, manifest)
        now = clock.now()

        def is_old(time: str) -> bool:
            return now - parse_time(time) >= limits.grace

        # What a segment has must be nowhere else here once it is moved: it could not be compared.
        sink.remove_sealed(manifest, lease.ensure, is_old)
        chosen, obstacle = _choose_segments(sink, manifest, before, is_old)
        new = [segment for segment in chosen if segment.archived is None]
        task = SlowTask(f"Archiving in {archive.objects.location}", "segments")
        for number, segment in enumerate(new, 1):
            lease.ensure(0.0)
            _copy(sink.sealed, archive.objects, segment)
            task.report(number, len(new))
        if new:
            _write_archive_manifest(archive, manifest, chosen)
            moved = [replace(s, archived=s.archived or archive.url) for s in chosen]
            lease.ensure(0.0)
            manifest = replace(manifest, segments=(*moved, *manifest.segments[len(chosen) :]))
            write_manifest(sink.sealed, manifest, version)
        _remove_copies(sink.sealed, archive, manifest, lease.ensure)
        return MovedSegments(len(new), manifest.archived.seq, obstacle)


def _choose_segments(
    sink: SealableSink, manifest: SegmentManifest, before: str, is_old: Callable[[str], bool]
) -> tuple[tuple[Segment, ...], str]:
    """The segments that are in the archive or go there, and why no more do. Raises UsageError if
    plans need all."""
    covered = _find_covered(sink)
    chosen: list[Segment] = []
    for segment in manifest.segments:
        if segment.archived is None:
            reason = ""
            if segment.last > covered:
                reason = f"the checkpoints cover no record after {covered:,}, and plans need these"
            elif not is_old(segment.time):
                reason = f"they were sealed on {segment.time}, and stay for a day after that"
            elif (time := _find_last_time(sink.sealed, segment)) >= before:
                reason = f"the last one is of {time}"
            if reason:
                obstacle = f"Records {segment.first:,} to {segment.last:,} stay: {reason}."
                return tuple(chosen), obstacle
        chosen.append(segment)
    return tuple(chosen), ""


def restore_log(store: Store, archive: LogArchive, clock: Clock, timeout: float) -> MovedSegments:
    """Bring all archived segments back. The archive stays as it is. Raises UsageError, Locked,
    StorageError."""
    sink = _require_sealable(store.sink)
    with store.backend.lock(_make_info(RESTORE, clock), timeout, clock) as lease:
        manifest, version = load_manifest(sink.sealed)
        archived = [segment for segment in manifest.segments if segment.archived is not None]
        task = SlowTask(f"Restoring from {archive.objects.location}", "segments")
        for number, segment in enumerate(archived, 1):
            lease.ensure(0.0)
            _copy(archive.objects, sink.sealed, replace(segment, archived=None))
            task.report(number, len(archived))
        if archived:
            segments = tuple(replace(segment, archived=None) for segment in manifest.segments)
            lease.ensure(0.0)
            write_manifest(sink.sealed, replace(manifest, segments=segments), version)
        return MovedSegments(len(archived), 0)


def read_with_archive(sink: Sink, manifest: SegmentManifest, archive: LogArchive) -> Iterator[Line]:
    """All lines of a log, the archived ones from the archive. Raises StorageError."""
    archived = SegmentManifest(segments=_list_archived(manifest))
    return chain(read_sealed(archive.objects, archived), sink.lines(archived.head.seq))


def check_archive(manifest: SegmentManifest, archive: LogArchive) -> None:
    """Raises StorageError unless the archive lists the segments that were moved there."""
    archive_manifest, _ = load_manifest(archive.objects)
    archived = _list_archived(manifest)
    if not archived and not archive_manifest.segments:
        return  # nothing was moved yet
    if archive_manifest.segments and archive_manifest.lineage != manifest.lineage:
        raise StorageError(
            f"{archive.objects.location} has the segments of another log: its lineage is "
            f"{archive_manifest.lineage}, that of this one is {manifest.lineage}",
            "Check the address.",
        )
    if archive_manifest.segments[: len(archived)] != archived:
        raise StorageError(
            f"{archive.objects.location}: its manifest does not list the {len(archived)} segments "
            "that were moved there",
            "Check the address. If it is right, restore the archive from a backup.",
        )


# ── steps ───────────────────────────────────────────────────────────────────────────────


def _require_sealable(sink: Sink) -> SealableSink:
    if not isinstance(sink, SealableSink):
        raise UsageError(f"{sink.location} has no segments")
    return sink


def _make_info(command: str, clock: Clock) -> LockInfo:
    return make_lock_info(make_run_id(), command, render_time(clock.now()))


def _list_archived(manifest: SegmentManifest) -> tuple[Segment, ...]:
    return tuple(replace(s, archived=None) for s in manifest.segments if s.archived is not None)


def _refuse_other_log(archive: LogArchive, manifest: SegmentManifest) -> None:
    """Raises UsageError if the place has segments of another log, or if it lacks those that were
    moved before."""
    archive_manifest, _ = load_manifest(archive.objects)
    if archive_manifest.segments and archive_manifest.lineage != manifest.lineage:
        raise UsageError(
            f"{archive.objects.location} has the segments of another log: its lineage is "
            f"{archive_manifest.lineage}, that of this one is {manifest.lineage}",
            "Give each log an archive of its own.",
        )
    if manifest.archived.seq > archive_manifest.head.seq:
        raise UsageError(
            f"{archive.objects.location} lacks the records up to {manifest.archived.seq:,}, which "
            "were moved to another place before",
            "Use the same archive, or bring them back with --restore first.",
        )


def _find_covered(sink: SealableSink) -> int:
    """The record up to which every checkpoint that is kept covers the log: all that a plan reads
    comes after it. Raises UsageError if there is no checkpoint."""
    names = [entry.key for entry in sink.sealed.names(CHECKPOINTS)]
    numbers = [name.rpartition("/")[2].partition(".")[0] for name in names]
    covered = min((int(number) for number in numbers if number.isdecimal()), default=0)
    if not covered:
        raise UsageError(
            f"{sink.location} has no checkpoint, so every plan needs all of its records",
            "Run `kafkaform apply` first: a run that changes something writes one.",
        )
    return covered


def _find_last_time(objects: Objects, segment: Segment) -> str:
    """When the last record of a segment was written."""
    last = read_last_sealed(objects, SegmentManifest(segments=(segment,)))
    assert last is not None  # a segment has lines
    return last.rpartition(b'"time":"')[2].partition(b'"')[0].decode("ascii", "replace")


def _copy(source: Objects, target: Objects, segment: Segment) -> None:
    """Copy a segment, and read the copy. Raises StorageError."""
    read_segment(source, segment)
    stored = source.read(segment.key)
    if stored is None:
        raise make_segment_error(source, segment, "it is missing")
    with suppress(ObjectExists):  # an earlier run copied it; what is there is checked next
        target.create(segment.key, stored.data)
    copied = target.read(segment.key)
    if copied is None:
        raise make_segment_error(target, segment, "it is not there although it was just written")
    unpack_segment(target, segment, copied.data)


def _write_archive_manifest(
    archive: LogArchive, manifest: SegmentManifest, chosen: tuple[Segment, ...]
) -> None:
    _, version = load_manifest(archive.objects)
    segments = tuple(replace(segment, archived=None) for segment in chosen)
    write_manifest(archive.objects, replace(manifest, segments=segments), version)


def _remove_copies(
    objects: Objects,
    archive: LogArchive,
    manifest: SegmentManifest,
    ensure: Callable[[float], None],
) -> None:
    """Remove here what is in the archive, also what an interrupted run left."""
    present = {entry.key for entry in objects.names("segments")}
    for segment in _list_archived(manifest):
        if segment.key in present:
            read_segment(archive.objects, segment)
            ensure(0.0)
            objects.delete(segment.key)


class VerifiedLog(Struct, frozen=True):
    """A log that is sound."""

    records: int
    """How many records were checked."""
    head: Head
    """The last one."""
    anchored: bool
    """The record that the state follows from was found."""
    sealed: int = 0
    """How many of the records are in segments."""
    segments: int = 0
    """How many segments there are."""
    strays: tuple[str, ...] = ()
    """The names of objects beside the log that are not a part of it."""
    missing: str | None = None
    """The newest checkpoint that a record names, if it is not stored."""
    unread: Head = GENESIS
    """The last record that is in an archive and was not checked."""
    archive: str = ""
    """Where those records are."""


def verify_store(
    store: Store, anchor: Head | None = None, archive: LogArchive | None = None
) -> VerifiedLog:
    """Check the log of a store. anchor: a head that was kept elsewhere; archive: where archived
    records are read; without it they are left out.

    Raises StorageError at the first thing that is not what was written, and UsageError for an
    anchor among records that are left out.
    """
    state = store.backend.load().state
    stored_anchor = find_anchor(store.sink, state)
    manifest = (
        read_manifest(store.sink.sealed) if store.sink.sealed is not None else SegmentManifest()
    )
    if state is not None and state.sealed and not manifest.segments:
        raise StorageError(
            f"{store.sink.location}: {MANIFEST} is missing, but the state says that the log has "
            "segments",
            ADVICE,
        )
    _refuse_other_lineage(store.sink, manifest)
    start, archived_in = manifest.archived, manifest.archive
    if archive is not None:
        check_archive(manifest, archive)
        start = GENESIS
    _refuse_unread(start, archived_in, stored_anchor, anchor)

    def read() -> Iterator[Line]:
        if archive is not None:
            return read_with_archive(store.sink, manifest, archive)
        return store.sink.lines(start.seq)

    result = verify_log(read(), stored_anchor, anchor, *manifest.heads, start=start)
    if not result.ok:
        raise StorageError(
            f"{store.sink.location}: record {result.seq}: {result.problem}",
            f"Sound before it: {render_count(result.records - start.seq, 'record')}. "
            f"{result.advice}",
        )
    # The chain proves that nothing was altered; this, that what was written can be read today, and
    # that the checkpoints say the same.
    checked = check_checkpoints(store.sink, lines=read(), start=start)
    refuse_bad_checkpoints(checked)
    sink, head = store.sink, result.head
    strays = find_strays(sink, manifest, head) if isinstance(sink, SealableSink) else ()
    return VerifiedLog(
        result.records - start.seq,
        result.head,
        state is not None and state.audit_head is not None,
        manifest.head.seq - start.seq,
        sum(segment.last > start.seq for segment in manifest.segments),
        strays,
        checked.missing,
        start,
        archived_in,
    )


def _refuse_unread(start: Head, archive: str, *anchors: Head | None) -> None:
    """Raises UsageError for an anchor among the records that are not read. start: the last of them;
    archive: where they are."""
    for anchor in anchors:
        if start.seq and anchor is not None and anchor.seq <= start.seq and anchor != start:
            raise UsageError(
                f"record {anchor.seq}, which the log must contain, is archived in {archive}",
                f"Check it with `kafkaform audit verify --archive {archive}`.",
            )


def _refuse_other_lineage(sink: Sink, manifest: SegmentManifest) -> None:
    """Raises StorageError for a manifest that names another state than the log does."""
    last = sink.last()
    if last is None or manifest.head == GENESIS:
        return
    try:
        lineage = decode(last).body.get("lineage")
    except ValueError:  # the check of the records says what is wrong with it
        return
    if lineage != manifest.lineage:
        raise StorageError(
            f"{sink.location}: {MANIFEST} is of another log: its lineage is {manifest.lineage}, "
            f"that of the log is {lineage}",
            ADVICE,
        )
