"""Plans moves of replicas: changes of `replication_factor` or `replica_assignment`.

A plan shows a move replica by replica. Its step (AlterPartitionReassignments, KIP-455) starts the
move and does not wait for it. It is throttled only if the provider block asks for that. A topic
whose block declares neither attribute is never moved, not even off a broker that is gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from kafkaform.core.change import Change, Evidence, Repeat, Step
from kafkaform.core.legacy import Risk, RiskKind
from kafkaform.core.resource import Facts
from kafkaform.core.text.quantity import render_count
from kafkaform.core.value import EMPTY, FrozenMap, Value

from ...protocol import broker_rules, version_rules
from ...protocol.config_values import parse_integer
from ..request_order import MOVE_REPLICAS
from ..steps import make_step, paths_below
from . import placement
from .configs import get_config

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
    return placement.find_moved(_find_start(change, facts), _get_rows(change.after))


def list_created_rows(change: Change, facts: Facts) -> Value:
    """The replicas of the partitions that the change adds; None lets Kafka choose."""
    if not _get_rows(change.after):
        return None
    return tuple(_find_start(change, facts)[len(_get_rows(change.before)) :])


def _find_start(change: Change, facts: Facts) -> placement.Assignment:
    """The assignment when the move starts, with the partitions that the change adds."""
    before, after = _get_rows(change.before), _get_rows(change.after)
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
    name, after = change.identity.key, _get_rows(change.after)
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
    rate, start = facts.values.get("reassignment_throttle"), _find_start(change, facts)
    if not isinstance(rate, int):
        return None
    old = {n: start[n] for n in rows}
    # A move that only removes or reorders replicas copies nothing.
    if all(set(row) <= set(old[n]) for n, row in rows.items()):
        return None
    involved = placement.list_brokers(rows.values(), old.values())
    return placement.ThrottleTicket(change.identity.key, change.incarnation or "", rate, involved)


# ── faults and warnings ─────────────────────────────────────────────────────────────────


def find_faults(change: Change, facts: Facts) -> broker_rules.Faults:
    """Reasons why this move is impossible."""
    before, after = change.before or EMPTY, change.after or EMPTY
    old, new = before.get("replication_factor"), after.get("replication_factor")
    if isinstance(new, int) and old != new:
        impossible = tuple(broker_rules.count_faults(None, new, facts))
        yield from impossible
        if not impossible and any(len(row) != new for row in _get_rows(after) or ((),)):
            yield (
                f"replication_factor would go from {old} to {new}, but replica_assignment is "
                "ignored or the live brokers are unknown, so the new assignment is unknown",
                "ignore both attributes or neither, or set replica_assignment",
            )
    # The id proves later that the topic is still the one whose move and throttles are ours.
    if change.incarnation is None and plan_moves(change, facts):
        yield (
            "the id of the topic is unknown, and kafkaform moves the replicas only of topics with "
            "an id",
            version_rules.advise_topic_ids(facts),
        )
    if paths_below(change, "replica_assignment"):
        yield from broker_rules.assignment_faults(_get_rows(after), replace(facts, nodes=()))
        yield from _dead_faults(change, facts)


def _dead_faults(change: Change, facts: Facts) -> broker_rules.Faults:
    start = _find_start(change, facts)
    for number, row in plan_moves(change, facts).items():
        gone = [str(b) for b in row if b not in start[number] and str(b) not in facts.nodes]
        if facts.nodes and gone:
            yield (
                f"partition {number} would get replicas on brokers that are not live: "
                f"{', '.join(gone)}",
                f"the live brokers are {', '.join(facts.nodes)}",
            )


def find_warnings(change: Change, facts: Facts) -> broker_rules.Faults:
    """What a reviewer should know about this move."""
    rows = plan_moves(change, facts)
    if not rows:
        return
    if not count_copies(change, facts) and not _count_removed(change, facts):
        partitions = render_count(len(rows), "partition")
        yield f"changes the preferred leader of {partitions}; no data is copied", ""
    yield from _dead_warnings(change, facts)


def find_risks(change: Change, facts: Facts) -> Iterator[Risk]:
    """The risks of this move: how much it copies, and whether it can stop producers."""
    rows = plan_moves(change, facts)
    copies, removed = sum(count_copies(change, facts).values()), _count_removed(change, facts)
    if copies or removed:
        # Old and new replicas exist together until the copies are complete, and take disk space.
        counts = ((copies, "copied"), (removed, "removed"))
        parts = ", ".join(f"{render_count(n, 'replica')} {verb}" for n, verb in counts if n)
        text = (
            f"{render_count(len(rows), 'partition')}: {parts}; the apply starts the move and does "
            "not wait"
        )
        yield Risk(RiskKind.MOVE, text, ("replica_assignment",), FrozenMap(replicas=copies))
    if rows:
        yield from _find_in_sync_risks(change)


def count_copies(change: Change, facts: Facts) -> Mapping[int, int]:
    """Partition -> the number of new copies of its data, for partitions that are copied."""
    start = _find_start(change, facts)
    added = {n: len(set(row) - set(start[n])) for n, row in plan_moves(change, facts).items()}
    return {number: count for number, count in added.items() if count}


def _count_removed(change: Change, facts: Facts) -> int:
    start = _find_start(change, facts)
    return sum(len(set(start[n]) - set(row)) for n, row in plan_moves(change, facts).items())


def _dead_warnings(change: Change, facts: Facts) -> Iterator[tuple[str, str]]:
    dead = placement.list_dead_brokers(_get_rows(change.before), facts) if facts.nodes else ()
    if dead:
        kept = placement.list_dead_brokers(_get_rows(change.after), facts)
        gone = [str(b) for b in dead if b not in kept]
        stays = f"; replicas stay on {', '.join(map(str, kept))}" if kept else ""
        leaves = f"; all replicas leave {', '.join(gone)}" if gone else ""
        yield (
            f"broker{'s' if len(dead) > 1 else ''} {', '.join(map(str, dead))} of this topic "
            f"{'are' if len(dead) > 1 else 'is'} not live{stays}{leaves}",
            "use replica_assignment to move replicas off a broker that will not come back",
        )


def _find_in_sync_risks(change: Change) -> Iterator[Risk]:
    # Configs take effect before the copies are complete, and until then the old number of replicas
    # counts for acks=all.
    least = parse_integer(str(get_config(change.after).get("min.insync.replicas") or ""))
    old = (change.before or EMPTY).get("replication_factor")
    new = (change.after or EMPTY).get("replication_factor")
    if least is None or not isinstance(old, int) or not isinstance(new, int):
        return
    if new < least <= old:
        yield Risk(
            RiskKind.AVAILABILITY,
            f"min.insync.replicas is {least}, but there will be only {new} replicas: brokers will "
            "refuse producers with acks=all. Lower min.insync.replicas too",
            ("replication_factor",),
        )
    elif old < least <= new and ("config", "min.insync.replicas") in paths_below(change, "config"):
        yield Risk(
            RiskKind.AVAILABILITY,
            f"min.insync.replicas becomes {least} at once, but {new} replicas exist only after the "
            "move: until then brokers can refuse producers with acks=all. Raise the replication "
            "factor first, and min.insync.replicas in a later change",
            ("config", "min.insync.replicas"),
        )


def _get_rows(attributes: FrozenMap | None) -> Sequence[Sequence[int]]:
    return (attributes or EMPTY).get("replica_assignment") or ()
