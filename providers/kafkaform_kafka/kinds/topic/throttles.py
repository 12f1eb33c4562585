"""Replication throttles for the time of a move: set before it, removed after it, and only ours.

A throttle is a rate on each broker that takes part and `*` on the topic, which limits replicas that
are not in sync and no others. What is set already and not by us is somebody else's: it is neither
overwritten nor removed, and the move is not started. What is ours the audit log says: each throttle
is on record before it is sent, and `report_standing` is asked about all of them first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core.change import Outcome, OutcomeStatus
from kafkaform.core.resource import Fault, FaultClass

from .placement import ThrottleTicket

RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
REPLICAS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
ALL = "*"


class ThrottlePlace(Struct, frozen=True):
    """One resource with a part of a throttle. value: what we set."""

    resource: str
    name: str
    keys: tuple[str, ...]
    value: str

    @property
    def node(self) -> str | None:
        """The broker that must be asked for it, None for any."""
        return self.name if self.resource == "broker" else None

    def __str__(self) -> str:
        return f"{self.resource} {self.name}"


class ThrottleAccess(Struct, frozen=True):
    """What reaches the cluster. live: the throttle keys that are set at a place; alter: sets
    and removes some; topic_id: None if the topic is gone; lags: waits a little, False when a
    broker has had time enough to show what the controller took. ours: `broker 1` or `topic
    orders` -> values that we set; foreign: tickets that found somebody else's and set nothing."""

    live: Callable[[ThrottlePlace], Mapping[str, str] | Fault]
    alter: Callable[[ThrottlePlace, Mapping[str, str], Sequence[str]], Fault | None]
    topic_id: Callable[[str], str | Fault | None]
    lags: Callable[[], bool]
    ours: dict[str, set[str]]
    foreign: set[str]


def list_places(ticket: ThrottleTicket) -> Iterator[ThrottlePlace]:
    """Everything that a throttle sets, brokers first: without rates the topic's part limits
    nothing."""
    for broker in ticket.brokers:
        yield ThrottlePlace("broker", str(broker), RATES, str(ticket.rate))
    yield ThrottlePlace("topic", ticket.topic, REPLICAS, ALL)


def claim_throttles(hands: ThrottleAccess, tickets: Collection[ThrottleTicket]) -> None:
    """The log says that these are ours."""
    for place in (place for ticket in tickets for place in list_places(ticket)):
        hands.ours.setdefault(str(place), set()).add(place.value)


def find_obstacle(hands: ThrottleAccess, ticket: ThrottleTicket) -> Fault | None:
    """Why this throttle cannot be set: somebody else's is there, or that cannot be read."""
    for place in list_places(ticket):
        live = hands.live(place)
        if isinstance(live, Fault):
            return live
        if set(live.values()) - hands.ours.get(str(place), set()):
            return _foreign_fault(place, live)
    return None


def put(hands: ThrottleAccess, ticket: ThrottleTicket) -> Fault | None:
    """Set it; the first fault if it could not be done whole: the move must not be started."""
    fault = find_obstacle(hands, ticket)
    if fault is not None:
        hands.foreign.add(str(ticket))
        return _not_started_fault(fault)
    claim_throttles(hands, (ticket,))
    for place in list_places(ticket):
        fault = hands.alter(place, dict.fromkeys(place.keys, place.value), ())
        if fault is not None:
            return _not_started_fault(fault)
    return None


def report_standing(
    hands: ThrottleAccess, tickets: Mapping[str, ThrottleTicket], moving: Collection[str] | Fault
) -> Iterator[Outcome]:
    """Whether the moves that these were set for have ended. moving: topics. Changes nothing."""
    claim_throttles(hands, tuple(tickets.values()))
    for text, ticket in tickets.items():
        if isinstance(moving, Fault):
            yield Outcome(text, OutcomeStatus.UNKNOWN, moving, text)
        elif ticket.topic in moving:
            yield Outcome(text, OutcomeStatus.STARTED, ticket=text)
        else:
            yield Outcome(text, OutcomeStatus.APPLIED)


def remove(
    hands: ThrottleAccess,
    tickets: Mapping[str, ThrottleTicket],
    others: Collection[ThrottleTicket],
    moving: Collection[str] | Fault,
) -> Iterator[Outcome]:
    """Remove those of the throttles whose topic moves no more. A broker's rate stays as long as
    another one needs it. others: further ones that are ours and stay."""
    stands = {outcome.step: outcome for outcome in report_standing(hands, tickets, moving)}
    claim_throttles(hands, others)
    ended = {text for text, outcome in stands.items() if outcome.status is OutcomeStatus.APPLIED}
    staying = [*others, *(ticket for text, ticket in tickets.items() if text not in ended)]
    needed = {str(place) for ticket in staying for place in list_places(ticket)}
    for text, ticket in tickets.items():
        if text not in ended or text in hands.foreign:
            yield stands[text]
            continue
        fault = _remove_throttle(hands, ticket, needed)
        status = OutcomeStatus.UNKNOWN if fault else OutcomeStatus.APPLIED
        yield Outcome(text, status, fault, text if fault else None)


def _remove_throttle(
    hands: ThrottleAccess, ticket: ThrottleTicket, needed: set[str]
) -> Fault | None:
    """Remove each value that is the one that we set. A broker shows late what the controller
    took, so nothing to be seen is no proof at once that there is nothing."""
    for place in list_places(ticket):
        if str(place) in needed:
            continue
        if place.resource == "topic":
            there = hands.topic_id(ticket.topic)
            if isinstance(there, Fault):
                return there
            if there != ticket.topic_id:
                continue
        while not (live := hands.live(place)) and hands.lags():
            continue
        if isinstance(live, Fault):
            return live
        mine = tuple(key for key, value in live.items() if value == place.value)
        fault = hands.alter(place, {}, mine) if mine else None
        if fault is not None:
            return fault
    return None


def _not_started_fault(fault: Fault) -> Fault:
    """The move itself was not sent, whatever became of the throttle."""
    kind = FaultClass.PERMISSION if fault.kind is FaultClass.PERMISSION else FaultClass.DEFINITE
    text = f"the move was not started, because its throttle is not set: {fault.message}"
    return replace(fault, message=text, kind=kind)


def _foreign_fault(place: ThrottlePlace, live: Mapping[str, str]) -> Fault:
    values = ", ".join(f"{key} = {value}" for key, value in sorted(live.items()))
    return Fault(
        "THROTTLED_BY_OTHERS",
        f"{place} has a replication throttle that is not in this audit log: {values}",
        FaultClass.DEFINITE,
        advice="have whoever set it remove it, or leave reassignment_throttle out of the "
        "provider block",
    )
