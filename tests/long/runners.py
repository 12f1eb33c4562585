"""Twenty runners and one remote state whose log they seal, some of them killed or stopped at any
moment."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from kafkaform.core.errors import StorageError

from ..kit.stores.runner import DAWDLES, LEASE, Place, judge, often
from .figures import Figures

RUNNERS, ROUNDS = 20, 200
LONGEST = 3600.0
SEED = 11


def run(scale: float) -> Figures:
    """scale 1: 20 runners, 200 rounds each."""
    began = time.monotonic()
    command = [sys.executable, "-m", "tests.kit.stores.s3"]
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as server,
    ):
        assert server.stdout is not None
        place = Place(server.stdout.readline().strip(), Path(folder), seals=True)
        done = Chaos(place, max(1, int(ROUNDS * scale))).run()
        counts, broken = judge(place)
        refused = sum(len(place.said(f"runner-{number}.refused")) for number in range(RUNNERS))
        assert server.stdin is not None
        server.stdin.close()
        server.wait(20)
    counts = {"runners": RUNNERS, **done, "refused rounds": refused, **counts}
    return Figures("runners", counts, broken, time.monotonic() - began)


class Chaos:
    """The runners, and what happens to them: half of it to whoever holds the lock."""

    def __init__(self, place: Place, rounds: int) -> None:
        self.place, self.rounds = place, rounds
        self.backend, self.random = place.backend(), random.Random(SEED)
        self.crew = {
            f"runner-{number}": self._start(f"runner-{number}") for number in range(RUNNERS)
        }
        self.stopped: dict[int, float] = {}
        self.done: Counter[str] = Counter()

    def _start(self, name: str) -> ForkServerProcess:
        return often(self.place, name, self.rounds, timeout=LONGEST, pauses=DAWDLES)

    def run(self) -> Counter[str]:
        deadline = time.monotonic() + LONGEST
        try:
            while self._alive() and time.monotonic() < deadline:
                time.sleep(self.random.uniform(1.0, 4.0))
                self._go_on()
                self._strike()
        finally:
            self._go_on(everybody=True)
            for process in self.crew.values():
                process.join(max(1.0, deadline + 60 - time.monotonic()))
                if process.exitcode is None:
                    process.kill()
                    process.join(10)
        codes = {name: process.exitcode for name, process in self.crew.items()}
        self.done["runners that did not end"] = sum(code != 0 for code in codes.values())
        lines = (len(self.place.said(f"{name}.done")) for name in self.crew)
        self.done["rounds"] = sum(lines)
        return self.done

    def _alive(self) -> bool:
        """Whether anybody is at work; who was killed is started again."""
        for name, process in self.crew.items():
            if process.exitcode == -signal.SIGKILL:
                self.crew[name] = self._start(name)
        return any(process.exitcode is None for process in self.crew.values())

    def _strike(self) -> None:
        pids = [p.pid for p in self.crew.values() if p.pid is not None and p.exitcode is None]
        free = [pid for pid in pids if pid not in self.stopped]
        pid = self._holder(free) if self.random.random() < 0.5 else None
        if pid is None:
            if not free:
                return
            pid = self.random.choice(free)
        with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
            if self.random.random() < 0.4:
                os.kill(pid, signal.SIGKILL)
                self.done["kills"] += 1
            else:
                os.kill(pid, signal.SIGSTOP)
                self.done["stops"] += 1
                self.stopped[pid] = time.monotonic() + self.random.uniform(0, 3 * LEASE)

    def _holder(self, pids: list[int]) -> int | None:
        try:
            holder = self.backend.holder()
        except StorageError:
            return None
        return holder.pid if holder is not None and holder.pid in pids else None

    def _go_on(self, *, everybody: bool = False) -> None:
        for pid, end in list(self.stopped.items()):
            if everybody or time.monotonic() >= end:
                del self.stopped[pid]
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
