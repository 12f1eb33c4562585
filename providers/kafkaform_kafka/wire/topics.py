"""Topics and their partitions: CreateTopics (v5 to v7), CreatePartitions, DeleteTopics by id (v6),
Metadata, AlterPartitionReassignments (45), ListPartitionReassignments (46) and ElectLeaders (43).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kafka.protocol.admin import (
    AlterPartitionReassignmentsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
)
from kafka.protocol.metadata import MetadataRequest
from msgspec import Struct

from ..protocol.broker_rules import INTERNAL_TOPICS
from .answers import ItemAnswer, ItemAnswers, id_text, parse_id
from .client import Wire
from .fast_decoding import CREATE_VERSION, Answers, NamedTopics, NewTopics

# If both waited equally long, our own timeout would come first, which says nothing about the
# request; the broker's REQUEST_TIMED_OUT at least comes from the controller or the broker that
# forwarded it.
ANSWER_MARGIN = 15.0
"""Seconds that the client waits longer than the broker is allowed to take."""


class TopicRow(Struct, frozen=True):
    """One topic of a Metadata answer."""

    name: str
    code: int
    topic_id: str | None = None
    internal: bool = False
    replicas: tuple[tuple[int, ...], ...] = ()
    """Broker ids of partition 0, 1, …"""
    leaderless: int = 0
    """How many partitions have no leader."""
    operations: frozenset[int] | None = None
    """Codes of our rights on the topic (KIP-430), None if they were not asked for."""
    in_sync: tuple[tuple[int, ...], ...] = ()
    """Broker ids of partition 0, 1, …"""
    leaders: tuple[int, ...] = ()
    """Broker id of partition 0, 1, …; -1 if none leads."""


def create_topics(
    wire: Wire, topics: Sequence[Mapping[str, Any]], timeout: float, *, validate_only: bool
) -> ItemAnswers:
    """Create topics, or only validate the request. topics: payloads with name, partitions (-1:
    the broker's default), replication_factor, assignment or None, configs; timeout: seconds."""
    # Since version 4, -1 stands for the broker's defaults (KIP-464). From version 6 on a throttled
    # topic has error 89 (KIP-599); before it was created, and the connection paused. validate_only
    # spends the same mutation quota.
    request = NewTopics(
        topics=[_make_new_topic(topic) for topic in topics],
        timeout_ms=int(timeout * 1000),
        validate_only=validate_only,
        min_version=CREATE_VERSION,
    )
    # The timeout is how long the request may stay in the controller's queue. 0 does not mean "do
    # not wait" (KIP-4) any more: the request can expire before it is looked at.
    response: Answers = wire.send(request, timeout + ANSWER_MARGIN)
    return ItemAnswers(response.results, response.throttle_time_ms / 1000)


def create_partitions(
    wire: Wire, topics: Sequence[Mapping[str, Any]], timeout: float, *, validate_only: bool
) -> ItemAnswers:
    """Raise partition counts. topics: payloads with name, count (the new total) and assignment
    (of the new partitions) or None; timeout: seconds."""
    # The count is the new total and no difference, so a request that is sent twice grows a topic
    # once: the second one is refused with INVALID_PARTITIONS (37).
    row = CreatePartitionsRequest.CreatePartitionsTopic
    request = CreatePartitionsRequest(
        topics=[
            row(
                name=topic["name"],
                count=topic["count"],
                assignments=_make_assignments(topic["assignment"]),
            )
            for topic in topics
        ],
        timeout_ms=int(timeout * 1000),
        validate_only=validate_only,
    )
    response = wire.send(request, timeout + ANSWER_MARGIN)
    return ItemAnswers(
        {row.name: ItemAnswer(row.error_code, row.error_message) for row in response.results},
        response.throttle_time_ms / 1000,
    )


def delete_topics(wire: Wire, topic_ids: Sequence[str], timeout: float) -> ItemAnswers:
    """Delete topics by id. timeout: seconds. The answers are in no order."""
    # Never by name: another topic may have taken the name since the plan was made.
    row = DeleteTopicsRequest.DeleteTopicState
    request = DeleteTopicsRequest(
        topics=[row(name=None, topic_id=parse_id(text)) for text in topic_ids],
        timeout_ms=int(timeout * 1000),
        min_version=6,
    )
    response = wire.send(request, timeout + ANSWER_MARGIN)
    return ItemAnswers(
        {
            id_text(row.topic_id) or "": ItemAnswer(row.error_code, row.error_message)
            for row in response.responses
        },
        response.throttle_time_ms / 1000,
    )


def list_topics(
    wire: Wire,
    names: Sequence[str] | None,
    timeout: float,
    *,
    node: str | None = None,
    operations: bool = False,
) -> tuple[TopicRow, ...]:
    """What Metadata says about these topics, or about all that we can see (None). node: the broker
    whose view to return; operations: ask also for our rights on each."""
    # A list of all topics leaves out those that we may not describe, without an error. By name both
    # a hidden topic and a missing one have error 29, if we may describe neither.
    everything = MetadataRequest(
        topics=None,
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=operations,
        min_version=10,
    )
    request = everything if names is None else NamedTopics(names, operations)
    response = wire.send(request, timeout, node)
    return tuple(_parse_row(row, operations) for row in response.topics)


def _make_new_topic(topic: Mapping[str, Any]) -> Any:
    row = CreateTopicsRequest.CreatableTopic
    assignment = topic["assignment"]
    return row(
        name=topic["name"],
        # With an assignment, both counts must be -1: the broker refuses them beside it.
        num_partitions=-1 if assignment else topic["partitions"],
        replication_factor=-1 if assignment else topic["replication_factor"],
        assignments=[
            row.CreatableReplicaAssignment(partition_index=index, broker_ids=list(replicas))
            for index, replicas in enumerate(assignment or ())
        ],
        configs=[
            row.CreatableTopicConfig(name=key, value=value)
            for key, value in sorted(topic["configs"].items())
        ],
    )


def _make_assignments(assignment: Sequence[Sequence[int]] | None) -> list[Any] | None:
    if assignment is None:
        return None
    row = CreatePartitionsRequest.CreatePartitionsTopic.CreatePartitionsAssignment
    return [row(broker_ids=list(replicas)) for replicas in assignment]


def _parse_row(row: Any, operations: bool) -> TopicRow:
    # A row of replicas has no number of its own here, and brokers promise no order of partitions.
    partitions = sorted(row.partitions, key=lambda partition: partition.partition_index)
    return TopicRow(
        name=row.name,
        code=row.error_code,
        topic_id=id_text(row.topic_id),
        internal=bool(row.is_internal) or row.name in INTERNAL_TOPICS,
        replicas=tuple(tuple(partition.replica_nodes) for partition in partitions),
        leaderless=sum(partition.leader_id < 0 for partition in partitions),
        operations=frozenset(row.authorized_operations or ()) if operations else None,
        in_sync=tuple(tuple(partition.isr_nodes) for partition in partitions),
        leaders=tuple(partition.leader_id for partition in partitions),
    )


# Never UNCLEAN (1): it makes a replica the leader that may lack records (KIP-460).
PREFERRED = 0

Partition = tuple[str, int]
"""Topic and number."""


# ── reassignments and elections ─────────────────────────────────────────────────────────


class Move(Struct, frozen=True):
    """One partition that moves (KIP-455)."""

    # While a partition moves, its replicas are those of the target, in their order, followed by
    # those that will be removed. If the move is cancelled, the rest stays in this order.
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]

    @property
    def target(self) -> tuple[int, ...]:
        return tuple(broker for broker in self.replicas if broker not in self.removing)

    @property
    def origin(self) -> tuple[int, ...]:
        return tuple(broker for broker in self.replicas if broker not in self.adding)


