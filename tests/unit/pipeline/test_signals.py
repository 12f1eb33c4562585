"""A cancelled job: its one process passes the signals on to the command."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline import command
from pipeline.job import Mode, read_job

PATIENCE_SECONDS = 60
CHILD = """
import pathlib, signal, sys, time
seen = []
signal.signal(signal.SIGTERM, lambda *_: seen.append(1))
pathlib.Path("ready").touch()
while len(seen) < int(sys.argv[-1]):
    time.sleep(0.01)
    pathlib.Path("seen").write_text(str(len(seen)))
sys.exit(143)
"""


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_reach_the_command(
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each signal to the job, whichever it is, reaches the command as SIGTERM; the job waits for
    it and has its exit code."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "KAFKAFORM", (sys.executable, "-I", "-c", CHILD))

    def cancel() -> None:
        until(Path("ready").exists)
        os.kill(os.getpid(), number)
        until(lambda: Path("seen").exists() and Path("seen").read_text() == "1")
        os.kill(os.getpid(), number)

    thread = threading.Thread(target=cancel)
    thread.start()
    before = signal.getsignal(number)
    ended = command.run_kafkaform(read_job({"PIPELINE_OUT": "out"}, Mode.APPLY), "2")
    thread.join()
    assert ended.code == 143 and signal.getsignal(number) is before


def test_a_killed_command_has_a_code_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a shell, it is 128 and the number of the signal."""
    monkeypatch.chdir(tmp_path)
    child = "import os; os.kill(os.getpid(), 9)"
    monkeypatch.setattr(command, "KAFKAFORM", (sys.executable, "-I", "-c", child))
    assert command.run_kafkaform(read_job({"PIPELINE_OUT": "out"}, Mode.APPLY)).code == 137


def test_commands_do_not_get_what_is_for_the_pipeline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither variables of the pipeline nor, with them, the token; the
    address of the state and the branch whose repository file counts are there."""
    monkeypatch.chdir(tmp_path)
    child = "import os; print(sorted(n for n in os.environ if n[:4] in ('PIPE', 'KAFK')))"
    monkeypatch.setattr(command, "KAFKAFORM", (sys.executable, "-I", "-c", child))
    monkeypatch.setenv("PIPELINE_TOKEN", "pw")
    given = {"PIPELINE_OUT": "out", "PIPELINE_STATE": "s3://b/k"}
    ended = command.run_kafkaform(read_job(given, Mode.PLAN), keep=True)
    assert ended.out.strip() == "['KAFKAFORM_BASE_REF', 'KAFKAFORM_STATE']"
