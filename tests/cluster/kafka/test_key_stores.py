"""Mutual TLS at a real broker with Java's key stores, as keytool makes them, and encrypted keys."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkaform.core.errors import ConfigurationError, ConnectError, KafkaformError
from kafkaform.core.resource import CoverageKind, Depth
from kafkaform.core.secret import Secret
from kafkaform.core.value import FrozenMap, SecretRef, freeze
from kafkaform.workflow.connection import ConnectionInputs, resolve_direct
from kafkaform_kafka.connection.settings import KafkaSettings, read_settings
from kafkaform_kafka.publishing import NumberedRecord, publish
from kafkaform_kafka.review import list_live_groups
from kafkaform_kafka.session import open_session

from ...kit.kafka import doors
from ...kit.kafka.doors import Doors
from ...kit.kafka.key_stores import KEY, STORE, Client, import_key, import_trusted, new_client

WRONG = "wrong-pass-99"
REFERENCES = {f"env:{name}": Secret(name) for name in (STORE, KEY, WRONG)}
KINDS = ["JKS", "PKCS12"]


@pytest.fixture(scope="module")
def house(own_brokers: None) -> Iterator[Doors]:
    """A broker with a listener that wants a client certificate."""
    with doors.opened(f"stores-{os.getpid()}") as opened:
        yield opened


@pytest.fixture(scope="module")
def client(house: Doors) -> Client:
    """A super user by certificate."""
    return new_client(house.authority)


@pytest.fixture(scope="module")
def stores(
    house: Doors, client: Client, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], tuple[str, str]]:
    """Type -> the paths of a truststore and a keystore of that type."""
    folder = tmp_path_factory.mktemp("stores")
    made = {
        kind: (
            str(import_trusted(folder / f"trust-{kind}", kind, house.authority.pem)),
            str(import_key(folder / f"key-{kind}", kind, client)),
        )
        for kind in KINDS
    }
    return made.__getitem__


def block(house: Doors, **given: Any) -> FrozenMap:
    """A provider block for the listener that wants a certificate."""
    frozen = freeze({"bootstrap_servers": [house.at("MTLS")], "operation_timeout": 5, **given})
    assert isinstance(frozen, FrozenMap)
    return frozen


def by_stores(truststore: str, keystore: str, kind: str) -> dict[str, Any]:
    """The attributes of both stores. A key in JKS has a password of its own."""
    given: dict[str, Any] = {
        "ssl_truststore_location": truststore,
        "ssl_truststore_password": SecretRef("env", STORE),
        "ssl_keystore_location": keystore,
        "ssl_keystore_password": SecretRef("env", STORE),
    }
    if kind == "JKS":
        given["client_key_passphrase"] = SecretRef("env", KEY)
    return given


def works(settings: KafkaSettings) -> None:
    """Both clients are answered as a super user."""
    session = open_session(settings)
    assert "Alter" in session.facts.recorded_values["rights"]
    names = session.sweep("kafka_topic", Depth.NAMES)
    assert names.coverage.kind is not CoverageKind.FAILED
    assert list_live_groups(session.context, {"none"}, 10) is not None
    session.close()


@pytest.mark.parametrize("kind", KINDS)
def test_stores_in_a_provider_block(
    kind: str, house: Doors, stores: Callable[[str], tuple[str, str]]
) -> None:
    """What keytool made is enough to verify the broker and to log in, with both clients."""
    works(read_settings("kafka", block(house, **by_stores(*stores(kind), kind)), REFERENCES))


@pytest.mark.parametrize("kind", ["", *KINDS])
def test_stores_in_a_java_clients_properties(
    kind: str, house: Doors, stores: Callable[[str], tuple[str, str]], tmp_path: Path
) -> None:
    """The same file that Kafka's own tools take; without a type it is Java's default."""
    truststore, keystore = stores(kind or "JKS")
    lines = {
        "security.protocol": "SSL",
        "ssl.truststore.location": truststore,
        "ssl.truststore.password": STORE,
        "ssl.keystore.location": keystore,
        "ssl.keystore.password": STORE,
    }
    if kind != "PKCS12":
        lines["ssl.key.password"] = KEY
    if kind:
        lines |= {"ssl.truststore.type": kind, "ssl.keystore.type": kind}
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
    found, said = resolve_direct(ConnectionInputs(house.at("MTLS"), file), {})
    assert said == ()
    works(read_settings("kafka", found.settings.config, found.secrets))


@pytest.mark.parametrize("kind", KINDS)
def test_only_a_truststore(
    kind: str, house: Doors, stores: Callable[[str], tuple[str, str]]
) -> None:
    """The broker is verified by it, and then asks for our certificate."""
    given = by_stores(*stores(kind), kind)
    trusting = {name: value for name, value in given.items() if "trust" in name}
    with pytest.raises(ConnectError, match="the broker requires a client certificate"):
        open_session(read_settings("kafka", block(house, **trusting), REFERENCES))


def test_a_truststore_with_another_authority(house: Doors, tmp_path: Path) -> None:
    """It is what verifies the broker: nothing else is trusted."""
    other = doors.authority("somebody else").pem
    path = str(import_trusted(tmp_path / "other", "PKCS12", other))
    given = block(
        house,
        ssl_truststore_location=path,
        ssl_truststore_password=SecretRef("env", STORE),
    )
    with pytest.raises(ConnectError, match="the broker's certificate is refused"):
        open_session(read_settings("kafka", given, REFERENCES))


@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_password_of_keytools_stores(
    kind: str, house: Doors, stores: Callable[[str], tuple[str, str]]
) -> None:
    """Told before a connection is made, without the password."""
    given = by_stores(*stores(kind), kind)
    for name in ("ssl_truststore_password", "ssl_keystore_password"):
        wrong = block(house, **{**given, name: SecretRef("env", WRONG)})
        with pytest.raises(ConfigurationError, match=f"{name} does not open") as caught:
            read_settings("kafka", wrong, REFERENCES)
        assert WRONG not in str(caught.value) and STORE not in str(caught.value)


@pytest.mark.parametrize("old", [False, True], ids=["PKCS8", "RFC 1423"])
@pytest.mark.parametrize("place", ["file", "text"])
def test_an_encrypted_key(
    old: bool, place: str, house: Doors, client: Client, tmp_path: Path
) -> None:
    """Certificate and encrypted key in PEM, for both clients."""
    certificate, key = client.certificate, client.encrypt_key(KEY, old=old)
    if place == "file":
        (tmp_path / "client.pem").write_text(key + certificate)
        certificate = key = str(tmp_path / "client.pem")
    given = block(
        house,
        ca_cert=house.authority.pem,
        client_cert=certificate,
        client_key=key,
        client_key_passphrase=SecretRef("env", KEY),
    )
    works(read_settings("kafka", given, REFERENCES))


@pytest.mark.parametrize("command", ["session", "publish"])
def test_a_wrong_passphrase(command: str, house: Doors, client: Client) -> None:
    """Whichever client meets it first, the settings are to blame, and the passphrase is not in the
    message."""
    given = block(
        house,
        ca_cert=house.authority.pem,
        client_cert=client.certificate,
        client_key=client.encrypt_key(KEY),
        client_key_passphrase=SecretRef("env", WRONG),
    )
    with pytest.raises(ConfigurationError) as caught:
        if command == "session":
            open_session(read_settings("kafka", given, REFERENCES))
        else:
            publish("kafka", given, REFERENCES, "t", "k", [NumberedRecord(1, b"x")])
    assert "client_key_passphrase does not open client_key" in caught.value.message
    assert WRONG not in f"{caught.value.message}{caught.value.advice}"


def test_publishing_by_a_keystore(house: Doors, stores: Callable[[str], tuple[str, str]]) -> None:
    """A producer and a consumer of the native client connect as well: what is said is that the
    topic is missing."""
    given = block(house, **by_stores(*stores("PKCS12"), "PKCS12"))
    with pytest.raises(KafkaformError, match="no-such-topic"):
        publish("kafka", given, REFERENCES, "no-such-topic", "key", [NumberedRecord(1, b"x")])
