"""What Kafka's controller does with one admin request, as pure functions.

Each takes the topics as they are and the items of one request, and returns an answer for each
item and the changes that the request makes: all of them one atomic batch of metadata records.
A request over the cap is refused whole; an item that is refused leaves the others alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kafkaform.core.dataclass import dataclass, replace
from kafkaform.core.value import EMPTY, FrozenMap

from .. import rules
from ..canonical import config_map
from ..rules import MAX_RECORDS
from .quota import Charge
from .rights import CLUSTER, User

Item = Mapping[str, Any]
"""One step's payload, as `topics` and `configs` make them."""


@dataclass(frozen=True, slots=True)
class Topic:
    """assignment: broker ids of each partition; config: the topic's own overrides."""

    name: str
    id: str
    assignment: tuple[tuple[int, ...], ...]
    config: FrozenMap = EMPTY

    @property
    def partitions(self) -> int:
        return len(self.assignment)

    @property
    def replication_factor(self) -> int:
        return len(self.assignment[0])


Topics = Mapping[str, Topic]
Changes = dict[str, Topic | None]


@dataclass(frozen=True, slots=True)
class Answer:
    """code: 0 or Kafka's error code; topic: as it is after the request; wait: seconds."""

    code: int = 0
    message: str = ""
    topic: Topic | None = None
    wait: float = 0.0


@dataclass(frozen=True, slots=True)
class Call:
    """One request's surroundings. veto: an error that is injected for item number and name;
    new_id: makes topic ids; charge: takes an item's mutations from the quota."""

    topics: Topics
    user: User
    brokers: tuple[int, ...]
    defaults: tuple[int, int]
    deletable: bool
    new_id: Callable[[], str]
    veto: Callable[[int, str], Answer | None]
    charge: Charge


Result = tuple[list[Answer], Changes]
Verdict = tuple[Answer, Topic | None, int]
"""An item's answer, the topic that it makes, and how many metadata records that costs."""


class Refusal(Exception):
    """This item is refused with an error code."""

    def __init__(self, code: int, message: str = "", wait: float = 0.0) -> None:
        super().__init__(message)
        self.answer = Answer(code, message, wait=wait)


def create_topics(call: Call, items: Sequence[Item]) -> Result:
    """CreateTopics: names must be free, also of '.' and '_' collisions with living topics."""
    wanted = sum(_count(item, call) for item in items)
    if wanted > MAX_RECORDS:
        return _whole(items, 44, "Excessively large number of partitions per request.")
    taken = {rules.collision_key(name): name for name in call.topics}
    return _batch(call, items, lambda item: _create(call, item, taken))


def create_partitions(call: Call, items: Sequence[Item]) -> Result:
    """CreatePartitions: an item that no longer fits into the batch fails alone, and the
    partitions that did fit are kept."""
    room = MAX_RECORDS

    def grow(item: Item) -> Verdict:
        nonlocal room
        verdict = _grow(call, item, room)
        room -= verdict[2]
        return verdict

    return _batch(call, items, grow)


def alter_configs(call: Call, items: Sequence[Item]) -> Result:
    """IncrementalAlterConfigs: all keys of a topic or none."""
    return _batch(call, items, lambda item: _alter(call, item))


def delete_topics(call: Call, items: Sequence[Item]) -> Result:
    """DeleteTopics by topic id, so that a recreated topic survives."""
    living = {topic.id: topic for topic in call.topics.values()}
    return _batch(call, items, lambda item: _delete(call, item, living))


HANDLERS: Mapping[str, Callable[[Call, Sequence[Item]], Result]] = {
    "CreateTopics": create_topics,
    "CreatePartitions": create_partitions,
    "IncrementalAlterConfigs": alter_configs,
    "DeleteTopics": delete_topics,
}


def placed(count: int, width: int, brokers: Sequence[int], first: int = 0) -> tuple[Any, ...]:
    """Replicas for `count` partitions from number `first` on, round the brokers."""
    return tuple(
        tuple(brokers[(index + offset) % len(brokers)] for offset in range(width))
        for index in range(first, first + count)
    )


