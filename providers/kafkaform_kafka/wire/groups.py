"""DescribeGroups, ConsumerGroupDescribe, ShareGroupDescribe, StreamsGroupDescribe and
DescribeShareGroupOffsets, each sent to the broker that coordinates the groups; and what changes
one group: OffsetCommit (v2 to v9), OffsetDelete, DeleteGroups, AlterShareGroupOffsets and
DeleteShareGroupOffsets, with FindCoordinator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kafka.protocol.admin import DeleteGroupsRequest, DescribeGroupsRequest
from kafka.protocol.consumer import OffsetCommitRequest, OffsetDeleteRequest
from kafka.protocol.metadata import FindCoordinatorRequest
from msgspec import Struct

from .answers import ItemAnswer
from .client import Wire
from .messages import define_message
from .usage import CLASSIC, CONSUMER, Place, group_by_topic, parse_assignment

# Messages that are newer than kafka-python: of the consumer protocol (KIP-848), share groups
# (KIP-932, KIP-1226) and streams groups (KIP-1071).
ConsumerGroupDescribeRequest = define_message("ConsumerGroupDescribeRequest")
ConsumerGroupDescribeResponse = define_message("ConsumerGroupDescribeResponse")
ShareGroupDescribeRequest = define_message("ShareGroupDescribeRequest")
ShareGroupDescribeResponse = define_message("ShareGroupDescribeResponse")
StreamsGroupDescribeRequest = define_message("StreamsGroupDescribeRequest")
StreamsGroupDescribeResponse = define_message("StreamsGroupDescribeResponse")
DescribeShareGroupOffsetsRequest = define_message("DescribeShareGroupOffsetsRequest")
DescribeShareGroupOffsetsResponse = define_message("DescribeShareGroupOffsetsResponse")
AlterShareGroupOffsetsRequest = define_message("AlterShareGroupOffsetsRequest")
AlterShareGroupOffsetsResponse = define_message("AlterShareGroupOffsetsResponse")
DeleteShareGroupOffsetsRequest = define_message("DeleteShareGroupOffsetsRequest")
DeleteShareGroupOffsetsResponse = define_message("DeleteShareGroupOffsetsResponse")

STREAMS = "streams"
"""The type of groups of Kafka Streams (KIP-1071)."""
Assigned = Mapping[str, tuple[int, ...]]
"""Topic -> partitions. Of streams groups: subtopology -> partitions, which together name tasks."""


class MemberRow(Struct, frozen=True):
    """One member of a group."""

    member_id: str
    client_id: str
    host: str
    instance_id: str | None = None
    """Set for static members (KIP-345)."""
    rack: str | None = None
    assigned: Assigned = {}
    """The partitions that it reads; of streams groups the active tasks."""
    standby: Assigned = {}
    """The standby tasks of a streams group's member."""
    warmup: Assigned = {}
    """The warm-up tasks of a streams group's member."""


class DescribedGroup(Struct, frozen=True):
    """One group, or why it cannot be described."""

    code: int
    message: str | None
    state: str
    assignor: str | None = None
    """What divides the partitions; None if there is nothing to divide."""
    epoch: int | None = None
    """How often the group has changed; only protocols that are newer than the classic one say."""
    members: tuple[MemberRow, ...] = ()
    topics: frozenset[str] = frozenset()
    """What the group's members have subscribed to, by name; only newer protocols say."""


class ShareOffset(Struct, frozen=True):
    """How far a share group has come in one partition."""

    start_offset: int | None
    """The first offset that is not done with; None if the group has not begun."""
    leader_epoch: int | None
    lag: int | None
    """None before Kafka 4.2 (KIP-1226)."""
    code: int = 0


class ShareOffsets(Struct, frozen=True):
    """How far a share group has come."""

    code: int
    message: str | None
    offsets: Mapping[tuple[str, int], ShareOffset]
    """By topic and partition."""


def describe_classic_groups(
    wire: Wire, names: Sequence[str], node: str, timeout: float
) -> Mapping[str, DescribedGroup]:
    """These groups of the classic protocol. timeout: seconds."""
    request = DescribeGroupsRequest(groups=list(names), include_authorized_operations=False)
    return {
        row.group_id: DescribedGroup(
            row.error_code,
            row.error_message,
            row.group_state,
            row.protocol_data or None,
            members=tuple(
                MemberRow(
                    member.member_id,
                    member.client_id,
                    _strip_host(member.client_host),
                    member.group_instance_id,
                    # Other groups, such as those of Kafka Connect, have a format of their own.
                    assigned=parse_assignment(bytes(member.member_assignment or b""))
                    if row.protocol_type == CONSUMER
                    else {},
                )
                for member in row.members or ()
            ),
        )
        for row in wire.send(request, timeout, node).groups
    }


