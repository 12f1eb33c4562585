"""A pull request's plans hold nobody up."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kafkaform.core.clock import SystemClock
from kafkaform.plan.observe import read_world
from kafkaform.state.backends.local import LocalBackend
from kafkaform.state.model import LockInfo
from kafkaform.workflow import planning

from ...kit.commands.folder import Folder

APPLIES, PROCESSES = 4, 2
INFO = LockInfo("run", "ada", "host", 1, "2026-01-01T00:00:00Z", "apply")
LOOP = """
import os, select, sys
from kafkaform.cli.app import run_command_line
told, sys.stdout = sys.stdout, open(os.devnull, "w")
worst = 0
while not select.select([sys.stdin], [], [], 0)[0]:
    worst = max(worst, run_command_line(["plan", "--json", "-q"]))
    print("planned", file=told, flush=True)
sys.exit(worst)
"""
"""Plans without a pause until its standard input ends, and says a word after each."""


@pytest.fixture
def planners(folder: Folder) -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that make plans one after the other until the test closes their input."""
    with ExitStack() as stack:
        made = []
        for _ in range(PROCESSES):
            child = subprocess.Popen(
                [sys.executable, "-c", LOOP],
                cwd=folder.path,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            stack.callback(child.wait, 60)
            stack.callback(child.kill)
            made.append(child)
        yield made


def test_plans_beside_an_apply(folder: Folder, planners: list[subprocess.Popen[str]]) -> None:
    """While plans run without a pause, an apply that waits for no lock gets it every time, and
    every plan succeeds."""
    for number in range(APPLIES):
        for child in planners:
            assert child.stdout and child.stdout.readline() == "planned\n"
        folder.declare("a", more=f'config = {{ "retention.ms" = "{number + 1000}" }}')
        folder.done("apply", "--auto-approve", "--lock-timeout=0s", "-q")
    for child in planners:
        child.communicate(timeout=200)
    assert [child.returncode for child in planners] == [0] * PROCESSES


def test_what_an_apply_creates_meanwhile_blocks_no_plan(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs from its first to its last step when a plan has read state and log, but not the
    cluster yet: the plan does not take what is ours for somebody else's."""
    folder.declare("a")
    looked: list[int] = []

    def late(*given: Any, **more: Any) -> Any:
        looked.append(1)
        if len(looked) == 1:
            words = [sys.executable, "-m", "kafkaform", "apply", "--auto-approve", "-q"]
            subprocess.run(words, cwd=folder.path, check=True, capture_output=True, timeout=60)
        return read_world(*given, **more)

    monkeypatch.setattr(planning, "read_world", late)
    assert "No changes" in folder.done("plan", "--detailed-exitcode").out
    assert len(looked) == 2


def test_a_plan_needs_no_lock_and_leaves_none(folder: Folder, tmp_path: Path) -> None:
    """A plan is made while an apply holds the lock, and makes no file, lock included."""
    folder.declare("a")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    folder.done("plan")
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    backend = LocalBackend(tmp_path / "kafkaform.state.json")
    with backend.lock(INFO, 0, SystemClock()):
        folder.done("plan")
        folder.fails(7, "apply", "--auto-approve")


PAUSED = """
import sys
from kafkaform.apply.ledger import Ledger
from kafkaform.cli.app import run_command_line
record = Ledger.record_outcomes
def late(ledger, plan, results):
    if results:
        print("answered", flush=True)
        sys.stdin.readline()
    return record(ledger, plan, results)
Ledger.record_outcomes = late
sys.exit(run_command_line(["apply", "--auto-approve", "-q"]))
"""


def test_a_lock_file_that_is_removed_lets_nobody_write_beside_a_run(folder: Folder) -> None:
    """A real run holds the lock and has sent a request when somebody removes what git ignores
    (`git clean -xfd`), and a second run begins. That one waits, recovers and ends well; the first
    one ends with 7 and writes nothing more; the log is sound, and a plan finds nothing to do."""
    folder.declare("z")
    folder.done("apply", "--auto-approve")
    folder.declare("a", "z")
    command = [sys.executable, "-c", PAUSED]
    pipe = subprocess.PIPE
    first = subprocess.Popen(
        command, cwd=folder.path, stdin=pipe, stdout=pipe, stderr=pipe, text=True
    )
    try:
        assert first.stdout and "answered\n" in iter(first.stdout.readline, "")
        shutil.rmtree(folder.path / ".kafkaform")
        said = folder.done("apply", "--auto-approve")
        assert "Recovering 1 step that run" in said.text
        records = folder.records()
        _, err = first.communicate("go on\n", timeout=60)
    finally:
        first.kill()
    assert first.returncode == 7, err
    assert "lock file of this run was removed or replaced" in " ".join(err.split())
    assert folder.records() == records
    folder.done("audit", "verify")
    assert "No changes" in folder.done("plan", "--detailed-exitcode").out
    assert set(folder.topics()) == {"a", "z"}
