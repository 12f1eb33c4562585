"""ACLs of the simulated cluster: objects without an effect. What its users may do is set for each
user directly."""

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

from ...protocol import acl as acls
from ...protocol import faults
from ...protocol.acl import Acl
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
from .resource_type import check_already_done, make_acl_reading, make_acl_sweep

_API = "DescribeAcls"
_FORBIDDEN = 31


def acl_key(acl: Acl) -> Key:
    """The key of this ACL in the simulated world."""
    return (acls.KIND, acl.key)


def _key_of(item: Item) -> Key:
    return acl_key(acls.parse_acl(item))


def create_acls(call: AdminCall, items: Sequence[Item]) -> RequestResult:
    """CreateAcls: an ACL that exists, or occurs twice, is a success without a record."""

    def create(item: Item) -> ItemVerdict:
        require(call.user.may("Alter", CLUSTER), _FORBIDDEN)
        acl = acls.parse_acl(item)
        _require_names(acl)
        return AdminAnswer(), acl, 0 if call.world.get(acl_key(acl)) else 1

    return run_batch(call, items, _key_of, create, twice=None)


def delete_acls(call: AdminCall, items: Sequence[Item]) -> RequestResult:
    """DeleteAcls with exact filters."""

    def delete(item: Item) -> ItemVerdict:
        require(call.user.may("Alter", CLUSTER), _FORBIDDEN)
        # As `send` reports it; a real broker counts a filter without a match as a success.
        if call.world.get(_key_of(item)) is None:
            raise Refusal(91)
        return AdminAnswer(), None, 1

    return run_batch(call, items, _key_of, delete, twice=None)


def _require_names(acl: Acl) -> None:
    """The only checks of a real broker. Raises Refusal."""
    if acl.resource_type == "Cluster" and acl.resource_name != acls.CLUSTER:
        raise Refusal(42, f"The only valid name for the CLUSTER resource is {acls.CLUSTER}")
    if not acl.resource_name:
        raise Refusal(42, "Invalid empty resource name")


# ── how they read ───────────────────────────────────────────────────────────────────────


def _sweep(scene: ReadScene, depth: Depth) -> Sweep:
    if not scene.user.may("Describe", CLUSTER):
        fault = faults.fault_of(_API, _FORBIDDEN, "")
        return Sweep(acls.KIND, depth, (), Coverage(CoverageKind.FAILED, fault))
    rows = scene.objects(acls.KIND)
    return make_acl_sweep(scene.instance, depth, (rows[name] for name in sorted(rows)))


def _read(scene: ReadScene, identity: Identity) -> Reading:
    if not scene.user.may("Describe", CLUSTER):
        return Hidden(identity, faults.name_right(_API, identity.key))
    return make_acl_reading(identity, identity.key in scene.objects(acls.KIND))


def _check_step(api: str, scene: ReadScene, step: Step) -> Fault | None:
    if not scene.user.may("Describe", CLUSTER):
        return faults.fault_of(_API, _FORBIDDEN, "")
    if not scene.user.may("Alter", CLUSTER):
        return faults.fault_of(api, _FORBIDDEN, "")
    return check_already_done(api, step, step.identity.key in scene.objects(acls.KIND))


SIMULATED = SimulatedKind(
    reads=SimulatedReads(_API, _API, _API, _sweep, _read),
    handlers={"CreateAcls": create_acls, "DeleteAcls": delete_acls},
    checks={
        "CreateAcls": partial(_check_step, "CreateAcls"),
        "DeleteAcls": partial(_check_step, "DeleteAcls"),
    },
)
