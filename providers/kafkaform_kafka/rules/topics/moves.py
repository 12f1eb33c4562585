"""Rules of replicas: where those of a topic would be, and what a move of them does."""

from __future__ import annotations

from collections.abc import Iterator

from kafkaform.core.change import Action, Change
from kafkaform.core.finding import Block, Finding, Harm, Level
from kafkaform.core.resource import Facts
from kafkaform.core.rule import Judge, Needs, Rule
from kafkaform.core.text import render_count
from kafkaform.core.value import EMPTY, FrozenMap

from ...kinds.kind import paths_below
from ...kinds.topic import placement
from ...kinds.topic.configs import find_effective
from ...protocol import broker_rules, cluster_facts
from ...protocol.config_keys import parse_integer
from .config_rows import MIN_IN_SYNC, TOPIC

_TYPES = (TOPIC,)

ASSIGNMENT_INVALID = Rule(
    "topic-assignment-invalid",
    "Kafka refuses the assignment of replicas",
    Level.BLOCK,
    Harm.NONE,
    _TYPES,
    Needs.BLOCK,
    "Each partition needs the same number of distinct brokers: INVALID_REPLICA_ASSIGNMENT (39; "
    "ReplicationControlManager.validateManualPartitionAssignment).",
    "replica_assignment = [[1, 2], [3]]",
    "Give each partition the same number of different broker ids.",
    Block.IMPOSSIBLE,
    proof="tests/cluster/claims/test_topics.py::test_assignments_that_kafka_refuses",
)
BROKERS_NOT_LIVE = Rule(
    "topic-assignment-not-live",
    "Replicas would be on brokers that are not live",
    Level.BLOCK,
    Harm.AVAILABILITY,
    _TYPES,
    Needs.FACTS,
    "A controller places replicas on registered brokers only, and a new replica on a broker that "
    "is down never gets in sync.",
    "replica_assignment = [[1, 99]]",
    "Use live brokers.",
    Block.IMPOSSIBLE,
    proof="tests/cluster/claims/test_topics.py::test_assignments_that_kafka_refuses",
)
MOVE_UNPLANNED = Rule(
    "topic-move-unplanned",
    "Nobody can say where replicas would go",
    Level.BLOCK,
    Harm.NONE,
    _TYPES,
    Needs.OBJECT,
    "Kafka changes a replication factor only by a new assignment of every partition (KIP-455), "
    "which kafkaform plans from the live brokers.",
    "replication_factor = 3   # with ignore_changes = [replica_assignment]",
    "Ignore both attributes or neither, or set replica_assignment.",
    Block.IMPOSSIBLE,
)
MOVED = Rule(
    "topic-replicas-moved",
    "Replicas are copied or removed",
    Level.CAUTION,
    Harm.MOVE,
    _TYPES,
    Needs.OBJECT,
    "A move copies whole partitions (AlterPartitionReassignments, KIP-455). Old and new replicas "
    "exist together until the copies are complete, and take disk space and network.",
    "replication_factor = 3   # was 2",
    "Set reassignment_throttle in the provider block to limit the copying.",
    proof="tests/cluster/kafka/test_placement.py::test_one_replica_becomes_three_and_then_two",
)
LEADERS_CHANGED = Rule(
    "topic-leaders-changed",
    "Other brokers are to lead partitions",
    Level.NOTE,
    Harm.NONE,
    _TYPES,
    Needs.OBJECT,
    "The first broker of a partition is its preferred leader; nothing is copied if only the order "
    "changes.",
    "replica_assignment = [[2, 1]]   # was [[1, 2]]",
    proof="tests/cluster/kafka/test_placement.py::test_a_preferred_election_on_request",
)
REPLICAS_NOT_LIVE = Rule(
    "topic-replicas-not-live",
    "Replicas are on brokers that are not live",
    Level.CAUTION,
    Harm.AVAILABILITY,
    _TYPES,
    Needs.OBJECT,
    "A replica on a broker that is down is not in sync. Only a move takes it off that broker.",
    "replication_factor = 2   # one broker of the topic is down",
    "Use replica_assignment to move replicas off a broker that will not come back.",
    proof="tests/cluster/claims/test_replicas.py::test_only_a_move_takes_a_replica_off_a_broker_that_is_down",
)
MIN_IN_SYNC_EARLY = Rule(
    "topic-min-insync-early",
    "min.insync.replicas rises before the replicas exist",
    Level.DANGER,
    Harm.AVAILABILITY,
    _TYPES,
    Needs.OBJECT,
    "A config takes effect at once, a new replica counts only when its copy is complete, and a "
    "leader compares with the replicas in sync (Partition.appendRecordsToLeader).",
    'replication_factor = 3   # was 1\nconfig = { "min.insync.replicas" = 2 }   # was 1',
    "Raise the replication factor first, and min.insync.replicas in a later change.",
    proof="tests/cluster/claims/test_topics.py::"
    "test_a_higher_minimum_refuses_acks_all_until_the_copy_is_complete",
)


def _judge_assignment(change: Change, _: Facts) -> Iterator[Finding]:
    """The assignment of a new topic, or a declared one that changes."""
    rows = (change.after or EMPTY).get("replica_assignment")
    new = change.action is Action.CREATE and rows is not None
    if new or (change.action is Action.UPDATE and paths_below(change, "replica_assignment")):
        for summary, advice in broker_rules.assignment_faults(rows or ()):
            yield ASSIGNMENT_INVALID.find(summary, ("replica_assignment",), fix=advice)


