"""What the rules of quotas say: which limits a broker refuses, and what a limit does to clients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError
from kafka.protocol.admin import AlterClientQuotasRequest

from ...conftest import Broker
from ...kit.kafka.logins import Login
from ...kit.kafka.quota_user import Entity, Limits, limits
from ...kit.kafka.sessions import eventually
from ...kit.kafka.throttled_writers import open_writer, writing_user

PRODUCE = "producer_byte_rate"
KIB = 1024
REFUSED = 42
"""INVALID_REQUEST."""


@pytest.fixture
def broker(exclusive_broker: Broker) -> Broker:
    """Default quotas are everybody's who has none."""
    return exclusive_broker


@pytest.fixture
def quota(broker: Any) -> Iterator[Limits]:
    """Sets quotas of this test."""
    with limits(broker) as made:
        yield made


@pytest.fixture
def user(broker: Any, prefix: str) -> Iterator[Login]:
    """A user who can write to a topic of the same name."""
    with writing_user(broker, prefix) as login:
        yield login


def ask(quota: Limits, entity: Entity, key: str, value: float) -> int:
    """The code with which the controller answers a dry run of this limit."""
    row = AlterClientQuotasRequest.EntryData
    parts = [row.EntityData(entity_type=part, entity_name=name) for part, name in entity.items()]
    entry = row(entity=parts, ops=[row.OpData(key=key, value=value, remove=False)])
    request = AlterClientQuotasRequest(entries=[entry], validate_only=True)
    (answer,) = quota.wire.send(request, 10).entries
    return int(answer.error_code)


@pytest.mark.parametrize(
    ("entity", "key", "value", "code"),
    [
        ({"user": "a"}, "producer_rate", 1.0, REFUSED),
        ({"user": "a"}, "connection_creation_rate", 1.0, REFUSED),
        ({"ip": "192.0.2.7"}, PRODUCE, 1.0, REFUSED),
        ({"user": "a"}, PRODUCE, 0.0, REFUSED),
        ({"user": "a"}, PRODUCE, -1.0, REFUSED),
        ({"user": "a"}, PRODUCE, 1.5, REFUSED),
        ({"ip": "192.0.2.7"}, "connection_creation_rate", 2.0**31, REFUSED),
        ({"user": "a"}, PRODUCE, 1.0, 0),
        ({"user": "a"}, "request_percentage", 0.5, 0),
        ({"ip": "192.0.2.7"}, "connection_creation_rate", 1.0, 0),
    ],
)
def test_brokers_refuse_what_is_no_limit(
    quota: Limits, entity: Entity, key: str, value: float, code: int
) -> None:
    """Unknown keys, keys of another kind of entity, and numbers that limit nothing."""
    assert ask(quota, entity, key, value) == code


@pytest.mark.parametrize(
    ("address", "code"),
    [("192.0.2.0/24", REFUSED), ("192.0.2.*", REFUSED), ("192.0.2.300", REFUSED), ("::1", 0)],
)
def test_brokers_refuse_a_network(quota: Limits, address: str, code: int) -> None:
    """A quota is for one address: no networks, no patterns."""
    assert ask(quota, {"ip": address}, "connection_creation_rate", 5.0) == code


def test_a_byte_rate_slows_a_producer_down(quota: Limits, broker: Any, user: Login) -> None:
    """More than the limit in the window of ten seconds: the broker makes the client wait. Another
    client id of the same user has no limit."""
    limited = f"{user.user}-limited"
    quota.set(({"user": user.user, "client-id": limited}, {PRODUCE: 20.0 * KIB}))
    free = open_writer(broker, user, user.user)
    slow = open_writer(broker, user, user.user, client_id=limited)
    for writer in (free, slow):
        writer.write(20)
        assert writer.errors == []
    assert max(free.waits, default=0.0) == 0.0
    assert max(slow.waits) > 0.1


def test_a_cut_limit_slows_a_producer_down(quota: Limits, broker: Any, user: Login) -> None:
    """What passed at 100 MiB/s has to wait at a two-hundredth of it."""
    writer = open_writer(broker, user, user.user)
    quota.set(({"user": user.user}, {PRODUCE: 100.0 * KIB * KIB}))
    writer.write(20)
    assert max(writer.waits, default=0.0) == 0.0
    quota.set(({"user": user.user}, {PRODUCE: 5.0 * KIB}))
    writer.write(10)
    assert max(writer.waits) > 1 and writer.errors == []


def test_a_byte_a_second_stops_a_producer(quota: Limits, broker: Any, user: Login) -> None:
    """The first batch passes; the next one has to wait for hours, so the client gives up."""
    quota.set(({"user": user.user}, {PRODUCE: 1.0}))
    writer = open_writer(broker, user, user.user, message_timeout_ms=5000)
    writer.write(1)
    assert writer.errors == []
    assert max(writer.waits) > 3600
    writer.write(1)
    assert [error.code() for error in writer.errors] == [KafkaError._MSG_TIMED_OUT]


@pytest.mark.parametrize(
    "entity",
    [
        {"user": "*"},
        {"user": "<default>"},
        {"client-id": "*"},
        {"client-id": "app-*"},
        {"client-id": "<default>"},
    ],
)
def test_a_pattern_in_a_quota_matches_nobody(
    quota: Limits, broker: Any, user: Login, entity: Entity
) -> None:
    """The broker takes it for a name, and its own default has none."""
    quota.set((entity, {PRODUCE: 1.0}))
    writer = open_writer(broker, user, user.user, client_id="app-1", message_timeout_ms=10_000)
    writer.write(3)
    assert writer.errors == [] and max(writer.waits, default=0.0) == 0.0


def test_a_quota_ends_with_its_last_limit(quota: Limits, prefix: str) -> None:
    """`quota-empty`: the brokers list limits, and no entity without one."""
    entity = {"user": prefix}
    quota.set((entity, {PRODUCE: 1.0, "request_percentage": 5.0}))
    for key, rest in ((PRODUCE, {"request_percentage"}), ("request_percentage", set())):
        quota.remove(entity, key)
        names = eventually(
            lambda: {key for row in quota.rows() if row.entity == entity for key in row.values},
            lambda keys, rest=rest: keys == rest,  # type: ignore[misc]
        )
        assert names == rest
    assert all(row.entity != entity for row in quota.rows())


@pytest.mark.parametrize("entity", [{"user": None}, {"client-id": None}])
def test_the_default_matches_everybody(
    quota: Limits, broker: Any, user: Login, entity: Entity
) -> None:
    """The same limit for the default entity: the client has to wait."""
    quota.set((entity, {PRODUCE: 1.0}))
    writer = open_writer(broker, user, user.user, client_id="app-1")
    writer.write(1)
    assert max(writer.waits) > 3600


@pytest.mark.parametrize("form", ["User:{}", "{} ", "'{}'", "{},other"])
def test_another_spelling_of_a_user_limits_nobody(
    quota: Limits, broker: Any, user: Login, form: str
) -> None:
    """The type of a principal, a blank, quotes and a list are parts of a name."""
    quota.set(({"user": form.format(user.user)}, {PRODUCE: 1.0}))
    writer = open_writer(broker, user, user.user)
    writer.write(3)
    assert writer.errors == [] and max(writer.waits, default=0.0) == 0.0
