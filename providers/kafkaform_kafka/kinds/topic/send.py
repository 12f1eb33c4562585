"""The requests that create, grow and delete topics, sent once each.

Every function takes the steps of one request and answers for each of them in order, whatever
happens; with `validate_only` the broker checks the very request and does nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from kafkaform.core.change import Step
from kafkaform.core.resource import Fault, FaultClass
from kafkaform.core.value import FrozenMap

from ...authority.own_rights import explain, list_operations
from ...authority.required_rights import Held
from ...authority.required_rights import missing as missing_rights
from ...cluster.context import Context, Order, Reply
from ...cluster.exchange import attempt
from ...protocol.config_values import config_value
from ...protocol.faults import fault_of, lost
from ...wire.answers import Answer, Answers
from ...wire.cluster import leadership
from ...wire.topics import TopicRow, create_partitions, create_topics, delete_topics, list_topics
from .read import OWN, UNKNOWN_TOPIC

UNTOLD = -1
"""Instead of an epoch."""


def send_create_topics(context: Context, order: Order) -> Sequence[Reply]:
    """CreateTopics; the answer tells the topic id and what the broker made."""
    if order.dry and not context.epochs:
        context.epochs.add(_epoch(context))
    answers = attempt(
        "CreateTopics",
        lambda: create_topics(
            context.wire, _payloads(order.steps), context.timeout, validate_only=order.dry
        ),
    )
    replies = _replies("CreateTopics", order.steps, answers, "name")
    if isinstance(answers, Fault) or order.dry:
        return replies
    return [
        reply if reply.fault else _created(reply.step, answers.items[reply.step.payload["name"]])
        for reply in _perhaps_ours(context, replies)
    ]


def _epoch(context: Context) -> int:
    """That of the active controller, or UNTOLD."""
    found = attempt("DescribeQuorum", lambda: leadership(context.wire, context.timeout))
    return UNTOLD if found is None or isinstance(found, Fault) else found.epoch


def _perhaps_ours(context: Context, replies: Sequence[Reply]) -> Sequence[Reply]:
    """A broker sends a request whose controller dies once more, to the next one, which refuses what
    the first one has done. So "already exists" says nothing where the controller has changed since
    the creates were checked: AMBIGUOUS, and the topic is looked at."""
    before = context.epochs - {UNTOLD}
    if not before or not any(map(_exists, replies)):
        return replies
    if _epoch(context) in {UNTOLD, *before}:
        return replies
    return [_unclear(reply) if _exists(reply) else reply for reply in replies]


def _exists(reply: Reply) -> bool:
    return reply.fault is not None and reply.fault.kind is FaultClass.CONVERGED


def _unclear(reply: Reply) -> Reply:
    assert reply.fault is not None
    told = f"{reply.fault.message}; and the controller has changed meanwhile"
    return replace(reply, fault=replace(reply.fault, message=told, kind=FaultClass.AMBIGUOUS))


def send_create_partitions(context: Context, order: Order) -> Sequence[Reply]:
    """CreatePartitions to an absolute count; a count that is already there is CONVERGED."""
    answers = attempt(
        "CreatePartitions",
        lambda: create_partitions(
            context.wire, _payloads(order.steps), context.timeout, validate_only=order.dry
        ),
    )
    return _replies("CreatePartitions", order.steps, answers, "name")


def send_delete_topics(context: Context, order: Order) -> Sequence[Reply]:
    """DeleteTopics by id. The broker has no dry run for it: a fresh read stands in."""
    if order.dry:
        return _check_deletes(context, order.steps)
    ids = [step.payload["topic_id"] for step in order.steps]
    answers = attempt("DeleteTopics", lambda: delete_topics(context.wire, ids, context.timeout))
    return _replies("DeleteTopics", order.steps, answers, "topic_id")


def _payloads(steps: Sequence[Step]) -> list[FrozenMap]:
    return [step.payload for step in steps]


def _replies(
    api: str, steps: Sequence[Step], answers: Answers | Fault, key: str
) -> Sequence[Reply]:
    if isinstance(answers, Fault):
        return [Reply(step, answers) for step in steps]
    return [Reply(step, _fault(api, step, answers, step.payload[key])) for step in steps]


def _fault(api: str, step: Step, answers: Answers, key: str) -> Fault | None:
    answer, name = answers.items.get(key), step.payload["name"]
    if answer is None:
        return lost(api, f"the broker's answer leaves {name} out")
    if answer.code == 0:
        return None
    return fault_of(api, answer.code, name, answer.message, wait=answers.throttle)


def _created(step: Step, answer: Answer) -> Reply:
    """Counts and configs are there only for those who may describe the topic's configs."""
    made: Mapping[str, object] = {
        "name": step.payload["name"],
        "partitions": answer.partitions,
        "replication_factor": answer.replication_factor,
        "config": None
        if answer.configs is None
        else FrozenMap(
            {
                entry.name: config_value(entry.name, entry.value)
                for entry in answer.configs
                if entry.source == OWN
            }
        ),
    }
    known = FrozenMap({name: value for name, value in made.items() if value is not None})
    return Reply(step, None, answer.topic_id, known)


def _check_deletes(context: Context, steps: Sequence[Step]) -> Sequence[Reply]:
    names = [step.payload["name"] for step in steps]
    rows = attempt(
        "Metadata", lambda: list_topics(context.wire, names, context.timeout, operations=True)
    )
    if isinstance(rows, Fault):
        return [Reply(step, rows) for step in steps]
    found = {row.name: row for row in rows}
    missing = TopicRow("", UNKNOWN_TOPIC)
    facts = context.facts
    held = Held(frozenset(facts.values.get("rights") or ()), list_operations(rows))
    lacking = missing_rights(steps, explain(context, steps, held), facts.principal)
    refused = {verdict.step: verdict.fault for verdict in lacking}
    return [
        Reply(step, _delete_fault(step, found.get(name, missing)) or refused.get(step.id))
        for step, name in zip(steps, names, strict=True)
    ]


def _delete_fault(step: Step, row: TopicRow) -> Fault | None:
    name, expected = step.payload["name"], step.payload["topic_id"]
    if row.code:
        api = "DeleteTopics" if row.code == UNKNOWN_TOPIC else "Metadata"
        return fault_of(api, row.code, name)
    if row.topic_id != expected:
        return Fault(
            code="RECREATED",
            message=f"{name} was recreated outside: its id is {row.topic_id}, not {expected}",
            kind=FaultClass.DEFINITE,
            where="Metadata",
            advice="plan again and review what is there now",
        )
    return None
