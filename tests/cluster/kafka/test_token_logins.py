"""Logins with a delegation token: what a session without librdkafka can do, and how it fails."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from kafkaform.core.errors import ConnectError, KafkaformError, OtherSystem
from kafkaform.core.resource import CoverageKind, Depth
from kafkaform.core.secret import Secret
from kafkaform_kafka.connection.settings import KafkaSettings
from kafkaform_kafka.kinds.commanded.resource_types import TOKEN
from kafkaform_kafka.review import list_live_groups, read_offset_spans, read_old_spans
from kafkaform_kafka.session import KafkaSession, open_session
from kafkaform_kafka.wire.client import RequestNotSent
from kafkaform_kafka.wire.cluster import describe_cluster
from kafkaform_kafka.wire.security import (
    AT_ONCE,
    BROKER_DEFAULT,
    TokenRow,
    create_token,
    describe_tokens,
    expire_token,
    renew_token,
)

from ...conftest import Broker
from ...kit.kafka.logins import Login, new_login
from ...kit.kafka.sessions import apply, connect, eventually, gone, new, produce, read, reading

SECONDS = 20.0
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")


@pytest.fixture
def token(broker: Broker) -> Iterator[TokenRow]:
    """A token of the super user; it is gone afterwards."""
    session = connect(broker)
    wire = session.context.wire
    made = create_token(wire, None, (), BROKER_DEFAULT, SECONDS)
    assert made.code == 0

    def find() -> TokenRow | None:
        rows = describe_tokens(wire, SECONDS).rows
        return next((row for row in rows if row.token_id == made.token_id), None)

    row = eventually(find, lambda found: found is not None)
    assert row is not None
    yield row
    expire_token(wire, row.hmac, AT_ONCE, SECONDS)
    session.close()


def settings(broker: Broker, row: TokenRow, **more: Any) -> KafkaSettings:
    usual: dict[str, Any] = {
        "instance": "kafka",
        "servers": (broker.bootstrap,),
        "protocol": "SASL_PLAINTEXT",
        "mechanism": "SCRAM-SHA-256",
        "username": row.token_id,
        "password": row.hmac,
        "token_auth": True,
        "timeout": 10.0,
    }
    return KafkaSettings(**{**usual, **more})


def open_known(given: KafkaSettings) -> KafkaSession:
    """A session with a token that brokers may still have to learn of."""

    def attempt() -> KafkaSession | None:
        try:
            return open_session(given)
        except ConnectError:
            return None

    session = eventually(attempt, lambda found: found is not None)
    assert session is not None
    return session


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_token_has_the_rights_of_its_owner(
    broker: Broker, token: TokenRow, mechanism: str
) -> None:
    """The session reads and changes like one of the owner, except for tokens, by name (KIP-48)."""
    session = open_known(settings(broker, token, mechanism=mechanism))
    assert session.facts.scope_id == broker.cluster_id
    assert "Alter" in session.facts.recorded_values["rights"]
    assert session.sweep("kafka_topic", Depth.NAMES).coverage.kind is not CoverageKind.FAILED
    fault = session.sweep(TOKEN, Depth.FULL).coverage.fault
    assert fault is not None and fault.code == "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"
    session.prove()
    session.close()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_the_figures_of_a_deletion(
    broker: Broker, token: TokenRow, prefix: str, protocol: str
) -> None:
    """Offsets, bytes and the groups that read, whichever protocol they use."""
    ours = open_known(settings(broker, token))
    name = f"{prefix}figures"
    assert [outcome.fault for outcome in apply(ours, new(name, partitions=3))] == [None]
    eventually(lambda: read(ours, name), lambda found: hasattr(found, "incarnation"))
    produce(broker, name, 30)
    doomed = gone(name, None, 3)
    counts = {name: 3}
    with reading(broker, name, f"{prefix}group", protocol):
        figures = eventually(
            lambda: ours.assess([doomed])[doomed.identity].figures,
            lambda found: found.get("groups") == f"{prefix}group",
        )
    assert figures["offsets"] == 30
    assert read_offset_spans(ours.context, counts) == {name: 30}
    for cut, old in ((None, 0), (1, 0), (4_000_000_000_000, 30)):
        span = read_old_spans(ours.context, counts, {name: cut})[name]
        assert (span.all, span.old) == (30, old)
    assert read_offset_spans(ours.context, {f"{prefix}none": 1}) == {}
    eventually(
        lambda: list_live_groups(ours.context, {name}, 1000),
        lambda found: found is not None and not found.get(name),
    )
    assert list_live_groups(ours.context, {name}, -1) is None
    apply(ours, gone(name, getattr(read(ours, name), "incarnation", None), 3))
    ours.close()


def test_a_wrong_token_is_refused_once(broker: Broker, token: TokenRow) -> None:
    """In one line that says what to check; nothing of the HMAC is shown."""
    wrong = Secret("bm90IHRoZSBobWFj")
    for given in (
        settings(broker, token, password=wrong),
        settings(broker, token, username="nosuchtoken"),
    ):
        with pytest.raises(ConnectError) as caught:
            open_session(given)
        said = f"{caught.value.message} {caught.value.advice}"
        assert "wrong token ID or HMAC" in said and "the id and the HMAC of one token" in said
        assert token.hmac.reveal() not in said and wrong.reveal() not in said


def test_a_password_is_no_token(broker: Broker, stranger: Login) -> None:
    """A user's password does not log in as a token, nor a token's HMAC as a user."""
    row = TokenRow(stranger.user, "", "", (), 0, 0, 0, Secret(stranger.password))
    with pytest.raises(ConnectError, match="wrong token ID or HMAC"):
        open_session(settings(broker, row))


def test_another_cluster_is_noticed(broker: Broker, token: TokenRow) -> None:
    """The cluster of the first answer is the one that every connection must lead to."""
    session = open_known(settings(broker, token))
    proof = session.context.wire._proof
    assert proof.expected == broker.cluster_id
    proof.expected = "another"
    with pytest.raises(OtherSystem):
        session.prove()
    session.close()


def test_a_token_that_has_ended(broker: Broker) -> None:
    """Nobody logs in with it any more, and who is connected stays."""
    with new_login(broker) as login:
        session = connect(broker, login)
        wire = session.context.wire
        made = create_token(wire, None, (), BROKER_DEFAULT, SECONDS)

        def find() -> TokenRow | None:
            rows = describe_tokens(wire, SECONDS).rows
            return next((row for row in rows if row.token_id == made.token_id), None)

        row = eventually(find, lambda found: found is not None)
        assert row is not None
        connected = open_known(settings(broker, row))
        assert expire_token(wire, row.hmac, AT_ONCE, SECONDS).code == 0
        eventually(lambda: is_refused(settings(broker, row)), bool)
        assert describe_cluster(connected.context.wire, SECONDS).brokers
        connected.close()
        session.close()


def is_refused(known: KafkaSettings) -> bool:
    """Whether a new session cannot log in."""
    try:
        open_session(known).close()
    except ConnectError:
        return True
    return False


def test_a_connection_ends_when_its_token_was_to_end(broker: Broker) -> None:
    """At the time that the token had when the client logged in (KIP-368)."""
    with new_login(broker) as login:
        session = connect(broker, login)
        wire = session.context.wire
        made = create_token(wire, None, (), 15_000, SECONDS)

        def find() -> TokenRow | None:
            rows = describe_tokens(wire, SECONDS).rows
            return next((row for row in rows if row.token_id == made.token_id), None)

        row = eventually(find, lambda found: found is not None)
        assert row is not None
        connected = open_known(settings(broker, row))
        assert describe_cluster(connected.context.wire, SECONDS).brokers

        def is_closed() -> bool:
            try:
                describe_cluster(connected.context.wire, 5)
            except (KafkaformError, RequestNotSent):
                return True
            return False

        eventually(is_closed, bool)
        connected.close()
        session.close()


def test_a_time_is_shortened_to_what_the_broker_and_the_token_allow(broker: Broker) -> None:
    """A day is Kafka's own limit of a period, and no token lives longer than its maximum."""
    hour = 3_600_000
    with new_login(broker) as login:
        session = connect(broker, login)
        wire = session.context.wire
        for lifetime, longest in ((BROKER_DEFAULT, 24 * hour), (2 * hour, 2 * hour)):
            made = create_token(wire, None, (), lifetime, SECONDS)
            rows = eventually(
                lambda made=made: [  # type: ignore[misc]
                    row
                    for row in describe_tokens(wire, SECONDS).rows
                    if row.token_id == made.token_id
                ],
                bool,
            )
            now = int(time.time() * 1000)
            answer = renew_token(wire, rows[0].hmac, 72 * hour, SECONDS)
            assert answer.code == 0
            assert longest - hour < answer.expires - now <= longest + hour
        session.close()
