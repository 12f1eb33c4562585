"""Computes where replicas go when the replication factor of a topic changes, plans their moves, and
limits the copying.

The step of a move (AlterPartitionReassignments, KIP-455) starts it and does not wait for it. A
topic whose block declares neither replication_factor nor replica_assignment is never moved.

The result is deterministic and moves as little as possible. A partition with the wanted number of
replicas stays as it is, wherever they are. Raising the number adds brokers at the end and keeps the
order. Lowering it removes replicas and keeps the preferred leader while its broker is live. Within
these rules, the replicas of a partition are spread evenly over racks, and then over brokers.

A throttle (KIP-73) is a rate on each broker that takes part, and `*` as the throttled replicas of
the topic. It is set before a move and removed after it. A throttle that is not in our audit log
belongs to somebody else: it is neither overwritten nor removed, and the move is not started. Each
throttle is in the log before it is sent, and `report_standing` gets all logged ones first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core import canonical
from kafkaform.core.change import Change, Evidence, Outcome, OutcomeStatus, Repeat, Step
from kafkaform.core.resource import Facts, Fault, FaultClass, Remark
from kafkaform.core.text import render_count
from kafkaform.core.value import EMPTY, FrozenMap, Value

from ...protocol.cluster_facts import KafkaFacts
from ..kind import MOVE_REPLICAS, make_step, paths_below

Replicas = tuple[int, ...]
"""Broker ids of one partition, the preferred leader first."""
Assignment = tuple[Replicas, ...]
"""Replicas of partition 0, 1, …"""
Racks = Mapping[int, str]
"""Live broker -> its rack."""


def live_racks(facts: Facts) -> Racks:
    """The live brokers and their racks, sorted by broker id."""
    named = KafkaFacts.of(facts).racks
    # A broker without a rack counts as a rack of its own, as in Kafka's own placement (KIP-36). No
    # rack's name begins with NUL, so nobody shares it.
    return {int(n): named.get(n) or f"\0{n}" for n in sorted(facts.nodes, key=int)}


def plan_assignment(
    live: Sequence[Sequence[int]], factor: int, partitions: int, racks: Racks
) -> Assignment:
    """The assignment of `partitions` partitions with `factor` replicas each.

    live: the current assignment (after the move that is running). Raises ValueError if there are
    fewer live brokers than replicas to add.
    """
    rows = [list(replicas) for replicas in live]
    rows += [[] for _ in range(partitions - len(rows))]
    work = _Work(
        racks, rows, Counter(b for row in rows for b in row), Counter(row[0] for row in rows if row)
    )
    for row in rows:
        while len(row) > factor:
            work.drop(row)
    for row in rows:
        while len(row) < factor:
            work.add(row)
    work.balance(live, factor)
    return tuple(tuple(row) for row in rows)


def plan_creation(target: Sequence[Sequence[int]], factor: int, racks: Racks) -> Assignment:
    """The assignment with which partitions are created that a move then takes to `target`."""
    # CreatePartitions demands the replication factor that the topic has now (error 39 otherwise),
    # which it takes from the first partition.
    return tuple(_pad_replicas(tuple(replicas), factor, racks) for replicas in target)


def _pad_replicas(replicas: Replicas, factor: int, racks: Racks) -> Replicas:
    candidates = (broker for broker in racks if broker not in replicas)
    return (*replicas, *candidates)[:factor]


def find_moved(
    before: Sequence[Sequence[int]], after: Sequence[Sequence[int]]
) -> Mapping[int, Replicas]:
    """Partition -> its new replicas, for partitions that change or are not in `before`."""
    replicas_before = dict(enumerate(before))
    return {
        n: tuple(r) for n, r in enumerate(after) if tuple(replicas_before.get(n, ())) != tuple(r)
    }


def list_brokers(*assignments: Iterable[Sequence[int]]) -> tuple[int, ...]:
    """All brokers of these assignments, sorted."""
    return tuple(sorted({b for rows in assignments for row in rows for b in row}))


def list_dead_brokers(assignment: Iterable[Sequence[int]], facts: Facts) -> tuple[int, ...]:
    """The brokers of the assignment that are not live."""
    return tuple(b for b in list_brokers(assignment) if str(b) not in facts.nodes)


# ── tickets ─────────────────────────────────────────────────────────────────────────────


# Kafka gives a reassignment no id. The ticket names the target instead, so that any later process
# can tell whether the move reached it (KIP-455 completes asynchronously).
class MoveTicket(Struct, frozen=True):
    """Identifies a move."""

    topic: str
    topic_id: str
    partitions: int
    """How many partitions the target names; the topic can grow meanwhile."""
    digest: str
    """Digest of the target assignment."""

    def __str__(self) -> str:
        return f"{self.topic}/{self.topic_id}/{self.partitions}/{self.digest}"

    def matches(self, assignment: Sequence[Sequence[int]]) -> bool:
        """True if these replicas are the target of the move."""
        head = assignment[: self.partitions]
        return len(head) == self.partitions and _digest_assignment(head) == self.digest


def make_move_ticket(
    topic: str, topic_id: str | None, target: Sequence[Sequence[int]]
) -> MoveTicket:
    """The ticket of the move of the whole topic to this target."""
    return MoveTicket(topic, topic_id or "", len(target), _digest_assignment(target))


class ThrottleTicket(Struct, frozen=True):
    """Identifies a throttle, with everything that is needed to remove what we set and nothing
    else: `*` on the topic, and the rate on each broker."""

    topic: str
    topic_id: str
    rate: int
    """Bytes per second."""
    brokers: tuple[int, ...]

    def __str__(self) -> str:
        listed = ",".join(map(str, self.brokers))
        return f"{self.topic}/{self.topic_id}/throttle/{self.rate}/{listed}"


def parse_ticket(text: str) -> MoveTicket | ThrottleTicket | None:
    """The ticket that `str` rendered; None for any other text."""
    # A topic name cannot contain a slash, so no escapes are needed.
    fields = text.split("/")
    try:
        if len(fields) == 4:
            return MoveTicket(fields[0], fields[1], int(fields[2]), fields[3])
        if len(fields) == 5 and fields[2] == "throttle":
            listed = tuple(int(number) for number in fields[4].split(",") if number)
            return ThrottleTicket(fields[0], fields[1], int(fields[3]), listed)
    except ValueError:
        pass
    return None


def throttle_tickets(texts: Iterable[str]) -> dict[str, ThrottleTicket]:
    """The texts that are tickets of throttles, parsed."""
    parsed = ((text, parse_ticket(text)) for text in texts)
    return {text: ticket for text, ticket in parsed if isinstance(ticket, ThrottleTicket)}


def _digest_assignment(assignment: Sequence[Sequence[int]]) -> str:
    rows = tuple(tuple(row) for row in assignment)
    return canonical.digest(FrozenMap(replicas=rows))[:16]


# ── the choices ─────────────────────────────────────────────────────────────────────────


class _Work(Struct):
    """An assignment that is being changed."""

    racks: Racks
    rows: list[list[int]]
    load: Counter[int]
    """Broker -> replicas of this topic."""
    leads: Counter[int]
    """Broker -> preferred leaders of this topic."""

    def add(self, row: list[int]) -> None:
        """Add a replica in the rack with the fewest replicas of this partition, on the broker with
        the fewest of the topic; the first replica of a new partition where the fewest lead."""
        spread = self._count_racks(row)
        choices = [broker for broker in self.racks if broker not in row]
        if not choices:
            raise ValueError("there are fewer live brokers than replicas")
        leads = self.leads if not row else Counter[int]()
        best = min(choices, key=lambda b: (spread[self.racks[b]], leads[b], self.load[b], b))
        if not row:
            self.leads[best] += 1
        row.append(best)
        self.load[best] += 1

    def drop(self, row: list[int]) -> None:
        """Remove a replica: on a broker that is not live, or in the rack with the most replicas of
        this partition, on the broker with the most of the topic. The first one goes last."""
        spread = self._count_racks(row)
        worst = max(
            row,
            key=lambda b: (
                b not in self.racks,
                b != row[0],
                spread[self._rack(b)],
                self.load[b],
                b,
            ),
        )
        row.remove(worst)
        self.load[worst] -= 1

    def balance(self, live: Sequence[Sequence[int]], factor: int) -> None:
        """Exchange single choices while that balances the brokers and keeps the spread of racks."""
        # This ends, because each exchange lowers the sum of the squares of the loads.
        changed = True
        while changed and self._is_uneven():
            changed = sum(self._exchange(n, live, factor) for n in range(len(self.rows))) > 0

    def _exchange(self, number: int, live: Sequence[Sequence[int]], factor: int) -> bool:
        row = self.rows[number]
        was = list(live[number]) if number < len(live) else []
        if len(was) == factor:
            return False
        raised = len(was) < factor
        choices = [b for b in (self.racks if raised else was) if b in self.racks]
        # The preferred leader stays. If its broker is gone, its successor is free to move.
        first = max(len(was), 1) if raised else int(was[0] in self.racks)
        for index in range(first, len(row)):
            best = self._find_better(row, index, choices)
            if best is None:
                continue
            self.load[row[index]] -= 1
            self.load[best] += 1
            row[index] = best
            if not raised:
                # The remaining replicas keep their order, and so the order of leadership.
                row.sort(key=was.index)
            return True
        return False

    def _find_better(self, row: list[int], index: int, choices: Sequence[int]) -> int | None:
        """A broker that improves the balance if it gets this replica, or None."""
        own_broker = row[index]
        spread = self._count_racks(broker for broker in row if broker != own_broker)
        better = (
            broker
            for broker in choices
            if broker not in row
            and self.load[broker] + 1 < self.load[own_broker]
            and spread[self._rack(broker)] <= spread[self._rack(own_broker)]
        )
        return min(better, key=lambda broker: (self.load[broker], broker), default=None)

    def _is_uneven(self) -> bool:
        loads = [self.load[broker] for broker in self.racks]
        return bool(loads) and max(loads) - min(loads) > 1

    def _count_racks(self, row: Iterable[int]) -> Counter[str]:
        return Counter(self._rack(broker) for broker in row)

    def _rack(self, broker: int) -> str:
        return self.racks.get(broker, f"\0{broker}")


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
    return plan_assignment(rows, factor, max(count, len(rows)), live_racks(facts))


def plan_moves(change: Change, facts: Facts) -> Mapping[int, Replicas]:
    """Partition -> its new replicas; empty unless the change affects the assignment."""
    if not paths_below(change, "replica_assignment"):
        return {}
    return find_moved(find_start(change, facts), get_rows(change.after))


def list_created_rows(change: Change, facts: Facts) -> Value:
    """The replicas of the partitions that the change adds; None lets Kafka choose."""
    if not get_rows(change.after):
        return None
    return tuple(find_start(change, facts)[len(get_rows(change.before)) :])


def find_start(change: Change, facts: Facts) -> Assignment:
    """The assignment when the move starts, with the partitions that the change adds."""
    before, after = get_rows(change.before), get_rows(change.after)
    new = after[len(before) :]
    if before and any(len(row) != len(before[0]) for row in new):
        new = plan_creation(new, len(before[0]), live_racks(facts))
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
        "ticket": str(make_move_ticket(name, change.incarnation, after)),
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
    change: Change, rows: Mapping[int, Replicas], facts: Facts
) -> ThrottleTicket | None:
    """The throttle of a move that copies data."""
    rate, start = KafkaFacts.of(facts).reassignment_throttle, find_start(change, facts)
    if not isinstance(rate, int):
        return None
    old = {n: start[n] for n in rows}
    # A move that only removes or reorders replicas copies nothing.
    if all(set(row) <= set(old[n]) for n, row in rows.items()):
        return None
    involved = list_brokers(rows.values(), old.values())
    return ThrottleTicket(change.identity.key, change.incarnation or "", rate, involved)


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


RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
REPLICAS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
# Limits only replicas that are not in sync, so the topic's normal replication is not slowed down.
ALL = "*"


def find_remarks(
    replicas: Sequence[Sequence[int]], config: Mapping[str, object], *, moving: bool
) -> tuple[Remark, ...]:
    """What a plan says about a topic: partitions with different numbers of replicas, and throttles
    of replicas that nothing moves. config: its overrides; moving: a move of its replicas runs."""
    if moving:
        return ()
    counts = Counter(len(row) for row in replicas)
    uneven = len(counts) > 1 and Remark(
        "its partitions have different numbers of replicas: "
        + ", ".join(
            f"{render_count(n, 'partition')} with {size}" for size, n in sorted(counts.items())
        )
        + "; replication_factor is that of partition 0"
    )
    throttles = {key: config[key] for key in REPLICAS if config.get(key)}
    settings = " and ".join(f"{key} = {value}" for key, value in throttles.items())
    throttled = Remark(
        f"no replica moves, but {settings} {'is' if len(throttles) == 1 else 'are'} set: on "
        "brokers with a replication throttle, replicas that are not in sync catch up slowly",
        ("config", next(iter(throttles), "")),
    )
    return (*((uneven,) if uneven else ()), *((throttled,) if throttles else ()))


class ThrottlePlace(Struct, frozen=True):
    """One resource with a part of a throttle."""

    resource: str
    """`broker` or `topic`."""
    name: str
    keys: tuple[str, ...]
    value: str
    """The value that we set for each key."""

    @property
    def node(self) -> str | None:
        """The broker that must get the request, None for any."""
        return self.name if self.resource == "broker" else None

    def __str__(self) -> str:
        return f"{self.resource} {self.name}"


class ThrottleAccess(Struct, frozen=True):
    """How throttles are read and written, and what is known to be ours."""

    live: Callable[[ThrottlePlace], Mapping[str, str] | Fault]
    """Reads the throttle keys that are set at a place."""
    alter: Callable[[ThrottlePlace, Mapping[str, str], Sequence[str]], Fault | None]
    """Sets some keys and removes others."""
    topic_id: Callable[[str], str | Fault | None]
    """Reads the id of a topic, None if it does not exist."""
    lags: Callable[[], bool]
    """Waits a little; False once brokers had enough time to show what the controller did."""
    own_values: dict[str, set[str]]
    """`broker 1` or `topic orders` -> the values that we set there."""
    foreign: set[str]
    """Tickets that set nothing because somebody else's throttle was there."""


