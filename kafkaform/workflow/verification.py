"""Check all of an audit log: chain, anchors, bodies, segments and manifest, and what is beside them
and belongs to no log."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ..audit.chain import verify_log
from ..audit.checkpoint import check_checkpoints, refuse_bad_checkpoints
from ..audit.event import Line, decode
from ..audit.sealing import find_strays
from ..audit.segments import ADVICE, MANIFEST, SegmentManifest, read_manifest
from ..audit.sink import SealableSink, Sink
from ..core.errors import StorageError, UsageError
from ..core.head import GENESIS, Head
from ..render.text import render_count
from .archiving import LogArchive, check_archive, read_with_archive
from .stores import Store, find_anchor


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
