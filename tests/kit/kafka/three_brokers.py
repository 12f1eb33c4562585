"""Three brokers that can be killed, frozen and started again one by one."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from confluent_kafka import KafkaException

from kafkaform import sandbox
from kafkaform.cli.commands.sandbox import count_brokers
from kafkaform.core.progress import ignore_event
from kafkaform.sandbox import brokers, lifecycle, record
from kafkaform.sandbox.process import is_alive

from .clusters import HELD, own_sandbox
from .truth import Observer

COUNT = 3
PATIENCE = 90.0
"""Seconds after which brokers that are not all back are a failure of their own."""
LISTING = 2.0


@dataclass
class Brokers:
    """box: as it was started; processes change with every restart."""

    box: sandbox.Sandbox

    @property
    def ids(self) -> list[int]:
        return [broker.id for broker in self.box.brokers]

    @property
    def servers(self) -> str:
        """All of them, as `Folder` writes them into a list."""
        return self.box.bootstrap.replace(",", '", "')

    def address(self, number: int) -> str:
        """host:port of one of them."""
        return self.box.bootstrap.split(",")[number - 1]

    def controller(self) -> int:
        """The active one, as the voters last noted it (quorum-state beside the metadata log,
        which tells it even while nobody answers)."""
        notes = []
        for path in self.box.data.glob("*/__cluster_metadata-0/quorum-state"):
            note = json.loads(path.read_text())
            notes.append((note["leaderEpoch"], note["leaderId"]))
        return int(max(notes)[1])

    def plain(self) -> int:
        """One that is not the active controller."""
        leads = self.controller()
        return next(number for number in self.ids if number != leads)

    def kill(self, *numbers: int) -> None:
        """SIGKILL, at once and without a goodbye."""
        self._signal(numbers, signal.SIGKILL)
        deadline = time.monotonic() + PATIENCE
        while any(is_alive(broker.process) for broker in self._some(numbers)):
            assert time.monotonic() < deadline, "a broker survived SIGKILL"
            self._reap(numbers)
            time.sleep(0.01)

    def freeze(self, *numbers: int) -> None:
        """They hold what they have, and answer nothing."""
        self._signal(numbers, signal.SIGSTOP)

    def thaw(self, *numbers: int) -> None:
        self._signal(numbers, signal.SIGCONT)

    def start(self, number: int) -> None:
        """Start one that is dead again, without a wait for the others."""
        self._launch([number])

    def revive(self) -> None:
        """Start all that are dead again, and wait until all are known."""
        deadline = time.monotonic() + PATIENCE
        while True:
            self._launch(broker.id for broker in self.box.brokers if not is_alive(broker.process))
            if count_brokers(self.box) == COUNT and all(map(self._lists_all, self.ids)):
                return
            assert time.monotonic() < deadline, "the brokers did not come back"
            time.sleep(0.1)

    def _lists_all(self, number: int) -> bool:
        """Whether this broker answers, and knows all others. The others list one that died for as
        long as they have not missed it."""
        one = Observer(self.address(number), self.box.admin_password).native
        try:
            return len(one.list_topics("?", timeout=LISTING).brokers) == COUNT
        except KafkaException:
            return False

    def _launch(self, numbers: Iterable[int]) -> None:
        runtime = lifecycle._find_runtime(self.box.make_options(), ignore_event)
        for broker in self._some(numbers):
            self.box = brokers._launch_broker(self.box, broker, runtime)

    def _some(self, numbers: Iterable[int]) -> list[record.Broker]:
        return [self.box.brokers[number - 1] for number in numbers]

    def _signal(self, numbers: Iterable[int], number: int) -> None:
        for broker in self._some(numbers):
            if broker.process is not None and is_alive(broker.process):
                os.kill(broker.process.pid, number)

    def _reap(self, numbers: Iterable[int]) -> None:
        """A killed child of ours that nobody asks for stays a zombie, which `is_alive` sees
        through; this only tidies up."""
        for broker in self._some(numbers):
            if broker.process is not None:
                try:
                    os.waitpid(broker.process.pid, os.WNOHANG)
                except ChildProcessError:
                    continue


@contextmanager
def three_brokers(name: str) -> Iterator[Brokers]:
    """Three of them that nobody else uses, ended and removed afterwards."""
    with own_sandbox(name, COUNT, HELD) as box:
        yield Brokers(box)