def list_places(ticket: ThrottleTicket) -> Iterator[ThrottlePlace]:
    """Everything that a throttle sets, in order."""
    # Brokers first: without a rate the topic's part limits nothing, so a failure half way leaves
    # replication as it was.
    for broker in ticket.brokers:
        yield ThrottlePlace("broker", str(broker), RATES, str(ticket.rate))
    yield ThrottlePlace("topic", ticket.topic, REPLICAS, ALL)


def claim_throttles(access: ThrottleAccess, tickets: Collection[ThrottleTicket]) -> None:
    """Count these throttles as ours, because the audit log contains them."""
    for setting in (setting for ticket in tickets for setting in list_places(ticket)):
        access.own_values.setdefault(str(setting), set()).add(setting.value)


def find_obstacle(access: ThrottleAccess, ticket: ThrottleTicket) -> Fault | None:
    """Why this throttle cannot be set: another one is there, or a place cannot be read."""
    for setting in list_places(ticket):
        live = access.live(setting)
        if isinstance(live, Fault):
            return live
        if set(live.values()) - access.own_values.get(str(setting), set()):
            values = ", ".join(f"{key} = {value}" for key, value in sorted(live.items()))
            return Fault(
                "THROTTLED_BY_OTHERS",
                f"{setting} has a replication throttle that is not in this audit log: {values}",
                FaultClass.DEFINITE,
                advice="ask its owner to remove it, or remove reassignment_throttle from the "
                "provider block",
            )
    return None


