"""Segments: logs of every kind are read alike whatever of them is sealed or removed, and nothing is
sealed or removed that is not what was written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kafkaform.audit.records import LongLine, RecordKind, read_line, verify_log
from kafkaform.audit.sealing import seal_lines, write_manifest
from kafkaform.audit.sink import (
    MANIFEST,
    SEGMENTS,
    MemorySink,
    SealableSink,
    load_manifest,
    read_manifest,
    read_segment,
)
from kafkaform.audit.sinks.local import LocalSink
from kafkaform.audit.sinks.objects import FOLDER, ObjectSink
from kafkaform.core.clock import SystemClock
from kafkaform.core.errors import Locked, StorageError
from kafkaform.core.objects import Objects
from kafkaform.core.value import FrozenMap
from kafkaform.state.backends.local import LocalBackend
from kafkaform.state.backends.obstores import open_objects
from kafkaform.workflow.audit_log import mend_log
from kafkaform.workflow.stores import Store

from ...kit import audit_story as story
from ...kit.sealing import SOON, be_sure, remove, seal

BODY = FrozenMap(n=1)
KINDS = ("file", "store")


def _objects(path: Path) -> Objects:
    return open_objects(f"memory://segments{str(path).replace('/', '-')}", {})


def _open(kind: str, path: Path) -> Any:
    if kind == "file":
        return LocalSink(path / "kafkaform.audit.jsonl")
    return ObjectSink(_objects(path))


def _write(sink: SealableSink, *sizes: int, run: str = "run") -> None:
    """Appends of so many records."""
    log = story.journal(sink, run)
    for size in sizes:
        log.write_all([(RecordKind.STATE, BODY)] * size)


def _read(sink: SealableSink, after: int = 0) -> list[bytes]:
    return [read_line(line) for line in sink.lines(after)]


@pytest.fixture(params=KINDS)
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """A log of 12 appends with 24 records."""
    sink = _open(request.param, tmp_path)
    _write(sink, *[1, 2, 3] * 4)
    return _open(request.param, tmp_path)


def test_a_sealed_log_says_the_same(log: Any) -> None:
    """Sealed, sealed and removed, and continued after that: every reader gets every line once, from
    any record on."""
    lines = _read(log)
    assert len(seal(log).segments) > 2
    assert _read(log) == lines
    assert remove(log) == ()
    for after in range(len(lines) + 2):
        assert _read(log, after) == lines[after:], after
    _write(log, 2, 1, run="next")
    assert _read(log)[: len(lines)] == lines
    assert verify_log(log.lines()).records == len(lines) + 3


def test_the_end_of_a_log_is_read_wherever_it_is(log: Any) -> None:
    """Before and after it is sealed, the last lines are there, as many as somebody asks for, and
    all of them if there are fewer."""
    lines = _read(log)
    for change in (lambda log: None, seal, remove):
        change(log)
        for count in (1, 2, 3, 5, 12, len(lines) - 1, len(lines), len(lines) + 1, 1 << 60):
            after, end, archived = log.tail(count)
            assert [read_line(line) for line in end] == lines[after:], (change, count)
            assert len(lines) - after >= min(count, len(lines))
            assert log.tail(count).whole == (after == 0) == (archived.head.seq == after)
    assert not log.tail(len(lines) - 3).whole
    assert log.tail(len(lines)).whole


def test_a_log_without_lines_has_an_end(tmp_path: Path) -> None:
    """Nothing was written yet, or a store lists less than it has."""
    for kind in KINDS:
        after, lines, _ = _open(kind, tmp_path / kind).tail(10)
        assert (after, list(lines)) == (0, [])


def test_what_is_sealed_is_removed_and_the_last_append_stays(log: Any) -> None:
    """After a removal, a file and a store have the last append only, and a run goes on after it."""
    lines, end = _read(log), log.last()
    manifest = seal(log)
    remove(log)
    assert manifest.head.seq == len(lines) - 3
    if isinstance(log, LocalSink):
        assert log.path.read_bytes().splitlines() == lines[-3:]
    else:
        names = [entry.key for entry in log.objects.names(FOLDER) if "/0" in entry.key[:5]]
        assert names == [f"{FOLDER}/{len(lines) - 2:020}.jsonl"]
    assert log.last() == end
    assert story.journal(log, "next").head.seq == len(lines)


def test_without_a_last_append_the_log_ends_with_its_segments(log: Any) -> None:
    """A log of which only segments were copied, as to another place, has its last line there."""
    seal(log)
    lines = _read(log)[:-3]
    if isinstance(log, LocalSink):
        log.path.unlink()
    else:
        for entry in log.objects.names(FOLDER):
            if entry.key.endswith(".jsonl"):
                log.objects.delete(entry.key)
    assert log.last() == lines[-1]
    assert _read(log) == lines
    _write(log, 1, run="next")
    assert verify_log(log.lines()).records == len(lines) + 1


def test_small_segments_are_made_again(log: Any) -> None:
    """A log that is sealed often does not become thousands of segments: the last one grows until it
    is full, and the smaller one is removed."""
    lines = _read(log)
    seal(log, 1 << 20)
    for number in range(5):
        _write(log, 1, 2, run=f"run-{number}")
        manifest = seal(log, 1 << 20)
        assert len(manifest.segments) == 1
        lines += _read(log)[len(lines) :]
        assert _read(log) == lines
    assert len(log.sealed.names(SEGMENTS)) == 6
    assert remove(log) == ()
    assert len(log.sealed.names(SEGMENTS)) == 1
    assert _read(log) == lines


def test_an_interrupted_seal_goes_on(log: Any) -> None:
    """A segment that a run wrote and could not name is the next run's, however much more it could
    seal: nothing is left over."""
    lines = _read(log)

    class Died(Exception):
        pass

    def die(seconds: float) -> None:
        raise Died

    for _ in range(3):
        with pytest.raises(Died):
            seal(log, 3000, ensure=die)
        assert read_manifest(log.sealed).segments == ()
        assert _read(log) == lines
    _write(log, 4, 4, run="next")
    seal(log, 100_000)
    assert len(log.sealed.names(SEGMENTS)) == len(read_manifest(log.sealed).segments)
    assert _read(log)[: len(lines)] == lines


def test_other_bytes_in_the_place_of_a_segment_are_replaced(log: Any) -> None:
    """Half a segment that a crash left under its name is written again."""
    manifest = seal(log)
    segment, lines = manifest.segments[0], _read(log)
    for data in (b"", b"half", log.sealed.read(segment.key).data[:-3]):
        log.sealed.delete(MANIFEST)
        version = log.sealed.read(segment.key)
        log.sealed.replace(segment.key, data, version.version)
        assert seal(log) == manifest
        assert read_segment(log.sealed, segment)
    assert _read(log) == lines


def test_a_changed_line_is_not_sealed(log: Any) -> None:
    """Sealing follows the chain: a log that somebody edited is left as it is."""
    if isinstance(log, LocalSink):
        data = log.path.read_bytes()
        log.path.write_bytes(data.replace(b'"n":1', b'"n":2', 4))
    else:
        key = f"{FOLDER}/{2:020}.jsonl"
        stored = log.objects.read(key)
        log.objects.replace(key, stored.data.replace(b'"n":1', b'"n":2'), stored.version)
    with pytest.raises(StorageError, match="is not what was written"):
        seal(log)
    assert read_manifest(log.sealed).segments == ()


def test_a_line_that_differs_from_its_segment_is_not_removed(log: Any) -> None:
    """What a run wrote that had lost its lock stays where it is, and is named."""
    seal(log)
    if isinstance(log, LocalSink):
        data = log.path.read_bytes()
        log.path.write_bytes(data.replace(b'"n":1', b'"n":2', 1))
        assert remove(log) == (log.path.name,)
        assert len(log.path.read_bytes()) == len(data)
        return
    key = f"{FOLDER}/{2:020}.jsonl"
    stored = log.objects.read(key)
    log.objects.replace(key, stored.data.replace(b'"n":1', b'"n":2'), stored.version)
    assert remove(log) == (key,)
    assert [e.key for e in log.objects.names(FOLDER) if e.key <= key] == [key]
    assert verify_log(log.lines()).ok


def test_nothing_is_removed_while_a_segment_is_not_what_it_was(log: Any) -> None:
    """Before lines are removed, their segment is read once more."""
    manifest, lines = seal(log), log.path.read_bytes() if isinstance(log, LocalSink) else b""
    segment = manifest.segments[1]
    stored = log.sealed.read(segment.key)
    log.sealed.replace(segment.key, stored.data[:-1], stored.version)
    with pytest.raises(StorageError, match="its bytes are not those that were sealed"):
        remove(log)
    if isinstance(log, LocalSink):
        assert log.path.read_bytes() == lines
    else:
        assert f"{FOLDER}/{segment.first:020}.jsonl" in {
            entry.key for entry in log.objects.names(FOLDER)
        }


def test_a_run_that_lost_its_lock_changes_nothing(log: Any) -> None:
    """The lock is asked before the manifest is written, and before anything is removed."""

    def lost(seconds: float) -> None:
        raise Locked("another run has the lock")

    lines = _read(log)
    with pytest.raises(Locked):
        seal(log, ensure=lost)
    assert read_manifest(log.sealed).segments == ()
    seal(log)
    with pytest.raises(Locked):
        remove(log, lost)
    if isinstance(log, LocalSink):
        assert log.path.read_bytes().splitlines() == lines
    else:
        pieces = [entry for entry in log.objects.names(FOLDER) if "/0" in entry.key[:5]]
        assert len(pieces) == 12


def test_two_manifests_cannot_be_written_over_each_other(log: Any) -> None:
    """A manifest is written over the version that was read, or not at all."""
    manifest, version = load_manifest(log.sealed)
    seal(log)
    with pytest.raises(Locked, match="another run"):
        write_manifest(log.sealed, manifest, version)
    _, version = load_manifest(log.sealed)
    write_manifest(log.sealed, manifest, version)
    with pytest.raises(Locked, match="another run"):
        write_manifest(log.sealed, replace(manifest, lineage="other"), version)


def test_a_reader_that_began_before_the_removal_ends_after_it(log: Any) -> None:
    """A slow reader gets every line once, although lines are sealed and removed while it reads."""
    lines = _read(log)
    reader = log.lines()
    got = [read_line(next(reader)) for _ in range(2)]
    seal(log)
    remove(log)
    _write(log, 2, run="next")
    got += [read_line(line) for line in reader]
    assert got[: len(lines)] == lines
    assert len(got) in (len(lines), len(lines) + 2)


def test_a_long_line_is_read_again_after_the_removal(tmp_path: Path) -> None:
    """A line that is not kept in memory is found although its file was replaced in the meantime."""
    sink = LocalSink(tmp_path / "kafkaform.audit.jsonl")
    story.journal(sink, "run").write(RecordKind.STATE, FrozenMap(plan="x" * (3 << 20)))
    _write(sink, 1, 1)
    long, *_ = list(sink.lines())
    seal(sink)
    remove(sink)
    assert isinstance(long, LongLine)
    assert len(read_line(long)) > 3 << 20
    again, *_ = list(sink.lines())
    assert isinstance(again, LongLine)
    assert read_line(again) == read_line(long)


def test_the_whole_log_can_be_one_append(log: Any, tmp_path: Path) -> None:
    """The last append is never sealed, so a log of one append has nothing to seal."""
    sink = _open("file" if isinstance(log, LocalSink) else "store", tmp_path / "other")
    if isinstance(sink, LocalSink):
        sink.path.parent.mkdir()
    assert seal(sink).segments == ()
    _write(sink, 5)
    assert seal(sink).segments == ()
    assert sink.sealed.names("") == () or isinstance(sink, ObjectSink)


def test_memory_is_never_sealed() -> None:
    """A log in memory has no place for segments."""
    assert MemorySink().sealed is None
    assert not isinstance(MemorySink(), SealableSink)


def test_a_fork_after_the_segments_is_mended(tmp_path: Path) -> None:
    """`audit mend` joins branches of the live file; segments and manifest stay as they are."""
    sink = LocalSink(tmp_path / "kafkaform.audit.jsonl")
    _write(sink, *[1, 2, 3] * 4)
    seal(sink)
    remove(sink)
    before, sealed = sink.path.read_bytes(), _read(sink)
    _write(LocalSink(sink.path), 2, run="one")
    branch = sink.path.read_bytes()[len(before) :]
    sink.path.write_bytes(before)
    _write(LocalSink(sink.path), 3, run="two")
    with sink.path.open("ab") as file:
        file.write(branch)
    files = {entry.key: sink.sealed.read(entry.key) for entry in sink.sealed.names("")}
    store = Store(tmp_path, LocalBackend(tmp_path / "kafkaform.state.json"), LocalSink(sink.path))
    assert not verify_log(sink.lines()).ok
    mended = mend_log(store, SystemClock(), 0.0)
    assert mended is not None and len(mended.records) == 2
    assert {e.key: sink.sealed.read(e.key) for e in sink.sealed.names("")} == files
    assert _read(sink)[: len(sealed)] == sealed
    assert verify_log(sink.lines()).records == len(sealed) + 3 + 1 + 2
    assert mend_log(store, SystemClock(), 0.0) is None


# ── the manifest ────────────────────────────────────────────────────────────────────────


def _edit_manifest(sink: Any, change: Any) -> None:
    stored = sink.sealed.read(MANIFEST)
    data = json.loads(stored.data)
    change(data)
    sink.sealed.replace(MANIFEST, json.dumps(data).encode(), stored.version)


WRONG = {
    "is not known to this version": lambda data: data.update(version="1"),
    "is not JSON": None,
    "has a gap": lambda data: data["segments"].pop(1),
    "that does not follow": lambda data: data["segments"][1].update(head_in="0" * 64),
    "impossible digest": lambda data: data["segments"][0].update(object_sha256="0"),
    "is not a whole number": lambda data: data["segments"][0].update(last="3"),
    "lacks": lambda data: data["segments"][0].pop("time"),
    "has format 2; this version reads 1": lambda data: data.update(format=2),
}


@pytest.mark.parametrize("problem", WRONG)
def test_a_manifest_that_cannot_be_is_refused(log: Any, problem: str) -> None:
    """Every reader refuses it, and says what is wrong."""
    seal(log)
    if WRONG[problem] is None:
        stored = log.sealed.read(MANIFEST)
        log.sealed.replace(MANIFEST, b"null", stored.version)
        problem = "is not the manifest"
    else:
        _edit_manifest(log, WRONG[problem])
    with pytest.raises(StorageError, match=problem) as refused:
        list(log.lines())
    assert refused.value.advice


def test_archived_records_are_named(log: Any) -> None:
    """Lines that are elsewhere are not read as if there were none; later ones are."""
    lines = _read(log)
    manifest = seal(log)
    _edit_manifest(log, lambda data: data["segments"][0].update(archived="s3://cold/log"))
    with pytest.raises(StorageError, match="records 1 to .* are archived in s3://cold/log"):
        _read(log)
    last = manifest.segments[0].last
    assert _read(log, last) == lines[last:]
    end = log.tail(1 << 60)
    assert [read_line(line) for line in end.lines] == lines[last:]
    assert end.whole and end.archived.sentence.startswith(f"Records 1 to {last} are archived in")


def test_lines_of_another_log_are_not_sealed(log: Any, tmp_path: Path) -> None:
    """Segments follow each other by their hashes, so another log cannot go on in one's place."""
    seal(log)
    head = read_manifest(log.sealed).head.seq
    other = _open("store", tmp_path / "other")
    _write(other, *[1] * (head + 4), run="other")
    with pytest.raises(StorageError, match="is not what was written"):
        seal_lines(
            log.sealed,
            other.read_unsealed(head),
            lineage=story.LINEAGE,
            time=SOON,
            size=1000,
            ensure=be_sure,
        )
