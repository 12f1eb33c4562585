"""ListOffsets, ListGroups, DescribeGroups and OffsetFetch (v8 to v9), each sent to one broker."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kafka.protocol.admin import DescribeGroupsRequest, ListGroupsRequest
from kafka.protocol.consumer import ListOffsetsRequest, OffsetFetchRequest
from msgspec import Struct

from .client import Wire
from .topics import TopicRow

LATEST, EARLIEST = -1, -2
"""Times that stand for the end and the beginning of a log."""
NEWEST = -3
"""The time that stands for the record with the latest timestamp (KIP-734, Kafka 3.0)."""
EARLIEST_LOCAL = -4
"""The time that stands for the beginning of what is on the broker's own disk (KIP-405)."""
_LEAST_VERSIONS = {NEWEST: 7, EARLIEST_LOCAL: 8}
"""Time -> the first version of ListOffsets that knows it, if that is not the oldest."""
PARTITIONS_AT_ONCE = 5_000
"""Partitions in one ListOffsets request."""
CONSUMER = "consumer"
"""The protocol type of groups that read topics."""
CLASSIC = "classic"
"""The type of groups of the oldest protocol."""

Place = tuple[str, int]
"""Topic and partition."""


def group_by_topic(partitions: Iterable[Place]) -> Mapping[str, list[int]]:
    """Topic -> its partitions among these, in their order."""
    topics: dict[str, list[int]] = {}
    for topic, number in partitions:
        topics.setdefault(topic, []).append(number)
    return topics


class GroupRow(Struct, frozen=True):
    """One group of a listing."""

    name: str
    protocol: str
    """`consumer` for groups that read topics."""
    state: str | None
    """None before Kafka 2.6 (KIP-518)."""
    type: str | None = None
    """`Classic`, `Consumer`, `Share` or `Streams`; None before Kafka 3.8 (KIP-848)."""


class GroupRows(Struct, frozen=True):
    """The groups that one broker coordinates."""

    code: int
    """0, or why they are unknown."""
    groups: tuple[GroupRow, ...] = ()


class DatedOffset(Struct, frozen=True):
    """A record of a partition."""

    offset: int
    """-1 if there is no such record."""
    ms: int | None
    """Its timestamp in milliseconds since 1970; None for one that stands for the end or the
    beginning of a log."""


class CommittedOffset(Struct, frozen=True):
    """The offset that a group has committed of one partition."""

    offset: int
    leader_epoch: int | None
    """Of the last record that was read (KIP-320); None if the client did not say it."""


class GroupOffsets(Struct, frozen=True):
    """The offsets that a group has committed."""

    code: int
    offsets: Mapping[tuple[str, int], CommittedOffset]
    """By topic and partition."""


class GroupMembers(Struct, frozen=True):
    """The members of a group."""

    code: int
    # DescribeGroups does not know groups of the new protocol (KIP-848): their state is `Dead`, as
    # of a group that is not there.
    state: str
    count: int
    topics: frozenset[str]
    """The topics of which they were assigned partitions."""


def list_offsets(
    wire: Wire, partitions: Mapping[str, Sequence[int]], time: int, node: str, timeout: float
) -> Mapping[tuple[str, int], int]:
    """Topic and partition -> offset at that time. partitions: topic -> partitions that this broker
    leads; time: milliseconds since 1970, LATEST or EARLIEST; timeout: seconds. The offset is -1 if
    all records are older. Partitions with an error are left out."""
    times = {(name, number): time for name, numbers in partitions.items() for number in numbers}
    rows = find_offsets(wire, times, node, timeout)
    return {key: row.offset for key, row in rows.items() if row.offset >= 0 or time >= 0}


def find_offsets(
    wire: Wire, times: Mapping[tuple[str, int], int], node: str, timeout: float
) -> Mapping[tuple[str, int], DatedOffset]:
    """Topic and partition -> the first record that is not older than its time.

    times: topic and partition that this broker leads -> milliseconds since 1970, LATEST,
    EARLIEST, NEWEST or EARLIEST_LOCAL; timeout: seconds. Partitions with an error are left out.
    """
    topic = ListOffsetsRequest.ListOffsetsTopic
    partition = topic.ListOffsetsPartition
    partitions: dict[str, list[Any]] = {}
    for (name, number), time in times.items():
        partitions.setdefault(name, []).append(partition(partition_index=number, timestamp=time))
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=0,
        topics=[topic(name=name, partitions=rows) for name, rows in partitions.items()],
        timeout_ms=int(timeout * 1000),
        min_version=max((_LEAST_VERSIONS.get(time, 2) for time in times.values()), default=2),
    )
    return {
        (row.name, partition_row.partition_index): DatedOffset(
            partition_row.offset, partition_row.timestamp if partition_row.timestamp >= 0 else None
        )
        for row in wire.send(request, timeout, node).topics
        for partition_row in row.partitions
        if not partition_row.error_code
    }


