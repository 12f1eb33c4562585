"""Logins with Kerberos (SASL/GSSAPI) on a real KDC and a real broker."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

import pytest

from kafkaform.core.errors import ConnectError
from kafkaform.core.resource import CoverageKind, Depth
from kafkaform_kafka.connection.login_attributes import KerberosSettings
from kafkaform_kafka.connection.settings import KafkaSettings
from kafkaform_kafka.session import KafkaSession, open_session
from kafkaform_kafka.wire.connections import KerberosExchange, TicketError, prepare_kerberos

from ...kit.kafka import kerberos
from ...kit.kafka.kerberos import HOST, REALM, Realm
from ...kit.kafka.sessions import apply, eventually, gone, new, read

pytestmark = pytest.mark.skipif(bool(kerberos.find_missing()), reason=kerberos.find_missing())


@pytest.fixture(scope="module")
def realm(own_brokers: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    """A realm, by whose environment the library of this process finds it."""
    with (
        kerberos.running(tmp_path_factory.mktemp("realm")) as started,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in started.environment.items():
            patch.setenv(name, value)
        yield started


@pytest.fixture(scope="module")
def listener(realm: Realm) -> Iterator[str]:
    """The address of a listener for Kerberos."""
    with kerberos.opened(f"kerberos-{os.getpid()}", realm) as (_, address):
        yield address


@pytest.fixture(scope="module")
def keytab(realm: Realm) -> str:
    """The keytab of the super user."""
    return str(realm.keytab(f"admin@{REALM}"))


def settings(address: str, **login: Any) -> KafkaSettings:
    wanted = KerberosSettings(**{"service": "kafka", **login})
    return KafkaSettings(
        "kafka", (address,), "SASL_PLAINTEXT", "GSSAPI", timeout=10.0, kerberos=wanted
    )


def works(given: KafkaSettings) -> KafkaSession:
    session = open_session(given)
    assert session.sweep("kafka_topic", Depth.NAMES).coverage.kind is not CoverageKind.FAILED
    return session


def refusal(given: KafkaSettings) -> str:
    """Message and advice of a login that fails."""
    with pytest.raises(ConnectError) as caught:
        open_session(given)
    assert "\n" not in caught.value.message
    return f"{caught.value.message} -> {caught.value.advice}"


def test_with_a_keytab(listener: str, keytab: str) -> None:
    """The principal is the broker's user, whose rights hold. The session reads and changes, and
    outlives the time after which the broker demands another login."""
    session = works(settings(listener, principal=f"admin@{REALM}", keytab=keytab))
    assert "Alter" in session.facts.recorded_values["rights"]
    name = f"kerberos-{os.getpid()}"
    assert [outcome.fault for outcome in apply(session, new(name, partitions=2))] == [None]
    until = time.monotonic() + 7
    eventually(lambda: read(session, name), lambda found: hasattr(found, "incarnation"))
    while time.monotonic() < until:
        assert session.sweep("kafka_topic", Depth.NAMES).coverage.fault is None
        time.sleep(0.5)
    found: Any = read(session, name)
    impacts = session.assess([gone(name, found.incarnation, 2)])
    (impact,) = impacts.values()
    assert impact.figures["offsets"] == 0 and impact.figures["groups"] == "none"
    apply(session, gone(name, found.incarnation, 2))
    session.close()


def test_with_a_ticket_cache(listener: str, realm: Realm, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the environment, and one that the block names; a user without rights has none."""
    cache = realm.tickets(realm.user("ci"))
    session = works(settings(listener, ticket_cache=cache))
    assert session.facts.recorded_values["rights"] == ()
    session.close()
    monkeypatch.setenv("KRB5CCNAME", cache)
    works(settings(listener)).close()
    works(settings(listener, principal=f"ci@{REALM}")).close()


def test_what_fails_says_why(listener: str, realm: Realm, keytab: str) -> None:
    """No ticket, another service, another principal in the keytab: in one line with advice."""
    said = refusal(settings(listener))
    assert "Kerberos: " in said and "klist" in said
    known = {"principal": f"admin@{REALM}", "keytab": keytab}
    said = refusal(settings(listener, **{**known, "service": "nosuchservice"}))
    assert "Kerberos: " in said and "sasl_kerberos_service_name" in said
    said = refusal(settings(listener, principal=f"other@{REALM}", keytab=keytab))
    assert "Kerberos: " in said and "sasl_kerberos_principal" in said


def test_a_ticket_that_has_expired(listener: str, realm: Realm) -> None:
    """The library's own words for it."""
    cache = realm.tickets(realm.user("late"), "-l", "1s")
    time.sleep(2)
    said = refusal(settings(listener, ticket_cache=cache))
    assert "expired" in said.lower()


@pytest.fixture(scope="module")
def service(realm: Realm) -> str:
    """The keytab of a service that this process plays itself."""
    return str(realm.keytab(f"played/{HOST}@{REALM}"))


def answer(exchange: KerberosExchange, keytab: str, offer: bytes) -> bytes:
    """Play the broker until a security layer is chosen (RFC 4752); returns the choice."""
    gssapi = pytest.importorskip("gssapi")
    ours = gssapi.Credentials(usage="accept", store={"keytab": keytab})
    context = gssapi.SecurityContext(usage="accept", creds=ours)
    exchange.receive(context.step(exchange.auth_bytes()) or b"")
    assert context.complete and str(context.initiator_name) == f"admin@{REALM}"
    assert exchange.auth_bytes() == b"" and not exchange.is_done()
    exchange.receive(context.wrap(offer, False).message)
    choice: bytes = context.unwrap(exchange.auth_bytes()).message
    exchange.receive(b"")
    return choice


def test_no_security_layer_is_chosen(realm: Realm, keytab: str, service: str) -> None:
    """Of all layers that are offered, none, and without a size. A service that offers no such
    choice is refused."""
    wanted = KerberosSettings("played", f"admin@{REALM}", keytab)
    make = prepare_kerberos(wanted)
    exchange = make(HOST)
    assert answer(exchange, service, b"\x07\x00\xff\xff") == b"\x01\x00\x00\x00"
    assert exchange.is_done() and exchange.is_authenticated()
    with pytest.raises(TicketError, match="demands a security layer"):
        answer(make(HOST), service, b"\x06\x00\xff\xff")
    with pytest.raises(TicketError, match="Kerberos: "):
        make(HOST).receive(b"nonsense")
