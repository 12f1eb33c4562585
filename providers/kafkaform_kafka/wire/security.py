"""Who may do what: ACLs, users with passwords (KIP-554) and delegation tokens (KIP-48, KIP-373),
one request each, with every error code visible.

The public methods of both clients drop the top-level code of DescribeAcls, so that a refusal looks
like an empty list, or they fail on resource types and operations that are newer than the client.
Raw requests show every code of every user and token, can be sent to a particular broker, and keep
passwords away from any client library.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Mapping, Sequence
from sys import intern
from typing import Any

from kafka.protocol.admin import (
    AlterUserScramCredentialsRequest,
    CreateAclsRequest,
    DeleteAclsRequest,
    DescribeAclsRequest,
    DescribeUserScramCredentialsRequest,
)
from msgspec import Struct

from kafkaform.core.secret import PartialRepr, Secret

from .answers import ItemAnswer, ItemAnswers
from .client import Wire
from .messages import define_message

# Messages about delegation tokens (KIP-48, KIP-373), which kafka-python does not have.
CreateDelegationTokenRequest = define_message("CreateDelegationTokenRequest")
CreateDelegationTokenResponse = define_message("CreateDelegationTokenResponse")
RenewDelegationTokenRequest = define_message("RenewDelegationTokenRequest")
RenewDelegationTokenResponse = define_message("RenewDelegationTokenResponse")
ExpireDelegationTokenRequest = define_message("ExpireDelegationTokenRequest")
ExpireDelegationTokenResponse = define_message("ExpireDelegationTokenResponse")
DescribeDelegationTokenRequest = define_message("DescribeDelegationTokenRequest")
DescribeDelegationTokenResponse = define_message("DescribeDelegationTokenResponse")

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


SALT_BYTES = 32


# ── users ───────────────────────────────────────────────────────────────────────────────


class SaltedPassword(PartialRepr, frozen=True):
    """What is sent instead of a password. It allows an offline attack, so it is never shown."""

    _unshown = frozenset({"salt", "password"})

    salt: bytes
    password: bytes


def salt_password(password: str, digest: str, iterations: int) -> SaltedPassword:
    """Hi(password, salt, iterations) of RFC 5802. digest: the hash's name in `hashlib`."""
    # A new salt each time, as Kafka's tools do: no two requests are equal, so none is idempotent.
    salt = os.urandom(SALT_BYTES)
    # No SASLprep (RFC 4013): Kafka's ScramFormatter takes the UTF-8 bytes as they are, and a
    # normalized password would not match at login.
    return SaltedPassword(
        salt, hashlib.pbkdf2_hmac(digest, password.encode("utf-8"), salt, iterations)
    )


class ScramRow(Struct, frozen=True):
    """The credentials of one user."""

    user: str
    code: int
    """0, or 91 (RESOURCE_NOT_FOUND) for a user without credentials."""
    message: str | None
    # Salt and keys never leave the broker: whether the password is the wanted one cannot be read.
    iterations: Mapping[int, int]
    """Mechanism code -> iterations."""


class ScramRows(Struct, frozen=True):
    """The credentials of several users."""

    code: int
    """0, or why they are unknown. A refusal has no rows, which does not mean that there are
    none."""
    message: str | None
    rows: tuple[ScramRow, ...]


class Upsertion(Struct, frozen=True):
    """A credential to set."""

    user: str
    mechanism: int
    """Its code in the protocol."""
    iterations: int
    salted: SaltedPassword


class Deletion(Struct, frozen=True):
    """A credential to delete."""

    user: str
    mechanism: int
    """Its code in the protocol."""


def describe_scram(
    wire: Wire, users: Sequence[str] | None, timeout: float, node: str | None = None
) -> ScramRows:
    """The credentials of these users, None for all of them. timeout: seconds; node: the broker to
    ask, None for any."""
    row = DescribeUserScramCredentialsRequest.UserName
    # A null list means all users, too, but a broker that has to refuse it never answers (seen with
    # Kafka 4.3.1): the request would run into its timeout.
    named = [row(name=user) for user in users or ()]
    response = wire.send(DescribeUserScramCredentialsRequest(users=named), timeout, node)
    return ScramRows(
        response.error_code,
        response.error_message,
        tuple(
            ScramRow(
                item.user,
                item.error_code,
                item.error_message,
                {info.mechanism: info.iterations for info in item.credential_infos},
            )
            for item in response.results
        ),
    )


def alter_scram(
    wire: Wire, upsertions: Sequence[Upsertion], deletions: Sequence[Deletion], timeout: float
) -> ItemAnswers:
    """Set and delete credentials; each user occurs once. timeout: seconds on our side, because the
    request has no such field."""
    # A second item for one user is refused with 92 (DUPLICATE_RESOURCE), also with another
    # mechanism.
    request = AlterUserScramCredentialsRequest
    response = wire.send(
        request(
            deletions=[
                request.ScramCredentialDeletion(name=item.user, mechanism=item.mechanism)
                for item in deletions
            ],
            upsertions=[
                request.ScramCredentialUpsertion(
                    name=item.user,
                    mechanism=item.mechanism,
                    iterations=item.iterations,
                    salt=item.salted.salt,
                    salted_password=item.salted.password,
                )
                for item in upsertions
            ],
        ),
        timeout,
    )
    return ItemAnswers(
        {item.user: ItemAnswer(item.error_code, item.error_message) for item in response.results},
        response.throttle_time_ms / 1000,
    )


