"""Logins on a broker. What a test grants, denies or limits concerns a user of that test alone: many
tests share a broker, and some of them expect that a user may see nothing."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

SCRAM = ScramMechanism.SCRAM_SHA_256
PATIENCE = 120.0


@dataclass(frozen=True)
class Login:
    """A user as both clients log in."""

    user: str
    password: str = field(repr=False)
    mechanism: str = "SCRAM-SHA-256"

    @property
    def principal(self) -> str:
        return f"User:{self.user}"


def admin_login(broker: Any) -> Login:
    """The broker's super user."""
    return Login("admin", broker.admin_password, "PLAIN")


def open_client(broker: Any, login: Login, address: str = "") -> AdminClient:
    """Another client than kafkaform's, as this user. address: of one broker of several."""
    return AdminClient(
        {
            "bootstrap.servers": address or broker.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": login.mechanism,
            "sasl.username": login.user,
            "sasl.password": login.password,
            "log_level": 0,
        }
    )


@contextmanager
def new_login(broker: Any, user: str = "", password: str = "") -> Iterator[Login]:
    """A user without rights, whom the broker knows, by default with a name and a password that
    nobody else has. Afterwards the user and all ACLs for it are gone."""
    login = Login(user or f"user-{uuid.uuid4().hex[:10]}", password or uuid.uuid4().hex)
    admin = open_client(broker, admin_login(broker))
    # Also so that the client knows all brokers: a request is lost if it learns of them meanwhile.
    brokers = admin.list_topics(timeout=PATIENCE).brokers.values()
    made = UserScramCredentialUpsertion(
        login.user, ScramCredentialInfo(SCRAM, 4096), login.password.encode()
    )
    _finish(admin.alter_user_scram_credentials([made]))
    for one in brokers:
        _wait_until_known(broker, login, f"{one.host}:{one.port}")
    yield login
    everything = (ResourceType.ANY, None, ResourcePatternType.ANY)
    mine = (login.principal, None, AclOperation.ANY, AclPermissionType.ANY)
    _finish(admin.delete_acls([AclBindingFilter(*everything, *mine)]))
    _finish(admin.alter_user_scram_credentials([UserScramCredentialDeletion(login.user, SCRAM)]))


def _wait_until_known(broker: Any, login: Login, address: str) -> None:
    """A broker learns of a user a little after the controller has answered."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            open_client(broker, login, address).list_topics(timeout=10)
        except KafkaException:
            assert time.monotonic() < deadline, f"the broker does not get to know {login.user}"
        else:
            return


def _finish(futures: Mapping[Any, Any]) -> None:
    for future in futures.values():
        future.result(PATIENCE)
