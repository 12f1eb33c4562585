"""One folder of the kill proof: rounds of killed and repeated applies, and what must hold after
each."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from confluent_kafka.admin import AdminClient

from .cluster import Live, make, read
from .desire import Desire
from .folder import Folder, finish, pairs
from .running import Running

LAG = 10.0
"""Seconds that a read may miss an acknowledged write."""
FILES = {"main.kf.hcl", "kafkaform.audit.jsonl", "kafkaform.state.json", ".kafkaform"}


@dataclass
class Lane:
    """random: decides everything; ids: name -> topic id of all that may not be recreated."""

    folder: Folder
    admin: AdminClient
    random: Random
    desire: Desire
    ids: dict[str, str] = field(default_factory=dict)

    def prepare(self) -> None:
        """Draw the next configuration, make the topics that it is to adopt, and write it."""
        self.desire = self.desire.next(self.random)
        for slot in self.desire.removed:
            self.ids.pop(self.desire.name(slot), None)
        found = {self.desire.name(s): t for s, t in self.desire.adopted.items()}
        make(self.admin, {name: (t.partitions, t.config) for name, t in found.items()})
        self.folder.write(self.desire.hcl())

    def start(self) -> Running:
        return self.folder.start("apply", "-auto-approve", "--concise", "--no-color")

    def settle(self) -> None:
        """Apply to the end, as often as a user would who is told that something is unknown."""
        ended = self.folder.apply()
        assert ended.code == 0, f"the repeated apply ended with {ended.code}:\n{ended.out}"

    def check(self) -> None:
        """Everything is as declared, recorded once, verifiable, and the same in state and
        cluster."""
        live = self._as_declared()
        intents, ends = pairs(self.folder.records())
        assert intents == ends, f"open or doubled: {intents - ends} {ends - intents}"
        assert set(intents.values()) <= {1}
        self._state_is(live)
        kept = {name: topic_id for name, topic_id in self.ids.items() if name in live}
        assert kept == {name: live[name].topic_id for name in kept}, "a topic was recreated"
        self.ids = {name: topic.topic_id for name, topic in live.items()}
        left = {path.name for path in self.folder.path.iterdir()}
        assert left <= FILES, f"left behind: {left - FILES}"
        again = self.folder.plan()
        assert again.code == 0, f"there is still something to do:\n{again.out}"

    def _as_declared(self) -> Mapping[str, Live]:
        topics = self.desire.topics.items()
        wanted = {self.desire.name(s): (t.partitions, dict(t.config)) for s, t in topics}
        deadline = time.monotonic() + LAG
        while True:
            live = read(self.admin, self.desire.prefix)
            seen = {name: (t.partitions, dict(t.config)) for name, t in live.items()}
            if seen == wanted:
                return live
            assert time.monotonic() < deadline, {
                name: (seen.get(name), wanted.get(name))
                for name in seen.keys() | wanted.keys()
                if seen.get(name) != wanted.get(name)
            }
            time.sleep(0.2)

    def _state_is(self, live: Mapping[str, Live]) -> None:
        state = self.folder.state()
        rows = {} if state is None else {i.key: row for i, row in state.objects.items()}
        recorded = {
            name: Live(
                str(row.incarnation), row.attributes["partitions"], dict(row.attributes["config"])
            )
            for name, row in rows.items()
        }
        assert recorded == {
            name: Live(t.topic_id, t.partitions, dict(t.config)) for name, t in live.items()
        }
        owners = {
            self.desire.name(slot): (f'kafka_topic.{topic.group}["{slot}"]',)
            for slot, topic in self.desire.topics.items()
        }
        assert {name: row.owners for name, row in rows.items()} == owners


def strike_later(process: Running, seconds: float, number: int) -> bool:
    """Send the signal after so many seconds; False if the process had ended before."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
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


def _size(folder: Folder) -> int:
    try:
        return folder.log.stat().st_size
    except FileNotFoundError:
        return 0


def kill(process: Running) -> None:
    """End a process that a failed test left."""
    if process.poll() is None:
        process.send_signal(signal.SIGKILL)
        finish(process)
