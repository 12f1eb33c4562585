"""TLS: both clients verify the broker, and a refusal says what to check."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkaform import sandbox
from kafkaform.core.errors import ConnectError, KafkaformError
from kafkaform.core.resource import CoverageKind, Depth
from kafkaform_providers.kafka.session import open_session
from kafkaform_providers.kafka.settings import Settings


def plain(box: sandbox.Sandbox) -> Settings:
    """A connection without TLS."""
    servers = tuple(box.bootstrap.split(","))
    return Settings(
        "kafka", servers, "SASL_PLAINTEXT", "PLAIN", "admin", box.admin_password, timeout=3.0
    )


def secure(box: sandbox.Sandbox, ca: str | None, **more: str) -> Settings:
    """A connection with TLS that trusts this authority."""
    mechanism = more.get("mechanism", "SCRAM-SHA-256")
    servers = tuple((box.bootstrap_tls or "").split(","))
    return Settings("kafka", servers, "SASL_SSL", mechanism, "admin", box.admin_password, ca=ca)


def answering(box: sandbox.Sandbox) -> int:
    """How many brokers are there."""
    try:
        session = open_session(plain(box))
    except KafkaformError:
        return 0
    session.close()
    return len(session.facts.nodes)


@pytest.fixture(scope="module")
def box() -> Iterator[sandbox.Sandbox]:
    """A broker with a TLS listener."""
    name = f"tls-{os.getpid()}"
    yield sandbox.up(sandbox.Options(name, tls=True), answering)
    sandbox.down(name)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_both_clients_connect_over_tls(box: sandbox.Sandbox, mechanism: str) -> None:
    """The certificate authority is a file, and every login of the sandbox works."""
    session = open_session(secure(box, str(box.ca_file), mechanism=mechanism))
    assert session.sweep("kafka_topic", Depth.NAMES).coverage.kind is CoverageKind.VISIBLE_ONLY
    session.close()


def test_the_authority_may_be_given_as_text(box: sandbox.Sandbox) -> None:
    """PEM text works as well as a path, for configurations that keep it in a variable."""
    pem = Path(str(box.ca_file)).read_text(encoding="ascii")
    open_session(secure(box, pem)).close()


def test_a_certificate_that_nobody_trusts_is_refused(box: sandbox.Sandbox) -> None:
    """Without its authority the broker is not believed, and ca_cert is named."""
    with pytest.raises(ConnectError) as caught:
        open_session(secure(box, None))
    assert "certificate verify failed" in caught.value.message
    assert "ca_cert" in caught.value.advice


def test_tls_to_a_plain_listener_says_so(box: sandbox.Sandbox) -> None:
    """The usual mix-up of two ports is recognised."""
    wrong = Settings(
        "kafka",
        plain(box).servers,
        "SASL_SSL",
        "PLAIN",
        "admin",
        box.admin_password,
        ca=str(box.ca_file),
    )
    with pytest.raises(ConnectError, match="PLAINTEXT broker listener"):
        open_session(wrong)