def describe_consumer_groups(
    wire: Wire, names: Sequence[str], node: str, timeout: float
) -> Mapping[str, DescribedGroup]:
    """These groups of the consumer protocol (KIP-848). timeout: seconds."""
    request = ConsumerGroupDescribeRequest(
        group_ids=list(names), include_authorized_operations=False
    )
    rows = wire.send(request, timeout, node).groups
    return {row.group_id: _parse_group(row, row.assignor_name or None) for row in rows}


def describe_share_groups(
    wire: Wire, names: Sequence[str], node: str, timeout: float
) -> Mapping[str, DescribedGroup]:
    """These share groups (KIP-932). timeout: seconds."""
    request = ShareGroupDescribeRequest(group_ids=list(names), include_authorized_operations=False)
    rows = wire.send(request, timeout, node).groups
    return {row.group_id: _parse_group(row, row.assignor_name or None) for row in rows}


def describe_streams_groups(
    wire: Wire, names: Sequence[str], node: str, timeout: float
) -> Mapping[str, DescribedGroup]:
    """These streams groups (KIP-1071). timeout: seconds."""
    request = StreamsGroupDescribeRequest(
        group_ids=list(names), include_authorized_operations=False
    )
    return {
        row.group_id: DescribedGroup(
            row.error_code,
            row.error_message,
            row.group_state,
            epoch=row.group_epoch,
            members=tuple(
                MemberRow(
                    member.member_id,
                    member.client_id,
                    _strip_host(member.client_host),
                    member.instance_id,
                    member.rack_id,
                    _join_tasks(member.assignment.active_tasks),
                    _join_tasks(member.assignment.standby_tasks),
                    _join_tasks(member.assignment.warmup_tasks),
                )
                for member in row.members
            ),
            # Without the application's own repartition topics.
            topics=frozenset(
                topic
                for subtopology in (
                    row.topology.subtopologies if row.topology is not None else None
                )
                or ()
                for topic in subtopology.source_topics
            ),
        )
        for row in wire.send(request, timeout, node).groups
    }


DESCRIBERS: Mapping[str, tuple[str, Callable[..., Mapping[str, DescribedGroup]]]] = {
    CLASSIC: ("DescribeGroups", describe_classic_groups),
    "consumer": ("ConsumerGroupDescribe", describe_consumer_groups),
    "share": ("ShareGroupDescribe", describe_share_groups),
    STREAMS: ("StreamsGroupDescribe", describe_streams_groups),
}
"""Type of a group, in small letters -> API and function. Each API knows only groups of its type."""


def list_read_topics(group: DescribedGroup, kind: str) -> frozenset[str]:
    """The topics of which the members of a group of this type read partitions now."""
    if kind == STREAMS:
        return group.topics if group.members else frozenset()
    return frozenset(topic for member in group.members for topic in member.assigned)


def describe_share_offsets(
    wire: Wire, names: Sequence[str], node: str, timeout: float
) -> Mapping[str, ShareOffsets]:
    """How far these share groups have come, in all topics that we can see. timeout: seconds."""
    group = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
    request = DescribeShareGroupOffsetsRequest(
        groups=[group(group_id=name, topics=None) for name in names]
    )
    return {
        row.group_id: ShareOffsets(
            row.error_code,
            row.error_message,
            {
                (topic.topic_name, partition.partition_index): ShareOffset(
                    _drop_negative(partition.start_offset),
                    _drop_negative(partition.leader_epoch),
                    _drop_negative(partition.lag),
                    partition.error_code,
                )
                for topic in row.topics
                for partition in topic.partitions
            },
        )
        for row in wire.send(request, timeout, node).groups
    }


# ── changes ─────────────────────────────────────────────────────────────────────────────

OffsetAnswers = Mapping[Place, ItemAnswer]
"""The answer for each partition."""
_GROUP_COORDINATOR = 0


class Coordinator(Struct, frozen=True):
    """The broker that coordinates a group, or why it is not known."""

    code: int
    message: str | None
    node: str


def find_coordinator(wire: Wire, group: str, timeout: float) -> Coordinator:
    """The broker that coordinates this group. Makes Kafka's topic of groups if it is missing.
    timeout: seconds."""
    # Version 4 asks for many groups at once (KIP-699), and has its answers in a list.
    request = FindCoordinatorRequest(key=group, key_type=_GROUP_COORDINATOR, max_version=3)
    row = wire.send(request, timeout)
    return Coordinator(row.error_code, row.error_message, str(row.node_id))


