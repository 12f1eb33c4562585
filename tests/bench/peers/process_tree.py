"""Resident memory and processor time of a process and all that it started, from Linux' /proc.

psutil would list every process of the machine for each sample; the kernel's own lists of children
(CONFIG_PROC_CHILDREN) cost a few reads.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

INTERVAL = 0.025
"""Seconds between two samples."""
PROC = Path("/proc")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICK = os.sysconf("SC_CLK_TCK")


def list_tree(pid: int) -> Iterator[int]:
    """The process and its descendants that are alive."""
    yield pid
    try:
        threads = list((PROC / str(pid) / "task").iterdir())
    except OSError:
        return
    for thread in threads:
        try:
            children = (thread / "children").read_text("ascii")
        except OSError:
            continue
        for child in children.split():
            yield from list_tree(int(child))


def read_resident(pid: int) -> int:
    """Bytes of resident memory; 0 for a process that has ended."""
    try:
        return int((PROC / str(pid) / "statm").read_text("ascii").split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0


def read_cpu(pids: Sequence[int]) -> float:
    """Seconds of user and system time of these processes so far, without their children."""
    total = 0
    for pid in pids:
        try:
            fields = (PROC / str(pid) / "stat").read_text("utf-8").rpartition(")")[2].split()
        except OSError:
            continue
        total += int(fields[11]) + int(fields[12])
    return total / _TICK


def read_busy() -> float:
    """Seconds in which any processor of the machine did anything, so far."""
    fields = (PROC / "stat").read_text("ascii").split("\n", 1)[0].split()[1:]
    user, nice, system, _idle, _wait, irq, softirq, *_ = map(int, fields)
    return (user + nice + system + irq + softirq) / _TICK


class Sampler(threading.Thread):
    """Watches a tree until `stop`. peak: the largest sum of resident bytes that was seen; pages
    that two processes share count twice. cpu: the seconds of processor time of all processes that
    were seen, also of those that their parent did not wait for, such as a JVM."""

    def __init__(self, pid: int, interval: float = INTERVAL) -> None:
        super().__init__(name="sampler", daemon=True)
        self._pid, self._interval = pid, interval
        self._stopped = threading.Event()
        self.peak = 0
        self._seconds: dict[int, float] = {}

    def run(self) -> None:
        while True:
            tree = tuple(list_tree(self._pid))
            self.peak = max(self.peak, sum(map(read_resident, tree)))
            for pid in tree:
                self._seconds[pid] = max(read_cpu([pid]), self._seconds.get(pid, 0.0))
            if self._stopped.wait(self._interval):
                return

    @property
    def cpu(self) -> float:
        return sum(self._seconds.values())

    def stop(self) -> int:
        """The peak in bytes."""
        self._stopped.set()
        self.join()
        return self.peak
