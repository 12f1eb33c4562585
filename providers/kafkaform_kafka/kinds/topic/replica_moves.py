"""Moves of replicas (KIP-455): reads those that run, with their targets and their progress; starts
moves, and removes their throttles.

One request lists all moves. It needs Describe on Cluster. Without that right nobody can tell a
topic that is moving from one that has moved, so the reading says that this is unknown.

A move is started and then runs by itself. Its ticket contains its target, so that any later process
can tell whether it got there.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core.change import Outcome, OutcomeStatus, Step
from kafkaform.core.resource import Fault, FaultClass
from kafkaform.core.text import render_amount
from kafkaform.core.value import EMPTY, FrozenMap

from ...protocol.apis import ALTER_PARTITION_REASSIGNMENTS, MAX_PARTITIONS_MOVED
from ...protocol.cluster_facts import KafkaFacts
from ...protocol.faults import fault_of, lost_answer_fault
from ...wire.answers import ItemAnswers
from ...wire.cluster import describe_cluster, read_log_sizes
from ...wire.configs import alter_configs, describe_configs
from ...wire.topics import (
    ANSWER_MARGIN,
    Move,
    Partition,
    PartitionAnswers,
    TopicRow,
    alter_reassignments,
    list_reassignments,
    list_topics,
)
from ..context import LAG, ClusterContext, Order, Reply, attempt, live_nodes
from . import placement
from .placement import (
    MoveTicket,
    ThrottleAccess,
    ThrottlePlace,
    ThrottleTicket,
    parse_ticket,
    throttle_tickets,
)

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


API = ALTER_PARTITION_REASSIGNMENTS.name
_PAUSE = 0.25


# ── starting ────────────────────────────────────────────────────────────────────────────


def send_moves(context: ClusterContext, order: Order) -> Sequence[Reply]:
    """AlterPartitionReassignments, after the throttle if there is one; each step gets a ticket."""
    # The broker has no dry run for it, so fresh reads replace one.
    if order.dry:
        return _check_steps(context, order.steps)
    # The throttle comes first: copies that start without one take all of the network that their
    # brokers have (KIP-73).
    refusals = {step.id: _set_throttle(context, step) for step in order.steps}
    ready = [step for step in order.steps if refusals[step.id] is None]
    answers = _send_targets(context, ready)
    replies = []
    for step in order.steps:
        fault = refusals[step.id] or _make_fault(step, answers)
        replies.append(Reply(step, fault, ticket=None if fault else step.payload["ticket"]))
    return replies


def _set_throttle(context: ClusterContext, step: Step) -> Fault | None:
    """The fault if the throttle could not be set: the move is then not started."""
    ticket = parse_ticket(step.payload.get("throttle") or "")
    if not isinstance(ticket, ThrottleTicket):
        return None
    return placement.set_throttle(make_throttle_access(context), ticket)


PartFaults = Mapping[Partition, Fault | None]


def _send_targets(context: ClusterContext, steps: Sequence[Step]) -> PartFaults:
    """The fault of each partition."""
    moves = list_moves(context) if steps else {}
    todo = [
        (partition, None if _is_back(moves, partition, replicas) else replicas)
        for step in steps
        for number, replicas in step.payload["replicas"].items()
        for partition in ((step.payload["name"], int(number)),)
    ]
    faults: dict[Partition, Fault | None] = {}
    for start in range(0, len(todo), MAX_PARTITIONS_MOVED):
        cut = todo[start : start + MAX_PARTITIONS_MOVED]
        targets: dict[str, dict[int, Sequence[int] | None]] = {}
        for (name, number), replicas in cut:
            targets.setdefault(name, {})[number] = replicas
        answers = _alter_targets(context, targets)
        # Without an answer the state of the cluster is unclear, so the rest is not sent.
        if isinstance(answers, Fault):
            faults.update({partition: answers for partition, _ in todo[start:]})
            break
        faults.update({partition: make_part_fault(API, partition, answers) for partition, _ in cut})
    return faults


def _is_back(moves: Moves | Fault, partition: Partition, replicas: Sequence[int]) -> bool:
    """True if this asks a partition that moves to go back to its old replicas."""
    # Then null replicas are sent, which cancel the move at once (KIP-455). With the old replicas as
    # the target, Kafka 4.3 would first finish the copies that it is about to drop.
    if isinstance(moves, Fault):
        return False
    move = moves.get(partition[0], {}).get(partition[1])
    return move is not None and move.origin == tuple(replicas)


def _alter_targets(
    context: ClusterContext, targets: Mapping[str, Mapping[int, Sequence[int] | None]]
) -> PartitionAnswers | Fault:
    answers = attempt(API, lambda: alter_reassignments(context.wire, targets, context.timeout))
    if isinstance(answers, PartitionAnswers) and answers.code:
        return fault_of(API, answers.code, ", ".join(targets), answers.message)
    return answers


def make_part_fault(
    api: str, partition: Partition, answers: PartitionAnswers, good: int = 0
) -> Fault | None:
    """The fault of one partition. good: a further code that counts as success."""
    answer = answers.items.get(partition)
    if answer is None:
        return lost_answer_fault(api, f"{partition[0]} is missing in the broker's answer")
    if answer.code in (0, good):
        return None
    return fault_of(api, answer.code, partition[0], answer.message)


def _make_fault(step: Step, answers: PartFaults) -> Fault | None:
    name = step.payload["name"]
    partition_faults = [answers.get((name, int(number))) for number in step.payload["replicas"]]
    return combine_faults(partition_faults, "the others move")


def combine_faults(partition_faults: Sequence[Fault | None], consequence: str) -> Fault | None:
    """The fault of a step from those of its partitions. others: what became of the others."""
    wrong = [fault for fault in partition_faults if fault is not None]
    # An ambiguous fault decides, because it makes the engine read the topic again.
    unclear = (fault for fault in wrong if fault.kind is FaultClass.AMBIGUOUS)
    fault = next(unclear, wrong[0] if wrong else None)
    if fault is None or len(wrong) == len(partition_faults):
        return fault
    summary = f"{len(wrong)} of {len(partition_faults)} partitions were refused, {consequence}"
    return replace(fault, message=f"{summary}: {fault.message}")


# ── instead of a dry run ────────────────────────────────────────────────────────────────


def _check_steps(context: ClusterContext, steps: Sequence[Step]) -> Sequence[Reply]:
    """Check the right, the topic, the live brokers, and throttles of others."""
    rights = KafkaFacts.of(context.facts).rights
    cluster = attempt("DescribeCluster", lambda: describe_cluster(context.wire, context.timeout))
    names = [step.payload["name"] for step in steps]
    rows = attempt("Metadata", lambda: list_topics(context.wire, names, context.timeout))
    if isinstance(cluster, Fault) or isinstance(rows, Fault):
        fault = cluster if isinstance(cluster, Fault) else rows
        return [Reply(step, fault if isinstance(fault, Fault) else None) for step in steps]
    if rights and "Alter" not in rights:
        return [Reply(step, fault_of(API, 31, step.payload["name"])) for step in steps]
    by_name = {row.name: row for row in rows}
    live = {int(broker) for broker in cluster.brokers}
    return [
        Reply(step, _find_hurdle(context, step, by_name.get(step.payload["name"]), live))
        for step in steps
    ]


def _find_hurdle(
    context: ClusterContext, step: Step, row: TopicRow | None, live: set[int]
) -> Fault | None:
    ticket = parse_ticket(step.payload["ticket"])
    if row is None or row.code:
        return fault_of("Metadata", row.code if row else -1, step.payload["name"])
    if not isinstance(ticket, MoveTicket) or row.topic_id != ticket.topic_id:
        text = f"{row.name} was recreated outside kafkaform"
        return _definite_fault("RECREATED", text, "plan again")
    # Kafka accepts every registered broker as a target, even one that is down: the move would wait.
    missing = set()
    for number, replicas in step.payload["replicas"].items():
        had = row.replicas[int(number)] if int(number) < len(row.replicas) else ()
        missing |= {broker for broker in replicas if broker not in live and broker not in had}
    if missing:
        listed = ", ".join(map(str, sorted(missing)))
        return _definite_fault(
            "BROKER_NOT_LIVE",
            f"the move would take {row.name} to brokers that are no longer live: {listed}",
            "plan again",
        )
    step_ticket = parse_ticket(step.payload.get("throttle") or "")
    if not isinstance(step_ticket, ThrottleTicket):
        return None
    return placement.find_obstacle(make_throttle_access(context), step_ticket)


def _definite_fault(code: str, message: str, advice: str) -> Fault:
    return Fault(code, message, FaultClass.DEFINITE, where=API, advice=advice)


# ── following ───────────────────────────────────────────────────────────────────────────


def follow_moves(
    context: ClusterContext, tickets: Sequence[str], obligations: Sequence[str]
) -> Sequence[Outcome]:
    """The outcome of each of these moves, and of the moves that these throttles were set for.

    obligations: tickets of throttles, whose outcomes come last.
    """
    parsed = {text: parse_ticket(text) for text in tickets}
    travels = {text: t for text, t in parsed.items() if isinstance(t, MoveTicket)}
    access, limits, moves = (
        make_throttle_access(context),
        throttle_tickets(obligations),
        list_moves(context),
    )
    stand = {o.step: o for o in _report_standing(context, travels, moves)}
    standing = {o.step: o for o in placement.report_standing(access, limits, moves)}
    return [
        *(stand.get(text) or _unknown_ticket_outcome(text) for text in tickets),
        *(standing.get(text) or _unknown_ticket_outcome(text) for text in obligations),
    ]


def undo_throttles(
    context: ClusterContext, tickets: Sequence[str], staying_tickets: Sequence[str]
) -> Sequence[Outcome]:
    """Remove these throttles, except those of topics that still move. others: throttles to keep."""
    limits, staying = throttle_tickets(tickets), throttle_tickets(staying_tickets)
    outcomes = {text: _unknown_ticket_outcome(text) for text in tickets if text not in limits}
    # A listed move can end meanwhile; its throttle then stays until the next run.
    access, moves = make_throttle_access(context), list_moves(context)
    outcomes.update(
        {o.step: o for o in placement.remove_throttles(access, limits, staying.values(), moves)}
    )
    return [outcomes[text] for text in tickets]


def _report_standing(
    context: ClusterContext, tickets: Mapping[str, MoveTicket], moves: Moves | Fault
) -> Iterator[Outcome]:
    if isinstance(moves, Fault):
        for text in tickets:
            yield Outcome(text, OutcomeStatus.UNKNOWN, moves, text)
        return
    ticket_moves = {t.topic: moves[t.topic] for t in tickets.values() if t.topic in moves}
    far = measure_progress(context, ticket_moves)
    for text, ticket in tickets.items():
        outcome = _await_standing(context, text, ticket, moves)
        started = outcome.status is OutcomeStatus.STARTED
        yield replace(outcome, note=far.get(ticket.topic, "")) if started else outcome


def _await_standing(
    context: ClusterContext, text: str, ticket: MoveTicket, moves: Moves
) -> Outcome:
    """Ask all brokers how this move stands, until they agree or LAG is over."""
    # Brokers apply the metadata log late, and Metadata shows added replicas at once, so a broker
    # that lags behind a cancelled move shows it at its target. An end therefore counts only if all
    # brokers show it, and only after LAG unless all replicas are in sync.
    deadline = time.monotonic() + LAG
    while True:
        running = moves.get(ticket.topic, {})
        views = [
            _look_at_broker(context, text, ticket, running, node) for node in live_nodes(context)
        ]
        settled = [view for view in views if view[0].status is not OutcomeStatus.UNKNOWN] or views
        started = next((o for o, _ in settled if o.status is OutcomeStatus.STARTED), None)
        if started is not None:
            return started
        agreed = len({outcome.status for outcome, _ in settled}) == 1
        if agreed and all(sure for _, sure in settled):
            return settled[0][0]
        if time.monotonic() >= deadline:
            return settled[0][0] if agreed else _unclear_outcome(text)
        time.sleep(_PAUSE)
        moves_again = list_moves(context)
        if not isinstance(moves_again, Fault):
            moves = moves_again


def _unclear_outcome(text: str) -> Outcome:
    reason = "the brokers do not agree yet where the replicas are"
    fault = Fault("BROKERS_DIFFER", reason, FaultClass.AMBIGUOUS, advice="ask again later")
    return Outcome(text, OutcomeStatus.UNKNOWN, fault, text)


def _look_at_broker(
    context: ClusterContext, text: str, ticket: MoveTicket, running: Mapping[int, Move], node: str
) -> tuple[Outcome, bool]:
    """The outcome as one broker shows it, and whether its replicas prove it."""
    rows = attempt(
        "Metadata",
        partial(list_topics, context.wire, [ticket.topic], context.timeout, node=node),
        node,
    )
    if isinstance(rows, Fault):
        return Outcome(text, OutcomeStatus.UNKNOWN, rows, text), False
    [row] = rows
    if row.code not in (0, 3):
        fault = fault_of("Metadata", row.code, ticket.topic)
        return Outcome(text, OutcomeStatus.UNKNOWN, fault, text), False
    if row.code == 3 or row.topic_id != ticket.topic_id:
        return _ended_outcome(text, "the topic was deleted"), False
    if not ticket.matches(compute_destination(row, running)):
        reason = "another move replaced it" if running else "it was cancelled, or undone later"
        return _ended_outcome(text, reason), False
    if any(number < ticket.partitions for number in running):
        return Outcome(text, OutcomeStatus.STARTED, ticket=text), True
    pairs = zip(row.replicas, row.in_sync, strict=True)
    return Outcome(text, OutcomeStatus.APPLIED), all(set(r) <= set(i) for r, i in pairs)


def _ended_outcome(text: str, reason: str) -> Outcome:
    advice = "plan again to see where the replicas are"
    return Outcome(text, OutcomeStatus.FAILED, _definite_fault("MOVE_ENDED", reason, advice))


def _unknown_ticket_outcome(ticket: str) -> Outcome:
    fault = _definite_fault(
        "UNKNOWN_TICKET",
        "no long-running work has this ticket",
        "plan again to see the cluster as it is now",
    )
    return Outcome(ticket, OutcomeStatus.FAILED, fault)


_BUILT_IN = 5
"""ConfigSource DEFAULT_CONFIG."""
_API = "IncrementalAlterConfigs"
_TOPIC_ID_PAUSE = 0.1


def make_throttle_access(context: ClusterContext) -> ThrottleAccess:
    """Access to the throttles of this cluster."""
    # One deadline for all places: brokers catch up at the same time.
    return ThrottleAccess(
        partial(read_throttle, context),
        partial(alter_throttle, context),
        partial(_read_topic_id, context),
        partial(_wait_for_lag, time.monotonic() + LAG),
        context.throttles,
        context.foreign,
    )


def _wait_for_lag(deadline: float) -> bool:
    time.sleep(_TOPIC_ID_PAUSE)
    return time.monotonic() < deadline


def _read_topic_id(context: ClusterContext, topic: str) -> str | Fault | None:
    rows = attempt("Metadata", lambda: list_topics(context.wire, [topic], context.timeout))
    if isinstance(rows, Fault):
        return rows
    [row] = rows
    if row.code in (0, 3):
        return row.topic_id if row.code == 0 else None
    return fault_of("Metadata", row.code, topic)


def read_throttle(context: ClusterContext, setting: ThrottlePlace) -> Mapping[str, str] | Fault:
    """The throttle keys that are set at this place, on any level, and their values."""
    api = "DescribeConfigs"
    answers = attempt(
        api,
        lambda: describe_configs(
            context.wire,
            setting.resource,
            [setting.name],
            context.timeout,
            keys=list(setting.keys),
            node=setting.node,
        ),
        setting.node,
    )
    if isinstance(answers, Fault):
        return answers
    answer = answers.get(setting.name)
    if answer is None:
        return lost_answer_fault(api, f"{setting} is missing in the answer", setting.node or "")
    if answer.code:
        return fault_of(api, answer.code, setting.name, answer.message, setting.node or "")
    return {
        entry.name: entry.value
        for entry in answer.configs or ()
        if entry.value and entry.source != _BUILT_IN
    }


def alter_throttle(
    context: ClusterContext, setting: ThrottlePlace, put: Mapping[str, str], gone: Sequence[str]
) -> Fault | None:
    """Set some keys at this place and remove others."""
    payload = {"resource": setting.resource, "name": setting.name, "set": put, "delete": gone}
    answers: ItemAnswers | Fault = attempt(
        _API,
        lambda: alter_configs(
            context.wire,
            [payload],
            context.timeout + ANSWER_MARGIN,
            validate_only=False,
            node=setting.node,
        ),
        setting.node,
    )
    if isinstance(answers, Fault):
        return answers
    answer = answers.items.get((setting.resource, setting.name))
    if answer is None:
        return lost_answer_fault(_API, f"{setting} is missing in the answer", setting.node or "")
    return fault_of(_API, answer.code, setting.name, answer.message) if answer.code else None
