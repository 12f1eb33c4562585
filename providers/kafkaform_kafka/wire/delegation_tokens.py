"""Create, renew, expire and describe delegation tokens (KIP-48, KIP-373)."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from kafkaform.core.secret import Secret

from .client import Wire
from .messages.tokens import (
    CreateDelegationTokenRequest,
    DescribeDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)

BROKER_DEFAULT = -1
"""A period in milliseconds: the longest that the brokers allow."""
AT_ONCE = -1
"""A period in milliseconds until a token expires: it is removed at once."""


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
