"""Reads the finalized levels of features from ApiVersions (KIP-584)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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

from ...cluster.context import ClusterContext, attempt
from ...wire.cluster import FeatureRow, read_features
from . import resource_type as feature


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
