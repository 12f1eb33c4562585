"""Every way to connect, and one clear line within ten seconds for every way to fail."""

from __future__ import annotations

import dataclasses
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kafkaform.core.errors import ConnectError
from kafkaform.core.resource import CoverageKind, Depth
from kafkaform.core.secret import Secret
from kafkaform_kafka.connection.settings import KafkaSettings
from kafkaform_kafka.review import list_live_groups
from kafkaform_kafka.session import KafkaSession, open_session
from kafkaform_kafka.wire import connections
from kafkaform_kafka.wire.cluster import read_certificate

from ...kit.kafka import doors
from ...kit.kafka.doors import Doors
from ...kit.kafka.sessions import eventually
from ...kit.kafka.token_endpoint import CLIENT, SECRET, Endpoint, serving
from ...kit.proxy.frames import Asked, answer, answered
from ...kit.proxy.proxy import proxying

WRONG = "hunter2-wrong"


@pytest.fixture(scope="module")
def house(own_brokers: None) -> Iterator[Doors]:
    """One broker with all the listeners."""
    with doors.opened(f"doors-{os.getpid()}") as opened:
        yield opened


@pytest.fixture(scope="module")
def stranger() -> doors.Authority:
    """An authority that nobody here knows."""
    return doors.authority("somebody else")


def through(
    house: Doors, door: str, protocol: str, *login: str | None, **more: Any
) -> KafkaSettings:
    """Settings for one listener. login: mechanism, user, password."""
    hidden = [Secret(text) if text else None for text in login[2:]]
    where = (house.at(door),)
    return KafkaSettings("kafka", where, protocol, *login[:2], *hidden, timeout=5.0, **more)


def admin(house: Doors, door: str, protocol: str, mechanism: str, **more: Any) -> KafkaSettings:
    """The super user by password."""
    return through(house, door, protocol, mechanism, "admin", house.box.admin_password, **more)


def token_file(tmp_path: Path, token: str) -> str:
    """The path of a file with this token."""
    path = tmp_path / "token"
    path.write_text(token)
    return str(path)


def works(settings: KafkaSettings) -> KafkaSession:
    """A session that has been answered as a super user."""
    session = open_session(settings)
    assert "Alter" in session.facts.recorded_values["rights"]
    assert session.sweep("kafka_topic", Depth.NAMES).coverage.kind is not CoverageKind.FAILED
    return session


def refusal(settings: KafkaSettings) -> str:
    """Message and advice of a connection that fails, in time, in one line, without secrets."""
    started = time.monotonic()
    with pytest.raises(ConnectError) as caught:
        open_session(settings)
    # Ten seconds where nothing else runs; the clients' own limits would be thirty and more.
    assert time.monotonic() - started < 25
    error = caught.value
    assert "\n" not in error.message and error.advice
    for secret in (settings.password, settings.key):
        text = secret.reveal() if isinstance(secret, Secret) else secret
        assert text is None or text not in error.message + error.advice
    return f"{error.message} -> {error.advice}"


# ── what works ──────────────────────────────────────────────────────────────────────────


def test_without_a_login(house: Doors) -> None:
    """PLAINTEXT: nobody is asked who they are; here that is nobody with rights."""
    session = open_session(through(house, "OPEN", "PLAINTEXT"))
    assert session.facts.scope_id == house.box.cluster_id
    session.close()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize(("door", "protocol"), [("CLIENT", "SASL_PLAINTEXT"), ("TLS", "SASL_SSL")])
def test_with_a_password(house: Doors, door: str, protocol: str, mechanism: str) -> None:
    """Three mechanisms, with and without TLS."""
    ca = str(house.box.ca_file) if protocol == "SASL_SSL" else None
    works(admin(house, door, protocol, mechanism, ca=ca)).close()


def test_with_a_client_certificate(house: Doors) -> None:
    """Mutual TLS; certificate and key are PEM text here."""
    certificate, key = house.authority.issue("ops", host=None)
    pem = house.authority.pem
    works(through(house, "MTLS", "SSL", ca=pem, certificate=certificate, key=key)).close()


