"""Processes are ours only if id and start time agree."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from kafkaform.sandbox import lifecycle, process, record
from kafkaform.sandbox.process import Process
from kafkaform.sandbox.record import Broker, Phase, Sandbox

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]
DEAF = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True);"
    " time.sleep(60)",
]


@pytest.fixture
def foreign() -> Iterator[subprocess.Popen[bytes]]:
    """A live process that no sandbox started."""
    child = subprocess.Popen(SLEEP)
    yield child
    child.kill()
    child.wait()


def holding(box: Sandbox, found: Process) -> Sandbox:
    return replace(box, brokers=(Broker(1, box.brokers[0].ports, found),))


def test_down_leaves_a_foreign_process_alone(
    box: Sandbox, foreign: subprocess.Popen[bytes]
) -> None:
    """A recorded id that now belongs to somebody else gets no signal."""
    record.save_sandbox(holding(box, Process(foreign.pid, "long ago")))
    stopped = lifecycle.down(box.name)
    assert stopped is not None
    assert stopped.ended == ()
    assert foreign.poll() is None
    assert record.load_sandbox(box.name) is None


def test_down_ends_its_own_process(box: Sandbox, tmp_path: Path) -> None:
    """With the right start time the process is ended and reported."""
    own = process.launch_process(SLEEP, tmp_path, tmp_path / "log", os.environ)
    record.save_sandbox(holding(box, own))
    stopped = lifecycle.down(box.name, keep_data=True)
    assert stopped is not None
    assert stopped.ended == (own.pid,)
    assert not process.is_alive(own)
    kept = record.load_sandbox(box.name)
    assert kept is not None
    assert kept.phase is Phase.STOPPED
    assert kept.admin_password == box.admin_password


def test_process_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    """After the grace time there is no more asking."""
    log = tmp_path / "log"
    deaf = process.launch_process(DEAF, tmp_path, log, os.environ)
    while "deaf" not in log.read_text():
        assert process.is_alive(deaf)
    assert process.end_processes((deaf,), grace=0.3) == (deaf,)
    assert not process.is_alive(deaf)


def test_ended_child_is_not_alive(tmp_path: Path) -> None:
    """A zombie holds its id and start time and is dead all the same."""
    own = process.launch_process([sys.executable, "-c", ""], tmp_path, tmp_path / "log", os.environ)
    os.waitid(os.P_PID, own.pid, os.WEXITED | os.WNOWAIT)
    assert not process.is_alive(own)
    assert process.wait_for_exit(own, 1.0) == 0


def test_launched_process_is_out_of_reach_of_the_terminal(tmp_path: Path) -> None:
    """Ctrl-C goes to the terminal's process group, which a broker does not belong to."""
    own = process.launch_process(SLEEP, tmp_path, tmp_path / "log", os.environ)
    try:
        assert os.getsid(own.pid) == own.pid != os.getsid(0)
    finally:
        process.end_processes((own,), grace=5)


def test_child_gets_all_the_open_files_that_the_system_allows() -> None:
    """The soft limit is raised for children and put back for ourselves."""
    soft, hard = process.get_file_limits()
    with process.raise_file_limit():
        assert process.get_file_limits() == (hard, hard)
    assert process.get_file_limits() == (soft, hard)


def test_signal_waits_until_the_record_is_written() -> None:
    """Ctrl-C between a launch and its record arrives after the record, not instead of it."""
    done = False
    with pytest.raises(KeyboardInterrupt), process.defer_signals():
        signal.raise_signal(signal.SIGINT)
        done = True
    assert done
