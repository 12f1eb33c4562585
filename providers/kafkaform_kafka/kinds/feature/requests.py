"""Reads the finalized levels of features from ApiVersions and updates them (KIP-584)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from kafkaform.core.change import Step
from kafkaform.core.resource import (
    Absent,
    Coverage,
    CoverageKind,
    Depth,
    Failed,
    Fault,
    FaultClass,
    Identity,
    Observed,
    Reading,
    Sweep,
)

from ...protocol.cluster_facts import UpgradeType
from ...protocol.faults import fault_of
from ...wire.answers import ItemAnswer
from ...wire.cluster import FeatureRow, Update, UpdateAnswer, read_features, update_features
from ..context import ClusterContext, Order, Reads, Reply, Requests, attempt
from . import resource_type as feature
from .resource_type import API


def sweep_levels(_: ClusterContext, depth: Depth) -> Sweep:
    """Always empty: levels are only read by the name of their feature."""
    return Sweep(feature.KIND, depth, (), Coverage(CoverageKind.VISIBLE_ONLY))


def read_levels(
    context: ClusterContext, ids: Sequence[Identity], node: str | None
) -> Mapping[Identity, Reading]:
    """The levels of these features. node: the broker to ask, None for any."""
    row = attempt("ApiVersions", lambda: read_features(context.wire, context.timeout, node), node)
    fault = find_fault(row)
    if fault is not None:
        return {identity: Failed(identity, fault) for identity in ids}
    assert isinstance(row, FeatureRow)
    return {identity: _observe_level(identity, row) for identity in ids}


def find_fault(row: FeatureRow | Fault) -> Fault | None:
    """Why the levels are not known; None if they are."""
    if isinstance(row, Fault):
        return row
    # Brokers without KRaft, and brokers that have just started: an empty list says nothing then.
    if row.epoch >= 0:
        return None
    return Fault(
        "UNKNOWN_EPOCH",
        "the broker does not know the finalized features",
        FaultClass.DEFINITE,
        where="ApiVersions",
        advice="run the command again; features need Kafka 3.3 or newer, with KRaft",
    )


def _observe_level(identity: Identity, row: FeatureRow) -> Reading:
    name = identity.key
    if name not in row.supported and name not in row.finalized:
        return Absent(identity)
    # A level of 0 means that the feature is off, and is left out of the answer.
    return Observed(identity, feature.make_attributes(name, row.finalized.get(name, 0)))


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


REQUESTS = Requests(Reads(sweep_levels, read_levels), {API: send_updates})
