"""DescribeAcls, CreateAcls and DeleteAcls, one request each, with every error code visible.

The public methods of both clients drop the top-level code of DescribeAcls, so that a refusal looks
like an empty list, or they fail on resource types and operations that are newer than the client.
"""

from __future__ import annotations

from collections.abc import Sequence
from sys import intern
from typing import Any

from kafka.protocol.admin import CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest
from msgspec import Struct

from .answers import ItemAnswer
from .client import Wire

ANY = 1
_USER = 7
"""The resource type that needs version 3 (KIP-373)."""


class AclRow(Struct, frozen=True):
    """One ACL in the protocol's codes."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission: int


class AclRows(Struct, frozen=True):
    """The ACLs of a cluster."""

    code: int
    """0, or why they are unknown. A refusal has no rows, which does not mean that there are
    none."""
    message: str | None
    rows: tuple[AclRow, ...]


class DeletedAcls(Struct, frozen=True):
    """The result of one filter."""

    answer: ItemAnswer
    matched: tuple[AclRow, ...] = ()
    """The ACLs that it deleted."""


def describe_acls(
    wire: Wire, timeout: float, only: AclRow | None = None, node: str | None = None
) -> AclRows:
    """All ACLs of the cluster, or only this one. timeout: seconds on our side, because the request
    has no such field; node: the broker whose view to return."""
    fields = _make_filter(only) if only else _EVERYTHING
    response = wire.send(DescribeAclsRequest(**fields, **_choose_version(only)), timeout, node)
    # Thousands of ACLs share a few texts, which come as a new one with each.
    rows = (
        AclRow(
            resource.resource_type,
            intern(resource.resource_name),
            resource.pattern_type,
            intern(acl.principal),
            intern(acl.host),
            acl.operation,
            acl.permission_type,
        )
        for resource in response.resources or ()
        for acl in resource.acls
    )
    return AclRows(response.error_code, response.error_message, tuple(rows))


def create_acls(wire: Wire, acls: Sequence[AclRow], timeout: float) -> tuple[ItemAnswer, ...]:
    """Create these ACLs. Returns an answer for each, in order. timeout: seconds."""
    # Creating an ACL that is there already succeeds and changes nothing, so a repeated request does
    # no harm.
    row = CreateAclsRequest.AclCreation
    creations = [
        row(
            resource_type=acl.resource_type,
            resource_name=acl.resource_name,
            resource_pattern_type=acl.pattern_type,
            principal=acl.principal,
            host=acl.host,
            operation=acl.operation,
            permission_type=acl.permission,
        )
        for acl in acls
    ]
    response = wire.send(CreateAclsRequest(creations=creations, **_choose_version(*acls)), timeout)
    return tuple(ItemAnswer(item.error_code, item.error_message) for item in response.results)


def delete_acls(wire: Wire, acls: Sequence[AclRow], timeout: float) -> tuple[DeletedAcls, ...]:
    """Delete exactly these ACLs. Returns an answer for each, in order. timeout: seconds."""
    # A filter that matches nothing succeeds: an ACL that is gone is no error.
    row = DeleteAclsRequest.DeleteAclsFilter
    filters = [row(**_make_filter(acl)) for acl in acls]
    response = wire.send(DeleteAclsRequest(filters=filters, **_choose_version(*acls)), timeout)
    return tuple(_parse_deleted(item) for item in response.filter_results)


# Pattern type ANY (1) lists every ACL as it is. MATCH (2, KIP-290) would list those that apply to a
# resource of a name.
_EVERYTHING: dict[str, Any] = {
    "resource_type_filter": ANY,
    "resource_name_filter": None,
    "pattern_type_filter": ANY,
    "principal_filter": None,
    "host_filter": None,
    "operation": ANY,
    "permission_type": ANY,
}


def _make_filter(acl: AclRow) -> dict[str, Any]:
    """A filter that matches this ACL and no other."""
    # A field that is left out matches everything, and DeleteAcls has no dry run.
    return {
        "resource_type_filter": acl.resource_type,
        "resource_name_filter": acl.resource_name,
        "pattern_type_filter": acl.pattern_type,
        "principal_filter": acl.principal,
        "host_filter": acl.host,
        "operation": acl.operation,
        "permission_type": acl.permission,
    }


def _choose_version(*acls: AclRow | None) -> dict[str, int]:
    # With version 1 the client could not encode the type; a broker before Kafka 3.3 is then named
    # as the reason instead of an unknown number.
    newer = any(acl is not None and acl.resource_type >= _USER for acl in acls)
    return {"min_version": 3 if newer else 1}


def _parse_deleted(item: Any) -> DeletedAcls:
    """The result of a filter, with the first error of its matches if it has none of its own."""
    failed = next((acl for acl in item.matching_acls if acl.error_code), item)
    result = item if item.error_code else failed
    return DeletedAcls(
        ItemAnswer(result.error_code, result.error_message),
        tuple(
            AclRow(
                acl.resource_type,
                acl.resource_name,
                acl.pattern_type,
                acl.principal,
                acl.host,
                acl.operation,
                acl.permission_type,
            )
            for acl in item.matching_acls
        ),
    )
