"""Topics of the simulated cluster: how its controller handles requests, and how topics read.

A reassignment runs until its time is over or another one replaces it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core.change import Outcome, OutcomeStatus, Step
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
from ...protocol.broker_rules import INTERNAL_TOPICS, MAX_RECORDS
from ...protocol.config_keys import config_map
from ..simulation import (
    CLUSTER,
    AdminAnswer,
    AdminCall,
    Item,
    ItemVerdict,
    Key,
    ReadScene,
    Refusal,
    RequestResult,
    SimulatedKind,
    SimulatedReads,
    User,
    refuse_all,
    require,
    run_batch,
)
from . import configs
from . import resource_type as topics
from .placement import MoveTicket, find_remarks, make_move_ticket, parse_ticket


class SimulatedTopic(Struct, frozen=True):
    """A topic of the simulated cluster."""

    name: str
    id: str
    assignment: tuple[tuple[int, ...], ...]
    """Broker ids of each partition."""
    config: FrozenMap = EMPTY
    """Overrides of the topic."""
    target: tuple[tuple[int, ...], ...] | None = None
    """The assignment after the move that is running, None without one."""
    leaders: FrozenMap = EMPTY
    """Partition -> its leader, where that is not the first replica."""

    @property
    def arrived(self) -> SimulatedTopic:
        """The topic after its move."""
        return self.with_assignment(self.target or self.assignment, None)

    def with_assignment(
        self,
        assignment: tuple[tuple[int, ...], ...],
        target: tuple[tuple[int, ...], ...] | None,
    ) -> SimulatedTopic:
        """The topic with this assignment and this move."""
        # A leader that keeps its replica stays the leader, even if it is no longer the first one.
        led = {
            str(number): leader
            for number, (leader, row) in enumerate(zip(self.led, assignment, strict=False))
            if leader in row[1:]
        }
        return replace(self, assignment=assignment, target=target, leaders=FrozenMap(led))

    @property
    def led(self) -> tuple[int, ...]:
        """The leader of each partition, up or not."""
        return tuple(self.leaders.get(str(n), row[0]) for n, row in enumerate(self.assignment))

    @property
    def partitions(self) -> int:
        return len(self.assignment)

    @property
    def replication_factor(self) -> int:
        return len(self.assignment[0])


Topics = Mapping[str, SimulatedTopic]


def topic_key(name: str) -> Key:
    """Where the world keeps the topic of this name."""
    return (topics.KIND, name)


def _key_of(item: Item) -> Key:
    return topic_key(item["name"])


def _get_topics(call: AdminCall) -> Topics:
    return call.world.of(topics.KIND)


def create_topics(call: AdminCall, items: Sequence[Item]) -> RequestResult:
    """CreateTopics: names must be free, and must not collide with live topics."""
    partition_count = sum(_count_partitions(item, call) for item in items)
    if partition_count > MAX_RECORDS:
        return refuse_all(items, 44, "Excessively large number of partitions per request.")
    names = {broker_rules.collision_key(name): name for name in _get_topics(call)}
    return run_batch(call, items, _key_of, lambda item: _create(call, item, names))


def create_partitions(call: AdminCall, items: Sequence[Item]) -> RequestResult:
    """CreatePartitions."""
    # As the real controller: an item that exceeds the batch fails alone with -1, and those of its
    # partitions that still fitted are committed.
    room = MAX_RECORDS

    def grow(item: Item) -> ItemVerdict:
        nonlocal room
        verdict = _grow(call, item, room)
        room -= verdict[2]
        return verdict

    return run_batch(call, items, _key_of, grow)


def delete_topics(call: AdminCall, items: Sequence[Item]) -> RequestResult:
    """DeleteTopics by topic id (KIP-516), so that a recreated topic survives."""
    living = {topic.id: topic for topic in _get_topics(call).values()}
    return run_batch(call, items, _key_of, lambda item: _delete(call, item, living))


def place_evenly(count: int, width: int, brokers: Sequence[int], first: int = 0) -> tuple[Any, ...]:
    """Replicas for `count` partitions, round-robin over the brokers from partition `first` on."""
    return tuple(
        tuple(brokers[(index + offset) % len(brokers)] for offset in range(width))
        for index in range(first, first + count)
    )


def _count_partitions(item: Item, call: AdminCall) -> int:
    if item["assignment"]:
        return len(item["assignment"])
    return call.defaults[0] if item["partitions"] == -1 else max(0, item["partitions"])


def _spend_mutations(call: AdminCall, mutations: int) -> None:
    # The controller charges before it looks at validate_only, and does not refund items that it
    # refuses later (KIP-599).
    if (wait := call.charge(mutations)) is not None:
        raise Refusal(89, wait=wait)


def _create(call: AdminCall, item: Item, names: Mapping[str, str]) -> ItemVerdict:
    name = item["name"]
    require(call.user.may("Create", CLUSTER) or call.user.may_on_topic("Create", name), 29)
    for problem, _ in broker_rules.name_faults(name):
        raise Refusal(17, problem)
    if name in _get_topics(call):
        raise Refusal(36, f"Topic '{name}' already exists.")
    if collision := names.get(broker_rules.collision_key(name)):
        raise Refusal(17, f"Topic '{name}' collides with existing topic: {collision}")
    assignment = _choose_assignment(call, item)
    config = _validate_config(call, item["configs"])
    _spend_mutations(call, len(assignment))
    topic = SimulatedTopic(name, call.new_id(), assignment, config)
    return AdminAnswer(made=topic), topic, 1 + len(config) + len(assignment)


def _choose_assignment(call: AdminCall, item: Item) -> tuple[tuple[int, ...], ...]:
    assignment = item["assignment"]
    if assignment:
        _check_assignment(call, assignment, len(assignment[0]))
        return tuple(map(tuple, assignment))
    width = call.defaults[1] if item["replication_factor"] == -1 else item["replication_factor"]
    count = _count_partitions(item, call)
    if count < 1:
        raise Refusal(37, "Number of partitions was set to an invalid non-positive value.")
    if not 1 <= width <= len(call.brokers):
        raise Refusal(38, f"only {len(call.brokers)} broker(s) for {width} replica(s).")
    return place_evenly(count, width, call.brokers)


def _check_assignment(call: AdminCall, assignment: Sequence[Sequence[int]], width: int) -> None:
    for replicas in assignment:
        registered = set(replicas) <= set(call.brokers)
        if not replicas or len(set(replicas)) != width or len(replicas) != width or not registered:
            raise Refusal(39, f"the replicas {list(replicas)} are not possible.")


def _validate_config(call: AdminCall, config: Mapping[str, Any]) -> FrozenMap:
    unknown = broker_rules.unknown_warnings(config, call.facts)
    for problem, _ in (*broker_rules.config_faults(config, call.facts), *unknown):
        raise Refusal(40, problem)
    valid = config_map(config)
    for low, high in _ORDERED:
        if low in valid and high in valid and int(valid[low]) > int(valid[high]):
            raise Refusal(40, f"{low} ({valid[low]}) > {high} ({valid[high]})")
    return valid


_ORDERED = (("min.compaction.lag.ms", "max.compaction.lag.ms"),)
"""Pairs of configs: the first may not exceed the second in the topic's merged configs."""


