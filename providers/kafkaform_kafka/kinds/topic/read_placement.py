"""What moves in the cluster, how a topic looks while it moves, and how far its moves are.

One request lists all moves. It needs Describe on Cluster; without that right nobody can tell a
topic that moves from one that has moved, so its reading says that it is unknown.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from msgspec import Struct

from kafkaform.core.resource import Fault
from kafkaform.core.value import EMPTY, FrozenMap

from ...cluster.context import ClusterContext
from ...cluster.exchange import attempt
from ...protocol.faults import fault_of
from ...protocol.sizes import render_size
from ...wire.cluster import read_log_sizes
from ...wire.placement import Move, list_reassignments
from ...wire.topics import TopicRow
from . import placement

MOMENTS_APART = 1.0
"""Seconds between the two looks at the sizes that tell how fast a move is."""

Moves = Mapping[str, Mapping[int, Move]]
"""Topic -> partition -> its move."""

Sizes = Mapping[tuple[str, int], int]
"""Topic and partition -> bytes of the log on one broker."""

UNMEASURED = (
    "how far it is cannot be measured: a broker does not answer, or we lack Describe on Cluster"
)


class Placement(Struct, frozen=True):
    """Where a topic's replicas are without the move that runs, and where that takes them."""

    replicas: placement.Assignment
    moving: FrozenMap | None = None
    ticket: str | None = None
    details: FrozenMap = EMPTY


class CopyProgress(Struct, frozen=True):
    """done, total: bytes of the replicas that are being added."""

    done: int
    total: int


def list_moves(context: ClusterContext, node: str | None = None) -> Moves | Fault:
    """Everything that moves, or why that is not known."""
    api = "ListPartitionReassignments"
    found = attempt(api, lambda: list_reassignments(context.wire, context.timeout, node), node)
    if isinstance(found, Fault):
        return found
    return fault_of(api, found.code, "", found.message) if found.code else found.topics


def find_placement(row: TopicRow, moves: Moves | Fault) -> Placement:
    """The topic of this row. While a partition moves, Metadata shows old and new replicas
    together; what stands is what a cancelled move would leave."""
    if isinstance(moves, Fault):
        return Placement(row.replicas, details=FrozenMap(moves=f"unknown: {moves.message}"))
    mine = moves.get(row.name, {})
    if not any(number < len(row.replicas) for number in mine):
        return Placement(row.replicas)
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
    """How far these topics' moves are, in words, measured at two moments; empty without moves."""
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
    """None for a topic if the sizes that tell it are not known."""
    counts = {name: max(mine) + 1 for name, mine in moves.items() if mine}
    rows = (move.replicas for mine in moves.values() for move in mine.values())
    told = {
        broker: _read_sizes(context, counts, str(broker)) for broker in placement.list_brokers(rows)
    }
    known = {broker: sizes for broker, sizes in told.items() if sizes is not None}
    return {name: _measure_topic(name, mine, known) for name, mine in moves.items()}


def _read_sizes(context: ClusterContext, counts: Mapping[str, int], node: str) -> Sizes | None:
    """None if this broker does not tell."""
    found = attempt(
        "DescribeLogDirs", lambda: read_log_sizes(context.wire, counts, node, context.timeout)
    )
    if found is None or isinstance(found, Fault):
        return None
    return {(row.topic, row.partition): row.size for row in found}


def _measure_topic(
    name: str, mine: Mapping[int, Move], known: Mapping[int, Sizes]
) -> CopyProgress | None:
    """One of the replicas that have everything is enough; those that are added must all tell."""
    done = total = 0
    for number, move in mine.items():
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
    far = f"{render_size(copied.done)} of {render_size(copied.total)} copied"
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