def group_by_leader(rows: Iterable[TopicRow]) -> Iterator[tuple[str, Mapping[str, Sequence[int]]]]:
    """Broker, and topic -> the partitions that it leads, at most as many as one request can name.
    Partitions without a leader are left out."""
    led: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for row in rows:
        for number, leader in enumerate(row.leaders):
            if leader >= 0:
                led[leader].append((row.name, number))
    for leader, partitions in led.items():
        for start in range(0, len(partitions), PARTITIONS_AT_ONCE):
            topics: dict[str, list[int]] = defaultdict(list)
            for name, number in partitions[start : start + PARTITIONS_AT_ONCE]:
                topics[name].append(number)
            yield str(leader), topics


def list_groups(wire: Wire, node: str, timeout: float) -> GroupRows:
    """The groups that this broker coordinates and that we can see. timeout: seconds."""
    response = wire.send(ListGroupsRequest(states_filter=[], types_filter=[]), timeout, node)
    return GroupRows(
        response.error_code,
        tuple(
            GroupRow(
                row.group_id, row.protocol_type, row.group_state or None, row.group_type or None
            )
            for row in response.groups
        ),
    )


def fetch_offsets(
    wire: Wire, names: Sequence[str], node: str, timeout: float
) -> Mapping[str, GroupOffsets]:
    """The committed offsets of these groups, which this broker coordinates, in all topics that we
    can see. timeout: seconds."""
    # Version 8 asks for many groups at once (KIP-709). Version 10 has topic ids instead of names.
    group = OffsetFetchRequest.OffsetFetchRequestGroup
    request = OffsetFetchRequest(
        groups=[group(group_id=name, topics=None) for name in names], min_version=8, max_version=9
    )
    return {
        row.group_id: GroupOffsets(
            row.error_code,
            {
                (topic.name, partition.partition_index): CommittedOffset(
                    partition.committed_offset,
                    partition.committed_leader_epoch
                    if partition.committed_leader_epoch >= 0
                    else None,
                )
                for topic in row.topics or ()
                for partition in topic.partitions
                if not partition.error_code and partition.committed_offset >= 0
            },
        )
        for row in wire.send(request, timeout, node).groups
    }


def describe_members(
    wire: Wire, names: Sequence[str], node: str, timeout: float
) -> Mapping[str, GroupMembers]:
    """The members of these groups of the classic protocol. timeout: seconds."""
    request = DescribeGroupsRequest(groups=list(names), include_authorized_operations=False)
    return {
        row.group_id: GroupMembers(
            row.error_code,
            row.group_state,
            len(row.members),
            frozenset(
                topic
                for member in row.members
                for topic in parse_assignment(bytes(member.member_assignment))
            ),
        )
        for row in wire.send(request, timeout, node).groups
    }


def parse_assignment(data: bytes) -> Mapping[str, tuple[int, ...]]:
    """Topic -> partitions of a member's assignment; nothing if the bytes are of another protocol.

    The bytes are a ConsumerProtocolAssignment: version, then topics with their partitions.
    """
    # The broker passes on what the leader of the group sent, and checks nothing of it.
    try:
        return dict(_parse_topics(data))
    except (struct.error, UnicodeDecodeError):
        return {}


def _parse_topics(data: bytes) -> Iterator[tuple[str, tuple[int, ...]]]:
    (count,), at = struct.unpack_from(">i", data, 2), 6
    for _ in range(count):
        (size,) = struct.unpack_from(">h", data, at)
        name = struct.unpack_from(f">{max(size, 0)}s", data, at + 2)[0].decode()
        at += 2 + max(size, 0)
        (partition_count,) = struct.unpack_from(">i", data, at)
        partitions = struct.unpack_from(f">{max(partition_count, 0)}i", data, at + 4)
        at += 4 + 4 * len(partitions)
        yield name, partitions
