"""Reads the moves that run in the cluster (KIP-455): their targets and their progress.

One request lists all moves. It needs Describe on Cluster. Without that right nobody can tell a
topic that is moving from one that has moved, so the reading says that this is unknown.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from msgspec import Struct

from kafkaform.core.resource import Fault
from kafkaform.core.text.quantity import render_amount
from kafkaform.core.value import EMPTY, FrozenMap

from ...protocol.faults import fault_of
from ...wire.cluster import read_log_sizes
from ...wire.topics import Move, TopicRow, list_reassignments
from ..context import ClusterContext, attempt
from . import placement

MOMENTS_APART = 1.0
"""Seconds between the two measurements that show how fast a move is."""

Moves = Mapping[str, Mapping[int, Move]]
"""Topic -> partition -> its move."""

Sizes = Mapping[tuple[str, int], int]
"""Topic and partition -> bytes of the log on one broker."""

UNMEASURED = "progress unknown: a broker does not answer, or we lack Describe on Cluster"


class Placement(Struct, frozen=True):
    """Where the replicas of a topic are, and where a running move takes them."""

    replicas: placement.Assignment
    """The replicas that a cancelled move would leave."""
    moving: FrozenMap | None = None
    """The attributes after the move; None if the topic does not move."""
    ticket: str | None = None
    details: FrozenMap = EMPTY


class CopyProgress(Struct, frozen=True):
    """Bytes of the replicas that a move adds."""

    finished: int
    total: int


def list_moves(context: ClusterContext, node: str | None = None) -> Moves | Fault:
    """All running moves, or the fault of the request."""
    api = "ListPartitionReassignments"
    reassignments = attempt(
        api, lambda: list_reassignments(context.wire, context.timeout, node), node
    )
    if isinstance(reassignments, Fault):
        return reassignments
    return (
        fault_of(api, reassignments.code, "", reassignments.message)
        if reassignments.code
        else reassignments.topics
    )


def find_placement(row: TopicRow, moves: Moves | Fault) -> Placement:
    """The placement of the topic of this row."""
    if isinstance(moves, Fault):
        return Placement(row.replicas, details=FrozenMap(moves=f"unknown: {moves.message}"))
    topic_moves = moves.get(row.name, {})
    if not any(number < len(row.replicas) for number in topic_moves):
        return Placement(row.replicas)
    # While a partition moves, Metadata lists old and new replicas together.
    current = tuple(
        topic_moves[n].origin if n in topic_moves else r for n, r in enumerate(row.replicas)
    )
    destination = compute_destination(row, topic_moves)
    return Placement(
        current,
        FrozenMap(replication_factor=len(destination[0]), replica_assignment=destination),
        str(placement.make_move_ticket(row.name, row.topic_id, destination)),
    )


def compute_destination(row: TopicRow, topic_moves: Mapping[int, Move]) -> placement.Assignment:
    """Where the replicas are once these moves have ended."""
    return tuple(
        topic_moves[n].target if n in topic_moves else r for n, r in enumerate(row.replicas)
    )


def measure_progress(context: ClusterContext, moves: Moves) -> Mapping[str, str]:
    """Topic -> the progress of its move, in words. Takes MOMENTS_APART unless all is copied."""
    if not moves:
        return {}
    first, begin = _measure_copied(context, moves), time.monotonic()
    if all(copied is None or copied.finished >= copied.total for copied in first.values()):
        return {name: _describe_progress(copied, 0.0) for name, copied in first.items()}
    time.sleep(MOMENTS_APART)
    second, seconds = _measure_copied(context, moves), time.monotonic() - begin
    return {
        name: _describe_progress(second[name], _count_gain(first[name], second[name]) / seconds)
        for name in moves
    }


def _count_gain(first: CopyProgress | None, second: CopyProgress | None) -> int:
    return second.finished - first.finished if first and second else 0


def _measure_copied(context: ClusterContext, moves: Moves) -> Mapping[str, CopyProgress | None]:
    """Topic -> its progress, None if a broker does not report the sizes."""
    counts = {name: max(topic_moves) + 1 for name, topic_moves in moves.items() if topic_moves}
    rows = (move.replicas for topic_moves in moves.values() for move in topic_moves.values())
    sizes = {
        broker: _read_sizes(context, counts, str(broker)) for broker in placement.list_brokers(rows)
    }
    known_sizes = {
        broker: broker_sizes for broker, broker_sizes in sizes.items() if broker_sizes is not None
    }
    return {
        name: _measure_topic(name, topic_moves, known_sizes) for name, topic_moves in moves.items()
    }


def _read_sizes(context: ClusterContext, counts: Mapping[str, int], node: str) -> Sizes | None:
    """The log sizes on this broker, None if it does not report them."""
    sizes = attempt(
        "DescribeLogDirs", lambda: read_log_sizes(context.wire, counts, node, context.timeout)
    )
    if sizes is None or isinstance(sizes, Fault):
        return None
    return {(row.topic, row.partition): row.size for row in sizes}


def _measure_topic(
    name: str, topic_moves: Mapping[int, Move], known_sizes: Mapping[int, Sizes]
) -> CopyProgress | None:
    copied = total = 0
    for number, move in topic_moves.items():
        # One complete replica is enough to know the total; each added replica must be known.
        origin_sizes = [
            known_sizes[b].get((name, number), 0) for b in move.origin if b in known_sizes
        ]
        if not origin_sizes or not known_sizes.keys() >= set(move.adding):
            return None
        total += max(origin_sizes) * len(move.adding)
        copied += sum(
            min(max(origin_sizes), known_sizes[b].get((name, number), 0)) for b in move.adding
        )
    return CopyProgress(copied, total)


def _describe_progress(copied: CopyProgress | None, rate: float) -> str:
    """rate: bytes a second."""
    if copied is None:
        return UNMEASURED
    finished, total = (render_amount(size, "bytes") for size in (copied.finished, copied.total))
    far = f"{finished} of {total} copied"
    if copied.finished >= copied.total:
        return f"{far}, about to end"
    if rate <= 0:
        return f"{far}, time left unknown"
    return f"{far}, about {_render_duration((copied.total - copied.finished) / rate)} left"


def _render_duration(seconds: float) -> str:
    """`40 s`, `4 min`, `3 h`."""
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(1.0, seconds):.0f} s"
