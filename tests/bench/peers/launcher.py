"""A process that measures one command: `python -m tests.bench.peers.launcher`, with a `Job` on its
standard input and an `Outcome` on its standard output, both in JSON.

All that the command starts is counted, also what outlives it: this process adopts orphans
(PR_SET_CHILD_SUBREAPER) and waits for them, and the kernel adds up their processor time
(getrusage, RUSAGE_CHILDREN). Wall time ends when the command does.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .process_tree import Sampler, list_tree, read_busy, read_cpu

_SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER of prctl(2)."""
_GRACE = 10.0
"""Seconds for what outlives the command."""
ROOT = Path(__file__).resolve().parents[3]


class Job(NamedTuple):
    """words, folder, variables: the command; output: a file that gets what it says; patience:
    seconds after which it is ended; brokers: processes whose time is told beside its own."""

    words: Sequence[str]
    folder: str
    variables: Mapping[str, str]
    output: str
    patience: float
    brokers: Sequence[int] = ()


class Outcome(NamedTuple):
    """code: None if the command was ended; wall, cpu: seconds; broker_cpu, others_cpu: seconds
    that the brokers and everything else on the machine took meanwhile; peak: bytes."""

    code: int | None
    wall: float
    cpu: float
    broker_cpu: float
    others_cpu: float
    peak: int


def launch(job: Job) -> Outcome:
    """Measure a command in a new process."""
    done = subprocess.run(
        [sys.executable, "-m", __name__],
        cwd=ROOT,
        input=json.dumps(job),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return Outcome(*json.loads(done.stdout))


def _measure(job: Job) -> Outcome:
    _adopt_orphans()
    busy, broker = read_busy(), read_cpu(job.brokers)
    with Path(job.output).open("wb") as output:
        begun = time.perf_counter()
        child = subprocess.Popen(
            job.words,
            cwd=job.folder,
            env=dict(job.variables),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        sampler = Sampler(child.pid)
        sampler.start()
        code = _wait(child, job.patience)
        wall = time.perf_counter() - begun
    sampled = sampler.stop()
    _wait_for_orphans()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime
    broker = read_cpu(job.brokers) - broker
    others = max(0.0, read_busy() - busy - cpu - broker)
    # What a short command holds can be gone before the first sample: the kernel keeps the most that
    # any single process of the tree held, in KiB.
    return Outcome(code, wall, cpu, broker, others, max(sampled, used.ru_maxrss * 1024))


def _adopt_orphans() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def _wait(child: subprocess.Popen[bytes], patience: float) -> int | None:
    """The exit code; None if patience ended first."""
    late = threading.Event()

    def end() -> None:
        late.set()
        os.killpg(child.pid, signal.SIGKILL)

    # Popen.wait with a timeout looks only every 50 ms.
    timer = threading.Timer(patience, end)
    timer.daemon = True
    timer.start()
    code = child.wait()
    timer.cancel()
    return None if late.is_set() else code


def _wait_for_orphans() -> None:
    deadline = time.monotonic() + _GRACE
    while True:
        try:
            ended, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not ended:
            if time.monotonic() > deadline:
                for pid in list(list_tree(os.getpid()))[1:]:
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)


def main() -> None:
    given: list[Any] = json.load(sys.stdin)
    print(json.dumps(_measure(Job(*given))))


if __name__ == "__main__":
    main()