class Moves(Struct, frozen=True):
    """The partitions that move, by topic and number."""

    code: int
    """0, or why the moves are unknown, which does not mean that nothing moves."""
    message: str | None
    topics: Mapping[str, Mapping[int, Move]]


class PartitionAnswers(Struct, frozen=True):
    """The answers for partitions."""

    code: int
    """Of the request as a whole."""
    message: str | None
    items: Mapping[Partition, ItemAnswer]


def alter_reassignments(
    wire: Wire, targets: Mapping[str, Mapping[int, Sequence[int] | None]], timeout: float
) -> PartitionAnswers:
    """Move these partitions, or stop the moves of those whose target is None. timeout: seconds."""
    # There is no error for a partition that moves already: the new target replaces the old one
    # (KIP-455). Whether that is wanted is decided before, from a fresh read.
    topic = AlterPartitionReassignmentsRequest.ReassignableTopic
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=int(timeout * 1000),
        topics=[
            topic(
                name=name,
                partitions=[
                    topic.ReassignablePartition(
                        partition_index=number,
                        replicas=None if replicas is None else list(replicas),
                    )
                    for number, replicas in sorted(rows.items())
                ],
            )
            for name, rows in targets.items()
        ],
    )
    response = wire.send(request, timeout + ANSWER_MARGIN)
    return PartitionAnswers(
        response.error_code,
        response.error_message,
        {
            (row.name, partition.partition_index): ItemAnswer(
                partition.error_code, partition.error_message
            )
            for row in response.responses or ()
            for partition in row.partitions
        },
    )


def list_reassignments(wire: Wire, timeout: float, node: str | None = None) -> Moves:
    """All partitions that move, as the controller sees them. timeout: seconds."""
    request = ListPartitionReassignmentsRequest(timeout_ms=int(timeout * 1000), topics=None)
    response = wire.send(request, timeout, node)
    return Moves(
        response.error_code,
        response.error_message,
        {
            row.name: {
                partition.partition_index: Move(
                    tuple(partition.replicas),
                    tuple(partition.adding_replicas),
                    tuple(partition.removing_replicas),
                )
                for partition in row.partitions
            }
            for row in response.topics or ()
        },
    )


def elect_leaders(
    wire: Wire, partitions: Mapping[str, Sequence[int]], timeout: float
) -> PartitionAnswers:
    """Elect the preferred leader of each of these partitions (KIP-460). timeout: seconds."""
    topic = ElectLeadersRequest.TopicPartitions
    request = ElectLeadersRequest(
        election_type=PREFERRED,
        topic_partitions=[
            topic(topic=name, partitions=list(numbers)) for name, numbers in partitions.items()
        ],
        timeout_ms=int(timeout * 1000),
        min_version=1,
    )
    response = wire.send(request, timeout + ANSWER_MARGIN)
    return PartitionAnswers(
        response.error_code,
        None,
        {
            (row.topic, partition.partition_id): ItemAnswer(
                partition.error_code, partition.error_message
            )
            for row in response.replica_election_results or ()
            for partition in row.partition_result
        },
    )