BROKER_DEFAULT = -1
"""A period in milliseconds: the longest that the brokers allow."""
AT_ONCE = -1
"""A period in milliseconds until a token expires: it is removed at once."""


# ── delegation tokens ───────────────────────────────────────────────────────────────────


class TokenRow(Struct, frozen=True):
    """One delegation token. Principals are texts such as `User:alice`."""

    token_id: str
    owner: str
    requester: str
    """Who created it; the owner before Kafka 3.3 (KIP-373)."""
    renewers: tuple[str, ...]
    issued: int
    """Milliseconds since 1970, as the other times."""
    expires: int
    ends: int
    """The time after which it cannot be renewed."""
    # With this anybody can log in as the owner. As a login it is the password, in this spelling.
    hmac: Secret
    """In base64."""


class TokenRows(Struct, frozen=True):
    """The tokens that we can see."""

    code: int
    """0, or why they are unknown."""
    rows: tuple[TokenRow, ...] = ()


class TokenAnswer(Struct, frozen=True):
    """The answer to a change of one token."""

    code: int
    token_id: str = ""
    """The id of a created token."""
    expires: int = 0
    """When a renewed or shortened token expires now, in milliseconds since 1970."""


def describe_tokens(wire: Wire, timeout: float, node: str | None = None) -> TokenRows:
    """The tokens that we own, asked for, can renew or may describe; others are left out without an
    error. timeout: seconds; node: the broker to ask, None for any."""
    response = wire.send(DescribeDelegationTokenRequest(owners=None), timeout, node)
    return TokenRows(response.error_code, tuple(_make_row(item) for item in response.tokens))


def create_token(
    wire: Wire, owner: str | None, renewers: Sequence[str], lifetime: int, timeout: float
) -> TokenAnswer:
    """Create a token. owner: None for the principal that logs in; lifetime: milliseconds, or
    BROKER_DEFAULT; timeout: seconds on our side, because the request has no such field."""
    kind, name = _split_principal(owner) if owner is not None else (None, None)
    row = CreateDelegationTokenRequest.CreatableRenewers
    request = CreateDelegationTokenRequest(
        owner_principal_type=kind,
        owner_principal_name=name,
        renewers=[
            row(principal_type=renewer_kind, principal_name=renewer_name)
            for renewer_kind, renewer_name in map(_split_principal, renewers)
        ],
        max_lifetime_ms=lifetime,
        # An older broker would ignore the owner, and create a token of our own.
        min_version=0 if owner is None else 3,
    )
    response = wire.send(request, timeout)
    return TokenAnswer(response.error_code, response.token_id)


def renew_token(wire: Wire, hmac: Secret, period: int, timeout: float) -> TokenAnswer:
    """Let a token expire later. period: milliseconds from now, or BROKER_DEFAULT; timeout:
    seconds."""
    request = RenewDelegationTokenRequest(hmac=_decode(hmac), renew_period_ms=period)
    return _parse_end(wire.send(request, timeout))


def expire_token(wire: Wire, hmac: Secret, period: int, timeout: float) -> TokenAnswer:
    """Let a token expire. period: milliseconds from now, or AT_ONCE; timeout: seconds."""
    request = ExpireDelegationTokenRequest(hmac=_decode(hmac), expiry_time_period_ms=period)
    return _parse_end(wire.send(request, timeout))


def _parse_end(response: Any) -> TokenAnswer:
    return TokenAnswer(response.error_code, expires=response.expiry_timestamp_ms)


def _make_row(item: Any) -> TokenRow:
    owner = _join_principal(item.principal_type, item.principal_name)
    requester = _join_principal(
        item.token_requester_principal_type, item.token_requester_principal_name
    )
    return TokenRow(
        token_id=item.token_id,
        owner=owner or "",
        requester=requester or owner or "",
        renewers=tuple(
            sorted(
                f"{renewer.principal_type}:{renewer.principal_name}" for renewer in item.renewers
            )
        ),
        issued=item.issue_timestamp,
        expires=item.expiry_timestamp,
        ends=item.max_timestamp,
        hmac=Secret(base64.b64encode(bytes(item.hmac)).decode("ascii")),
    )


def _join_principal(kind: str | None, name: str | None) -> str | None:
    return f"{kind}:{name}" if kind else None


def _split_principal(text: str) -> tuple[str, str]:
    kind, _, name = text.partition(":")
    return kind, name


def _decode(hmac: Secret) -> bytes:
    return base64.b64decode(hmac.reveal())
