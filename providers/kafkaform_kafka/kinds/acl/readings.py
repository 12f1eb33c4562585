"""What a look at the ACLs says, the same for a real cluster and the simulated one."""

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

from . import resource_type as acls
from .resource_type import Acl

_UNMANAGEABLE = FrozenMap(
    {"unmanageable": "its type or operation is newer than this version: it is left alone"}
)


def make_acl_sweep(instance: str, depth: Depth, rows: Iterable[Acl]) -> Sweep:
    """All ACLs of a cluster as a listing that is complete."""
    items = tuple(
        Observed(
            Identity(instance, acls.KIND, acl.key),
            acl.attributes,
            details=EMPTY if acls.is_known(acl) else _UNMANAGEABLE,
        )
        for acl in rows
    )
    return Sweep(acls.KIND, depth, items, Coverage(CoverageKind.COMPLETE), whole=True)


def make_acl_reading(identity: Identity, there: bool) -> Reading:
    """An ACL is all in its key."""
    if not there:
        return Absent(identity)
    return Observed(identity, acls.parse_acl_key(identity.key).attributes)


def check_already_done(api: str, key: str, there: bool) -> Fault | None:
    """Why this request for this ACL makes no sense any more, if it does not."""
    if there is (api == "DeleteAcls"):
        return None
    return Fault(
        "CHANGED_OUTSIDE",
        f"{key} {'is there already' if there else 'is not there any more'}",
        FaultClass.CONVERGED,
        where="DescribeAcls",
        advice="plan again and review what is there now",
    )
