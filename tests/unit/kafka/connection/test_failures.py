"""Several brokers of which each fails in its own way: the clearest cause is told, and how many had
which; a refused login is no broker that cannot be reached."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkaform.core.errors import ConfigurationError, ConnectError
from kafkaform.core.secret import Secret
from kafkaform_kafka.connection.failures import ConnectionFailure, FailureKind, connect_error
from kafkaform_kafka.connection.login_attributes import KerberosSettings
from kafkaform_kafka.connection.settings import KafkaSettings
from kafkaform_kafka.wire.client import open_wire

from ....kit.kafka import doors
from ....kit.kafka.doors import Authority
from ....kit.kafka.key_stores import STORE, make_jks, to_der
from ....kit.tls_listener import listening, make_context

REFUSED = "connection refused"


@pytest.fixture(scope="module")
def own() -> Authority:
    """The company's authority."""
    return doors.authority("company")


def find_free_port() -> int:
    """A port where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def fail(*servers: str, **given: object) -> ConnectError:
    """What is said of servers to which no connection can be made."""
    with pytest.raises(ConnectError) as caught:
        open_wire(KafkaSettings("kafka", servers, **{"protocol": "SSL", **given}))
    assert "\n" not in caught.value.message
    return caught.value


@contextlib.contextmanager
def broker() -> Iterator[str]:
    """A listener without TLS that answers as a broker with PLAIN and SCRAM does."""
    names = b"".join(struct.pack(">h", len(name)) + name for name in (b"PLAIN", b"SCRAM-SHA-256"))
    body = struct.pack(">ihi", 1, 33, 2) + names
    with listening(answer=lambda _: struct.pack(">i", len(body)) + body) as address:
        yield address


@pytest.mark.parametrize("first", [True, False], ids=["dead first", "dead last"])
def test_a_host_name_that_does_not_fit_among_dead_brokers(
    first: bool, own: Authority, tmp_path: Path
) -> None:
    """Two brokers refuse the connection; what can be mended is the name of the third."""
    dead = [f"127.0.0.1:{find_free_port()}" for _ in range(2)]
    with listening(make_context(own, tmp_path, host="kafka.example.com")) as address:
        servers = (*dead, address) if first else (address, *dead)
        error = fail(*servers, ca=own.pem)
    assert error.message.startswith(f"cannot reach Kafka at {', '.join(servers)}: ")
    cause, _, rest = error.message.partition("certificate is refused: ")[2].partition("; ")
    assert cause.endswith(f"certificate is not valid for '127.0.0.1'. (1 of 3: {address})")
    assert rest == f"{REFUSED} (2 of 3: {', '.join(dead)})"
    assert error.advice.startswith("write the name from the certificate into bootstrap_servers")


def test_one_cause_for_all_is_told_once() -> None:
    """Without counting."""
    servers = [f"127.0.0.1:{find_free_port()}" for _ in range(3)]
    error = fail(*servers)
    assert error.message == f"cannot reach Kafka at {', '.join(servers)}: {REFUSED}"


def test_a_protocol_that_is_another_one_on_the_last_broker() -> None:
    """The third of the list was never looked at."""
    dead = [f"127.0.0.1:{find_free_port()}" for _ in range(2)]
    with broker() as address:
        error = fail(*dead, address)
    said = f"the listener expects SASL_PLAINTEXT, but this connection uses SSL (1 of 3: {address})"
    assert said in error.message and REFUSED in error.message


def test_many_brokers_are_counted() -> None:
    """Three are named."""
    servers = tuple(f"b{number}:9092" for number in range(9))
    failure = ConnectionFailure(FailureKind.UNREACHABLE, REFUSED)
    settings = KafkaSettings("kafka", servers, "PLAINTEXT")
    said = connect_error(settings, dict.fromkeys(servers[:8], failure)).message
    assert f"{REFUSED} (8 of 9: b0:9092, b1:9092, b2:9092 …)" in said


def make_settings(**given: object) -> KafkaSettings:
    """A login at two brokers."""
    login = {"protocol": "SASL_SSL", "mechanism": "SCRAM-SHA-512", "username": "ci"}
    password = Secret("hunter2")
    return KafkaSettings("kafka", ("a:1", "b:1"), **{**login, "password": password, **given})


def refuse(text: str) -> dict[str, ConnectionFailure]:
    """The first broker refuses the login for this reason; the second one cannot be reached."""
    return {
        "a:1": ConnectionFailure(FailureKind.REFUSED_LOGIN, text),
        "b:1": ConnectionFailure(FailureKind.UNREACHABLE, REFUSED),
    }


@pytest.mark.parametrize(
    ("given", "login", "advice"),
    [
        ({}, "(SCRAM-SHA-512, as ci)", "check sasl_mechanism, sasl_username and sasl_password"),
        ({"token_auth": True}, "(SCRAM-SHA-512, as ci)", "the HMAC of one token"),
        (
            {"mechanism": "OAUTHBEARER", "username": None},
            "(OAUTHBEARER)",
            "issuer, audience and time",
        ),
        (
            {
                "mechanism": "GSSAPI",
                "username": None,
                "kerberos": KerberosSettings("kafka", "ci@EXAMPLE.COM"),
            },
            "(GSSAPI, as ci@EXAMPLE.COM)",
            "check the ticket or the keytab",
        ),
    ],
)
def test_a_refused_login(given: dict[str, object], login: str, advice: str) -> None:
    """The broker, its reason, the mechanism and the user; what to check; never the password."""
    error = connect_error(make_settings(**given), refuse("no entry\nfor hunter2"))
    assert error.message.startswith("Kafka at a:1 refused the login: no entry for ")
    assert login in error.message and advice in error.advice
    assert "cannot reach" not in error.message and "hunter2" not in error.message


@pytest.mark.parametrize(
    "reason",
    [
        "Authentication failed: Invalid username or password",
        "Authentication failed during authentication due to invalid credentials with SASL "
        "mechanism SCRAM-SHA-512",
        "Authentication failed",
    ],
)
def test_a_wrong_password_is_named(reason: str) -> None:
    """Kafka's reasons for it differ by mechanism and version."""
    said = connect_error(make_settings(), refuse(reason)).message
    assert said.startswith(
        "Kafka at a:1 refused the login: wrong username or password (SCRAM-SHA-512, as ci) (1 of 2"
    )
    said = connect_error(make_settings(token_auth=True), refuse(reason)).message
    assert "wrong token ID or HMAC, or the token has expired (SCRAM-SHA-512, as ci)" in said


