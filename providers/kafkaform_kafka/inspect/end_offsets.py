"""Read where the logs of partitions end, and why that is unknown for some of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from kafkaform.core.resource import Fault

from ..wire import describe as wire
from ..wire.usage import LATEST, list_offsets
from .node_requests import NodeRequest, cut_batches, send_each
from .source import DescribeSource

PARTITIONS_AT_ONCE = 5_000
TOPICS_AT_ONCE = 2_000
_UNKNOWN_TOPIC, _HIDDEN = 3, 29
"""Codes of a topic that is not there, and of one that this principal may not describe."""

Place = tuple[str, int]
"""Topic and partition."""


class End(Struct, frozen=True):
    """Where the log of a partition ends."""

    offset: int | None
    problem: str | None = None
    """Why the offset is unknown: a key of PROBLEMS."""


PROBLEMS: Mapping[str, str] = {
    "topic_missing": "the topic is gone",
    "partition_missing": "the partition is gone",
    "topic_hidden": "the topic is hidden from us",
    "no_leader": "it has no leader",
    "no_end_offset": "the end of its log is unknown",
    "ahead_of_end": "its log ends before this offset",
}
"""What can be wrong with the offset of a partition -> words for people."""


def read_ends(source: DescribeSource, partitions: Iterable[Place]) -> Mapping[Place, End]:
    """The ends of these partitions' logs."""
    # Metadata by name tells a topic that is gone (3) from one that is hidden (29); the listing of
    # all topics leaves out both.
    ordered = sorted(set(partitions))
    leaders, ends = _find_leaders(source, ordered)
    led: dict[int, list[Place]] = defaultdict(list)
    for partition, leader in leaders.items():
        led[leader].append(partition)
    requests = [
        NodeRequest("ListOffsets", str(leader), list_offsets, (group_by_topic(batch), LATEST))
        for leader, led_partitions in led.items()
        for batch in cut_batches(led_partitions, PARTITIONS_AT_ONCE)
    ]
    offsets: dict[Place, int] = {}
    for answer in send_each(source, requests):
        if not isinstance(answer, Fault):
            offsets.update(answer)
    for partition in leaders:
        offset = offsets.get(partition)
        ends[partition] = End(offset, None if offset is not None else "no_end_offset")
    return ends


def _find_leaders(
    source: DescribeSource, partitions: Iterable[Place]
) -> tuple[Mapping[Place, int], dict[Place, End]]:
    """Partition -> broker that leads it, and the partitions without one."""
    leaders: dict[Place, int] = {}
    ends: dict[Place, End] = {}
    topics = group_by_topic(partitions)
    for names in cut_batches(topics, TOPICS_AT_ONCE):
        answer = source.ask("Metadata", wire.describe_topics, names)
        rows = {} if isinstance(answer, Fault) else {row.name: row for row in answer}
        for name in names:
            for number, leader, problem in _judge_partitions(rows.get(name), topics[name]):
                if leader is None:
                    ends[name, number] = End(None, problem)
                else:
                    leaders[name, number] = leader
    return leaders, ends


def _judge_partitions(
    row: wire.DescribedTopic | None, numbers: Iterable[int]
) -> Iterator[tuple[int, int | None, str | None]]:
    """Number, leader and problem of each of these partitions of a topic."""
    codes = {_UNKNOWN_TOPIC: "topic_missing", _HIDDEN: "topic_hidden"}
    leaders = (
        {} if row is None else {partition.number: partition.leader for partition in row.partitions}
    )
    for number in numbers:
        if row is None or row.code:
            yield number, None, codes.get(row.code if row else 0, "no_end_offset")
        elif number not in leaders:
            yield number, None, "partition_missing"
        else:
            yield number, leaders[number], "no_leader"


def group_by_topic(partitions: Iterable[Place]) -> Mapping[str, list[int]]:
    topics: dict[str, list[int]] = defaultdict(list)
    for topic, number in partitions:
        topics[topic].append(number)
    return topics