def _grow(call: AdminCall, item: Item, room: int) -> ItemVerdict:
    name, count = item["name"], item["count"]
    require(call.user.may_on_topic("Alter", name), 29)
    topic = _require_topic(call, name)
    if count <= topic.partitions:
        raise Refusal(37, f"Topic currently has {topic.partitions} partitions, asked: {count}.")
    added = _add_partitions(call, topic, count, item["assignment"])
    replicas = added[:room]
    target = None if topic.target is None else (*topic.target, *replicas)
    grown = replace(topic, assignment=(*topic.assignment, *replicas), target=target)
    if len(added) > room:
        return AdminAnswer(-1, "The metadata batch is full."), grown, room
    return AdminAnswer(made=grown), grown, len(added)


def _add_partitions(
    call: AdminCall, topic: SimulatedTopic, count: int, assignment: Sequence[Sequence[int]] | None
) -> tuple[tuple[int, ...], ...]:
    number = count - topic.partitions
    if assignment is not None and len(assignment) != number:
        raise Refusal(39, f"{number} partitions are added and {len(assignment)} are assigned.")
    _spend_mutations(call, number)
    if assignment is None:
        if topic.replication_factor > len(call.brokers):
            raise Refusal(38, f"only {len(call.brokers)} broker(s) are live.")
        return place_evenly(number, topic.replication_factor, call.brokers, topic.partitions)
    _check_assignment(call, assignment, topic.replication_factor)
    return tuple(map(tuple, assignment))


