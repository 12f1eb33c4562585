"""Moves in the simulated cluster: a reassignment runs until its time is over or another one
replaces it. A throttle is a config like any other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafkaform.core.change import Outcome, OutcomeStatus, Step
from kafkaform.core.resource import Fault, FaultClass

from ...protocol import faults
from ...simulation.controller import (
    AdminAnswer,
    AdminCall,
    Handler,
    Item,
    ItemVerdict,
    ReadScene,
    Refusal,
    RequestResult,
    StepCheck,
    require,
    run_batch,
)
from ...simulation.world import CLUSTER
from . import resource_type as topics
from .placement import MoveTicket, parse_ticket
from .simulation import SimulatedTopic, Topics, topic_key

API = "AlterPartitionReassignments"
LISTING = "ListPartitionReassignments"


def reassign_partitions(call: AdminCall, items: Sequence[Item]) -> RequestResult:
    """AlterPartitionReassignments: null replicas cancel (error 85 if nothing moves); a target that
    needs no copies takes effect at once."""
    return run_batch(
        call, items, lambda item: topic_key(item["name"]), lambda item: _reassign_topic(call, item)
    )


def _reassign_topic(call: AdminCall, item: Item) -> ItemVerdict:
    require(call.user.may("Alter", CLUSTER), 31)
    topic: SimulatedTopic | None = call.world.of(topics.KIND).get(item["name"])
    if topic is None:
        raise Refusal(3)
    current, destination = list(topic.assignment), list(topic.target or topic.assignment)
    for text, replicas in item["replicas"].items():
        number = int(text)
        if number >= len(current):
            raise Refusal(3)
        if replicas is None:
            require(current[number] != destination[number], 85)
            destination[number] = current[number]
            continue
        _check_replicas(call, replicas, current[number])
        destination[number] = tuple(replicas)
        if set(replicas) <= set(current[number]):
            current[number] = tuple(replicas)
    target = tuple(destination) if destination != current else None
    moved = topic.with_assignment(tuple(current), target)
    return AdminAnswer(made=moved), moved, len(item["replicas"])


def _check_replicas(call: AdminCall, replicas: Sequence[int], had: Sequence[int]) -> None:
    brokers_known = set(replicas) <= {*call.brokers, *had}
    if not replicas or len(set(replicas)) != len(replicas) or not brokers_known:
        raise Refusal(39, f"the replicas {list(replicas)} are not possible.")


def _check_step(scene: ReadScene, step: Step) -> Fault | None:
    """The check that replaces a dry run: rights, topic and live brokers."""
    name = step.payload["name"]
    if not scene.user.may("Alter", CLUSTER):
        return faults.fault_of(API, 31, name)
    topic = scene.objects(topics.KIND).get(name)
    if topic is None:
        return faults.fault_of("Metadata", 3, name)
    ticket = parse_ticket(step.payload["ticket"])
    if not isinstance(ticket, MoveTicket) or ticket.topic_id != topic.id:
        return _definite_fault("RECREATED", f"{name} was recreated outside kafkaform")
    rows = topic.assignment
    for number, replicas in step.payload["replicas"].items():
        had = rows[int(number)] if int(number) < len(rows) else ()
        if not set(replicas) <= {*scene.live, *had}:
            return _definite_fault("BROKER_NOT_LIVE", f"a broker of the move of {name} is not live")
    return None


def _definite_fault(code: str, message: str) -> Fault:
    return Fault(code, message, FaultClass.DEFINITE, where=API, advice="plan again")


def list_moving(topic_map: Topics) -> frozenset[str]:
    """The topics that are moving."""
    return frozenset(name for name, topic in topic_map.items() if topic.target is not None)


def report_standing(text: str, topic_map: Topics) -> Outcome:
    """The outcome of the move with this ticket."""
    ticket = parse_ticket(text)
    topic = topic_map.get(ticket.topic) if isinstance(ticket, MoveTicket) else None
    if not isinstance(ticket, MoveTicket):
        return _ended_outcome(text, "no long-running work has this ticket")
    if topic is None or topic.id != ticket.topic_id:
        return _ended_outcome(text, "the topic was deleted")
    if not ticket.matches(topic.target or topic.assignment):
        reason = "another move replaced it" if topic.target else "it was cancelled"
        return _ended_outcome(text, reason)
    if topic.target is not None:
        return Outcome(text, OutcomeStatus.STARTED, ticket=text)
    return Outcome(text, OutcomeStatus.APPLIED)


def _ended_outcome(text: str, reason: str) -> Outcome:
    return Outcome(text, OutcomeStatus.FAILED, _definite_fault("MOVE_ENDED", reason))


HANDLERS: Mapping[str, Handler] = {API: reassign_partitions}
CHECKS: Mapping[str, StepCheck] = {API: _check_step}
