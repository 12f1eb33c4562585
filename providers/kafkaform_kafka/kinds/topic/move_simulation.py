"""Moves in the simulated cluster: a reassignment goes on by the clock until all its replicas are
copied, another takes its place, and a throttle is a config like any other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafkaform.core.change import Outcome, OutcomeStatus, Step
from kafkaform.core.resource import Fault, FaultClass

from ...protocol import faults
from ...simulation.controller import (
    Answer,
    Call,
    Handler,
    Item,
    Refusal,
    Result,
    Verdict,
    batch,
    require,
)
from ...simulation.rights import CLUSTER
from ...simulation.simulated_kind import Check, Scene
from . import resource_type as topics
from .placement import MoveTicket, parse_ticket
from .simulation import Topic, Topics, key

API = "AlterPartitionReassignments"
LISTING = "ListPartitionReassignments"


def reassign(call: Call, items: Sequence[Item]) -> Result:
    """AlterPartitionReassignments: null replicas cancel; what needs no copy is done at once."""
    return batch(call, items, lambda item: key(item["name"]), lambda item: _reassign(call, item))


def _reassign(call: Call, item: Item) -> Verdict:
    require(call.user.may("Alter", CLUSTER), 31)
    topic: Topic | None = call.world.of(topics.KIND).get(item["name"])
    if topic is None:
        raise Refusal(3)
    here, there = list(topic.assignment), list(topic.target or topic.assignment)
    for text, replicas in item["replicas"].items():
        number = int(text)
        if number >= len(here):
            raise Refusal(3)
        if replicas is None:
            require(here[number] != there[number], 85)
            there[number] = here[number]
            continue
        _check(call, replicas, here[number])
        there[number] = tuple(replicas)
        if set(replicas) <= set(here[number]):
            here[number] = tuple(replicas)
    target = tuple(there) if there != here else None
    made = topic.placed(tuple(here), target)
    return Answer(made=made), made, len(item["replicas"])


def _check(call: Call, replicas: Sequence[int], had: Sequence[int]) -> None:
    known = set(replicas) <= {*call.brokers, *had}
    if not replicas or len(set(replicas)) != len(replicas) or not known:
        raise Refusal(39, f"the replicas {list(replicas)} are not possible.")


def _checked(scene: Scene, step: Step) -> Fault | None:
    """The controller has no dry run, so rights, topic and live brokers are looked at."""
    name = step.payload["name"]
    if not scene.user.may("Alter", CLUSTER):
        return faults.fault_of(API, 31, name)
    topic = scene.objects(topics.KIND).get(name)
    if topic is None:
        return faults.fault_of("Metadata", 3, name)
    ticket = parse_ticket(step.payload["ticket"])
    if not isinstance(ticket, MoveTicket) or ticket.topic_id != topic.id:
        return _definite("RECREATED", f"{name} was recreated outside")
    rows = topic.assignment
    for number, replicas in step.payload["replicas"].items():
        had = rows[int(number)] if int(number) < len(rows) else ()
        if not set(replicas) <= {*scene.live, *had}:
            return _definite("BROKER_NOT_LIVE", f"a broker of the move of {name} is not live")
    return None


def _definite(code: str, message: str) -> Fault:
    return Fault(code, message, FaultClass.DEFINITE, where=API, advice="plan again")


def moving(found: Topics) -> frozenset[str]:
    """The topics of which a move runs."""
    return frozenset(name for name, topic in found.items() if topic.target is not None)


def standing(text: str, found: Topics) -> Outcome:
    """How the move of a ticket stands."""
    ticket = parse_ticket(text)
    topic = found.get(ticket.topic) if isinstance(ticket, MoveTicket) else None
    if not isinstance(ticket, MoveTicket):
        return _ended(text, "no long-running work has this ticket")
    if topic is None or topic.id != ticket.topic_id:
        return _ended(text, "the topic is gone")
    if not ticket.names(topic.target or topic.assignment):
        other = "another move took its place" if topic.target else "it was stopped"
        return _ended(text, other)
    if topic.target is not None:
        return Outcome(text, OutcomeStatus.STARTED, ticket=text)
    return Outcome(text, OutcomeStatus.APPLIED)


def _ended(text: str, why: str) -> Outcome:
    return Outcome(text, OutcomeStatus.FAILED, _definite("MOVE_ENDED", why))


HANDLERS: Mapping[str, Handler] = {API: reassign}
CHECKS: Mapping[str, Check] = {API: _checked}
