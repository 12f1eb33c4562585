"""Processes that share one remote state: one writes at a time, and who lost the lock sends
nothing more."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafkaform.audit.sink import read_manifest
from kafkaform.audit.sinks.objects import ObjectSink

from ...kit.stores.runner import Place, judge, often, once, until_stopped

pytestmark = pytest.mark.slow("starts dozens of processes, which wait for leases")
RUNNERS = 20
TIMEOUT = 120


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """An S3-like store in a process of its own."""
    command = [sys.executable, "-m", "tests.kit.stores.s3"]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path.cwd()
    )
    assert process.stdout is not None
    assert process.stdin is not None
    yield process.stdout.readline().strip()
    process.stdin.close()
    process.stdout.close()
    process.wait(60)


@pytest.fixture
def place(endpoint: str, tmp_path: Path) -> Place:
    return Place(endpoint, tmp_path, tmp_path.name)


@pytest.fixture
def places(endpoint: str, tmp_path: Path) -> dict[str, Place]:
    """A place of its own for each moment of a run at which it can stand still."""
    moments = ("intent", "ensure", "outcome", "save")
    for moment in moments:
        (tmp_path / moment).mkdir()
    return {m: Place(endpoint, tmp_path / m, f"{tmp_path.name}/{m}") for m in moments}


def test_twenty_at_once_and_one_writes(endpoint: str, tmp_path: Path) -> None:
    """Of twenty runs of which one is at work none of the others gets in: each ends with 7 and
    names the holder; that one ends well."""
    place = Place(endpoint, tmp_path, tmp_path.name, lease=2 * TIMEOUT)
    first = once(place, "first", pauses="outcome")
    until_stopped(first)
    others = {f"other-{number}" for number in range(RUNNERS - 1)}
    crew = [once(place, name) for name in others]
    for other in crew:
        other.join(TIMEOUT)
    assert [other.exitcode for other in crew] == [7] * len(others)
    assert first.pid is not None
    os.kill(first.pid, signal.SIGCONT)
    first.join(TIMEOUT)
    assert first.exitcode == 0
    for name in others:
        [said] = place.said(f"{name}.said")
        assert "is locked by runner on here (`apply`, run first" in said
    counts, broken = judge(place)
    assert not broken
    assert counts["sent"] == 1


def test_twenty_take_turns(place: Place) -> None:
    """Twenty runs that wait for each other all get their turn; nothing is lost or doubled."""
    crew = [often(place, f"runner-{number}", 3, timeout=TIMEOUT) for number in range(RUNNERS)]
    for process in crew:
        process.join(TIMEOUT)
    assert [process.exitcode for process in crew] == [0] * RUNNERS
    counts, broken = judge(place)
    assert not broken
    refused = sum(len(place.said(f"runner-{number}.refused")) for number in range(RUNNERS))
    assert counts["sent"] == 3 * RUNNERS - refused
    assert counts["sent"] > RUNNERS


def test_runs_that_seal_take_turns(endpoint: str, tmp_path: Path) -> None:
    """Runs that seal their common log and remove what they sealed, some of them killed while they
    do: the log has every record, and almost all of it is in segments."""
    place = Place(endpoint, tmp_path, tmp_path.name, seals=True)
    crew = {f"runner-{number}": 6 for number in range(6)}
    processes = {name: often(place, name, rounds, TIMEOUT) for name, rounds in crew.items()}
    for victim in ("runner-1", "runner-4"):
        until(lambda victim=victim: bool(place.said(f"{victim}.done")))  # type: ignore[misc]
        processes[victim].kill()
        processes[victim].join(TIMEOUT)
        processes[victim] = often(place, victim, crew[victim], TIMEOUT)
    for process in processes.values():
        process.join(TIMEOUT)
    assert [process.exitcode for process in processes.values()] == [0] * len(crew)
    counts, broken = judge(place)
    assert not broken
    sink = ObjectSink(place.backend().objects)
    assert read_manifest(sink.sealed).head.seq > counts["records"] / 2
    state = place.backend().load().state
    assert state is not None and state.sealed


def until(condition: Callable[[], bool]) -> None:
    """Wait until this is true; fails after two minutes."""
    for _ in range(TIMEOUT * 100):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it never became true")


def test_a_run_paused_past_its_lease_sends_nothing_more(places: dict[str, Place]) -> None:
    """A run that was stopped for longer than its lease, wherever it stood, and was followed by
    another, records and sends nothing when it goes on, and ends with 7."""
    paused = {m: once(place, "paused", pauses=m) for m, place in places.items()}
    for process in paused.values():
        until_stopped(process)
    _followed(places)
    for moment, place in places.items():
        before = place.said("witness")
        process = paused[moment]
        assert process.pid is not None
        os.kill(process.pid, signal.SIGCONT)
        process.join(TIMEOUT)
        assert (moment, process.exitcode) == (moment, 7)
        assert place.said("witness") == before
        counts, broken = judge(place)
        assert not broken
        assert counts["recovered"] == (moment in ("ensure", "outcome"))


def test_the_next_run_starts_after_a_kill(places: dict[str, Place]) -> None:
    """After SIGKILL, wherever it struck, the next run gets the lock by itself when the lease has
    ended, finds out what was under way, and nothing is lost."""
    killed = {m: once(place, "killed", pauses=m) for m, place in places.items()}
    for process in killed.values():
        until_stopped(process)
        process.kill()
        process.join(TIMEOUT)
    _followed(places)
    for moment, place in places.items():
        _, broken = judge(place)
        assert not broken
        state = place.backend().load().state
        assert state is not None
        assert (moment, state.serial) == (moment, 2 if moment in ("outcome", "save") else 1)


def _followed(places: dict[str, Place]) -> None:
    """The next run of each place has ended well."""
    crew = {m: once(place, "next", timeout=TIMEOUT) for m, place in places.items()}
    for moment, process in crew.items():
        process.join(TIMEOUT)
        assert (moment, process.exitcode) == (moment, 0)
