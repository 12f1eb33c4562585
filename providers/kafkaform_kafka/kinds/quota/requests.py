"""Lists, reads and alters client quotas (KIP-546)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafkaform.core.change import Step
from kafkaform.core.resource import (
    Coverage,
    CoverageKind,
    Depth,
    Failed,
    Fault,
    FaultClass,
    Hidden,
    Identity,
    Reading,
    Sweep,
)

from ...protocol.faults import code_name, fault_of, lost_answer_fault, name_right
from ...wire.configs import QuotaAnswers, QuotaRow, QuotaRows, alter_quotas, describe_quotas
from ...wire.topics import ANSWER_MARGIN
from ..context import ClusterContext, Order, Reads, Reply, Requests, attempt
from . import resource_type as quotas

_READ_API = "DescribeClientQuotas"
_DENIED = 31


def sweep_quotas(context: ClusterContext, depth: Depth) -> Sweep:
    """All quotas with all of their keys, or the fault of the request."""
    # DescribeConfigs on Cluster shows all quotas, without it none, so a listing is complete.
    rows = _read_rows(context, None)
    if isinstance(rows, Fault):
        return Sweep(quotas.KIND, depth, (), Coverage(CoverageKind.FAILED, rows))
    return quotas.make_quota_sweep(
        context.instance, depth, ((row.entity, row.values) for row in rows)
    )


def read_quotas(
    context: ClusterContext, ids: Sequence[Identity], node: str | None
) -> Mapping[Identity, Reading]:
    """These quotas. node: the broker to ask, None for any."""
    # A filter of the request can name only one entity, so all quotas are read.
    rows = _read_rows(context, node)
    if isinstance(rows, Fault):
        return {identity: _make_unread_reading(identity, rows) for identity in ids}
    limits = {quotas.entity_key(row.entity): row.values for row in rows}
    return {identity: quotas.make_reading(identity, limits.get, context.facts) for identity in ids}


def _read_rows(context: ClusterContext, node: str | None) -> Sequence[QuotaRow] | Fault:
    answer = attempt(_READ_API, lambda: describe_quotas(context.wire, context.timeout, node), node)
    if isinstance(answer, QuotaRows) and answer.code:
        return fault_of(_READ_API, answer.code, "", answer.message, node or "")
    return answer if isinstance(answer, Fault) else answer.rows


def _make_unread_reading(identity: Identity, fault: Fault) -> Reading:
    if fault.code == code_name(_DENIED):
        return Hidden(identity, name_right(_READ_API, ""))
    return Failed(identity, fault)


_WRITE_API = "AlterClientQuotas"
_TWICE = Fault("NAMED_TWICE", "the request names the entity twice", FaultClass.DEFINITE, _WRITE_API)


def send_alter_quotas(context: ClusterContext, order: Order) -> Sequence[Reply]:
    """AlterClientQuotas: all keys of an entity or none of them."""
    # An entity that occurs twice is sent once. Kafka would answer INVALID_REQUEST (42) for both,
    # although it applies the first one.
    first = {step.payload["entity"]: step for step in reversed(order.steps)}
    answers = attempt(
        _WRITE_API,
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
        return lost_answer_fault(_WRITE_API, f"{name} is missing in the broker's answer")
    if answer.code == 0:
        return None
    return fault_of(_WRITE_API, answer.code, name, answer.message, wait=answers.throttle)


REQUESTS = Requests(Reads(sweep_quotas, read_quotas), {_WRITE_API: send_alter_quotas})
