"""Sets replication throttles before a move, removes them after it, and touches only our own.

A throttle (KIP-73) is a rate on each broker that takes part, and `*` as the throttled replicas of
the topic. A throttle that is not in our audit log belongs to somebody else: it is neither
overwritten nor removed, and the move is not started. Each throttle is in the log before it is sent,
and `report_standing` gets all logged ones first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core.change import Outcome, OutcomeStatus
from kafkaform.core.resource import Fault, FaultClass, Remark
from kafkaform.core.text.quantity import render_count

from .placement import ThrottleTicket

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
