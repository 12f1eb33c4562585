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

from ...cluster.context import ClusterContext, attempt
from ...protocol.faults import fault_of
from ...wire.cluster import read_log_sizes
from ...wire.placement import Move, list_reassignments
from ...wire.topics import TopicRow
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

    done: int
    total: int


def list_moves(context: ClusterContext, node: str | None = None) -> Moves | Fault:
    """All running moves, or the fault of the request."""
    api = "ListPartitionReassignments"
    found = attempt(api, lambda: list_reassignments(context.wire, context.timeout, node), node)
    if isinstance(found, Fault):
        return found
    return fault_of(api, found.code, "", found.message) if found.code else found.topics


def find_placement(row: TopicRow, moves: Moves | Fault) -> Placement:
    """The placement of the topic of this row."""
    if isinstance(moves, Fault):
        return Placement(row.replicas, details=FrozenMap(moves=f"unknown: {moves.message}"))
    mine = moves.get(row.name, {})
    if not any(number < len(row.replicas) for number in mine):
        return Placement(row.replicas)
    # While a partition moves, Metadata lists old and new replicas together.
    here = tuple(mine[n].origin if n in mine else r for n, r in enumerate(row.replicas))
    there = compute_destination(row, mine)
    return Placement(
        here,
        FrozenMap(replication_factor=len(there[0]), replica_assignment=there),
        str(placement.make_move_ticket(row.name, row.topic_id, there)),
    )


def compute_destination(row: TopicRow, mine: Mapping[int, Move]) -> placement.Assignment:
    """Where the replicas are once these moves have ended."""
    return tuple(mine[n].target if n in mine else r for n, r in enumerate(row.replicas))


def measure_progress(context: ClusterContext, moves: Moves) -> Mapping[str, str]:
    """Topic -> the progress of its move, in words. Takes MOMENTS_APART unless all is copied."""
    if not moves:
        return {}
    first, begin = _measure_copied(context, moves), time.monotonic()
    if all(copied is None or copied.done >= copied.total for copied in first.values()):
        return {name: _describe_progress(copied, 0.0) for name, copied in first.items()}
    time.sleep(MOMENTS_APART)
    second, taken = _measure_copied(context, moves), time.monotonic() - begin
    return {
        name: _describe_progress(second[name], _count_gain(first[name], second[name]) / taken)
        for name in moves
    }


def _count_gain(first: CopyProgress | None, second: CopyProgress | None) -> int:
    return second.done - first.done if first and second else 0


def _measure_copied(context: ClusterContext, moves: Moves) -> Mapping[str, CopyProgress | None]:
    """Topic -> its progress, None if a broker does not report the sizes."""
    counts = {name: max(mine) + 1 for name, mine in moves.items() if mine}
    rows = (move.replicas for mine in moves.values() for move in mine.values())
    sizes = {
        broker: _read_sizes(context, counts, str(broker)) for broker in placement.list_brokers(rows)
    }
    known = {broker: found for broker, found in sizes.items() if found is not None}
    return {name: _measure_topic(name, mine, known) for name, mine in moves.items()}


def _read_sizes(context: ClusterContext, counts: Mapping[str, int], node: str) -> Sizes | None:
    """The log sizes on this broker, None if it does not report them."""
    found = attempt(
        "DescribeLogDirs", lambda: read_log_sizes(context.wire, counts, node, context.timeout)
    )
    if found is None or isinstance(found, Fault):
        return None
    return {(row.topic, row.partition): row.size for row in found}


def _measure_topic(
    name: str, mine: Mapping[int, Move], known: Mapping[int, Sizes]
) -> CopyProgress | None:
    done = total = 0
    for number, move in mine.items():
        # One complete replica is enough to know the total; each added replica must be known.
        here = [known[b].get((name, number), 0) for b in move.origin if b in known]
        if not here or not known.keys() >= set(move.adding):
            return None
        total += max(here) * len(move.adding)
        done += sum(min(max(here), known[b].get((name, number), 0)) for b in move.adding)
    return CopyProgress(done, total)


def _describe_progress(copied: CopyProgress | None, rate: float) -> str:
    """rate: bytes a second."""
    if copied is None:
        return UNMEASURED
    done, total = (render_amount(size, "bytes") for size in (copied.done, copied.total))
    far = f"{done} of {total} copied"
    if copied.done >= copied.total:
        return f"{far}, about to end"
    if rate <= 0:
        return f"{far}, time left unknown"
    return f"{far}, about {_render_duration((copied.total - copied.done) / rate)} left"


def _render_duration(seconds: float) -> str:
    """`40 s`, `4 min`, `3 h`."""
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(1.0, seconds):.0f} s"