def alter_topic(call: AdminCall, item: Item) -> ItemVerdict:
    """IncrementalAlterConfigs of one topic: all keys or none."""
    name = item["name"]
    require(call.user.may_on_topic("AlterConfigs", name), 29)
    topic = _require_topic(call, name)
    put, gone = item["set"], tuple(item["delete"])
    if len({*put, *gone}) != len(put) + len(gone):
        raise Refusal(42, "the request names a config key twice")
    merged = {**topic.config, **put}
    remaining = {key: value for key, value in merged.items() if key not in gone}
    config = _validate_config(call, remaining)
    altered = replace(topic, config=config)
    return AdminAnswer(made=altered), altered, len(put) + sum(key in topic.config for key in gone)


def _delete(call: AdminCall, item: Item, living: Mapping[str, SimulatedTopic]) -> ItemVerdict:
    topic = living.get(item["topic_id"])
    if topic is None:
        raise Refusal(100)
    require(_may_delete(call.user, topic.name), 29)
    if not call.deletable:
        raise Refusal(73)
    _spend_mutations(call, topic.partitions)
    return AdminAnswer(made=topic), None, 1


def _require_topic(call: AdminCall, name: str) -> SimulatedTopic:
    if name not in _get_topics(call):
        raise Refusal(3)
    return _get_topics(call)[name]


# ── how they read ───────────────────────────────────────────────────────────────────────


def _sweep_topics(scene: ReadScene, depth: Depth) -> Sweep:
    names = sorted(scene.objects(topics.KIND))
    readings = (
        _look_up(scene, Identity(scene.instance, topics.KIND, name), depth) for name in names
    )
    items = tuple(reading for reading in readings if isinstance(reading, Observed))
    return Sweep(topics.KIND, depth, items, Coverage(CoverageKind.VISIBLE_ONLY))


def _read_topic(scene: ReadScene, identity: Identity) -> Reading:
    return _look_up(scene, identity, Depth.FULL)


def _look_up(scene: ReadScene, identity: Identity, depth: Depth) -> Reading:
    name = identity.key
    if not scene.user.may_on_topic("Describe", name):
        return Hidden(identity, faults.name_right("Metadata", name))
    topic = scene.objects(topics.KIND).get(name)
    if topic is None:
        return Absent(identity)
    whole_topic = _make_attributes(topic)
    details = FrozenMap(internal=name in INTERNAL_TOPICS, leaderless=0, topic_id=topic.id)
    if depth is Depth.NAMES:
        listed = whole_topic.without(["replica_assignment", "config"])
        return Observed(identity, listed, topic.id, details=details)
    if not scene.user.may_on_topic("DescribeConfigs", name):
        return Hidden(identity, faults.name_right("DescribeConfigs", name))
    moving, ticket = _describe_move(topic)
    fallbacks = _list_fallbacks(scene, topic)
    remarks = find_remarks(topic.assignment, topic.config, moving=moving is not None)
    foreign = configs.find_foreign_paths("topic", topic.config, scene.facts)
    return Observed(
        identity, whole_topic, topic.id, moving, fallbacks, details, ticket, foreign, remarks
    )


