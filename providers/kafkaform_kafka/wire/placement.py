"""AlterPartitionReassignments (45), ListPartitionReassignments (46) and ElectLeaders (43)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafka.protocol.admin import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
)
from msgspec import Struct

from .answers import ItemAnswer
from .client import Wire
from .topics import ANSWER_MARGIN

PREFERRED = 0
NOT_RUNNING = 85
"""NO_REASSIGNMENT_IN_PROGRESS, the answer for a cancelled partition that does not move."""

Partition = tuple[str, int]
"""Topic and number."""


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
