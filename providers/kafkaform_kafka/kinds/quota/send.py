"""Sends AlterClientQuotas (KIP-546), once, with one reply for each entity."""

from __future__ import annotations

from collections.abc import Sequence

from kafkaform.core.change import Step
from kafkaform.core.resource import Fault, FaultClass

from ...cluster.context import ClusterContext, Order, Reply, attempt
from ...protocol.faults import fault_of, lost_answer_fault
from ...wire.quotas import QuotaAnswers, alter_quotas
from ...wire.topics import ANSWER_MARGIN

_API = "AlterClientQuotas"
_TWICE = Fault("NAMED_TWICE", "the request names the entity twice", FaultClass.DEFINITE, _API)


def send_alter_quotas(context: ClusterContext, order: Order) -> Sequence[Reply]:
    """AlterClientQuotas: all keys of an entity or none of them."""
    # An entity that occurs twice is sent once. Kafka would answer INVALID_REQUEST (42) for both,
    # although it applies the first one.
    first = {step.payload["entity"]: step for step in reversed(order.steps)}
    answers = attempt(
        _API,
        lambda: alter_quotas(
            context.wire,
            [step.payload for step in reversed(first.values())],
            context.timeout + ANSWER_MARGIN,
            validate_only=order.dry,
        ),
    )
    if isinstance(answers, Fault):
        return [Reply(step, answers) for step in order.steps]
    return [
        Reply(step, _make_fault(step, answers) if first[step.payload["entity"]] is step else _TWICE)
        for step in order.steps
    ]


def _make_fault(step: Step, answers: QuotaAnswers) -> Fault | None:
    answer, name = answers.items.get(step.payload["entity"]), step.identity.key
    if answer is None:
        return lost_answer_fault(_API, f"{name} is missing in the broker's answer")
    if answer.code == 0:
        return None
    return fault_of(_API, answer.code, name, answer.message, wait=answers.throttle)
