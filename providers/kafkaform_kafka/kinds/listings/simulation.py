"""The rights of a user as the simulated cluster reports them, and its groups: none, because it has
no clients."""

from __future__ import annotations

from collections.abc import Iterator

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
from kafkaform.core.value import FrozenMap

from ...protocol import acl as acls
from ...protocol import keys
from ...protocol.acl import HELD_OPERATIONS, LISTED_GROUPS, LISTED_RIGHTS
from ..simulation import CLUSTER, ReadScene, SimulatedKind, SimulatedReads
from ..topic import resource_type as topics


def _sweep_rights(scene: ReadScene, depth: Depth) -> Sweep:
    coverage = Coverage(CoverageKind.VISIBLE_ONLY)
    return Sweep(LISTED_RIGHTS, depth, tuple(_list_items(scene)), coverage)


def _list_items(scene: ReadScene) -> Iterator[Observed]:
    # As a real broker: without Describe on a resource it reports no right on it (KIP-430).
    described = scene.user.may("Describe", CLUSTER)
    yield _make_item(scene, "Cluster", acls.CLUSTER, CLUSTER if described else "")
    for name in sorted(scene.objects(topics.KIND)):
        if scene.user.may_on_topic("Describe", name):
            yield _make_item(scene, "Topic", name, f"topic:{name}")


def _make_item(scene: ReadScene, kind: str, name: str, resource: str) -> Observed:
    operations = tuple(
        operation
        for operation in acls.list_reported_operations(kind)
        if resource and scene.user.may(operation, resource)
    )
    identity = Identity(scene.instance, LISTED_RIGHTS, keys.join((kind, name)))
    return Observed(identity, FrozenMap({HELD_OPERATIONS: operations}))


def _read_rights(scene: ReadScene, identity: Identity) -> Reading:
    items = (item for item in _list_items(scene) if item.identity == identity)
    return next(items, Absent(identity))


SIMULATED_RIGHTS = SimulatedKind(
    SimulatedReads("ListTopics", "DescribeTopics", "Metadata", _sweep_rights, _read_rights)
)


def _sweep_groups(_: ReadScene, depth: Depth) -> Sweep:
    return Sweep(LISTED_GROUPS, depth, (), Coverage(CoverageKind.VISIBLE_ONLY))


def _read_groups(_: ReadScene, identity: Identity) -> Reading:
    return Absent(identity)


SIMULATED_GROUPS = SimulatedKind(
    SimulatedReads("ListGroups", "DescribeGroups", "ListGroups", _sweep_groups, _read_groups)
)
