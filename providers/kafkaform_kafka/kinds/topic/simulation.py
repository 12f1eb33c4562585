"""Topics of the simulated cluster: what the controller does with them, and how they read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core.change import Step
from kafkaform.core.resource import (
    Absent,
    Coverage,
    CoverageKind,
    Depth,
    Fault,
    FaultClass,
    Hidden,
    Identity,
    Observed,
    Reading,
    Sweep,
)
from kafkaform.core.value import EMPTY, FrozenMap

from ...protocol import broker_rules, faults
from ...protocol.broker_rules import MAX_RECORDS
from ...protocol.config_values import config_map
from ...simulation.controller import (
    Answer,
    Call,
    Item,
    Refusal,
    Result,
    Verdict,
    batch,
    require,
    whole,
)
from ...simulation.rights import CLUSTER, User
from ...simulation.simulated_kind import Scene, SimulatedKind, SimulatedReads
from ...simulation.world import Key
from . import configs
from . import resource_type as topics
from .placement import move_ticket

INTERNAL = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})


class Topic(Struct, frozen=True):
    """assignment: broker ids of each partition; config: the topic's own overrides; target: where
    the move that runs takes them, None if none does; leaders: of each partition, as far as it is
    not its first replica that leads."""

    name: str
    id: str
    assignment: tuple[tuple[int, ...], ...]
    config: FrozenMap = EMPTY
    target: tuple[tuple[int, ...], ...] | None = None
    leaders: FrozenMap = EMPTY

    @property
    def arrived(self) -> Topic:
        """The topic once its move has ended."""
        return self.placed(self.target or self.assignment, None)

    def placed(
        self,
        assignment: tuple[tuple[int, ...], ...],
        target: tuple[tuple[int, ...], ...] | None,
    ) -> Topic:
        """The topic with its replicas there. Who leads a partition goes on to, as long as it has
        a replica of it."""
        led = {
            str(number): leader
            for number, (leader, row) in enumerate(zip(self.led, assignment, strict=False))
            if leader in row[1:]
        }
        return replace(self, assignment=assignment, target=target, leaders=FrozenMap(led))

    @property
    def led(self) -> tuple[int, ...]:
        """The broker that leads each partition, if it is up."""
        return tuple(self.leaders.get(str(n), row[0]) for n, row in enumerate(self.assignment))

    @property
    def partitions(self) -> int:
        return len(self.assignment)

    @property
    def replication_factor(self) -> int:
        return len(self.assignment[0])


Topics = Mapping[str, Topic]


def key(name: str) -> Key:
    """Where the world keeps the topic of this name."""
    return (topics.KIND, name)


def _key_of(item: Item) -> Key:
    return key(item["name"])


def _topics(call: Call) -> Topics:
    return call.world.of(topics.KIND)


def create_topics(call: Call, items: Sequence[Item]) -> Result:
    """CreateTopics: names must be free, also of '.' and '_' collisions with living topics."""
    wanted = sum(_count(item, call) for item in items)
    if wanted > MAX_RECORDS:
        return whole(items, 44, "Excessively large number of partitions per request.")
    taken = {broker_rules.collision_key(name): name for name in _topics(call)}
    return batch(call, items, _key_of, lambda item: _create(call, item, taken))


def create_partitions(call: Call, items: Sequence[Item]) -> Result:
    """CreatePartitions: an item that no longer fits into the batch fails alone, and the
    partitions that did fit are kept."""
    room = MAX_RECORDS

    def grow(item: Item) -> Verdict:
        nonlocal room
        verdict = _grow(call, item, room)
        room -= verdict[2]
        return verdict

    return batch(call, items, _key_of, grow)


def delete_topics(call: Call, items: Sequence[Item]) -> Result:
    """DeleteTopics by topic id, so that a recreated topic survives."""
    living = {topic.id: topic for topic in _topics(call).values()}
    return batch(call, items, _key_of, lambda item: _delete(call, item, living))


def placed(count: int, width: int, brokers: Sequence[int], first: int = 0) -> tuple[Any, ...]:
    """Replicas for `count` partitions from number `first` on, round the brokers."""
    return tuple(
        tuple(brokers[(index + offset) % len(brokers)] for offset in range(width))
        for index in range(first, first + count)
    )


def _count(item: Item, call: Call) -> int:
    if item["assignment"]:
        return len(item["assignment"])
    return call.defaults[0] if item["partitions"] == -1 else max(0, item["partitions"])


def _spend(call: Call, mutations: int) -> None:
    """A dry run spends as much as the real request, and what is refused later stays spent."""
    if wait := call.charge(mutations):
        raise Refusal(89, wait=wait)


def _create(call: Call, item: Item, taken: Mapping[str, str]) -> Verdict:
    name = item["name"]
    require(call.user.may("Create", CLUSTER) or call.user.may_on_topic("Create", name), 29)
    for problem, _ in broker_rules.name_faults(name):
        raise Refusal(17, problem)
    if name in _topics(call):
        raise Refusal(36, f"Topic '{name}' already exists.")
    if other := taken.get(broker_rules.collision_key(name)):
        raise Refusal(17, f"Topic '{name}' collides with existing topic: {other}")
    assignment = _assignment(call, item)
    config = _valid_config(item["configs"])
    _spend(call, len(assignment))
    topic = Topic(name, call.new_id(), assignment, config)
    return Answer(made=topic), topic, 1 + len(config) + len(assignment)


def _assignment(call: Call, item: Item) -> tuple[tuple[int, ...], ...]:
    given = item["assignment"]
    if given:
        _check_assignment(call, given, len(given[0]))
        return tuple(map(tuple, given))
    width = call.defaults[1] if item["replication_factor"] == -1 else item["replication_factor"]
    count = _count(item, call)
    if count < 1:
        raise Refusal(37, "Number of partitions was set to an invalid non-positive value.")
    if not 1 <= width <= len(call.brokers):
        raise Refusal(38, f"only {len(call.brokers)} broker(s) for {width} replica(s).")
    return placed(count, width, call.brokers)


def _check_assignment(call: Call, given: Sequence[Sequence[int]], width: int) -> None:
    for replicas in given:
        known = set(replicas) <= set(call.brokers)
        if not replicas or len(set(replicas)) != width or len(replicas) != width or not known:
            raise Refusal(39, f"the replicas {list(replicas)} are not possible.")


def _valid_config(config: Mapping[str, Any]) -> FrozenMap:
    for problem, _ in broker_rules.config_faults(config):
        raise Refusal(40, problem)
    valid = config_map(config)
    for low, high in _ORDERED:
        if low in valid and high in valid and int(valid[low]) > int(valid[high]):
            raise Refusal(40, f"{low} ({valid[low]}) > {high} ({valid[high]})")
    return valid


_ORDERED = (("min.compaction.lag.ms", "max.compaction.lag.ms"),)
"""Configs of which the first may not exceed the second in a topic's merged set."""


