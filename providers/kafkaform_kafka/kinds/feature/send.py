"""Sends UpdateFeatures (KIP-584), which the controller checks and carries out."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from kafkaform.core.change import Step
from kafkaform.core.resource import Fault

from ...cluster.context import ClusterContext, Order, Reply, attempt
from ...protocol.faults import fault_of
from ...protocol.features import UpgradeType
from ...wire.answers import ItemAnswer
from ...wire.cluster import Update, UpdateAnswer, update_features
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
    item: UpdateAnswer | ItemAnswer | None = answer if answer.code else answer.items.get(name)
    if item is None or not item.code:
        return None
    fault = fault_of(API, item.code, name, item.message)
    advice = _ADVICE.get(step.payload["upgrade_type"]) if item.code == _INVALID else None
    return fault if advice is None else replace(fault, advice=advice)


_INVALID = 95
"""INVALID_UPDATE_VERSION"""
_ADVICE = {
    UpgradeType.SAFE_DOWNGRADE: "keep the level: Kafka refuses every downgrade that could lose "
    "metadata, unless --unsafe-downgrade asks for it, which Kafka up to 4.3 does not have for "
    "metadata.version",
    UpgradeType.UNSAFE_DOWNGRADE: "keep the level: this version of Kafka has no such downgrade",
}
"""Kind of a downgrade -> what to do if Kafka refuses it."""