def commit_offsets(
    wire: Wire, group: str, offsets: Mapping[Place, int], node: str, timeout: float
) -> OffsetAnswers:
    """Commit these offsets for a group without members. timeout: seconds."""
    # Generation -1 and no member: the coordinator refuses that with UNKNOWN_MEMBER_ID (25) as soon
    # as the group has members. Version 10 has topic ids instead of names.
    topic = OffsetCommitRequest.OffsetCommitRequestTopic
    partition = topic.OffsetCommitRequestPartition
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=[
            topic(
                name=name,
                partitions=[
                    partition(
                        partition_index=number,
                        committed_offset=offsets[name, number],
                        committed_leader_epoch=-1,
                        committed_metadata="",
                    )
                    for number in numbers
                ],
            )
            for name, numbers in group_by_topic(offsets).items()
        ],
        max_version=9,
    )
    return {
        (row.name, partition_row.partition_index): ItemAnswer(partition_row.error_code, None)
        for row in wire.send(request, timeout, node).topics
        for partition_row in row.partitions
    }


def delete_offsets(
    wire: Wire, group: str, partitions: Iterable[Place], node: str, timeout: float
) -> OffsetAnswers:
    """Delete the offsets of a group in these partitions. timeout: seconds."""
    topic = OffsetDeleteRequest.OffsetDeleteRequestTopic
    named = group_by_topic(partitions)
    request = OffsetDeleteRequest(
        group_id=group,
        topics=[
            topic(
                name=name,
                partitions=[
                    topic.OffsetDeleteRequestPartition(partition_index=number) for number in numbers
                ],
            )
            for name, numbers in named.items()
        ],
    )
    response = wire.send(request, timeout, node)
    if response.error_code:
        return {
            (name, number): ItemAnswer(response.error_code, None)
            for name, numbers in named.items()
            for number in numbers
        }
    return {
        (row.name, partition.partition_index): ItemAnswer(partition.error_code, None)
        for row in response.topics
        for partition in row.partitions
    }


def delete_group(wire: Wire, group: str, node: str, timeout: float) -> ItemAnswer:
    """Delete a group of any type with its offsets. timeout: seconds."""
    response = wire.send(DeleteGroupsRequest(groups_names=[group]), timeout, node)
    codes = {row.group_id: row.error_code for row in response.results}
    return ItemAnswer(codes.get(group, -1), None)


def alter_share_offsets(
    wire: Wire, group: str, offsets: Mapping[Place, int], node: str, timeout: float
) -> OffsetAnswers:
    """Set the start offsets of a share group without members (KIP-932). timeout: seconds."""
    topic = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic
    partition = topic.AlterShareGroupOffsetsRequestPartition
    request = AlterShareGroupOffsetsRequest(
        group_id=group,
        topics=[
            topic(
                topic_name=name,
                partitions=[
                    partition(partition_index=number, start_offset=offsets[name, number])
                    for number in numbers
                ],
            )
            for name, numbers in group_by_topic(offsets).items()
        ],
    )
    response = wire.send(request, timeout, node)
    if response.error_code:
        answer = ItemAnswer(response.error_code, response.error_message)
        return dict.fromkeys(offsets, answer)
    return {
        (row.topic_name, partition_row.partition_index): ItemAnswer(
            partition_row.error_code, partition_row.error_message
        )
        for row in response.responses
        for partition_row in row.partitions
    }


def delete_share_offsets(
    wire: Wire, group: str, topics: Sequence[str], node: str, timeout: float
) -> Mapping[str, ItemAnswer]:
    """Delete the offsets of a share group in these topics, with an answer for each. timeout:
    seconds."""
    row_of_topic = DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic
    request = DeleteShareGroupOffsetsRequest(
        group_id=group, topics=[row_of_topic(topic_name=name) for name in topics]
    )
    response = wire.send(request, timeout, node)
    if response.error_code:
        return dict.fromkeys(topics, ItemAnswer(response.error_code, response.error_message))
    return {
        row.topic_name: ItemAnswer(row.error_code, row.error_message) for row in response.responses
    }


def _parse_group(row: Any, assignor: str | None) -> DescribedGroup:
    """A group of the consumer protocol or a share group."""
    return DescribedGroup(
        row.error_code,
        row.error_message,
        row.group_state,
        assignor,
        row.group_epoch,
        tuple(
            MemberRow(
                member.member_id,
                member.client_id,
                _strip_host(member.client_host),
                getattr(member, "instance_id", None),  # members of share groups have none
                member.rack_id,
                {
                    assigned_topic.topic_name: tuple(assigned_topic.partitions)
                    for assigned_topic in member.assignment.topic_partitions
                },
            )
            for member in row.members
        ),
        frozenset(name for member in row.members for name in member.subscribed_topic_names or ()),
    )


def _join_tasks(rows: Iterable[Any]) -> Assigned:
    return {row.subtopology_id: tuple(row.partitions) for row in rows}


def _strip_host(text: str) -> str:
    """The address of a member: brokers write it as Java does, with a slash in front."""
    return text.removeprefix("/")


def _drop_negative(number: int) -> int | None:
    return number if number >= 0 else None
