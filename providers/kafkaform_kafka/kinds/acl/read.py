"""ACLs as the cluster shows them: all of them, or none and why.

DescribeAcls is unpaged and tells all ACLs to those who have Describe on Cluster, so what it
leaves out is not there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from sys import intern

from kafkaform.core.resource import (
    Coverage,
    CoverageKind,
    Depth,
    Failed,
    Fault,
    Hidden,
    Identity,
    Reading,
    Sweep,
)

from ...cluster.context import Context
from ...cluster.exchange import attempt
from ...protocol.faults import fault_of, right_for
from ...wire.acls import AclRow, AclRows, describe_acls
from . import resource_type as acls
from .readings import listing, seen
from .resource_type import Acl

API = "DescribeAcls"
FEW = 5
"""So many ACLs are asked for one by one; for more, all of them in one request cost less."""


def sweep_acls(context: Context, depth: Depth) -> Sweep:
    """Every ACL of the cluster, or the fault."""
    rows = live_acls(context)
    if isinstance(rows, Fault):
        return Sweep(acls.KIND, depth, (), Coverage(CoverageKind.FAILED, rows))
    return listing(context.instance, depth, rows)


def read_acls(
    context: Context, ids: Sequence[Identity], node: str | None
) -> Mapping[Identity, Reading]:
    """These ACLs. node: the broker whose view is wanted, None for any."""
    if len(ids) <= FEW:
        return {identity: _one(context, identity, node) for identity in ids}
    rows = live_acls(context, node)
    if isinstance(rows, Fault):
        return {identity: unseen(identity, rows) for identity in ids}
    there = {acl.key for acl in rows}
    return {identity: seen(identity, identity.key in there) for identity in ids}


def live_acls(
    context: Context, node: str | None = None, only: Acl | None = None
) -> tuple[Acl, ...] | Fault:
    """All ACLs, or this one if it is there; or why they are not told."""
    wanted = row_of(only) if only else None
    answer = attempt(API, lambda: describe_acls(context.wire, context.timeout, wanted, node), node)
    if isinstance(answer, AclRows) and answer.code:
        answer = fault_of(API, answer.code, "", answer.message, node or "")
    if isinstance(answer, Fault):
        return answer
    return tuple(_acl(row) for row in answer.rows)


def unseen(identity: Identity, fault: Fault) -> Reading:
    """Without Describe on Cluster no ACL can be seen, one's own included."""
    if fault.code == "CLUSTER_AUTHORIZATION_FAILED":
        return Hidden(identity, right_for(API, identity.key))
    return Failed(identity, fault)


def _one(context: Context, identity: Identity, node: str | None) -> Reading:
    acl = acls.acl_of_key(identity.key)
    rows = live_acls(context, node, acl)
    return unseen(identity, rows) if isinstance(rows, Fault) else seen(identity, acl in rows)


def row_of(acl: Acl) -> AclRow:
    """A known ACL in the protocol's codes."""
    return AclRow(
        acls.RESOURCE_TYPES[acl.resource_type],
        acl.resource_name,
        acls.PATTERN_TYPES[acl.pattern_type],
        acl.principal,
        acl.host,
        acls.OPERATIONS[acl.operation],
        acls.PERMISSIONS[acl.permission],
    )


def _acl(row: AclRow) -> Acl:
    return Acl(
        intern(row.principal),
        intern(row.host),
        _OPERATION.get(row.operation, str(row.operation)),
        _PERMISSION.get(row.permission, str(row.permission)),
        _RESOURCE.get(row.resource_type, str(row.resource_type)),
        intern(row.resource_name),
        _PATTERN.get(row.pattern_type, str(row.pattern_type)),
    )


_RESOURCE, _OPERATION, _PERMISSION, _PATTERN = (
    {code: word for word, code in words.items()}
    for words in (acls.RESOURCE_TYPES, acls.OPERATIONS, acls.PERMISSIONS, acls.PATTERN_TYPES)
)
"""Code -> word; a code that is newer than this version stays a number."""
