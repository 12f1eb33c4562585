"""Plans moves of replicas: changes of `replication_factor` or `replica_assignment`.

A plan shows a move replica by replica. Its step (AlterPartitionReassignments, KIP-455) starts the
move and does not wait for it. It is throttled only if the provider block asks for that. A topic
whose block declares neither attribute is never moved, not even off a broker that is gone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from kafkaform.core.change import Change, Evidence, Repeat, Step
from kafkaform.core.resource import Facts
from kafkaform.core.value import EMPTY, FrozenMap, Value

from ..request_order import MOVE_REPLICAS
from ..steps import make_step, paths_below
from . import placement

MOVED_PATHS = ("replication_factor", "replica_assignment")


def plan_target(live: FrozenMap, factor: Value, partitions: Value, facts: Facts) -> Value:
    """The assignment for this replication factor; None if no replica moves, or if the factor is
    impossible (the rules then say why)."""
    rows: Sequence[Sequence[int]] | None = live.get("replica_assignment")
    if not rows or not isinstance(factor, int) or all(len(row) == factor for row in rows):
        return None
    if not 1 <= factor <= len(facts.nodes):
        return None
    count = partitions if isinstance(partitions, int) else 0
    return placement.plan_assignment(
        rows, factor, max(count, len(rows)), placement.live_racks(facts)
    )


def plan_moves(change: Change, facts: Facts) -> Mapping[int, placement.Replicas]:
    """Partition -> its new replicas; empty unless the change affects the assignment."""
    if not paths_below(change, "replica_assignment"):
        return {}
    return placement.find_moved(find_start(change, facts), get_rows(change.after))


def list_created_rows(change: Change, facts: Facts) -> Value:
    """The replicas of the partitions that the change adds; None lets Kafka choose."""
    if not get_rows(change.after):
        return None
    return tuple(find_start(change, facts)[len(get_rows(change.before)) :])


def find_start(change: Change, facts: Facts) -> placement.Assignment:
    """The assignment when the move starts, with the partitions that the change adds."""
    before, after = get_rows(change.before), get_rows(change.after)
    new = after[len(before) :]
    if before and any(len(row) != len(before[0]) for row in new):
        new = placement.plan_creation(new, len(before[0]), placement.live_racks(facts))
    return tuple(tuple(row) for row in (*before, *new))


def make_move_step(change: Change, number: int, facts: Facts, growth: Step | None) -> Step | None:
    """The step that starts the move, None without one. growth: the step that adds partitions, which
    comes first."""
    rows = plan_moves(change, facts)
    if not rows:
        return None
    name, after = change.identity.key, get_rows(change.after)
    payload: dict[str, Value] = {
        "name": name,
        "replicas": FrozenMap({str(n): tuple(row) for n, row in sorted(rows.items())}),
        "ticket": str(placement.make_move_ticket(name, change.incarnation, after)),
    }
    throttle = _make_throttle(change, rows, facts)
    step = make_step(
        change,
        number,
        MOVE_REPLICAS,
        payload if throttle is None else {**payload, "throttle": str(throttle)},
        paths_below(change, *MOVED_PATHS),
        weight=len(rows),
        # A repeat would replace whatever runs by then, maybe the move of somebody else. Whether the
        # first request worked can be read (ListPartitionReassignments, Metadata).
        repeat=Repeat.NEVER,
        evidence=Evidence.LOCAL,
    )
    return replace(
        step,
        after=() if growth is None else (growth.id,),
        owes=None if throttle is None else str(throttle),
    )


def _make_throttle(
    change: Change, rows: Mapping[int, placement.Replicas], facts: Facts
) -> placement.ThrottleTicket | None:
    """The throttle of a move that copies data."""
    rate, start = facts.values.get("reassignment_throttle"), find_start(change, facts)
    if not isinstance(rate, int):
        return None
    old = {n: start[n] for n in rows}
    # A move that only removes or reorders replicas copies nothing.
    if all(set(row) <= set(old[n]) for n, row in rows.items()):
        return None
    involved = placement.list_brokers(rows.values(), old.values())
    return placement.ThrottleTicket(change.identity.key, change.incarnation or "", rate, involved)


def count_copies(change: Change, facts: Facts) -> Mapping[int, int]:
    """Partition -> the number of new copies of its data, for partitions that are copied."""
    start = find_start(change, facts)
    added = {n: len(set(row) - set(start[n])) for n, row in plan_moves(change, facts).items()}
    return {number: count for number, count in added.items() if count}


def count_removed(change: Change, facts: Facts) -> int:
    """How many replicas go."""
    start = find_start(change, facts)
    return sum(len(set(start[n]) - set(row)) for n, row in plan_moves(change, facts).items())


def get_rows(attributes: FrozenMap | None) -> Sequence[Sequence[int]]:
    """The replicas of each partition; none if they are unknown."""
    return (attributes or EMPTY).get("replica_assignment") or ()
