"""DescribeUserScramCredentials and AlterUserScramCredentials.

Raw requests, where confluent-kafka has methods: every code of every user is visible, a chosen
broker can be asked, and no password ever reaches a client library.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafka.protocol.admin import (
    AlterUserScramCredentialsRequest,
    DescribeUserScramCredentialsRequest,
)
from msgspec import Struct

from ..protocol.scram import SaltedPassword
from .answers import ItemAnswer, ItemAnswers
from .client import Wire


class ScramRow(Struct, frozen=True):
    """One user. code: 0, or 91 for one without credentials; iterations: mechanism code ->
    iterations."""

    user: str
    code: int
    message: str | None
    iterations: Mapping[int, int]


class ScramRows(Struct, frozen=True):
    """code: 0, or why nothing is told; a refusal has no rows, which does not mean no users."""

    code: int
    message: str | None
    rows: tuple[ScramRow, ...]


class Upsertion(Struct, frozen=True):
    """A credential to set. mechanism: the protocol's code."""

    user: str
    mechanism: int
    iterations: int
    salted: SaltedPassword


class Deletion(Struct, frozen=True):
    """A credential to delete. mechanism: the protocol's code."""

    user: str
    mechanism: int


def describe_scram(
    wire: Wire, users: Sequence[str] | None, timeout: float, node: str | None = None
) -> ScramRows:
    """The credentials of these users, None for all of them. timeout: seconds; node: the broker to
    ask, None for any."""
    row = DescribeUserScramCredentialsRequest.UserName
    # Null means all users too, but a broker that has to refuse it never answers (seen: 4.3.1).
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
    """Set and delete credentials, each user named once. timeout: seconds, the client's own: the
    request carries none."""
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