def _describe_move(topic: SimulatedTopic) -> tuple[FrozenMap | None, str | None]:
    """The attributes after the move that is running, and its ticket."""
    destination = topic.target
    if destination is None:
        return None, None
    target = FrozenMap(replication_factor=len(destination[0]), replica_assignment=destination)
    return target, str(make_move_ticket(topic.name, topic.id, destination))


def _sweep_configs(scene: ReadScene, depth: Depth) -> Sweep:
    """Always empty: overrides are only read by name."""
    return Sweep(configs.KIND, depth, (), Coverage(CoverageKind.VISIBLE_ONLY))


def _read_configs(scene: ReadScene, identity: Identity) -> Reading:
    """The overrides of a topic; absent for a topic without overrides."""
    name = identity.key
    if not scene.user.may_on_topic("DescribeConfigs", name):
        return Hidden(identity, faults.name_right("DescribeConfigs", name))
    topic = scene.objects(topics.KIND).get(name)
    if topic is None:
        return Absent(identity, lacks=configs.name_missing_topic(identity))
    foreign = configs.find_foreign_paths("topic", topic.config, scene.facts)
    below = _list_fallbacks(scene, topic)
    if not topic.config:
        return Absent(identity, fallbacks=below)
    attributes = FrozenMap({"topic": name, "config": topic.config})
    observed = Observed(identity, attributes, fallbacks=below, foreign=foreign)
    return (
        Absent(identity, observed, fallbacks=below)
        if len(foreign) == len(topic.config)
        else observed
    )


def _list_fallbacks(scene: ReadScene, topic: SimulatedTopic) -> FrozenMap:
    reported = FrozenMap({key: scene.defaults[key] for key in topic.config})
    return configs.list_fallbacks(scene.facts, reported)


def _make_attributes(topic: SimulatedTopic) -> FrozenMap:
    return FrozenMap(
        {
            "name": topic.name,
            "partitions": topic.partitions,
            "replication_factor": topic.replication_factor,
            "replica_assignment": topic.assignment,
            "config": topic.config,
        }
    )


def _read_made(scene: ReadScene, answer: AdminAnswer) -> tuple[str | None, FrozenMap | None]:
    topic = answer.made
    if not scene.user.may_on_topic("DescribeConfigs", topic.name):
        return topic.id, FrozenMap({"name": topic.name})
    return topic.id, _make_attributes(topic).without(["replica_assignment"])


def _check_delete(scene: ReadScene, step: Step) -> Fault | None:
    name = step.identity.key
    if not scene.user.may_on_topic("Describe", name):
        return faults.fault_of("Metadata", 29, name)
    topic = scene.objects(topics.KIND).get(name)
    if topic is None:
        return faults.fault_of("DeleteTopics", 3, name)
    if topic.id != step.payload["topic_id"]:
        text, advice = f"{name} was recreated outside kafkaform", "plan again and review the topic"
        return Fault("RECREATED", text, FaultClass.DEFINITE, where="Metadata", advice=advice)
    return None if _may_delete(scene.user, name) else faults.fault_of("DeleteTopics", 29, name)


def _may_delete(user: User, name: str) -> bool:
    # ControllerApis asks about the cluster first; a yes is enough, whatever the topic's ACLs say.
    return user.may("Delete", CLUSTER) or user.may_on_topic("Delete", name)


API = "AlterPartitionReassignments"
LISTING = "ListPartitionReassignments"


def reassign_partitions(call: AdminCall, items: Sequence[Item]) -> RequestResult:
    """AlterPartitionReassignments: null replicas cancel (error 85 if nothing moves); a target that
    needs no copies takes effect at once."""
    return run_batch(
        call, items, lambda item: topic_key(item["name"]), lambda item: _reassign_topic(call, item)
    )