def _batch(call: Call, items: Sequence[Item], handle: Callable[[Item], Verdict]) -> Result:
    twice = {name for name, count in Counter(i["name"] for i in items).items() if count > 1}
    answers, changes, records = [], Changes(), 0
    for index, item in enumerate(items):
        if item["name"] in twice:
            answers.append(Answer(42, "the request names the topic twice"))
            continue
        vetoed = call.veto(index, item["name"])
        answer, topic, cost = (vetoed, None, 0) if vetoed else _guarded(handle, item)
        answers.append(answer)
        if cost:
            changes[item["name"]] = topic
            records += cost
    if records > MAX_RECORDS:
        return _whole(items, 44, "The request would make too many metadata records.")
    return answers, changes


def _guarded(handle: Callable[[Item], Verdict], item: Item) -> Verdict:
    try:
        return handle(item)
    except Refusal as refusal:
        return refusal.answer, None, 0


def _whole(items: Sequence[Item], code: int, message: str) -> Result:
    return [Answer(code, message) for _ in items], {}


def _count(item: Item, call: Call) -> int:
    if item["assignment"]:
        return len(item["assignment"])
    return call.defaults[0] if item["partitions"] == -1 else max(0, item["partitions"])


def _require(allowed: bool) -> None:
    if not allowed:
        raise Refusal(29)


def _spend(call: Call, mutations: int) -> None:
    """A dry run spends as much as the real request, and what is refused later stays spent."""
    if wait := call.charge(mutations):
        raise Refusal(89, wait=wait)


def _create(call: Call, item: Item, taken: Mapping[str, str]) -> Verdict:
    name = item["name"]
    _require(call.user.may("Create", CLUSTER) or call.user.may_on_topic("Create", name))
    for problem, _ in rules.name_faults(name):
        raise Refusal(17, problem)
    if name in call.topics:
        raise Refusal(36, f"Topic '{name}' already exists.")
    if other := taken.get(rules.collision_key(name)):
        raise Refusal(17, f"Topic '{name}' collides with existing topic: {other}")
    assignment = _assignment(call, item)
    config = _valid_config(item["configs"])
    _spend(call, len(assignment))
    topic = Topic(name, call.new_id(), assignment, config)
    return Answer(topic=topic), topic, 1 + len(config) + len(assignment)


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
    for problem, _ in rules.config_faults(config):
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
    _require(call.user.may_on_topic("Alter", name))
    topic = _living(call, name)
    if count <= topic.partitions:
        raise Refusal(37, f"Topic currently has {topic.partitions} partitions, asked: {count}.")
    added = _added(call, topic, count, item["assignment"])
    grown = replace(topic, assignment=(*topic.assignment, *added[:room]))
    if len(added) > room:
        return Answer(-1, "The metadata batch is full."), grown, room
    return Answer(topic=grown), grown, len(added)


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


def _alter(call: Call, item: Item) -> Verdict:
    name = item["name"]
    if item["resource"] != "topic":
        raise Refusal(42, "the simulated cluster has configs of topics only")
    _require(call.user.may_on_topic("AlterConfigs", name))
    topic = _living(call, name)
    put, gone = item["set"], tuple(item["delete"])
    if len({*put, *gone}) != len(put) + len(gone):
        raise Refusal(42, "the request names a config key twice")
    merged = {**topic.config, **put}
    config = _valid_config({key: value for key, value in merged.items() if key not in gone})
    altered = replace(topic, config=config)
    return Answer(topic=altered), altered, len(put) + sum(key in topic.config for key in gone)


def _delete(call: Call, item: Item, living: Mapping[str, Topic]) -> Verdict:
    topic = living.get(item["topic_id"])
    if topic is None:
        raise Refusal(100)
    _require(call.user.may_on_topic("Describe", topic.name))
    _require(call.user.may_on_topic("Delete", topic.name))
    if not call.deletable:
        raise Refusal(73)
    _spend(call, topic.partitions)
    return Answer(topic=topic), None, 1


def _living(call: Call, name: str) -> Topic:
    if name not in call.topics:
        raise Refusal(3)
    return call.topics[name]
