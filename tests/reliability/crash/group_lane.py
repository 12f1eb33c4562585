"""A lane whose command is an `alter group`: the offsets of a group are set anew in each round."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from ...kit.commands.process_folder import Folder
from ...kit.kafka.topic_clients import Clients, wait_for
from ...kit.lane import find_faults
from ...kit.promises import Before, World, open_intents
from . import scenes
from .lanes import TIMEOUT, CrashLane, Town

RECORDS, PARTITIONS = 60, 2
IDLE = "There is nothing to change."
Offsets = tuple[int, ...]


@dataclass
class GroupLane(CrashLane):
    """old: the offsets before the round; new: those that it sets."""

    old: Offsets = ()
    new: Offsets = ()

    @property
    def clients(self) -> Clients:
        return Clients(self.town.bootstrap, self.town.password)

    @property
    def topic(self) -> str:
        return f"{self.prefix}t"

    @property
    def group(self) -> str:
        return f"{self.prefix}g"

    def begin(self) -> None:
        """A topic with records, and the first round, which creates the group."""
        assert self.clients.create(self.topic, PARTITIONS) == ""
        producer = Producer(self.clients.config)
        for number in range(RECORDS):
            producer.produce(self.topic, "x", partition=number % PARTITIONS)
        assert producer.flush(30) == 0
        (self.folder.path / "main.kf.hcl").write_text(
            scenes.provider(self.town.bootstrap, TIMEOUT), "utf-8"
        )
        self.declare()
        faults = tuple(self.faults())
        assert not faults, faults

    def declare(self) -> None:
        """Choose the offsets of the next round. It starts from what there is: --shift-by would not
        be the same twice."""
        self.before = Before.of(self.folder.path, {})
        self.number += 1
        target = 5 + self.number % (RECORDS // PARTITIONS - 5)
        self.old, self.new = self.read_offsets(), (target,) * PARTITIONS
        words = ("alter", "group", self.group, "--reset-offsets", "--to-offset", str(target))
        self.words = (*words, "--topic", self.topic, "--auto-approve", "--concise", "--no-color")

    def read_offsets(self) -> Offsets:
        """What a client of the group would start with."""
        consumer = Consumer({**self.clients.config, "group.id": self.group})
        places = [TopicPartition(self.topic, number) for number in range(PARTITIONS)]
        offsets: list[Offsets] = []

        def has_answer() -> bool:
            # Kafka makes its topic of groups first.
            try:
                offsets.append(tuple(place.offset for place in consumer.committed(places, 30)))
            except KafkaException:
                return False
            return True

        try:
            wait_for(has_answer)
        finally:
            consumer.close()
        return offsets[0]

    def world(self) -> World:
        """Nothing that a state could have."""
        return {}

    def faults(self) -> Iterator[str]:
        """Recover, and look at the offsets; then type the command again, twice."""
        yield from self.kept()
        first = self.recover()
        if first.code != 0:
            yield f"the recovery ended with {first.code}: {first.out[-2000:]}"
            return
        offsets = self.read_offsets()
        if offsets not in (self.old, self.new):
            yield f"the offsets are {offsets}, and were to go from {self.old} to {self.new}"
        yield from self.find_unlogged(offsets)
        again = self.run(self.words)
        if again.code != 0:
            yield f"the command ended with {again.code}: {again.out[-2000:]}"
        if (offsets := self.read_offsets()) != self.new:
            yield f"the offsets are {offsets}, and were to be {self.new}"
        last = self.run(self.words)
        if last.code != 0 or IDLE not in last.out:
            yield f"the last command ended with {last.code}: {last.out[-2000:]}"
        yield from self.find_broken_promises({}, None)
        for ended in (first, again, last):
            yield from find_faults(ended, self.folder.password)

    def find_unlogged(self, offsets: Offsets) -> Iterator[str]:
        """What a recovered log says about this round that is not so."""
        records = self.folder.records()[self.before.seq :]
        if open_intents(records):
            yield "an intent is still open"
        kinds = [record.kind for record in records]
        ends = [record.body["outcome"] for record in records if "outcome" in record.body]
        changed = offsets != self.old
        if changed and "intent" not in kinds:
            yield "the offsets changed without an intent"
        if self.old != self.new and ("applied" in ends) is not changed:
            yield f"the log says {ends}, and the offsets are {offsets}"

    def renewed(self) -> GroupLane:
        """A lane of this town with another folder and other names."""
        path = self.folder.path
        lives = len(list(path.parent.glob(f"{path.name.partition('-')[0]}-*/"))) + 1
        return make_lane(self.town, path.parent, f"{path.name.partition('-')[0]}-{lives}")


def make_lane(town: Town, scratch: Path, name: str) -> GroupLane:
    """A lane that has begun."""
    path = scratch / name
    path.mkdir()
    folder = Folder(path, town.bootstrap, town.password)
    lane = GroupLane(folder, town, f"crash.{uuid4().hex[:8]}.{name}.")
    lane.begin()
    return lane
