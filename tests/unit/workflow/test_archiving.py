"""Old segments are moved to another place, checked there, and brought back."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kafkaform.audit.journal import Journal
from kafkaform.audit.records import RecordKind, read_line, verify_log
from kafkaform.audit.sink import (
    MANIFEST,
    SealLimits,
    find_start,
    load_manifest,
    read_manifest,
)
from kafkaform.audit.sinks.local import LocalSink
from kafkaform.audit.sinks.objects import ObjectSink
from kafkaform.core.clock import SystemClock
from kafkaform.core.errors import StorageError, UsageError
from kafkaform.core.head import GENESIS, Head
from kafkaform.core.objects import Folder, Objects
from kafkaform.state.backends.local import LocalBackend
from kafkaform.state.backends.objects import ObjectBackend
from kafkaform.state.backends.obstores import open_objects
from kafkaform.workflow.audit_log import mend_log
from kafkaform.workflow.sealing import (
    LogArchive,
    archive_log,
    open_archive,
    read_with_archive,
    restore_log,
    verify_store,
)
from kafkaform.workflow.stores import Store

from ...kit.audit_story import LINEAGE
from ...kit.sealing import BODY, Died, Mortal, read_lines, run_seal, write_runs

SIZES = (1, 2, 3, 1, 2, 3, 2)
NOW = SealLimits(grace=0.0)
LATE = "9999-01-01"
CLOCK = SystemClock()


def _open(kind: str, folder: Path) -> Store:
    if kind == "file":
        folder.mkdir(exist_ok=True)
        log = LocalSink(folder / "kafkaform.audit.jsonl")
        return Store(folder, LocalBackend(folder / "kafkaform.state.json"), log)
    objects = open_objects(f"memory://archived{str(folder).replace('/', '-')}", {})
    return Store(folder, ObjectBackend(objects), ObjectSink(objects))


@pytest.fixture(params=["file", "store"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """A log with several segments, and a checkpoint that covers most of them."""
    made = _open(request.param, tmp_path / "log")
    for _ in range(3):
        write_runs(made, *SIZES)
        assert run_seal(made) == []
    sealed: Any = made.sink.sealed
    cover(sealed, read_manifest(sealed).segments[-2].last)
    return made


def cover(sealed: Objects, seq: int) -> None:
    """A checkpoint, of which only the name is looked at here."""
    sealed.create(f"checkpoints/{seq:020}.json.gz", b"")


@pytest.fixture
def archive(tmp_path: Path) -> LogArchive:
    return open_archive(str(tmp_path / "cold"))


def _move(store: Store, archive: LogArchive, before: str = LATE) -> int:
    return archive_log(store, archive, before, CLOCK, 0.0, NOW).segments


def test_segments_move_as_far_as_no_plan_needs_them(store: Store, archive: LogArchive) -> None:
    """What a checkpoint covers goes; later lines are read as before, and all of them together with
    the archive."""
    lines = read_lines(store)
    sealed: Any = store.sink.sealed
    before = read_manifest(sealed).segments
    assert _move(store, archive) == len(before) - 1
    manifest = read_manifest(sealed)
    last = manifest.archived.seq
    assert last == before[-2].last
    assert len(sealed.names("segments")) == 1
    assert [read_line(line) for line in store.sink.lines(last)] == lines[last:]
    assert [read_line(line) for line in read_with_archive(store.sink, manifest, archive)] == lines
    with pytest.raises(StorageError, match="are archived in") as refused:
        read_lines(store)
    assert f"audit archive --restore {archive.url}" in refused.value.advice
    assert read_manifest(archive.objects).head == manifest.archived
    assert _move(store, archive) == 0


def test_both_places_are_checked_together(store: Store, archive: LogArchive) -> None:
    """`audit verify` says what it leaves out; with the archive it checks all, and an anchor."""
    whole = verify_store(store)
    _move(store, archive)
    here = verify_store(store)
    assert here.unread == read_manifest(store.sink.sealed).archived  # type: ignore[arg-type]
    assert here.archive == archive.url and here.head == whole.head
    assert here.records == whole.records - here.unread.seq
    both = verify_store(store, None, archive)
    assert (both.records, both.head, both.unread.seq) == (whole.records, whole.head, 0)
    first = Head(1, "0" * 64)
    with pytest.raises(UsageError, match="record 1, which the log must contain, is archived"):
        verify_store(store, first)
    with pytest.raises(StorageError, match="the log was rewritten"):
        verify_store(store, first, archive)


def test_a_needed_record_in_the_archive_is_not_passed_over(
    store: Store, archive: LogArchive
) -> None:
    """A reader that starts after the archived records starts at the first one if it has to find
    one of them, and is told how to bring them back."""
    _move(store, archive)
    sealed: Any = store.sink.sealed
    last = read_manifest(sealed).archived
    assert find_start(sealed) == find_start(sealed, None, last) == last
    assert find_start(sealed, Head(last.seq + 1, "0" * 64)) == last
    for head in (Head(last.seq, "0" * 64), Head(1, "0" * 64)):
        assert find_start(sealed, head) == GENESIS


def test_an_archive_that_somebody_edited_is_found(store: Store, archive: LogArchive) -> None:
    """Segments that are gone or changed there, and another manifest."""
    _move(store, archive)
    place = archive.objects
    key = place.names("segments")[0].key
    for name, data in ((key, None), (key, b"x"), (MANIFEST, None), (MANIFEST, b"{}")):
        stored = place.read(name)
        assert stored is not None
        place.delete(name)
        if data is not None:
            place.create(name, data)
        with pytest.raises(StorageError):
            verify_store(store, None, archive)
        place.delete(name)
        place.create(name, stored.data)
    verify_store(store, None, archive)


def test_segments_come_back(store: Store, archive: LogArchive) -> None:
    """A restored log is as it was before, and can be archived again."""
    lines = read_lines(store)
    moved = _move(store, archive)
    assert restore_log(store, archive, CLOCK, 0.0).segments == moved
    assert read_lines(store) == lines
    assert restore_log(store, archive, CLOCK, 0.0).segments == 0
    assert _move(store, archive) == moved


def test_later_segments_follow(store: Store, archive: LogArchive) -> None:
    """The next move takes what was sealed since, and leaves what is there alone."""
    _move(store, archive)
    sealed: Any = store.sink.sealed
    with pytest.raises(StorageError, match="are archived"):
        list(store.sink.lines())
    for entry in sealed.names("checkpoints"):
        sealed.delete(entry.key)
    _go_on(store)
    cover(sealed, read_manifest(sealed).head.seq)
    assert _move(store, archive) > 0
    verify_store(store, None, archive)


def _go_on(store: Store) -> None:
    write_runs_of(store)
    assert run_seal(store) == []


def write_runs_of(store: Store) -> None:
    with contextlib.suppress(StorageError):  # it reads all lines at its end
        write_runs(store, *SIZES)


@pytest.mark.parametrize("before", ["2020-01-01", "2026-01-01"])
def test_young_segments_stay(store: Store, archive: LogArchive, before: str) -> None:
    """Only segments whose last record is older than the date go."""
    moved = archive_log(store, archive, before, CLOCK, 0.0, NOW)
    assert moved.segments == 0 and "stay: the last one is of 20" in moved.obstacle
    assert read_manifest(store.sink.sealed).archived.seq == 0  # type: ignore[arg-type]


def test_why_nothing_goes_is_told(store: Store, archive: LogArchive) -> None:
    """It was sealed today, or plans need it. An archive in which there is nothing yet is as sound
    as the log."""
    moved = archive_log(store, archive, LATE, CLOCK, 0.0)
    assert moved.segments == 0 and "stay for a day after that." in moved.obstacle
    assert verify_store(store, None, archive) == verify_store(store)
    sealed: Any = store.sink.sealed
    (entry,) = sealed.names("checkpoints")
    sealed.delete(entry.key)
    cover(sealed, 1)
    moved = archive_log(store, archive, LATE, CLOCK, 0.0, NOW)
    assert moved.segments == 0 and "cover no record after 1, and plans need" in moved.obstacle


def test_what_cannot_be_archived_is_refused(
    store: Store, archive: LogArchive, tmp_path: Path
) -> None:
    """A log without segments, one without a checkpoint, and the archive of another log."""
    other = _open("file", tmp_path / "other")
    write_runs(other, 1)
    with pytest.raises(UsageError, match="has no segments"):
        _move(other, archive)
    sealed: Any = store.sink.sealed
    manifest, version = load_manifest(archive.objects)
    assert version is None
    _move(store, archive)
    kept = archive.objects.read(MANIFEST)
    assert kept is not None
    data = kept.data.replace(b"-lineage", b"-another")
    archive.objects.replace(MANIFEST, data, kept.version)
    with pytest.raises(UsageError, match="segments of another log"):
        _move(store, archive)
    with pytest.raises(StorageError, match="segments of another log"):
        verify_store(store, None, archive)
    archive.objects.delete(MANIFEST)
    with pytest.raises(UsageError, match="lacks the records up to"):
        _move(store, archive)
    for entry in sealed.names("checkpoints"):
        sealed.delete(entry.key)
    archive.objects.create(MANIFEST, kept.data)
    with pytest.raises(UsageError, match="has no checkpoint"):
        _move(store, archive)
    assert manifest.segments == ()


def test_a_fork_is_mended_without_the_archive(tmp_path: Path, archive: LogArchive) -> None:
    """Its branches begin after the segments; what is archived is not needed, and stays as it is."""
    store = _open("file", tmp_path / "log")
    for _ in range(3):
        write_runs(store, *SIZES)
        assert run_seal(store) == []
    sealed: Any = store.sink.sealed
    cover(sealed, read_manifest(sealed).segments[-2].last)
    _move(store, archive)
    border, path = read_manifest(sealed).archived, store.sink.path  # type: ignore[attr-defined]
    assert mend_log(store, CLOCK, 0.0) is None
    before = path.read_bytes()
    branches = []
    for size in (2, 3):
        path.write_bytes(before)
        sink = LocalSink(path)
        Journal(sink, CLOCK, f"run-{size}", "ada", LINEAGE).write_all(
            [(RecordKind.STATE, BODY)] * size
        )
        branches.append(path.read_bytes()[len(before) :])
    path.write_bytes(before + b"".join(branches))
    forked = Store(store.folder, store.backend, LocalSink(path))
    assert not verify_log(forked.sink.lines(border.seq), start=border).ok
    mended = mend_log(forked, CLOCK, 0.0)
    assert mended is not None and len(mended.records) == 2
    assert verify_store(forked).unread == border
    restore_log(forked, archive, CLOCK, 0.0)
    assert verify_store(forked).unread.seq == 0


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_move_that_dies_anywhere_loses_nothing(tmp_path: Path, *, after: bool) -> None:
    """At each request to one place or the other: all records are here or there, and the next move
    goes on."""
    found, number = [], 0
    while True:
        number += 1
        store = _open("store", tmp_path / f"log-{number}")
        for _ in range(2):
            write_runs(store, *SIZES)
            assert run_seal(store) == []
        lines = read_lines(store)
        sealed: Any = store.sink.sealed
        cover(sealed, read_manifest(sealed).head.seq)
        cold = Folder(tmp_path / f"cold-{number}")
        archive = LogArchive("cold", cold)
        objects: Any = store.sink.objects  # type: ignore[attr-defined]
        mortal = Mortal(objects, number, after)
        shared = Mortal(cold, 0, after)
        shared._do = mortal._do  # type: ignore[method-assign]  # one count for both places
        try:
            _move(
                Store(Path(), ObjectBackend(mortal), ObjectSink(mortal)), LogArchive("cold", shared)
            )
        except Died:
            objects.delete("lock.json")
        else:
            if mortal.count < number:
                break
        manifest = read_manifest(sealed)
        for each in (manifest, None):
            if each is None:
                _move(store, archive)
                each = read_manifest(sealed)
                left = [e.key for e in sealed.names("segments")]
                kept = [s.key for s in each.segments if s.archived is None]
                found += [f"{number}: left {left}"] if left != kept else []
            read = [read_line(line) for line in read_with_archive(store.sink, each, archive)]
            if read != lines:
                found.append(f"request {number}: {len(read)} lines")
        verify_store(store, None, replace(archive))
    assert number > 20
    assert found == []
