"""Start, identify and end broker processes.

A process id alone does not identify a process: after a crash or a restart of the computer it can
belong to another one. A signal is sent only after the start time was compared.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_STATE, _START_TIME = 0, 19  # fields 3 and 22 of /proc/PID/stat, counted after the name (proc(5))
_POLL = 0.05
GRACE = 10.0  # seconds between SIGTERM and SIGKILL


class Process(Struct, frozen=True):
    """A process on this computer."""

    pid: int
    started: str
    """A text that differs for any other process with this pid, earlier or later."""


def identify_process(pid: int) -> Process | None:
    """The process that has this id now, None if there is none or if it has ended (a zombie)."""
    started = _read_start_linux(pid) if sys.platform == "linux" else _read_start_ps(pid)
    return None if started is None else Process(pid, started)


def is_alive(process: Process | None) -> bool:
    """True if this process runs, not only another one with its id."""
    return process is not None and identify_process(process.pid) == process


def launch_process(
    command: Sequence[str], folder: Path, log: Path, env: Mapping[str, str]
) -> Process:
    """Start a process that outlives us. Its output goes to `log`, which is emptied first."""
    # A session of its own: Ctrl-C at the terminal goes to all processes of ours. All open files
    # that the system allows: a broker needs about one for each partition, and fails its disk
    # without.
    with log.open("wb") as output, raise_file_limit():
        child = subprocess.Popen(
            command,
            cwd=folder,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    started = identify_process(child.pid)
    child.returncode = 0  # otherwise Popen warns about a child that still runs
    return started or Process(child.pid, "")


def end_processes(processes: Iterable[Process], grace: float) -> tuple[Process, ...]:
    """End these processes: SIGTERM, and after `grace` seconds SIGKILL. Returns those that were
    alive. Another process with one of the ids is left alone."""
    living = tuple(process for process in processes if is_alive(process))
    _signal_processes(living, signal.SIGTERM)
    survivors = _wait_for_end(living, grace)
    _signal_processes(survivors, signal.SIGKILL)
    _wait_for_end(survivors, 5.0)
    return living


def wait_for_exit(child: Process, seconds: float) -> int | None:
    """The exit code of a process that we have started, None if it still runs after these
    seconds."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        pid, status = os.waitpid(child.pid, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(_POLL)
    return None


def get_file_limits() -> tuple[int, int]:
    """The soft and the hard limit of open files; -1 is no limit."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)


@contextmanager
def raise_file_limit() -> Iterator[None]:
    """Raise our soft limit of open files to the hard one, for children that start in the block."""
    soft, hard = get_file_limits()
    with suppress(ValueError, OSError):  # macOS refuses "no limit"; then it stays as it is
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextmanager
def defer_signals() -> Iterator[None]:
    """Delay Ctrl-C and SIGTERM until the end of the block."""
    # An interrupt between the start of a process and its record would leave a process that nobody
    # knows. Outside of the main thread, signals do not arrive.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []
    before = {
        number: signal.signal(number, lambda which, _: arrived.append(which))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for which in arrived:
            signal.raise_signal(which)


def _signal_processes(processes: Iterable[Process], number: signal.Signals) -> None:
    for process in processes:
        if is_alive(process):
            # It can end between the look and the signal.
            with suppress(ProcessLookupError):
                os.kill(process.pid, number)


def _wait_for_end(processes: tuple[Process, ...], seconds: float) -> tuple[Process, ...]:
    """The processes that are still alive after at most these seconds."""
    deadline = time.monotonic() + seconds
    living = processes
    while living and time.monotonic() < deadline:
        time.sleep(_POLL)
        for process in living:
            _reap_child(process.pid)
        living = tuple(process for process in living if is_alive(process))
    return living


def _reap_child(pid: int) -> None:
    """Remove the zombie of an ended child. A process that is not our child needs nothing."""
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def _read_start_linux(pid: int) -> str | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name is in parentheses, and can contain blanks and parentheses itself.
    fields = stat.rpartition(")")[2].split()
    if fields[_STATE] in "ZX":
        return None
    # Ticks are counted from boot, so that the same number can come again after a restart.
    boot = _BOOT_ID.read_text().strip() if _BOOT_ID.exists() else ""
    return f"{fields[_START_TIME]}@{boot}"


def _read_start_ps(pid: int) -> str | None:
    answer = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)],
        capture_output=True,
        text=True,
        env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
        check=False,
    )
    state, _, started = answer.stdout.strip().partition(" ")
    return None if not started or state.startswith("Z") else " ".join(started.split())
