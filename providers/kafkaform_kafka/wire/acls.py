"""DescribeAcls, CreateAcls and DeleteAcls, one request each, with every error code visible.

The public methods of both clients drop the top-level code of DescribeAcls or fail on resource
types and operations that are newer than they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafka.protocol.admin import CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest
from msgspec import Struct

from .answers import ItemAnswer
from .client import Wire

ANY = 1
_USER = 7
"""The resource type that needs version 3."""


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
    """code: 0, or why nothing is told; a refusal has no rows, which does not mean no ACLs."""

    code: int
    message: str | None
    rows: tuple[AclRow, ...]


class DeletedAcls(Struct, frozen=True):
    """What became of one filter: its answer, and the ACLs that it matched and deleted."""

    answer: ItemAnswer
    matched: tuple[AclRow, ...] = ()


def describe_acls(
    wire: Wire, timeout: float, only: AclRow | None = None, node: str | None = None
) -> AclRows:
    """All ACLs of the cluster, or this one if it is there. timeout: seconds, the client's own:
    the request carries none; node: the broker whose view is wanted."""
    fields = _make_filter(only) if only else _EVERYTHING
    response = wire.send(DescribeAclsRequest(**fields, **_choose_version(only)), timeout, node)
    rows = (
        AclRow(
            found.resource_type,
            found.resource_name,
            found.pattern_type,
            acl.principal,
            acl.host,
            acl.operation,
            acl.permission_type,
        )
        for found in response.resources or ()
        for acl in found.acls
    )
    return AclRows(response.error_code, response.error_message, tuple(rows))


def create_acls(wire: Wire, acls: Sequence[AclRow], timeout: float) -> tuple[ItemAnswer, ...]:
    """Create them all; an answer for each, in order. An ACL that is there is a success."""
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
    """Delete exactly these; an answer for each, in order. One that is gone matches nothing."""
    row = DeleteAclsRequest.DeleteAclsFilter
    filters = [row(**_make_filter(acl)) for acl in acls]
    response = wire.send(DeleteAclsRequest(filters=filters, **_choose_version(*acls)), timeout)
    return tuple(_parse_deleted(item) for item in response.filter_results)


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
    """A filter in which every field is given, so that it matches this ACL and no other."""
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
    newer = any(acl is not None and acl.resource_type >= _USER for acl in acls)
    return {"min_version": 3 if newer else 1}


def _parse_deleted(item: Any) -> DeletedAcls:
    """The filter's own error, or else the first of its matches'."""
    failed = next((acl for acl in item.matching_acls if acl.error_code), item)
    told = item if item.error_code else failed
    return DeletedAcls(
        ItemAnswer(told.error_code, told.error_message),
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
