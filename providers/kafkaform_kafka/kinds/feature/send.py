"""Sends UpdateFeatures (KIP-584), which the controller checks and carries out."""

from __future__ import annotations

from collections.abc import Sequence

from kafkaform.core.change import Step
from kafkaform.core.resource import Fault

from ...cluster.context import ClusterContext, Order, Reply
from ...cluster.exchange import attempt
from ...protocol.faults import fault_of
from ...wire.features import Update, UpdateAnswer, update_features
from .resource_type import API


def send_updates(context: ClusterContext, order: Order) -> Sequence[Reply]:
    """One reply for each feature. All are in one request, because levels depend on each other
    (KIP-1022)."""
    updates = [Update(**{name: step.payload[name] for name in _FIELDS}) for step in order.steps]
    answer = attempt(
        API, lambda: update_features(context.wire, updates, context.timeout, validate=order.dry)
    )
    return [Reply(step, _find_fault(step, answer)) for step in order.steps]


_FIELDS = Update.__struct_fields__


def _find_fault(step: Step, answer: UpdateAnswer | Fault) -> Fault | None:
    if isinstance(answer, Fault):
        return answer
    name = step.payload["name"]
    if answer.code:
        return fault_of(API, answer.code, name, answer.message)
    item = answer.items.get(name)
    return fault_of(API, item.code, name, item.message) if item and item.code else None