def set_throttle(access: ThrottleAccess, ticket: ThrottleTicket) -> Fault | None:
    """Set the throttle. After a fault, which is the first one, the move must not be started."""
    fault = find_obstacle(access, ticket)
    if fault is not None:
        access.foreign.add(str(ticket))
        return _not_started_fault(fault)
    claim_throttles(access, (ticket,))
    for setting in list_places(ticket):
        fault = access.alter(setting, dict.fromkeys(setting.keys, setting.value), ())
        if fault is not None:
            return _not_started_fault(fault)
    return None


def report_standing(
    access: ThrottleAccess, tickets: Mapping[str, ThrottleTicket], moving: Collection[str] | Fault
) -> Iterator[Outcome]:
    """For each throttle, whether its move has ended. moving: topics that move. Changes nothing."""
    claim_throttles(access, tuple(tickets.values()))
    for text, ticket in tickets.items():
        if isinstance(moving, Fault):
            yield Outcome(text, OutcomeStatus.UNKNOWN, moving, text)
        elif ticket.topic in moving:
            yield Outcome(text, OutcomeStatus.STARTED, ticket=text)
        else:
            yield Outcome(text, OutcomeStatus.APPLIED)


def remove_throttles(
    access: ThrottleAccess,
    tickets: Mapping[str, ThrottleTicket],
    staying_tickets: Collection[ThrottleTicket],
    moving: Collection[str] | Fault,
) -> Iterator[Outcome]:
    """Remove the throttles whose topics no longer move. others: further throttles of ours, which
    stay."""
    stands = {outcome.step: outcome for outcome in report_standing(access, tickets, moving)}
    claim_throttles(access, staying_tickets)
    ended = {text for text, outcome in stands.items() if outcome.status is OutcomeStatus.APPLIED}
    # Throttles share the rate of a broker, so it stays as long as one of them needs it.
    staying = [*staying_tickets, *(ticket for text, ticket in tickets.items() if text not in ended)]
    needed = {str(setting) for ticket in staying for setting in list_places(ticket)}
    for text, ticket in tickets.items():
        if text not in ended or text in access.foreign:
            yield stands[text]
            continue
        fault = _remove_throttle(access, ticket, needed)
        status = OutcomeStatus.UNKNOWN if fault else OutcomeStatus.APPLIED
        yield Outcome(text, status, fault, text if fault else None)


