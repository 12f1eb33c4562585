"""Lanes whose command is an `alter`: each round sets, deletes or restores something that no block
declares. What the next round needs, somebody else has made before."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from kafkaform_schema_registry import requests

from ...kit.commands.process_folder import Folder
from ...kit.kafka.topic_clients import Clients, wait_for
from ...kit.lane import find_faults
from ...kit.promises import Before, World, open_intents
from ...kit.schema_registry.rounds import RegistrySystem, open_registry
from ...kit.schema_registry.schemas import field, record
from . import scenes
from .lanes import TIMEOUT, CrashLane, Town

RECORDS, PARTITIONS = 60, 2
IDLE = (0, "There is nothing to change.")
"""How a command ends that finds nothing to do, and what it says."""
APPROVED = ("--auto-approve", "--concise", "--no-color")
RESET, DELETE_OFFSETS, DELETE, RESTORE = "reset", "delete offsets", "delete", "restore"
GROUP_KINDS, VERSION_KINDS = (RESET, DELETE_OFFSETS, DELETE), (DELETE, RESTORE)
Values = tuple[Any, ...]


@dataclass
class CommandLane(CrashLane):
    """kind: of the command; old: the values before the round; new: those that it leads to; idle:
    how the command ends after that."""

    kind: str = ""
    old: Values = ()
    new: Values = ()
    idle: tuple[int, str] = IDLE

    def read_values(self) -> Values:
        """What the command changes, read without kafkaform."""
        raise NotImplementedError

    def prepare(self) -> None:
        """Make what the round needs, and choose `words`, `old` and `new`."""
        raise NotImplementedError

    def declare(self) -> None:
        self.before = Before.of(self.folder.path, {})
        self.number += 1
        self.prepare()

    def world(self) -> World:
        """Nothing that a state could have."""
        return {}

    def faults(self) -> Iterator[str]:
        """Recover, and look at the values; then type the command again, until it is idle."""
        yield from self.kept()
        first = self.recover()
        if first.code != 0:
            yield f"the recovery ended with {first.code}: {first.out[-2000:]}"
            return
        values = self.read_values()
        if values not in (self.old, self.new):
            yield f"there is {values}, and it was to go from {self.old} to {self.new}"
        yield from self.find_unlogged(values)
        commands = [first]
        if values != self.new:
            commands.append(self.run(self.words))
            if commands[-1].code != 0:
                yield f"the command ended with {commands[-1].code}: {commands[-1].out[-2000:]}"
            if (values := self.read_values()) != self.new:
                yield f"there is {values}, and it was to be {self.new}"
        commands.append(last := self.run(self.words))
        code, text = self.idle
        if last.code != code or text not in last.out:
            yield f"the last command ended with {last.code}: {last.out[-2000:]}"
        if (values := self.read_values()) != self.new:
            yield f"the last command led to {values} from {self.new}"
        yield from self.find_broken_promises({}, None)
        for ended in commands:
            yield from find_faults(ended, self.folder.password)

    def find_unlogged(self, values: Values) -> Iterator[str]:
        """What a recovered log says about this round that is not so."""
        records = self.folder.records()[self.before.seq :]
        if open_intents(records):
            yield "an intent is still open"
        kinds = [record.kind for record in records]
        ends = [record.body["outcome"] for record in records if "outcome" in record.body]
        changed = values != self.old
        if changed and "intent" not in kinds:
            yield "something changed without an intent"
        if self.old != self.new and ("applied" in ends) is not changed:
            yield f"the log says {ends}, and there is {values}"

    def find_free_path(self) -> Path:
        """Where a lane that follows this one has its folder."""
        path = self.folder.path
        name = path.name.partition("-")[0]
        lives = [item for item in path.parent.glob(f"{name}-*/") if item.suffix != ".site"]
        return path.with_name(f"{name}-{len(lives) + 1}")


NO_OFFSETS = (-1001,) * PARTITIONS
"""What a client is told that asks for offsets which are not there."""


@dataclass
class GroupLane(CommandLane):
    """An `alter group`, which resets or deletes the offsets of a group, or the group."""

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
        """A topic with records, and the first round."""
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

    def prepare(self) -> None:
        """Choose the offsets of the round. A reset starts from what there is: --shift-by would not
        be the same twice."""
        target = 5 + self.number % (RECORDS // PARTITIONS - 5)
        words = {
            RESET: ("--reset-offsets", "--to-offset", str(target), "--topic", self.topic),
            DELETE_OFFSETS: ("--delete-offsets", "--topic", self.topic),
            DELETE: ("--delete",),
        }[self.kind]
        self.words = ("alter", "group", self.group, *words, *APPROVED)
        if self.kind == RESET:
            self.old, self.new = self.read_values(), (target,) * PARTITIONS
            return
        self.commit((target,) * PARTITIONS)
        self.old, self.new = (target,) * PARTITIONS, NO_OFFSETS
        is_kept = self.kind == DELETE_OFFSETS
        self.idle = (1, "has no offsets of" if is_kept else f"there is no group {self.group}")

    def commit(self, offsets: Values) -> None:
        """Commit as a client does, which makes the group if it is not there."""
        consumer = Consumer({**self.clients.config, "group.id": self.group})
        rows = [TopicPartition(self.topic, number, at) for number, at in enumerate(offsets)]

        def is_committed() -> bool:
            # Kafka makes its topic of groups first.
            try:
                consumer.commit(offsets=rows, asynchronous=False)
            except KafkaException:
                return False
            return True

        try:
            wait_for(is_committed)
        finally:
            consumer.close()

    def read_values(self) -> Values:
        """The offsets that a client of the group would start with."""
        consumer = Consumer({**self.clients.config, "group.id": self.group})
        places = [TopicPartition(self.topic, number) for number in range(PARTITIONS)]
        offsets: list[Values] = []

        def has_answer() -> bool:
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

    def renewed(self) -> GroupLane:
        """A lane of this town with another folder and other names."""
        path = self.find_free_path()
        return make_group_lane(self.town, path.parent, path.name, self.kind)


def make_group_lane(town: Town, scratch: Path, name: str, kind: str) -> GroupLane:
    """A lane that has begun."""
    path = scratch / name
    path.mkdir()
    folder = Folder(path, town.bootstrap, town.password)
    lane = GroupLane(folder, town, f"crash.{uuid4().hex[:8]}.{name}.", kind=kind)
    lane.begin()
    return lane


SUBJECT = "orders-value"


@dataclass
class VersionLane(CommandLane):
    """An `alter schema`, which deletes or restores the newest version of a subject. stack: ends the
    registries of all lanes."""

    system: RegistrySystem = dataclasses.field(kw_only=True)
    stack: ExitStack = dataclasses.field(kw_only=True)

    def begin(self) -> None:
        """A folder without blocks, and the first round."""
        provider = self.system.rounds.write_provider(self.system.url)
        (self.folder.path / "main.kf.hcl").write_text(provider, "utf-8")
        self.declare()
        faults = tuple(self.faults())
        assert not faults, faults

    def prepare(self) -> None:
        """Somebody registers a version, and deletes it if it is to be restored."""
        registry = self.system.registry
        text = record(field("id", "long"), field("n", "int", default=self.number))
        body: Mapping[str, Any] = {
            "subject": SUBJECT,
            "format": "avro",
            "schema": text,
            "references": (),
        }
        assert registry.answer(requests.register(body)).succeeded
        number, _, schema_id = self.read_values()[-1]
        deleted = (number, True, schema_id)
        if self.kind == DELETE:
            self.old = self.read_values()
            self.new = (*self.old[:-1], deleted)
        else:
            assert registry.answer(
                requests.delete_version(SUBJECT, number, permanent=False)
            ).succeeded
            self.old = self.read_values()
            self.new = (*self.old[:-1], deleted, (number + 1, False, schema_id))
        words = ("alter", "schema", SUBJECT, f"--{self.kind}-version", str(number))
        self.words = (*words, *APPROVED)

    def read_values(self) -> Values:
        """Number, whether it is deleted, and id of each version."""
        versions = self.system.registry.subjects.list_versions(SUBJECT, deleted=True)
        return tuple((stored.number, stored.deleted, stored.id) for stored in versions)

    def renewed(self) -> VersionLane:
        """A lane with another folder and another registry."""
        path = self.find_free_path()
        return make_version_lane(self.stack, path.parent, path.name, self.kind)


def make_version_lane(stack: ExitStack, scratch: Path, name: str, kind: str) -> VersionLane:
    """A lane that has begun."""
    system = stack.enter_context(open_registry(scratch / name))
    lane = VersionLane(system.folder, cast(Any, None), "", kind=kind, system=system, stack=stack)
    lane.begin()
    return lane
