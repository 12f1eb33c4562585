"""DescribeUserScramCredentials and AlterUserScramCredentials (KIP-554).

confluent-kafka has methods for these. Raw requests show every code of every user, can be sent to a
particular broker, and keep the password away from any client library.
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