def test_the_certificate_of_a_broker(house: Doors) -> None:
    """Its name and its times, only if it is trusted, and never what an expired one shows."""
    host, _, port = house.at("MTLS").rpartition(":")
    certificate, key = house.authority.issue("ops", host=None)
    ours = {"ca": house.authority.pem, "certificate": certificate, "key": key}
    settings = through(house, "MTLS", "SSL", **ours)
    shown = read_certificate(settings, host, int(port))
    assert shown is not None and shown.subject == "CN=broker"
    assert shown.begins < time.time() * 1000 < shown.ends
    assert read_certificate(settings, host, house.ports["EXPIRED"]) is None
    assert read_certificate(settings, host, house.ports["STRANGER"]) is None
    assert read_certificate(settings, host, house.ports["OPEN"]) is None


def test_with_a_token_from_a_file(house: Doors, tmp_path: Path) -> None:
    """OAUTHBEARER: the broker checks signature, audience and time, and takes the subject."""
    file = token_file(tmp_path, house.tokens.make())
    works(through(house, "OAUTH", "SASL_PLAINTEXT", "OAUTHBEARER", token_file=file)).close()


def test_with_tokens_from_an_endpoint_that_are_renewed(house: Doors) -> None:
    """The broker wants a new login every 2 seconds and the tokens live for 3: a session that
    outlives several still reads, and the endpoint is asked a few times only.
    On a busy computer a new login may come too late; then the connection is made anew."""
    grant = {"access_token": "", "expires_in": 3}

    def token() -> dict[str, Any]:
        return {**grant, "access_token": house.tokens.make(seconds=3)}

    begun = time.monotonic()
    with serving(token) as endpoint:
        session = works(by_endpoint(house, endpoint))
        first = len(endpoint.asked)
        for _ in range(3):
            time.sleep(2.5)
            eventually(lambda: session.sweep("kafka_topic", Depth.NAMES).coverage.fault, _is_none)
            eventually(lambda: list_live_groups(session.context, {"none"}, 10), _is_some)
        session.close()
        assert first == 1
        # Each client once a second or two; on a busy computer all this takes longer.
        assert 2 <= len(endpoint.asked) <= 4 + (time.monotonic() - begun)


