"""A log is sealed while the process dies, the store misbehaves or another run does the same: no
line is ever lost, and the next run goes on. `python -m tests.long sealing` tries every moment."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from kafkaform.audit.sink import parse_range, read_manifest
from kafkaform.audit.sinks.local import LocalSink
from kafkaform.audit.sinks.objects import FOLDER, ObjectSink
from kafkaform.core.errors import KafkaformError, Locked, StorageError
from kafkaform.core.objects import Objects
from kafkaform.state.backends.local import LocalBackend
from kafkaform.state.backends.objects import HISTORY, STATE, ObjectBackend
from kafkaform.state.backends.obstores import open_objects
from kafkaform.workflow.stores import Store

from ...kit.commands.struck import AFTER, BEFORE, HALF, Strike, armed
from ...kit.sealing import (
    TINY,
    Died,
    Mortal,
    check_as_documented,
    count_unsealed,
    find_faults,
    read_lines,
    run_seal,
    write_runs,
)
from ...kit.stores import s3
from ...kit.stores.clocks import Hasty
from ...kit.stores.faults import PASSING, instead
from ...kit.stores.runner import CONTEXT
from .killed_seals import kill_seals

LONG = "KAFKAFORM_LONG" in os.environ
SIZES = (1, 2, 3, 1, 2, 3, 2)
"""Records of the appends of a log that is about to be sealed."""
NAMES = itertools.count()


def open_memory(name: str) -> Objects:
    return open_objects(f"memory://sealing-{os.getpid()}-{name}", {}, Hasty())


def make_store(objects: Objects) -> Store:
    return Store(Path(), ObjectBackend(objects), ObjectSink(objects))


def make_file_store(folder: Path) -> Store:
    folder.mkdir(exist_ok=True)
    log = LocalSink(folder / "kafkaform.audit.jsonl")
    return Store(folder, LocalBackend(folder / "kafkaform.state.json"), log)


def copy(objects: Objects) -> Objects:
    """Another store with the same log, state and earlier versions."""
    fresh = open_memory(str(next(NAMES)))
    keys = [entry.key for folder in (FOLDER, HISTORY) for entry in objects.names(folder)]
    for key in (STATE, *keys):
        stored = objects.read(key)
        assert stored is not None
        fresh.create(key, stored.data)
    return fresh


@pytest.fixture(scope="module")
def logs() -> dict[str, Objects]:
    """Logs at the beginnings of runs: never sealed, sealed with pieces that wait for their removal,
    and sealed before with more to seal."""
    new = open_memory(str(next(NAMES)))
    write_runs(make_store(new), *SIZES)
    waiting = copy(new)
    assert run_seal(make_store(waiting), replace(TINY, grace=9000.0)) == []
    again = copy(new)
    assert run_seal(make_store(again)) == []
    write_runs(make_store(again), *SIZES)
    return {"new": new, "waiting": waiting, "again": again}


def go_on(store: Store, lines: list[bytes]) -> Iterator[str]:
    """Faults after the next run: it writes, and seals what the one before did not."""
    written = write_runs(store, 2)
    if written[: len(lines)] != lines:
        yield "the next run did not go on after the last line"
    yield from run_seal(store)
    yield from find_faults(store, written)
    if count_unsealed(store) > len(SIZES):
        yield f"{count_unsealed(store)} lines are still not sealed"
    objects: Any = store.sink.sealed
    # What an interrupted run could not name is named by the run that seals the lines after it.
    manifest = read_manifest(objects)
    named = {segment.key for segment in manifest.segments}
    for entry in objects.names("segments"):
        if entry.key not in named and parse_range(entry.key)[1] <= manifest.head.seq:
            yield f"left behind: {entry.key}"


def judge(objects: Objects, lines: list[bytes]) -> list[str]:
    store = make_store(objects)
    return [*find_faults(store, lines), *go_on(store, lines)]


# ── every request ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("which", ["new", "waiting", "again"])
def test_a_run_dies_at_each_request(logs: dict[str, Objects], which: str, *, after: bool) -> None:
    """The process ends before a request is made, or when its answer is lost. Every line is there,
    and the next run seals all."""
    lines = read_lines(make_store(logs[which]))
    found, number = [], 0
    while True:
        number += 1
        objects = copy(logs[which])
        mortal = Mortal(objects, number, after)
        try:
            run_seal(make_store(mortal))
        except Died:
            objects.delete("lock.json")
        else:
            if mortal.count < number:
                break
        found += [f"request {number}: {fault}" for fault in judge(objects, lines)]
    assert number > 20
    assert found == []


@pytest.mark.parametrize("which", ["new", "waiting", "again"])
def test_another_run_seals_at_each_request(logs: dict[str, Objects], which: str) -> None:
    """Two runs that both believe they have the lock seal at once, one wholly within the other. One
    of them can be refused; no line is lost."""
    found, number = [], 0
    while True:
        number += 1
        objects = copy(logs[which])
        lines: list[bytes] = []

        def meanwhile(objects: Objects = objects, lines: list[bytes] = lines) -> None:
            objects.delete("lock.json")
            write_runs(make_store(objects), 2, 1)
            lines += read_lines(make_store(objects))
            assert run_seal(make_store(objects)) == []

        mortal = Mortal(objects, number, False, meanwhile)
        # A segment can be missing for a reader that began before it was made again, because this
        # test does not wait for the grace.
        with contextlib.suppress(Locked, StorageError):
            run_seal(make_store(mortal))
        if mortal.count < number:
            break
        objects.delete("lock.json")
        found += [f"request {number}: {fault}" for fault in judge(objects, lines)]
    assert number > 20
    assert found == []


# ── a store that misbehaves ─────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[s3.Bucket, str]]:
    bucket = s3.Bucket()
    with s3.serving(bucket) as address:
        yield bucket, address


FAULTS = {
    **PASSING,
    "404 in place of it": instead(404, "NoSuchKey"),
    "403 in place of it": instead(403, "AccessDenied"),
}


@pytest.mark.slow("waits for answers that come late")
@pytest.mark.parametrize("name", FAULTS)
def test_a_store_misbehaves_at_each_request(
    logs: dict[str, Objects],
    server: tuple[s3.Bucket, str],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    """Answers that are lost, late, wrong or refused: the seal goes on or says what failed, and the
    next run completes it."""
    for variable, value in s3.ENVIRONMENT.items():
        monkeypatch.setenv(variable, value)
    bucket, address = server
    found, number, step = [], 0, 1 if LONG else 5
    for which in ("new", "waiting"):
        lines, number = read_lines(make_store(logs[which])), 0
        while True:
            number += step if number else 1 + Random(name).randrange(step)
            bucket.__init__()  # type: ignore[misc]  # the server keeps its bucket, emptied
            opened = s3.options(address, timeout="0.25")
            objects = open_objects("s3://bucket/sealing", opened, Hasty())
            for entry in (STATE, *(e.key for e in logs[which].names(FOLDER))):
                stored = logs[which].read(entry)
                assert stored is not None
                objects.create(entry, stored.data)
            reached = _strike(bucket, number, name, lambda o=objects: run_seal(make_store(o)))
            objects.delete("lock.json")
            found += [f"{which}, request {number}: {f}" for f in judge(objects, lines)]
            if not reached:
                break
        assert number > 10
    assert found == []


def _strike(bucket: s3.Bucket, number: int, name: str, act: Callable[[], Any]) -> bool:
    """Do this with a fault at the request of this number, not counting those for the lock. Whether
    there were so many."""
    count = itertools.count(1)

    def fault(bucket: s3.Bucket, request: s3.Request) -> s3.Answer | None:
        if "lock.json" in request.key or next(count) != number:
            return None
        return FAULTS[name](bucket, request)

    bucket.always.append(fault)
    try:
        act()
    except KafkaformError as error:
        assert error.advice, error
    bucket.always.remove(fault)
    return next(count) > number


# ── a file ──────────────────────────────────────────────────────────────────────────────


def _seal_struck(folder: Path, trace: Path, number: int, how: str) -> None:
    armed(trace, Strike(number, how) if number else None)
    run_seal(make_file_store(folder))


def strike_file(folder: Path, number: int = 0, how: str = BEFORE) -> int:
    """Seal the log of a folder in a process that is killed at a call, if it makes so many; how many
    calls it made."""
    trace = folder.with_suffix(".trace")
    process = CONTEXT.Process(target=_seal_struck, args=(folder, trace, number, how))
    process.start()
    process.join()
    assert process.exitcode in ((-signal.SIGKILL, 0) if number else (0,)), process.exitcode
    return len(trace.read_text().splitlines())


def make_file_logs(home: Path) -> Iterator[tuple[str, Path]]:
    new = home / "new"
    write_runs(make_file_store(new), *SIZES)
    again = home / "again"
    write_runs(make_file_store(again), *SIZES)
    assert run_seal(make_file_store(again)) == []
    write_runs(make_file_store(again), *SIZES)
    yield from (("new", new), ("again", again))


def judge_file(folder: Path, lines: list[bytes]) -> list[str]:
    said = check_as_documented(folder / "kafkaform.audit.jsonl")
    found = [said] if said else []
    store = make_file_store(folder)
    found += [*find_faults(store, lines)]
    # As every run does before it sends anything.
    store.sink.check_writable()
    found += go_on(make_file_store(folder), lines)
    found += [f"left behind: {path.name}" for path in folder.rglob("*.tmp")]
    return found


def kill_files(home: Path, share: int) -> tuple[int, list[str]]:
    """Kill at every share-th call, before it, after it and in the middle of it. How many deaths
    there were, and what was found."""
    deaths, found = 0, []
    for which, folder in make_file_logs(home):
        lines = read_lines(make_file_store(folder))
        whole = home / "whole"
        shutil.copytree(folder, whole)
        calls = strike_file(whole)
        shutil.rmtree(whole)
        assert calls > 20
        for number in range(1, calls + 1):
            for how in (BEFORE, HALF, AFTER):
                if (number * 3 + len(how)) % share:
                    continue
                struck = home / "struck"
                shutil.copytree(folder, struck)
                strike_file(struck, number, how)
                deaths += 1
                found += [f"{which} {number} {how}: {f}" for f in judge_file(struck, lines)]
                shutil.rmtree(struck)
    return deaths, found


@pytest.mark.slow("starts a process for each death")
def test_a_run_is_killed_at_calls_of_a_seal_in_a_file(tmp_path: Path) -> None:
    """SIGKILL before, after and in the middle of writes, syncs, links and renames: every line is
    there, nothing is left behind, and the next run seals all."""
    deaths, found = kill_files(tmp_path, 1 if LONG else 9)
    assert deaths > 20
    assert found == []


@pytest.mark.slow("starts a process for each death")
def test_a_log_of_many_objects_is_sealed_by_runs_that_are_killed(tmp_path: Path) -> None:
    """A log of the layout before segments, killed at random moments of its first seal: a checker
    that knows nothing of kafkaform finds every record after each death, and the last run seals
    all but the last append."""
    deaths, found = kill_seals(*((2000, 20) if LONG else (400, 5)), tmp_path, Random(22))
    assert deaths >= 3
    assert found == []