def _grow(call: Call, item: Item, room: int) -> Verdict:
    name, count = item["name"], item["count"]
    require(call.user.may_on_topic("Alter", name), 29)
    topic = _living(call, name)
    if count <= topic.partitions:
        raise Refusal(37, f"Topic currently has {topic.partitions} partitions, asked: {count}.")
    added = _added(call, topic, count, item["assignment"])
    more = added[:room]
    there = None if topic.target is None else (*topic.target, *more)
    grown = replace(topic, assignment=(*topic.assignment, *more), target=there)
    if len(added) > room:
        return Answer(-1, "The metadata batch is full."), grown, room
    return Answer(made=grown), grown, len(added)


def _added(
    call: Call, topic: Topic, count: int, given: Sequence[Sequence[int]] | None
) -> tuple[tuple[int, ...], ...]:
    more = count - topic.partitions
    if given is not None and len(given) != more:
        raise Refusal(39, f"{more} partitions are added and {len(given)} are assigned.")
    _spend(call, more)
    if given is None:
        if topic.replication_factor > len(call.brokers):
            raise Refusal(38, f"only {len(call.brokers)} broker(s) are live.")
        return placed(more, topic.replication_factor, call.brokers, topic.partitions)
    _check_assignment(call, given, topic.replication_factor)
    return tuple(map(tuple, given))


def alter(call: Call, item: Item) -> Verdict:
    """IncrementalAlterConfigs of one topic: all keys or none."""
    name = item["name"]
    require(call.user.may_on_topic("AlterConfigs", name), 29)
    topic = _living(call, name)
    put, gone = item["set"], tuple(item["delete"])
    if len({*put, *gone}) != len(put) + len(gone):
        raise Refusal(42, "the request names a config key twice")
    merged = {**topic.config, **put}
    config = _valid_config({key: value for key, value in merged.items() if key not in gone})
    altered = replace(topic, config=config)
    return Answer(made=altered), altered, len(put) + sum(key in topic.config for key in gone)


def _delete(call: Call, item: Item, living: Mapping[str, Topic]) -> Verdict:
    topic = living.get(item["topic_id"])
    if topic is None:
        raise Refusal(100)
    require(_may_delete(call.user, topic.name), 29)
    if not call.deletable:
        raise Refusal(73)
    _spend(call, topic.partitions)
    return Answer(made=topic), None, 1


def _living(call: Call, name: str) -> Topic:
    if name not in _topics(call):
        raise Refusal(3)
    return _topics(call)[name]


# ── how they read ───────────────────────────────────────────────────────────────────────


