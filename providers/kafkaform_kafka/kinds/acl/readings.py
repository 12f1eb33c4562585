"""Makes readings and listings of ACLs, the same for a real cluster and the simulated one."""

from __future__ import annotations

from collections.abc import Iterable

from kafkaform.core.resource import (
    Absent,
    Coverage,
    CoverageKind,
    Depth,
    Fault,
    FaultClass,
    Identity,
    Observed,
    Reading,
    Sweep,
)
from kafkaform.core.value import EMPTY, FrozenMap

from ...protocol import acl as acls
from ...protocol.acl import Acl

_UNMANAGEABLE = FrozenMap(
    {"unmanageable": "its type or operation is newer than this version, so it is never changed"}
)


def make_acl_sweep(instance: str, depth: Depth, rows: Iterable[Acl]) -> Sweep:
    """The complete listing of all ACLs of a cluster."""
    # `whole`: an ACL has nothing but its key, so listed ones need no further read.
    items = tuple(
        Observed(
            Identity(instance, acls.KIND, acl.key),
            acl.attributes,
            details=EMPTY if acls.is_known(acl) else _UNMANAGEABLE,
        )
        for acl in rows
    )
    return Sweep(acls.KIND, depth, items, Coverage(CoverageKind.COMPLETE), whole=True)


def make_acl_reading(identity: Identity, exists: bool) -> Reading:
    """The reading of one ACL."""
    if not exists:
        return Absent(identity)
    return Observed(identity, acls.parse_acl_key(identity.key).attributes)


def check_already_done(api: str, key: str, exists: bool) -> Fault | None:
    """The fault if the ACL is already as this request would make it."""
    # CreateAcls of an existing ACL, and DeleteAcls of a missing one, succeed on the broker without
    # an effect. The plan promised one, so somebody else must have been faster.
    if exists is (api == "DeleteAcls"):
        return None
    return Fault(
        "CHANGED_OUTSIDE",
        f"{key} {'already exists' if exists else 'no longer exists'}",
        FaultClass.CONVERGED,
        where="DescribeAcls",
        advice="plan again and review the current ACLs",
    )
