"""A user and quotas of one test alone: a quota throttles everybody who shares it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)
from kafka.protocol.admin import AlterClientQuotasRequest

from kafkaform.core.errors import ConnectError
from kafkaform.core.resource import CoverageKind, Depth
from kafkaform.core.value import FrozenMap
from kafkaform_kafka.connection.settings import KafkaSettings, make_client_config
from kafkaform_kafka.kinds.quota import resource_type as quotas
from kafkaform_kafka.session import KafkaSession, open_session
from kafkaform_kafka.wire.client import Wire
from kafkaform_kafka.wire.cluster import describe_cluster
from kafkaform_kafka.wire.configs import QuotaRow, describe_quotas

from .logins import admin_login, finish, new_login, open_client
from .sessions import eventually, login, wait_for_acls

Entity = Mapping[str, str | None]
Values = Mapping[str, float]
PATIENCE = 60.0


@dataclass(frozen=True)
class Limits:
    """Sets quotas as the super user, and takes back every one that it set."""

    wire: Wire
    made: dict[FrozenMap, set[str]] = field(default_factory=dict)

    def set(self, *rows: tuple[Entity, Values]) -> None:
        """Several entities at once, which each broker then shows and follows."""
        self.send(*rows)
        for node in sorted(describe_cluster(self.wire, PATIENCE).brokers):
            eventually(
                partial(self.rows, node), lambda seen: all(QuotaRow(e, v) in seen for e, v in rows)
            )
        # The broker changes what it enforces just after what it shows.
        time.sleep(0.1)

    def send(self, *rows: tuple[Entity, Values]) -> None:
        """Set them without waiting."""
        self._send([(entity, values, False) for entity, values in rows])
        for entity, values in rows:
            self.made.setdefault(FrozenMap(entity), set()).update(values)

    def remove(self, entity: Entity, key: str) -> None:
        """Take one limit of an entity back."""
        self._send([(entity, {key: 0.0}, True)])

    def rows(self, node: str | None = None) -> Sequence[QuotaRow]:
        """All quotas. node: id of the broker that shows them, None for any."""
        return describe_quotas(self.wire, PATIENCE, node).rows

    def lift(self) -> None:
        """Take everything back."""
        self._send([(entity, dict.fromkeys(keys, 0.0), True) for entity, keys in self.made.items()])

    def _send(self, rows: Sequence[tuple[Entity, Values, bool]]) -> None:
        row = AlterClientQuotasRequest.EntryData
        entries = [
            row(
                entity=[row.EntityData(entity_type=t, entity_name=n) for t, n in entity.items()],
                ops=[row.OpData(key=k, value=v, remove=remove) for k, v in values.items()],
            )
            for entity, values, remove in rows
        ]
        request = AlterClientQuotasRequest(entries=entries, validate_only=False)
        answer = self.wire.send(request, PATIENCE)
        assert {item.error_code for item in answer.entries} <= {0}, answer


@contextmanager
def limits(broker: Any) -> Iterator[Limits]:
    """Quotas that are gone afterwards."""
    made = Limits(Wire(make_client_config(login(broker, "admin")), PATIENCE))
    yield made
    made.lift()
    made.wire.close()


@contextmanager
def account(
    broker: Any, name: str, on_cluster: str = "ALL", password: str = ""
) -> Iterator[KafkaSettings]:
    """The login of a new user, who may do this with the cluster and everything with topics whose
    names begin with his."""
    client = open_client(broker, admin_login(broker))
    cluster = (ResourceType.BROKER, "kafka-cluster", ResourcePatternType.LITERAL)
    topics = (ResourceType.TOPIC, name, ResourcePatternType.PREFIXED)
    rights = ((cluster, AclOperation[on_cluster]), (topics, AclOperation.ALL))
    allow = AclPermissionType.ALLOW
    with new_login(broker, name, password) as user:
        given = [AclBinding(*w, user.principal, "*", what, allow) for w, what in rights]
        finish(lambda: client.create_acls(given))
        wait_for_acls(broker, client, given)
        yield login(broker, user)


@contextmanager
def opened(settings: KafkaSettings) -> Iterator[KafkaSession]:
    """A session of a user whom the broker is only just getting to know."""
    session = connected(settings)
    eventually(
        lambda: session.sweep(quotas.KIND, Depth.FULL).coverage.kind,
        lambda kind: kind is CoverageKind.COMPLETE,
    )
    session.close()
    # The first session read its facts before it had all rights.
    session = open_session(settings)
    yield session
    session.close()


def connected(settings: KafkaSettings) -> KafkaSession:
    """A session as soon as the broker knows the user."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return open_session(settings)
        except ConnectError:
            assert time.monotonic() < deadline, "the broker does not get to know the user"
            time.sleep(0.1)
