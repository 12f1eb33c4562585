"""Logins on a broker. What a test grants, denies or limits concerns a user of that test alone: many
tests share a broker, and some of them expect that a user may see nothing."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaError, KafkaException
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
    brokers = admin.list_topics(timeout=PATIENCE).brokers.values()
    made = UserScramCredentialUpsertion(
        login.user, ScramCredentialInfo(SCRAM, 4096), login.password.encode()
    )
    finish(lambda: admin.alter_user_scram_credentials([made]))
    for one in brokers:
        _wait_until_known(broker, login, f"{one.host}:{one.port}")
    yield login
    everything = (ResourceType.ANY, None, ResourcePatternType.ANY)
    mine = (login.principal, None, AclOperation.ANY, AclPermissionType.ANY)
    finish(lambda: admin.delete_acls([AclBindingFilter(*everything, *mine)]))
    gone = UserScramCredentialDeletion(login.user, SCRAM)
    finish(lambda: admin.alter_user_scram_credentials([gone]))


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


def finish(send: Callable[[], Mapping[Any, Any]], accepted: tuple[int, ...] = ()) -> None:
    """Wait for the answers to a request of a client that may be new. send: sends it, which may
    happen twice; accepted: error codes that are as good as success. Raises KafkaException."""
    # A client drops its connection to the address that it was given once it knows which broker
    # that is, together with the request that it has just sent there.
    lost = False
    while True:
        errors = [future.exception(PATIENCE) for future in send().values()]
        good = (*accepted, *(_DONE_BEFORE if lost else ()))
        faults = [error for error in errors if error and _get_code(error) not in good]
        if not faults:
            return
        if lost or {_get_code(fault) for fault in faults} != {KafkaError._DESTROY_BROKER}:
            raise faults[0]
        lost = True


def _get_code(fault: BaseException) -> int | None:
    return fault.args[0].code() if isinstance(fault, KafkaException) else None


_DONE_BEFORE = (
    KafkaError.TOPIC_ALREADY_EXISTS,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.RESOURCE_NOT_FOUND,
)
"""The answers to what a lost request has done."""
