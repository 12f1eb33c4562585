"""Sends the requests that create, grow and delete topics, once each.

Each function takes the steps of one request and replies to each of them in order, whatever happens.
In a dry run the broker checks the same request with `validate_only`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from kafkaform.core.change import Step
from kafkaform.core.resource import Fault, FaultClass
from kafkaform.core.value import FrozenMap

from ...authority.own_rights import HeldRights, explain_missing, list_operations
from ...authority.own_rights import judge_steps as missing_rights
from ...protocol import apis
from ...protocol.cluster_facts import KafkaFacts
from ...protocol.config_keys import config_value
from ...protocol.faults import fault_of, lost_answer_fault
from ...wire.answers import ItemAnswer, ItemAnswers
from ...wire.cluster import read_leadership
from ...wire.topics import TopicRow, create_partitions, create_topics, delete_topics, list_topics
from ..context import ClusterContext, Order, Reads, Reply, Requests, attempt
from .read import OWN, UNKNOWN_TOPIC, find_topics, list_and_read_topics, read_topics, sweep_topics
from .replica_moves import send_moves

UNKNOWN_EPOCH = -1


def send_create_topics(context: ClusterContext, order: Order) -> Sequence[Reply]:
    """CreateTopics; the replies have the topic ids and what the broker chose (KIP-525, KIP-516)."""
    if order.dry and _is_executed("CreateTopics", context):
        return [Reply(step) for step in order.steps]
    # The epoch of the controller at the dry run is what `_mark_perhaps_ours` compares with.
    if order.dry and not context.epochs:
        context.epochs.add(_read_epoch(context))
    answers = attempt(
        "CreateTopics",
        lambda: create_topics(
            context.wire, _list_payloads(order.steps), context.timeout, validate_only=order.dry
        ),
    )
    replies = _make_replies("CreateTopics", order.steps, answers, "name")
    if isinstance(answers, Fault) or order.dry:
        return replies
    return [
        reply
        if reply.fault
        else _make_created_reply(reply.step, answers.items[reply.step.payload["name"]])
        for reply in _mark_perhaps_ours(context, replies)
    ]


def _is_executed(api: str, context: ClusterContext) -> bool:
    """True if this cluster would execute the dry run of the request: none can be sent then."""
    # KRaft controllers of the preview releases do not look at `validate_only` in CreateTopics (3.0)
    # and in CreatePartitions (3.0 to 3.2). Seen with Kafka 3.0.2.
    return api in KafkaFacts.of(context.facts).executed_dry_runs


def _read_epoch(context: ClusterContext) -> int:
    """The epoch of the active controller, or UNKNOWN_EPOCH."""
    leadership = attempt("DescribeQuorum", lambda: read_leadership(context.wire, context.timeout))
    return (
        UNKNOWN_EPOCH if leadership is None or isinstance(leadership, Fault) else leadership.epoch
    )


def _mark_perhaps_ours(context: ClusterContext, replies: Sequence[Reply]) -> Sequence[Reply]:
    """The replies, with "already exists" as AMBIGUOUS if the controller has changed."""
    # If the controller dies, the broker forwards the request again, to the next one (KIP-590). That
    # one refuses with 36 what the first one has done, so 36 may be our own success.
    before = context.epochs - {UNKNOWN_EPOCH}
    if not before or not any(map(_says_exists, replies)):
        return replies
    if _read_epoch(context) in {UNKNOWN_EPOCH, *before}:
        return replies
    return [_make_unclear(reply) if _says_exists(reply) else reply for reply in replies]


def _says_exists(reply: Reply) -> bool:
    return reply.fault is not None and reply.fault.kind is FaultClass.CONVERGED


def _make_unclear(reply: Reply) -> Reply:
    assert reply.fault is not None
    text = f"{reply.fault.message}; the controller has changed since the dry run"
    return replace(reply, fault=replace(reply.fault, message=text, kind=FaultClass.AMBIGUOUS))


def send_create_partitions(context: ClusterContext, order: Order) -> Sequence[Reply]:
    """CreatePartitions to an absolute count; CONVERGED if the topic has that count already."""
    if order.dry and _is_executed("CreatePartitions", context):
        return [Reply(step) for step in order.steps]
    answers = attempt(
        "CreatePartitions",
        lambda: create_partitions(
            context.wire, _list_payloads(order.steps), context.timeout, validate_only=order.dry
        ),
    )
    return _make_replies("CreatePartitions", order.steps, answers, "name")


def send_delete_topics(context: ClusterContext, order: Order) -> Sequence[Reply]:
    """DeleteTopics by id (KIP-516)."""
    # The broker has no dry run for it, so a fresh read replaces one.
    if order.dry:
        return _check_deletes(context, order.steps)
    ids = [step.payload["topic_id"] for step in order.steps]
    answers = attempt("DeleteTopics", lambda: delete_topics(context.wire, ids, context.timeout))
    return _make_replies("DeleteTopics", order.steps, answers, "topic_id")


def _list_payloads(steps: Sequence[Step]) -> list[FrozenMap]:
    return [step.payload for step in steps]


def _make_replies(
    api: str, steps: Sequence[Step], answers: ItemAnswers | Fault, key: str
) -> Sequence[Reply]:
    if isinstance(answers, Fault):
        return [Reply(step, answers) for step in steps]
    return [Reply(step, _make_fault(api, step, answers, step.payload[key])) for step in steps]


def _make_fault(api: str, step: Step, answers: ItemAnswers, key: str) -> Fault | None:
    answer, name = answers.items.get(key), step.payload["name"]
    if answer is None:
        return lost_answer_fault(api, f"{name} is missing in the broker's answer")
    if answer.code == 0:
        return None
    return fault_of(api, answer.code, name, answer.message, wait=answers.throttle)


def _make_created_reply(step: Step, answer: ItemAnswer) -> Reply:
    # Without DescribeConfigs on the topic, the answer has neither counts nor configs (KIP-525).
    created: Mapping[str, object] = {
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
    attributes = FrozenMap({name: value for name, value in created.items() if value is not None})
    return Reply(step, None, answer.topic_id, attributes)


def _check_deletes(context: ClusterContext, steps: Sequence[Step]) -> Sequence[Reply]:
    names = [step.payload["name"] for step in steps]
    rows = attempt(
        "Metadata", lambda: list_topics(context.wire, names, context.timeout, operations=True)
    )
    if isinstance(rows, Fault):
        return [Reply(step, rows) for step in steps]
    rows_by_name = {row.name: row for row in rows}
    missing = TopicRow("", UNKNOWN_TOPIC)
    facts = context.facts
    rights = HeldRights(frozenset(KafkaFacts.of(facts).rights), list_operations(rows))
    lacking = missing_rights(steps, explain_missing(context, steps, rights), facts.principal)
    refused = {verdict.step: verdict.fault for verdict in lacking}
    return [
        Reply(
            step, _find_delete_fault(step, rows_by_name.get(name, missing)) or refused.get(step.id)
        )
        for step, name in zip(steps, names, strict=True)
    ]


def _find_delete_fault(step: Step, row: TopicRow) -> Fault | None:
    name, expected = step.payload["name"], step.payload["topic_id"]
    if row.code:
        api = "DeleteTopics" if row.code == UNKNOWN_TOPIC else "Metadata"
        return fault_of(api, row.code, name)
    if row.topic_id != expected:
        return Fault(
            code="RECREATED",
            message=f"{name} was recreated outside kafkaform: its id is {row.topic_id}, not "
            f"{expected}",
            kind=FaultClass.DEFINITE,
            where="Metadata",
            advice="plan again and review the topic that exists now",
        )
    return None


REQUESTS = Requests(
    Reads(sweep_topics, read_topics, find_topics, list_and_read_topics),
    {
        apis.CREATE_TOPICS.name: send_create_topics,
        apis.CREATE_PARTITIONS.name: send_create_partitions,
        apis.DELETE_TOPICS.name: send_delete_topics,
        apis.ALTER_PARTITION_REASSIGNMENTS.name: send_moves,
    },
)
