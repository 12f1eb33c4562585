"""Lists ACLs and reads them by identity.

DescribeAcls returns all ACLs in one answer to anyone with Describe on Cluster, so an ACL that is
missing in it does not exist. Without that right the whole request fails.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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

from ...cluster.context import ClusterContext
from ...cluster.exchange import attempt
from ...protocol import acl as acls
from ...protocol.acl import Acl
from ...protocol.faults import fault_of, name_right
from ...wire.acls import AclRow, AclRows, describe_acls
from .readings import make_acl_reading, make_acl_sweep

# Through kafka-python: confluent-kafka drops the error of the whole request, so a missing right
# (31) and a missing authorizer (54) look like "no ACLs"; it also crashes on very many ACLs.
API = "DescribeAcls"
FEW = 5
"""Up to this many ACLs are read one by one; for more, one listing of all ACLs is cheaper."""


def sweep_acls(context: ClusterContext, depth: Depth) -> Sweep:
    """All ACLs of the cluster, or the fault of the request."""
    rows = list_live_acls(context)
    if isinstance(rows, Fault):
        return Sweep(acls.KIND, depth, (), Coverage(CoverageKind.FAILED, rows))
    return make_acl_sweep(context.instance, depth, rows)


def read_acls(
    context: ClusterContext, ids: Sequence[Identity], node: str | None
) -> Mapping[Identity, Reading]:
    """These ACLs. node: the broker to ask, None for any."""
    if len(ids) <= FEW or context.facts.values.get("acls_read_singly"):
        return {identity: _read_one(context, identity, node) for identity in ids}
    rows = list_live_acls(context, node)
    if isinstance(rows, Fault):
        return {identity: make_unseen_reading(identity, rows) for identity in ids}
    live_keys = {acl.key for acl in rows}
    return {identity: make_acl_reading(identity, identity.key in live_keys) for identity in ids}


def list_live_acls(
    context: ClusterContext, node: str | None = None, only: Acl | None = None
) -> tuple[Acl, ...] | Fault:
    """All ACLs, or only this one if it exists; or the fault of the request."""
    fields = encode_acl(only) if only else None
    answer = attempt(API, lambda: describe_acls(context.wire, context.timeout, fields, node), node)
    if isinstance(answer, AclRows) and answer.code:
        answer = fault_of(API, answer.code, "", answer.message, node or "")
    if isinstance(answer, Fault):
        return answer
    return tuple(_decode_acl(row) for row in answer.rows)


def make_unseen_reading(identity: Identity, fault: Fault) -> Reading:
    """The reading of an ACL after a failed request."""
    # Without Describe on Cluster nobody sees any ACL, not even his own.
    if fault.code == "CLUSTER_AUTHORIZATION_FAILED":
        return Hidden(identity, name_right(API, identity.key))
    return Failed(identity, fault)


def _read_one(context: ClusterContext, identity: Identity, node: str | None) -> Reading:
    acl = acls.parse_acl_key(identity.key)
    rows = list_live_acls(context, node, acl)
    return (
        make_unseen_reading(identity, rows)
        if isinstance(rows, Fault)
        else make_acl_reading(identity, acl in rows)
    )


def encode_acl(acl: Acl) -> AclRow:
    """The ACL in the codes of the protocol."""
    return AclRow(
        acls.RESOURCE_TYPES[acl.resource_type],
        acl.resource_name,
        acls.PATTERN_TYPES[acl.pattern_type],
        acl.principal,
        acl.host,
        acls.OPERATIONS[acl.operation],
        acls.PERMISSIONS[acl.permission],
    )


def _decode_acl(row: AclRow) -> Acl:
    return Acl(
        row.principal,
        row.host,
        _OPERATION.get(row.operation, str(row.operation)),
        _PERMISSION.get(row.permission, str(row.permission)),
        _RESOURCE.get(row.resource_type, str(row.resource_type)),
        row.resource_name,
        _PATTERN.get(row.pattern_type, str(row.pattern_type)),
    )


_RESOURCE, _OPERATION, _PERMISSION, _PATTERN = (
    {code: word for word, code in words.items()}
    for words in (acls.RESOURCE_TYPES, acls.OPERATIONS, acls.PERMISSIONS, acls.PATTERN_TYPES)
)
"""Code -> word. A code that is newer than this version stays a number, so that the ACL is shown but
never touched."""