@contextmanager
def greeting(text: bytes) -> Iterator[str]:
    """host:port of a server that says this to everybody, and with nothing to say never ends."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)
        ended = threading.Event()

        def serve() -> None:
            held = []
            while not ended.is_set():
                try:
                    connection, _ = server.accept()
                except TimeoutError:
                    continue
                connection.sendall(text)
                if text:
                    connection.close()
                held.append(connection)
            for connection in held:
                connection.close()

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        ended.set()
        thread.join(60)


def _is_none(found: object) -> bool:
    return found is None


def _is_some(found: object) -> bool:
    return found is not None


# ── what fails ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_wrong_password(house: Doors, mechanism: str) -> None:
    """It is tried once: repeated ones can lock an account."""
    given = replace(admin(house, "CLIENT", "SASL_PLAINTEXT", mechanism), password=Secret(WRONG))
    said = refusal(given)
    assert said.startswith(f"Kafka at {house.at('CLIENT')} refused the login: ")
    assert f"wrong username or password ({mechanism}, as admin) -> " in said
    assert "check sasl_mechanism, sasl_username and sasl_password" in said


def test_a_mechanism_that_the_listener_does_not_have(house: Doors) -> None:
    """What it has is named."""
    said = refusal(admin(house, "SCRAM", "SASL_PLAINTEXT", "PLAIN"))
    assert f"Kafka at {house.at('SCRAM')} refused the login: " in said
    assert "does not offer PLAIN -> choose another sasl_mechanism: SCRAM-SHA-512" in said


def test_a_certificate_of_an_unknown_authority(house: Doors, stranger: doors.Authority) -> None:
    """Whether no authority is given or another one."""
    for ca in (None, stranger.pem):
        said = refusal(admin(house, "TLS", "SASL_SSL", "PLAIN", ca=ca))
        assert "the broker's certificate is refused: " in said
        assert "give the certificate of the broker's authority in ca_cert" in said


def test_a_certificate_for_another_host(house: Doors) -> None:
    """The right authority is not enough."""
    said = refusal(through(house, "STRANGER", "SSL", ca=house.authority.pem))
    assert "certificate is not valid for '127.0.0.1'" in said
    assert "write the name from the certificate into bootstrap_servers" in said


def test_a_certificate_that_has_expired(house: Doors) -> None:
    """The word is there, and what to do."""
    said = refusal(through(house, "EXPIRED", "SSL", ca=house.authority.pem))
    assert "certificate has expired -> have the broker's certificate renewed" in said


def test_no_client_certificate_where_one_is_wanted(house: Doors) -> None:
    """In TLS 1.3 the refusal comes after the handshake."""
    said = refusal(through(house, "MTLS", "SSL", ca=house.authority.pem))
    assert f"Kafka at {house.at('MTLS')} refused the login: " in said
    assert "the broker requires a client certificate -> give client_cert and client_key" in said


def test_a_client_certificate_of_an_unknown_authority(
    house: Doors, stranger: doors.Authority
) -> None:
    """The broker refuses us, not we the broker."""
    certificate, key = stranger.issue("ops", host=None)
    pem = house.authority.pem
    said = refusal(through(house, "MTLS", "SSL", ca=pem, certificate=certificate, key=key))
    assert "the broker refuses our client certificate" in said


def test_the_clearest_cause_of_several_brokers(house: Doors) -> None:
    """One is down, one has a certificate for another name, and one is the listener of another
    protocol: each is told with its address; and one that is right is enough."""
    servers = ("127.0.0.1:1", house.at("STRANGER"), house.at("EXPIRED"))
    given = replace(through(house, "OPEN", "SSL", ca=house.authority.pem), servers=servers)
    said = refusal(given)
    assert f"not valid for '127.0.0.1'. (1 of 3: {house.at('STRANGER')})" in said
    assert f"certificate has expired (1 of 3: {house.at('EXPIRED')})" in said
    assert "connection refused (1 of 3: 127.0.0.1:1)" in said
    right = through(house, "MTLS", "SSL", ca=house.authority.pem)
    certificate, key = house.authority.issue("ops", host=None)
    works(
        replace(right, servers=(*servers, house.at("MTLS")), certificate=certificate, key=key)
    ).close()


def test_a_port_where_nobody_listens(house: Doors) -> None:
    """Refused at once by the computer, said after two seconds at most."""
    said = refusal(KafkaSettings("kafka", ("127.0.0.1:1",), "PLAINTEXT"))
    assert "127.0.0.1:1" in said and "connection refused" in said


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
def test_a_port_where_something_else_listens(
    protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mail server says its name to everybody who connects."""
    monkeypatch.setattr(connections, "SETTLED", 0.1)
    with greeting(b"220 mail.example.com ESMTP ready\r\n") as address:
        said = refusal(KafkaSettings("kafka", (address,), protocol))
    assert f"{address}: the server there is not Kafka -> check host and port" in said


@pytest.mark.slow("waits for a timeout")
def test_a_port_that_never_answers() -> None:
    """A server that hangs takes connections as well; the wait has an end."""
    with greeting(b"") as address:
        said = refusal(KafkaSettings("kafka", (address,), "PLAINTEXT"))
    assert f"{address}: no answer in time" in said


def test_a_host_that_does_not_exist(house: Doors) -> None:
    """The name is in the message."""
    said = refusal(KafkaSettings("kafka", ("no-such-host.invalid:9092",), "PLAINTEXT"))
    assert "no-such-host.invalid" in said and "check the host names" in said


def test_brokers_that_advertise_another_address(house: Doors) -> None:
    """The listed address answers, and leads to one where nobody listens."""

    def advertise(request: Asked, data: bytes) -> bytes:
        if request.api != "Metadata":
            return data
        body = answer(request, data)
        brokers = tuple(dataclasses.replace(broker, port=1) for broker in body.brokers)
        return answered(request, dataclasses.replace(body, brokers=brokers))

    given = admin(house, "CLIENT", "SASL_PLAINTEXT", "PLAIN")
    with proxying(int(house.at("CLIENT").rpartition(":")[2])) as proxy:
        proxy.tamper = advertise
        said = refusal(replace(given, servers=(proxy.bootstrap,)))
        assert said.startswith(f"Kafka at {proxy.bootstrap} answers, but none of its brokers ")
    assert "connection refused (broker 1 at 127.0.0.1:1) -> check advertised.listeners" in said