def _remove_throttle(
    access: ThrottleAccess, ticket: ThrottleTicket, needed: set[str]
) -> Fault | None:
    for setting in list_places(ticket):
        if str(setting) in needed:
            continue
        if setting.resource == "topic":
            topic_id = access.topic_id(ticket.topic)
            if isinstance(topic_id, Fault):
                return topic_id
            # A topic that was recreated has another id, and what is set on it is not ours.
            if topic_id != ticket.topic_id:
                continue
        # Brokers apply what the controller commits a moment later, so an empty answer proves
        # nothing at first.
        while not (live := access.live(setting)) and access.lags():
            continue
        if isinstance(live, Fault):
            return live
        # Another value than ours was set by somebody else meanwhile.
        own_keys = tuple(key for key, value in live.items() if value == setting.value)
        fault = access.alter(setting, {}, own_keys) if own_keys else None
        if fault is not None:
            return fault
    return None


def _not_started_fault(fault: Fault) -> Fault:
    # Not AMBIGUOUS, even if the answer to the throttle is lost: the move itself was not sent.
    kind = FaultClass.PERMISSION if fault.kind is FaultClass.PERMISSION else FaultClass.DEFINITE
    text = f"the move was not started, because its throttle is not set: {fault.message}"
    return replace(fault, message=text, kind=kind)