def _judge_places(change: Change, facts: Facts) -> Iterator[Finding]:
    rows = placement.get_rows(change.after)
    if change.action is Action.CREATE:
        brokers = dict(enumerate(rows))
    elif change.action is Action.UPDATE:
        # Only a new replica needs a live broker: one that stays on a broker that is down copies
        # nothing.
        start = placement.find_start(change, facts)
        brokers = {
            number: [node for node in row if node not in start[number]]
            for number, row in placement.plan_moves(change, facts).items()
        }
    else:
        return
    for summary, advice in broker_rules.dead_broker_faults(brokers, facts):
        yield BROKERS_NOT_LIVE.find(summary, ("replica_assignment",), fix=advice)


def _judge_move(change: Change, facts: Facts) -> Iterator[Finding]:
    if change.action is not Action.UPDATE:
        return
    yield from _find_unplanned_move(change, facts)
    rows = placement.plan_moves(change, facts)
    if not rows:
        return
    path = ("replica_assignment",)
    copies, removed = (
        sum(placement.count_copies(change, facts).values()),
        placement.count_removed(change, facts),
    )
    partitions = render_count(len(rows), "partition")
    if copies or removed:
        counts = ((copies, "copied"), (removed, "removed"))
        replicas = ", ".join(f"{render_count(n, 'replica')} {verb}" for n, verb in counts if n)
        yield MOVED.find(
            f"{partitions}: {replicas}; the apply starts the move and does not wait",
            path,
            figures=FrozenMap(replicas=copies),
        )
    else:
        yield LEADERS_CHANGED.find(
            f"{partitions}: the preferred leader changes, and no data is copied", path
        )
    yield from _find_dead_replicas(change, facts)
    yield from _find_early_minimum(change, facts)


def _find_unplanned_move(change: Change, facts: Facts) -> Iterator[Finding]:
    old = (change.before or EMPTY).get("replication_factor")
    new = (change.after or EMPTY).get("replication_factor")
    if not isinstance(new, int) or old == new:
        return
    impossible = (
        *broker_rules.replica_faults(new),
        *broker_rules.broker_count_faults(new, facts),
    )
    if not impossible and any(len(row) != new for row in placement.get_rows(change.after) or ((),)):
        yield MOVE_UNPLANNED.find(
            f"replication_factor would go from {old} to {new}, but replica_assignment is ignored "
            "or the live brokers are unknown, so the new assignment is unknown",
            ("replication_factor",),
        )


def _find_dead_replicas(change: Change, facts: Facts) -> Iterator[Finding]:
    # Without the list of live brokers, every broker would look dead.
    if not facts.nodes:
        return
    dead = placement.list_dead_brokers(placement.get_rows(change.before), facts)
    if dead:
        staying = placement.list_dead_brokers(placement.get_rows(change.after), facts)
        leaving = [str(node) for node in dead if node not in staying]
        stays = f"; replicas stay on {', '.join(map(str, staying))}" if staying else ""
        leaves = f"; all replicas leave {', '.join(leaving)}" if leaving else ""
        yield REPLICAS_NOT_LIVE.find(
            f"broker{'s' if len(dead) > 1 else ''} {', '.join(map(str, dead))} of this topic "
            f"{'are' if len(dead) > 1 else 'is'} not live{stays}{leaves}",
            ("replica_assignment",),
        )


def _find_early_minimum(change: Change, facts: Facts) -> Iterator[Finding]:
    # Configs take effect before the copies are complete, and until then the old number of replicas
    # counts for acks=all.
    old = (change.before or EMPTY).get("replication_factor")
    new = (change.after or EMPTY).get("replication_factor")
    effective = find_effective(change, facts)
    least = parse_integer(effective.after[MIN_IN_SYNC])
    if not (isinstance(old, int) and isinstance(new, int) and least is not None):
        return
    if old < least <= new and effective.before[MIN_IN_SYNC] != effective.after[MIN_IN_SYNC]:
        replicas = "1 replica has" if old == 1 else f"{old} replicas have"
        yield MIN_IN_SYNC_EARLY.find(
            f"{MIN_IN_SYNC} becomes {least} at once, but only {replicas} the data until the move "
            "ends: until then brokers can refuse producers with acks=all",
            ("config", MIN_IN_SYNC),
        )


def find_id_faults(change: Change, facts: Facts) -> broker_rules.Faults:
    """A topic without an id, whose replicas would move or which would be deleted."""
    # By id (KIP-516), never by name: a topic that somebody recreated under the same name is not the
    # one whose change was approved, and whose throttles are ours.
    if change.incarnation is not None:
        return
    if change.action is Action.DELETE:
        yield (
            "the id of the topic is unknown, and kafkaform deletes topics only by id",
            cluster_facts.advise_topic_ids(facts),
        )
    elif change.action is Action.UPDATE and placement.plan_moves(change, facts):
        yield (
            "the id of the topic is unknown, and kafkaform moves the replicas only of topics with "
            "an id",
            cluster_facts.advise_topic_ids(facts),
        )


JUDGES = (
    Judge((ASSIGNMENT_INVALID,), _TYPES, Needs.BLOCK, _judge_assignment),
    Judge((BROKERS_NOT_LIVE,), _TYPES, Needs.FACTS, _judge_places),
    Judge(
        (LEADERS_CHANGED, MIN_IN_SYNC_EARLY, MOVED, MOVE_UNPLANNED, REPLICAS_NOT_LIVE),
        _TYPES,
        Needs.OBJECT,
        _judge_move,
    ),
)