def test_a_login_without_credentials_is_no_refusal() -> None:
    """No broker has refused it."""
    failure = ConnectionFailure(FailureKind.NO_CREDENTIALS, "Kerberos: no ticket")
    login = {"mechanism": "GSSAPI", "username": None, "kerberos": KerberosSettings("kafka")}
    error = connect_error(make_settings(**login), dict.fromkeys(("a:1", "b:1"), failure))
    assert error.message == "cannot log in to Kafka at a:1, b:1: Kerberos: no ticket (GSSAPI)"
    assert "klist" in error.advice


def test_another_broker_is_tried_after_a_wrong_certificate(own: Authority, tmp_path: Path) -> None:
    """One broker's certificate is no reason to give up the others."""
    asked: list[bytes] = []

    def answer(request: bytes) -> bytes:
        asked.append(request)
        return b"?"

    (tmp_path / "other").mkdir()
    wrong = make_context(own, tmp_path, host="kafka.example.com")
    with listening(wrong) as bad, listening(make_context(own, tmp_path / "other"), answer) as good:
        fail(bad, good, ca=own.pem)
    assert asked


def test_a_form_that_java_has_is_sent_to_its_attribute(own: Authority, tmp_path: Path) -> None:
    """In a provider block for Kafka, stores have attributes of their own."""
    (tmp_path / "store").write_bytes(make_jks(STORE, trusted=[own.pem]))
    (tmp_path / "ca.crt").write_bytes(to_der(own.pem))
    for name, said, advice in (
        ("store", "is a Java key store (JKS)", "name it in ssl_truststore_location instead of"),
        ("ca.crt", "is a certificate in DER form", "convert it with `openssl x509 -inform DER"),
        ("none", "cannot be read: No such file", "correct the path"),
    ):
        with pytest.raises(ConfigurationError) as caught:
            open_wire(KafkaSettings("kafka", ("a:1",), "SSL", ca=str(tmp_path / name)))
        assert f"ca_cert {tmp_path}/{name} {said}" in caught.value.message
        assert advice in caught.value.advice
