"""Features of the simulated cluster: the levels that Kafka 4.3 starts with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafkaform.core.resource import (
    Absent,
    Coverage,
    CoverageKind,
    Depth,
    Identity,
    Observed,
    Reading,
    Sweep,
)

from ...protocol.cluster_facts import METADATA_VERSION, UpgradeType
from ..simulation import (
    CLUSTER,
    AdminAnswer,
    AdminCall,
    Item,
    ItemVerdict,
    Key,
    ReadScene,
    Refusal,
    RequestResult,
    SimulatedKind,
    SimulatedReads,
    require,
    run_batch,
)
from . import resource_type as feature

SUPPORTED: Mapping[str, tuple[int, int]] = {
    METADATA_VERSION: (7, 30),
    "transaction.version": (0, 2),
    "group.version": (0, 1),
    "eligible.leader.replicas.version": (0, 1),
    "share.version": (0, 1),
}
"""Feature -> lowest and highest level, at which it starts."""
LOSSLESS = 29
"""The lowest level of metadata.version to which a safe downgrade is possible."""


def feature_key(name: str) -> Key:
    """The key of a feature in the simulated world."""
    return feature.KIND, name


def update_features(call: AdminCall, items: Sequence[Item]) -> RequestResult:
    """UpdateFeatures: all features of a request succeed, or none (KIP-1022)."""
    answers, changes = run_batch(
        call, items, lambda item: feature_key(item["name"]), lambda item: _update(call, item)
    )
    refused = next((answer for answer in answers if answer.code), None)
    return (answers, changes) if refused is None else ([refused for _ in items], type(changes)())


def _update(call: AdminCall, item: Item) -> ItemVerdict:
    require(call.user.may("Alter", CLUSTER), 31)
    name, level, kind = item["name"], item["level"], item["upgrade_type"]
    low, high = SUPPORTED.get(name, (0, 0))
    if not low <= level <= high:
        raise Refusal(95, f"Broker 1 only supports versions {low}-{high}")
    now = call.world.get(feature_key(name))
    now = high if now is None else now
    if level < now and kind == UpgradeType.UPGRADE:
        raise Refusal(95, "Can't downgrade without setting the upgrade type.")
    if level > now and kind != UpgradeType.UPGRADE:
        raise Refusal(95, "Can't downgrade to a newer version.")
    if name == METADATA_VERSION and level < min(now, LOSSLESS):
        raise Refusal(95, "Refusing to perform the requested downgrade.")
    return AdminAnswer(), level, 1


def _sweep(_: ReadScene, depth: Depth) -> Sweep:
    return Sweep(feature.KIND, depth, (), Coverage(CoverageKind.VISIBLE_ONLY))


def _read(scene: ReadScene, identity: Identity) -> Reading:
    if identity.key not in SUPPORTED:
        return Absent(identity)
    level = scene.objects(feature.KIND).get(identity.key, SUPPORTED[identity.key][1])
    return Observed(identity, feature.make_attributes(identity.key, level))


SIMULATED = SimulatedKind(
    reads=SimulatedReads("ApiVersions", "ApiVersions", "ApiVersions", _sweep, _read),
    handlers={feature.API: update_features},
)
