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
from kafkaform_kafka.connection.failures import connect_error
from kafkaform_kafka.connection.kerberos import KerberosSettings
from kafkaform_kafka.connection.listener import Listener
from kafkaform_kafka.connection.native import begin_contact, prove_cluster
from kafkaform_kafka.connection.settings import KafkaSettings

from ....kit.kafka import doors
from ....kit.kafka.doors import Authority
from ....kit.kafka.key_stores import STORE, make_jks, to_der
from ....kit.tls_listener import listening, make_context

REFUSED = "Connection refused"


@pytest.fixture(scope="module")
def own() -> Authority:
    """The company's authority."""
    return doors.authority("company")


def find_free_port() -> int:
    """A port where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def fail(*servers: str, **given: object) -> ConnectError:
    """What is said of servers to which librdkafka cannot connect."""
    contact = begin_contact(KafkaSettings("kafka", servers, **{"protocol": "SSL", **given}))
    assert contact is not None
    with pytest.raises(ConnectError) as caught:
        prove_cluster(contact)
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
    listeners = {server: Listener(False, failure=REFUSED) for server in servers[:8]}
    settings = KafkaSettings("kafka", servers, "PLAINTEXT")
    said = connect_error(settings, (), listeners).message
    assert f"{REFUSED} (8 of 9: b0:9092, b1:9092, b2:9092 …)" in said


def make_settings(**given: object) -> KafkaSettings:
    """A login at two brokers."""
    login = {"protocol": "SASL_SSL", "mechanism": "SCRAM-SHA-512", "username": "ci"}
    password = Secret("hunter2")
    return KafkaSettings("kafka", ("a:1", "b:1"), **{**login, "password": password, **given})


REPORTS = [
    ("_TRANSPORT", "sasl_ssl://b:1/bootstrap: Connect to ipv4#10.0.0.1:1 failed: Timed out"),
    (
        "_AUTHENTICATION",
        "sasl_ssl://a:1/bootstrap: SASL authentication error: Authentication failed during "
        "authentication due to invalid credentials with hunter2 (after 3ms in state AUTH_REQ)",
    ),
]


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
    error = connect_error(make_settings(**given), REPORTS)
    assert error.message.startswith("Kafka at a:1 refused the login: SASL authentication error: ")
    assert login in error.message and advice in error.advice
    assert "cannot reach" not in error.message and "hunter2" not in error.message


def test_what_an_advertised_broker_did_is_told() -> None:
    """It is none of the list, and the only one that says something."""
    report = ("_RESOLVE", "b1.internal:9092/1: Failed to resolve 'b1.internal:9092': Unknown")
    said = connect_error(make_settings(), [report]).message
    assert said.startswith("cannot reach Kafka at a:1, b:1: b1.internal:9092/1: Failed to resolve")


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
            begin_contact(KafkaSettings("kafka", ("a:1",), "SSL", ca=str(tmp_path / name)))
        assert f"ca_cert {tmp_path}/{name} {said}" in caught.value.message
        assert advice in caught.value.advice
