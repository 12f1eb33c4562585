"""One folder of the kill proof: rounds of killed and repeated applies, and what must hold after
each."""

from __future__ import annotations

import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from kafkaform.audit.records import RecordKind, decode

from ...kit.commands.process_folder import Folder
from ...kit.commands.server import Running
from ...kit.kafka.truth import Observer
from ...kit.lane import Lane
from ...kit.promises import Thing, World
from .desire import Desire


@dataclass
class KillLane(Lane):
    """random: decides everything."""

    admin: Observer
    random: Random
    desire: Desire

    def prepare(self) -> None:
        """Draw the next configuration, make the topics that it is to adopt, and write it."""
        self.desire = self.desire.next(self.random)
        found = {self.desire.name(s): t for s, t in self.desire.adopted.items()}
        self.admin.make({name: (t.partitions, t.config) for name, t in found.items()})
        self.write(self.desire.hcl())

    def settle(self) -> None:
        """Apply to the end."""
        ended = self.folder.apply()
        assert ended.code == 0, f"the repeated apply ended with {ended.code}:\n{ended.out}"

    def check(self) -> None:
        """The five promises hold, the rows have their owners, and there is nothing to do."""
        faults = self.find_broken_promises(self._wanted())
        assert not faults, "\n".join(faults)
        self._owned()
        again = self.folder.plan()
        assert again.code == 0, f"there is still something to do:\n{again.out}"

    def world(self) -> World:
        return {
            ("kafka_topic", name): Thing(_told(topic.partitions, topic.config), topic.topic_id)
            for name, topic in self.admin.topics(self.desire.prefix).items()
        }

    def _wanted(self) -> World:
        """What the configuration declares."""
        return {
            ("kafka_topic", self.desire.name(slot)): Thing(_told(topic.partitions, topic.config))
            for slot, topic in self.desire.topics.items()
        }

    def _owned(self) -> None:
        state = self.folder.state()
        found = {i.key: row.owners for i, row in state.objects.items()} if state else {}
        owners = {
            self.desire.name(slot): (f'kafka_topic.{topic.group}["{slot}"]',)
            for slot, topic in self.desire.topics.items()
        }
        assert found == owners


def _told(partitions: int, config: Mapping[str, str]) -> dict[str, object]:
    return {"partitions": partitions, "config": dict(config)}


def strike_later(process: Running, seconds: float, number: int) -> bool:
    """Send the signal after so many seconds; False if the process had ended before."""
    try:
        process.wait(seconds)
    except TimeoutError:
        process.send_signal(number)
        return True
    return False


def strike_at_growth(
    process: Running, folder: Folder, times: int, delay: float, number: int
) -> bool:
    """Send the signal when the log has grown so many times, and a moment later; False if the
    process had ended before."""
    size = _size(folder)
    while process.poll() is None:
        now = _size(folder)
        if now != size:
            size, times = now, times - 1
        if times <= 0:
            time.sleep(delay)
            process.send_signal(number)
            return True
        time.sleep(0.001)
    return False


def strike_at_intent(process: Running, folder: Folder, number: int) -> bool:
    """Send the signal as soon as the log ends with an intent: what it announces is about to be
    sent, is on its way or was just answered. False if the process had ended before."""
    seen = _size(folder)
    while process.poll() is None:
        now = _size(folder)
        if now != seen:
            seen = now
            if _last_kind(folder.log.read_bytes()) == RecordKind.INTENT:
                process.send_signal(number)
                return True
        time.sleep(0.001)
    return False


def _last_kind(lines: bytes) -> str:
    """Of the last whole line."""
    *whole, _ = lines.split(b"\n")
    return decode(whole[-1]).kind if whole else ""


def _size(folder: Folder) -> int:
    try:
        return folder.log.stat().st_size
    except FileNotFoundError:
        return 0


def kill(process: Running) -> None:
    """End a process that a failed test left."""
    if process.poll() is None:
        process.send_signal(signal.SIGKILL)
        process.finish()
