"""What the rules of SCRAM credentials say: which logins work, and what open connections do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from msgspec.structs import replace

from kafkaform_kafka.connection.settings import make_client_config, make_librdkafka_config
from kafkaform_kafka.kinds.acl import resource_type as acls
from kafkaform_kafka.kinds.user.resource_type import FEWEST, MOST
from kafkaform_kafka.session import KafkaSession
from kafkaform_kafka.wire.client import RequestNotSent, Wire
from kafkaform_kafka.wire.cluster import describe_cluster
from kafkaform_kafka.wire.security import (
    BROKER_DEFAULT,
    AclRow,
    Deletion,
    Upsertion,
    alter_scram,
    create_acls,
    create_token,
    delete_acls,
    describe_acls,
    describe_scram,
    salt_password,
)

from ...kit.kafka.logins import Login
from ...kit.kafka.sessions import connect, eventually, login

DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65
SHA_256 = 1
"""The protocol's number of SCRAM-SHA-256."""


@pytest.fixture
def made(admin: KafkaSession) -> Iterator[list[str]]:
    """Names of users that are gone afterwards."""
    names: list[str] = []
    yield names
    alter_scram(admin.context.wire, [], [Deletion(name, SHA_256) for name in names], 10)


def set_password(admin: KafkaSession, name: str, password: str, iterations: int = FEWEST) -> int:
    """The code with which the controller answers."""
    salted = salt_password(password, "sha256", iterations)
    answers = alter_scram(
        admin.context.wire, [Upsertion(name, SHA_256, iterations, salted)], [], 10
    )
    return answers.items[name].code


def lets_in(broker: Any, user: Login) -> bool:
    """Whether kafka-python logs in."""
    try:
        Wire(make_client_config(login(broker, user)), 1.5).close()
    except RequestNotSent:
        return False
    return True


def lets_librdkafka_in(broker: Any, user: Login) -> bool:
    """Whether librdkafka logs in."""
    client = AdminClient({**make_librdkafka_config(login(broker, user)), "log_level": 0})
    try:
        client.list_topics(timeout=5)
    except KafkaException:
        return False
    return True


@pytest.mark.parametrize("iterations", [FEWEST - 1, MOST + 1])
def test_the_controller_refuses_few_and_many_iterations(
    admin: KafkaSession, prefix: str, iterations: int
) -> None:
    """UNACCEPTABLE_CREDENTIAL (93)."""
    assert set_password(admin, prefix, "secret", iterations) == 93


def test_a_name_beyond_ascii_cannot_log_in(
    broker: Any, admin: KafkaSession, prefix: str, made: list[str]
) -> None:
    """The controller takes the credential, and no client gets in; the same name in ASCII works."""
    plain, other = f"{prefix}-zoe", f"{prefix}-zoë"
    made += [plain, other]
    assert [set_password(admin, name, "secret") for name in made] == [0, 0]
    for known in (lets_in, lets_librdkafka_in):
        eventually(lambda asks=known: asks(broker, Login(plain, "secret")), bool)
        assert not known(broker, Login(other, "secret"))


def test_a_deleted_credential_refuses_new_logins_and_keeps_open_ones(
    broker: Any, admin: KafkaSession, prefix: str, made: list[str]
) -> None:
    """A broker asks for a password when a client connects, and not again."""
    made.append(prefix)
    user = Login(prefix, "secret")
    assert set_password(admin, prefix, "secret") == 0
    eventually(lambda: lets_in(broker, user), bool)
    wire = Wire(make_client_config(login(broker, user)), 10)
    assert describe_cluster(wire, 10)
    alter_scram(admin.context.wire, [], [Deletion(prefix, SHA_256)], 10)
    eventually(lambda: lets_in(broker, user), lambda works: not works)
    assert describe_cluster(wire, 10).brokers
    wire.close()


def test_a_credential_shows_nothing_of_its_password(
    admin: KafkaSession, prefix: str, made: list[str]
) -> None:
    """`user-password-unknown`: those with different passwords look the same."""
    made += [prefix, f"{prefix}-other"]
    for name in made:
        assert set_password(admin, name, f"secret of {name}") == 0
    listed = eventually(
        lambda: describe_scram(admin.context.wire, made, 10).rows,
        lambda rows: all(row.iterations for row in rows),
    )
    first, second = (replace(row, user="") for row in listed)
    assert first == second and first.code == 0


def test_a_new_password_refuses_the_old_one_and_keeps_open_connections(
    broker: Any, admin: KafkaSession, prefix: str, made: list[str]
) -> None:
    """One password at a time."""
    made.append(prefix)
    old, new = Login(prefix, "first"), Login(prefix, "second")
    assert set_password(admin, prefix, "first") == 0
    eventually(lambda: lets_in(broker, old), bool)
    wire = Wire(make_client_config(login(broker, old)), 10)
    assert set_password(admin, prefix, "second") == 0
    eventually(lambda: lets_in(broker, new), bool)
    assert not lets_in(broker, old)
    assert describe_cluster(wire, 10).brokers
    wire.close()


def test_an_acl_for_a_user_without_a_type_gives_nothing(
    broker: Any, admin: KafkaSession, stranger: Login, prefix: str
) -> None:
    """`acl-user-unmatched`: the broker stores it, and only one for TYPE:NAME lets somebody create a
    token for that user."""
    allow = literal = 3
    session, owner = connect(broker, stranger), f"User:{prefix}"

    def ask() -> int:
        return create_token(session.context.wire, owner, (), BROKER_DEFAULT, 10).code

    rows = [
        AclRow(
            acls.RESOURCE_TYPES["User"],
            name,
            literal,
            stranger.principal,
            "*",
            acls.OPERATIONS["CreateTokens"],
            allow,
        )
        for name in (prefix, owner)
    ]
    try:
        for row, code in zip(rows, (DELEGATION_TOKEN_AUTHORIZATION_FAILED, 0), strict=True):
            (answer,) = create_acls(admin.context.wire, [row], 10)
            assert answer.code == 0
            eventually(
                lambda row=row: row in describe_acls(admin.context.wire, 10).rows,  # type: ignore[misc]
                bool,
            )
            eventually(ask, lambda told, code=code: told == code)  # type: ignore[misc]
    finally:
        delete_acls(admin.context.wire, rows, 10)
        session.close()