MIXED_UP: list[tuple[Callable[[Doors], KafkaSettings], str, str]] = [
    (
        lambda house: through(house, "CLIENT", "PLAINTEXT"),
        "expects SASL_PLAINTEXT, but this connection uses PLAINTEXT",
        'security_protocol = "SASL_PLAINTEXT" and log in with ',
    ),
    (
        lambda house: admin(house, "OPEN", "SASL_PLAINTEXT", "PLAIN"),
        "expects PLAINTEXT, but this connection uses SASL_PLAINTEXT",
        'security_protocol = "PLAINTEXT"',
    ),
    (
        lambda house: through(house, "EXPIRED", "PLAINTEXT"),
        "expects TLS, but this connection uses PLAINTEXT",
        'security_protocol = "SSL" and give ca_cert',
    ),
    (
        lambda house: admin(house, "TLS", "SASL_PLAINTEXT", "PLAIN"),
        "expects TLS, but this connection uses SASL_PLAINTEXT",
        'security_protocol = "SASL_SSL" and give ca_cert',
    ),
    (
        lambda house: through(house, "TLS", "SSL", ca=str(house.box.ca_file)),
        "expects SASL_SSL, but this connection uses SSL",
        'security_protocol = "SASL_SSL" and log in with ',
    ),
    (
        lambda house: admin(house, "CLIENT", "SASL_SSL", "PLAIN"),
        "expects SASL_PLAINTEXT, but this connection uses SASL_SSL",
        "name the port of a listener with TLS in bootstrap_servers",
    ),
]


@pytest.mark.parametrize(("settings", "said", "todo"), MIXED_UP)
def test_a_protocol_that_is_not_the_listeners(
    house: Doors, settings: Callable[[Doors], KafkaSettings], said: str, todo: str
) -> None:
    """The listener shows what it is, so nobody has to guess; TLS is not given up lightly."""
    found = refusal(settings(house))
    assert said in found and todo in found


def test_a_token_that_the_broker_does_not_accept(house: Doors, tmp_path: Path) -> None:
    """Signed by another, or meant for another audience."""
    foreign = doors.Tokens(doors.new_key()).make()
    for token in (foreign, house.tokens.make(aud="billing")):
        file = token_file(tmp_path, token)
        said = refusal(through(house, "OAUTH", "SASL_PLAINTEXT", "OAUTHBEARER", token_file=file))
        assert "invalid_token" in said and "issuer, audience and time" in said
        assert token not in said


def test_a_token_that_has_expired(house: Doors, tmp_path: Path) -> None:
    """Seen without asking the broker; the file is named."""
    file = token_file(tmp_path, house.tokens.make(seconds=-60))
    said = refusal(through(house, "OAUTH", "SASL_PLAINTEXT", "OAUTHBEARER", token_file=file))
    assert f"the token in sasl_token_file {file} has expired" in said


def test_a_token_endpoint_that_is_down_or_refuses(house: Doors) -> None:
    """It is named in place of the brokers, which were not even asked."""
    with serving(lambda: {}) as endpoint:
        refused = refusal(replace(by_endpoint(house, endpoint), password=Secret(WRONG)))
    assert "refused to give a token: HTTP 401, invalid_client" in refused
    down = refusal(by_endpoint(house, endpoint))
    assert f"{endpoint.url} cannot be reached: Connection refused" in down


def test_a_token_endpoint_that_fails_later_is_named_too(house: Doors) -> None:
    """A session whose next login gets no token reads nothing, and says why, not "no topics"."""
    with serving(lambda: {"access_token": house.tokens.make(seconds=3)}) as endpoint:
        session = works(replace(by_endpoint(house, endpoint), timeout=2.0))
    until = time.monotonic() + 120
    while (found := session.sweep("kafka_topic", Depth.NAMES)).coverage.fault is None:
        assert time.monotonic() < until
        time.sleep(0.3)
    session.close()
    assert found.coverage.kind is CoverageKind.FAILED
    assert "no token to log in with" in found.coverage.fault.message
    assert f"{endpoint.url} cannot be reached" in found.coverage.fault.message


def by_endpoint(house: Doors, endpoint: Endpoint) -> KafkaSettings:
    """A token of that endpoint."""
    login = ("OAUTHBEARER", CLIENT, SECRET)
    return through(house, "OAUTH", "SASL_PLAINTEXT", *login, token_url=endpoint.url)