def _reassign_topic(call: AdminCall, item: Item) -> ItemVerdict:
    require(call.user.may("Alter", CLUSTER), 31)
    topic: SimulatedTopic | None = call.world.of(topics.KIND).get(item["name"])
    if topic is None:
        raise Refusal(3)
    current, destination = list(topic.assignment), list(topic.target or topic.assignment)
    for text, replicas in item["replicas"].items():
        number = int(text)
        if number >= len(current):
            raise Refusal(3)
        if replicas is None:
            require(current[number] != destination[number], 85)
            destination[number] = current[number]
            continue
        had = current[number]
        brokers_known = set(replicas) <= {*call.brokers, *had}
        if not replicas or len(set(replicas)) != len(replicas) or not brokers_known:
            raise Refusal(39, f"the replicas {list(replicas)} are not possible.")
        destination[number] = tuple(replicas)
        if set(replicas) <= set(current[number]):
            current[number] = tuple(replicas)
    target = tuple(destination) if destination != current else None
    moved = topic.with_assignment(tuple(current), target)
    return AdminAnswer(made=moved), moved, len(item["replicas"])


def _check_step(scene: ReadScene, step: Step) -> Fault | None:
    """The check that replaces a dry run: rights, topic and live brokers."""
    name = step.payload["name"]
    if not scene.user.may("Alter", CLUSTER):
        return faults.fault_of(API, 31, name)
    topic = scene.objects(topics.KIND).get(name)
    if topic is None:
        return faults.fault_of("Metadata", 3, name)
    ticket = parse_ticket(step.payload["ticket"])
    if not isinstance(ticket, MoveTicket) or ticket.topic_id != topic.id:
        return _definite_fault("RECREATED", f"{name} was recreated outside kafkaform")
    rows = topic.assignment
    for number, replicas in step.payload["replicas"].items():
        had = rows[int(number)] if int(number) < len(rows) else ()
        if not set(replicas) <= {*scene.live, *had}:
            return _definite_fault("BROKER_NOT_LIVE", f"a broker of the move of {name} is not live")
    return None


def _definite_fault(code: str, message: str) -> Fault:
    return Fault(code, message, FaultClass.DEFINITE, where=API, advice="plan again")


def list_moving(topic_map: Topics) -> frozenset[str]:
    """The topics that are moving."""
    return frozenset(name for name, topic in topic_map.items() if topic.target is not None)


def report_standing(text: str, topic_map: Topics) -> Outcome:
    """The outcome of the move with this ticket."""
    ticket = parse_ticket(text)
    topic = topic_map.get(ticket.topic) if isinstance(ticket, MoveTicket) else None
    if not isinstance(ticket, MoveTicket):
        return _ended_outcome(text, "no long-running work has this ticket")
    if topic is None or topic.id != ticket.topic_id:
        return _ended_outcome(text, "the topic was deleted")
    if not ticket.matches(topic.target or topic.assignment):
        reason = "another move replaced it" if topic.target else "it was cancelled"
        return _ended_outcome(text, reason)
    if topic.target is not None:
        return Outcome(text, OutcomeStatus.STARTED, ticket=text)
    return Outcome(text, OutcomeStatus.APPLIED)


def _ended_outcome(text: str, reason: str) -> Outcome:
    return Outcome(text, OutcomeStatus.FAILED, _definite_fault("MOVE_ENDED", reason))


_reads = partial(SimulatedReads, "ListTopics", "DescribeTopics", "Metadata")
TOPIC = SimulatedKind(
    reads=_reads(_sweep_topics, _read_topic),
    handlers={
        "CreateTopics": create_topics,
        "CreatePartitions": create_partitions,
        "DeleteTopics": delete_topics,
        API: reassign_partitions,
    },
    checks={"DeleteTopics": _check_delete, API: _check_step},
    made={"CreateTopics": _read_made},
)
TOPIC_CONFIG = SimulatedKind(_reads(_sweep_configs, _read_configs))
