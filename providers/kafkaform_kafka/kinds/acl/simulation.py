"""ACLs of the simulated cluster: objects of its log like any others. They do not decide what its
users may do, which is said for each user outright."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from kafkaform.core.change import Step
from kafkaform.core.resource import (
    Coverage,
    CoverageKind,
    Depth,
    Fault,
    Hidden,
    Identity,
    Reading,
    Sweep,
)

from ...protocol import faults
from ...simulation.controller import (
    Answer,
    Call,
    Item,
    Refusal,
    Result,
    Verdict,
    batch,
    require,
)
from ...simulation.rights import CLUSTER
from ...simulation.simulated_kind import Scene, SimulatedKind, SimulatedReads
from ...simulation.world import Key
from . import resource_type as acls
from .readings import already, listing, seen
from .resource_type import Acl

_API = "DescribeAcls"
_FORBIDDEN = 31


def key(acl: Acl) -> Key:
    """Where the world keeps this ACL."""
    return (acls.KIND, acl.key)


def _key_of(item: Item) -> Key:
    return key(acls.acl_of(item))


def create_acls(call: Call, items: Sequence[Item]) -> Result:
    """CreateAcls: one that is there, or is asked for twice, is a success and no record."""

    def create(item: Item) -> Verdict:
        require(call.user.may("Alter", CLUSTER), _FORBIDDEN)
        acl = acls.acl_of(item)
        _require_names(acl)
        return Answer(), acl, 0 if call.world.get(key(acl)) else 1

    return batch(call, items, _key_of, create, twice=None)


def delete_acls(call: Call, items: Sequence[Item]) -> Result:
    """DeleteAcls with whole filters; one that matches nothing is told as the client sees it."""

    def delete(item: Item) -> Verdict:
        require(call.user.may("Alter", CLUSTER), _FORBIDDEN)
        if call.world.get(_key_of(item)) is None:
            raise Refusal(91)
        return Answer(), None, 1

    return batch(call, items, _key_of, delete, twice=None)


def _require_names(acl: Acl) -> None:
    """All that the broker itself checks. Raises Refusal."""
    if acl.resource_type == "Cluster" and acl.resource_name != acls.CLUSTER:
        raise Refusal(42, f"The only valid name for the CLUSTER resource is {acls.CLUSTER}")
    if not acl.resource_name:
        raise Refusal(42, "Invalid empty resource name")


# ── how they read ───────────────────────────────────────────────────────────────────────


def _sweep(scene: Scene, depth: Depth) -> Sweep:
    if not scene.user.may("Describe", CLUSTER):
        fault = faults.fault_of(_API, _FORBIDDEN, "")
        return Sweep(acls.KIND, depth, (), Coverage(CoverageKind.FAILED, fault))
    rows = scene.objects(acls.KIND)
    return listing(scene.instance, depth, (rows[name] for name in sorted(rows)))


def _read(scene: Scene, identity: Identity) -> Reading:
    if not scene.user.may("Describe", CLUSTER):
        return Hidden(identity, faults.right_for(_API, identity.key))
    return seen(identity, identity.key in scene.objects(acls.KIND))


def _check(api: str, scene: Scene, step: Step) -> Fault | None:
    if not scene.user.may("Describe", CLUSTER):
        return faults.fault_of(_API, _FORBIDDEN, "")
    if not scene.user.may("Alter", CLUSTER):
        return faults.fault_of(api, _FORBIDDEN, "")
    return already(api, step.identity.key, step.identity.key in scene.objects(acls.KIND))


SIMULATED = SimulatedKind(
    reads=SimulatedReads(_API, _API, _API, _sweep, _read),
    handlers={"CreateAcls": create_acls, "DeleteAcls": delete_acls},
    checks={
        "CreateAcls": partial(_check, "CreateAcls"),
        "DeleteAcls": partial(_check, "DeleteAcls"),
    },
)