def _sweep_topics(scene: Scene, depth: Depth) -> Sweep:
    names = sorted(scene.objects(topics.KIND))
    found = (_topic(scene, Identity(scene.instance, topics.KIND, name), depth) for name in names)
    items = tuple(reading for reading in found if isinstance(reading, Observed))
    return Sweep(topics.KIND, depth, items, Coverage(CoverageKind.VISIBLE_ONLY))


def _read_topic(scene: Scene, identity: Identity) -> Reading:
    return _topic(scene, identity, Depth.FULL)


def _topic(scene: Scene, identity: Identity, depth: Depth) -> Reading:
    name = identity.key
    if not scene.user.may_on_topic("Describe", name):
        return Hidden(identity, faults.right_for("Metadata", name))
    topic = scene.objects(topics.KIND).get(name)
    if topic is None:
        return Absent(identity)
    whole_topic = _attributes(topic)
    details = FrozenMap({"internal": name in INTERNAL, "leaderless": 0})
    if depth is Depth.NAMES:
        listed = whole_topic.without(["replica_assignment", "config"])
        return Observed(identity, listed, topic.id, details=details)
    if not scene.user.may_on_topic("DescribeConfigs", name):
        return Hidden(identity, faults.right_for("DescribeConfigs", name))
    moving, ticket = _move(topic)
    fallbacks = _fallbacks(scene, topic)
    return Observed(identity, whole_topic, topic.id, moving, fallbacks, details, ticket)


def _move(topic: Topic) -> tuple[FrozenMap | None, str | None]:
    """Where the move that runs takes the topic, and its ticket."""
    there = topic.target
    if there is None:
        return None, None
    target = FrozenMap(replication_factor=len(there[0]), replica_assignment=there)
    return target, str(move_ticket(topic.name, topic.id, there))


def _sweep_configs(scene: Scene, depth: Depth) -> Sweep:
    """Nothing: overrides are only ever read by name."""
    return Sweep(configs.KIND, depth, (), Coverage(CoverageKind.VISIBLE_ONLY))


def _read_configs(scene: Scene, identity: Identity) -> Reading:
    """The overrides of a topic; a topic without any of its own has no such object."""
    name = identity.key
    if not scene.user.may_on_topic("DescribeConfigs", name):
        return Hidden(identity, faults.right_for("DescribeConfigs", name))
    topic = scene.objects(topics.KIND).get(name)
    if topic is None:
        return Absent(identity)
    others = configs.foreign("topic", topic.config, scene.facts)
    if not topic.config:
        return Absent(identity)
    attributes = FrozenMap({"topic": name, "config": topic.config})
    seen = Observed(identity, attributes, fallbacks=_fallbacks(scene, topic), foreign=others)
    return Absent(identity, seen) if len(others) == len(topic.config) else seen


def _fallbacks(scene: Scene, topic: Topic) -> FrozenMap:
    return FrozenMap({f"config.{key}": scene.defaults[key] for key in topic.config})


def _attributes(topic: Topic) -> FrozenMap:
    return FrozenMap(
        {
            "name": topic.name,
            "partitions": topic.partitions,
            "replication_factor": topic.replication_factor,
            "replica_assignment": topic.assignment,
            "config": topic.config,
        }
    )


def _made(scene: Scene, answer: Answer) -> tuple[str | None, FrozenMap | None]:
    topic = answer.made
    if not scene.user.may_on_topic("DescribeConfigs", topic.name):
        return topic.id, FrozenMap({"name": topic.name})
    return topic.id, _attributes(topic).without(["replica_assignment"])


def _check_delete(scene: Scene, step: Step) -> Fault | None:
    name = step.identity.key
    if not scene.user.may_on_topic("Describe", name):
        return faults.fault_of("Metadata", 29, name)
    topic = scene.objects(topics.KIND).get(name)
    if topic is None:
        return faults.fault_of("DeleteTopics", 3, name)
    if topic.id != step.payload["topic_id"]:
        return _recreated(name)
    return None if _may_delete(scene.user, name) else faults.fault_of("DeleteTopics", 29, name)


def _may_delete(user: User, name: str) -> bool:
    """The cluster is asked first."""
    return user.may("Delete", CLUSTER) or user.may_on_topic("Delete", name)


def _recreated(name: str) -> Fault:
    return Fault(
        code="RECREATED",
        message=f"{name} was recreated outside",
        kind=FaultClass.DEFINITE,
        where="Metadata",
        advice="plan again and review what is there now",
    )


_reads = partial(SimulatedReads, "ListTopics", "DescribeTopics", "Metadata")
TOPIC = SimulatedKind(
    reads=_reads(_sweep_topics, _read_topic),
    handlers={
        "CreateTopics": create_topics,
        "CreatePartitions": create_partitions,
        "DeleteTopics": delete_topics,
    },
    checks={"DeleteTopics": _check_delete},
    made={"CreateTopics": _made},
)
TOPIC_CONFIG = SimulatedKind(_reads(_sweep_configs, _read_configs))
