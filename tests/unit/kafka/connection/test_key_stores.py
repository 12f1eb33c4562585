"""Java's key stores: read into memory, never written, and one clear line for each fault."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kafkaform.core.errors import ConfigurationError
from kafkaform.core.installation import render_extra_command
from kafkaform.core.secret import Secret
from kafkaform.core.value import FrozenMap, SecretRef, freeze
from kafkaform_kafka.connection import provider_block
from kafkaform_kafka.connection.settings import (
    KafkaSettings,
    make_client_config,
    make_librdkafka_config,
    read_settings,
)

from ....kit.kafka import doors
from ....kit.kafka.key_stores import KEY, STORE, Client, make_jks, make_pkcs12, new_client, to_der

WRONG = "wrong-pass-99"
REFERENCES = {f"env:{name}": Secret(name) for name in (STORE, KEY, WRONG)}


@pytest.fixture(scope="module")
def authority() -> doors.Authority:
    """Signs the client."""
    return doors.authority("test authority")


@pytest.fixture(scope="module")
def client(authority: doors.Authority) -> Client:
    """Our certificate and its key."""
    return new_client(authority)


def write(tmp_path: Path, data: bytes, name: str = "store") -> str:
    """The path of a file with this content."""
    path = tmp_path / name
    path.write_bytes(data)
    return str(path)


def trusting(path: str, password: str | None = STORE) -> dict[str, Any]:
    """The attributes of a truststore."""
    given: dict[str, Any] = {"ssl_truststore_location": path}
    if password:
        given["ssl_truststore_password"] = SecretRef("env", password)
    return given


def keeping(path: str, password: str = STORE, key: str | None = None) -> dict[str, Any]:
    """The attributes of a keystore. key: the password of the key."""
    given = {
        "ssl_keystore_location": path,
        "ssl_keystore_password": SecretRef("env", password),
    }
    if key:
        given["client_key_passphrase"] = SecretRef("env", key)
    return given


def read(**given: Any) -> KafkaSettings:
    """The settings of a block with these attributes."""
    frozen = freeze({"bootstrap_servers": ["b1:9093"], **given})
    assert isinstance(frozen, FrozenMap)
    return read_settings("kafka", frozen, REFERENCES)


def refusal(**given: Any) -> str:
    """What is said: one fault with advice, without a password."""
    with pytest.raises(ConfigurationError) as caught:
        read(**given)
    (fault,) = caught.value.diagnostics
    assert fault.summary.startswith('provider "kafka": ') and fault.advice
    said = f"{fault.summary} -> {fault.advice}"
    assert not [secret for secret in (STORE, KEY, WRONG) if secret in said]
    return said


def certificates(text: str | None) -> list[bytes]:
    """The certificates of a PEM text, in DER."""
    end = "-----END CERTIFICATE-----"
    return [to_der(part + end) for part in (text or "").split(end)[:-1]]


# ── what is read ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["JKS", "JKS 1", "PKCS12"])
def test_a_truststore(
    kind: str, tmp_path: Path, authority: doors.Authority, client: Client
) -> None:
    """Each certificate is trusted, the key's own too, as in Java; the connection uses TLS."""
    if kind == "PKCS12":
        data = make_pkcs12(client, authority.pem, STORE)
    else:
        version = 1 if kind == "JKS 1" else 2
        data = make_jks(STORE, [authority.pem], [(client, KEY)], version)
    settings = read(**trusting(write(tmp_path, data)))
    assert settings.protocol == "SSL"
    expected = {to_der(authority.pem), to_der(client.certificate)}
    assert set(certificates(settings.ca)) == expected
    assert make_client_config(settings)["ssl_context"].cert_store_stats()["x509"] == 2
    assert make_librdkafka_config(settings)["ssl.ca.pem"] == settings.ca


def test_a_truststore_without_its_password(tmp_path: Path, authority: doors.Authority) -> None:
    """JKS does not hide certificates: the password only shows that nobody changed them."""
    settings = read(**trusting(write(tmp_path, make_jks(STORE, [authority.pem])), None))
    assert certificates(settings.ca) == [to_der(authority.pem)]


@pytest.mark.parametrize("kind", ["JKS", "JKS with one password", "PKCS12"])
def test_a_keystore(kind: str, tmp_path: Path, client: Client) -> None:
    """The chain, our own certificate first, and a key that both clients can load without a
    passphrase; the text of the settings shows neither."""
    given = {
        "JKS": (make_jks(STORE, keys=[(client, KEY)]), KEY),
        "JKS with one password": (make_jks(STORE, keys=[(client, STORE)]), None),
        "PKCS12": (make_pkcs12(client, client.authority, STORE), None),
    }
    data, key = given[kind]
    settings = read(**keeping(write(tmp_path, data), key=key))
    expected = [to_der(client.certificate), to_der(client.authority)]
    assert certificates(settings.certificate) == expected
    assert isinstance(settings.key, Secret) and settings.passphrase is None
    assert settings.key.reveal() == client.key
    assert make_client_config(settings)["ssl_context"] is not None
    assert make_librdkafka_config(settings)["ssl.key.pem"] == client.key
    assert "PRIVATE" not in repr(settings) and STORE not in repr(settings)


def test_the_password_of_a_pkcs12_key_can_be_said_twice(tmp_path: Path, client: Client) -> None:
    """Java's properties often name both, although there is only one."""
    data = make_pkcs12(client, client.authority, STORE)
    assert read(**keeping(write(tmp_path, data), key=STORE)).passphrase is None


def test_nothing_is_written(tmp_path: Path, authority: doors.Authority, client: Client) -> None:
    """A process that reads both stores and makes both clients' TLS opens no file for writing, and
    leaves no pipe open."""
    path = write(tmp_path, make_jks(STORE, [authority.pem], [(client, KEY)]))
    program = f"""
import os, sys
from kafkaform.core.secret import Secret
from kafkaform.core.value import FrozenMap, SecretRef
from kafkaform_kafka.connection.settings import make_librdkafka_config, make_client_config
from kafkaform_kafka.connection.settings import read_settings
from confluent_kafka.admin import AdminClient
block = FrozenMap({{
    "bootstrap_servers": ("127.0.0.1:1",),
    "ssl_truststore_location": {path!r}, "ssl_truststore_password": SecretRef("env", "S"),
    "ssl_keystore_location": {path!r}, "ssl_keystore_password": SecretRef("env", "S"),
    "client_key_passphrase": SecretRef("env", "K"),
}})
written, before = [], len(os.listdir("/dev/fd"))
def watch(event, arguments):
    if event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        if not isinstance(arguments[0], int):
            written.append(arguments[0])
    elif event in ("tempfile.mkstemp", "tempfile.mkdtemp", "os.mkdir"):
        written.append(event)
sys.addaudithook(watch)
secrets = {{"env:S": Secret({STORE!r}), "env:K": Secret({KEY!r})}}
settings = read_settings("kafka", block, secrets)
make_client_config(settings)
print(len(os.listdir("/dev/fd")) - before)
AdminClient(make_librdkafka_config(settings))
print(written)
open({str(tmp_path / "control")!r}, "w").close()
print(len(written))
"""
    done = subprocess.run(
        [sys.executable, "-B", "-c", program], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.stdout.split("\n")[:3] == ["0", "[]", "1"], done.stdout + done.stderr


# ── what is refused ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["JKS", "PKCS12"])
def test_a_wrong_password(kind: str, tmp_path: Path, client: Client) -> None:
    """Which of the passwords is wrong is said, and none is repeated."""
    data = {
        "JKS": make_jks(STORE, [client.authority], [(client, KEY)]),
        "PKCS12": make_pkcs12(client, client.authority, STORE),
    }[kind]
    path = write(tmp_path, data)
    said = refusal(**trusting(path, WRONG))
    assert f"ssl_truststore_password does not open {path}, or the file is damaged" in said
    said = refusal(**keeping(path, WRONG))
    assert f"ssl_keystore_password does not open {path}" in said


def test_a_wrong_password_of_the_key(tmp_path: Path, client: Client) -> None:
    """Whether it is missing, which means that of the store, or another one."""
    path = write(tmp_path, make_jks(STORE, keys=[(client, KEY)]))
    said = refusal(**keeping(path))
    assert f"ssl_keystore_password does not open the key key0 in {path}" in said
    assert "write the password of the key into client_key_passphrase" in said
    said = refusal(**keeping(path, key=WRONG))
    assert f"client_key_passphrase does not open the key key0 in {path}" in said


def test_a_second_password_in_pkcs12(tmp_path: Path, client: Client) -> None:
    """The format has one, so the other one is an error and not ignored."""
    path = write(tmp_path, make_pkcs12(client, client.authority, STORE))
    said = refusal(**keeping(path, key=KEY))
    assert "client_key_passphrase differs from ssl_keystore_password" in said


def test_several_keys(tmp_path: Path, client: Client) -> None:
    """Who logs in is not left to chance."""
    data = make_jks(STORE, keys=[(client, KEY), (client, KEY)])
    said = refusal(**keeping(write(tmp_path, data), key=KEY))
    assert "has several private keys: key0, key1 -> make a store with one of them" in said


@pytest.mark.parametrize("kind", ["JKS", "PKCS12"])
def test_a_store_without_what_is_wanted(kind: str, tmp_path: Path, client: Client) -> None:
    """A truststore in place of a keystore, and an empty truststore."""
    trusted = {
        "JKS": make_jks(STORE, [client.authority]),
        "PKCS12": make_pkcs12(None, client.authority, STORE),
    }[kind]
    path = write(tmp_path, trusted)
    assert f"ssl_keystore_location {path} contains no private key" in refusal(**keeping(path))
    empty = write(tmp_path, make_jks(STORE), "empty")
    assert f"{empty} contains no certificate" in refusal(**trusting(empty))


FILES = [
    (None, "cannot be read: No such file or directory -> correct the path"),
    (b"\xce\xce\xce\xce\x00\x00\x00\x02", "is a JCEKS store; only JKS and PKCS12 are read"),
    (b"Bag Attributes\n-----BEGIN CERTIFICATE-----\n", "is a PEM file -> name it in ca_cert"),
    (b"hello", "is neither a JKS nor a PKCS12 store"),
    (b"", "is neither a JKS nor a PKCS12 store"),
    (b"\x30\x03abc", "does not open"),
    (b"\xfe\xed\xfe\xed\x00\x00\x00\x09\x00\x00\x00\x00", "does not open"),
]


@pytest.mark.parametrize(("data", "expected"), FILES)
def test_a_file_that_is_no_store(data: bytes | None, expected: str, tmp_path: Path) -> None:
    """Each is told apart, with the attribute and the path."""
    path = str(tmp_path / "none") if data is None else write(tmp_path, data)
    assert expected in refusal(**trusting(path))


def test_a_damaged_store(tmp_path: Path, client: Client) -> None:
    """Whatever is cut off or changed, it is a fault of the file and never a traceback; without a
    password nobody checks the seal, so the parser itself meets the damage."""
    whole = make_jks(STORE, [client.authority], [(client, KEY)])
    for length in (12, 20, 40, 100, len(whole) // 2, len(whole) - 30):
        path = write(tmp_path, whole[:length])
        assert "cannot be read: " in refusal(**trusting(path, None))
    for at in range(8, 60):
        path = write(tmp_path, whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        assert "does not open" in refusal(**trusting(path))
        try:
            read(**trusting(path, None))
        except ConfigurationError as error:
            assert len(error.diagnostics) == 1


def test_pkcs12_without_the_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, client: Client
) -> None:
    """Whoever did not install the extra is told how; JKS needs no package."""
    pkcs12 = write(tmp_path, make_pkcs12(client, client.authority, STORE), "p12")
    jks = write(tmp_path, make_jks(STORE, [client.authority]), "jks")
    for name in ("exceptions", "hazmat.primitives.serialization"):
        monkeypatch.setitem(sys.modules, f"cryptography.{name}", None)
    said = refusal(**trusting(pkcs12))
    assert "the Python package cryptography" in said
    assert render_extra_command("keystores") in said
    assert read(**trusting(jks)).ca


BLOCKS = [
    ({"ssl_truststore_location": "a", "ca_cert": "b"}, "exclude each other"),
    ({**keeping("a"), "client_cert": "b", "client_key": "c"}, "exclude each other"),
    ({"ssl_truststore_password": SecretRef("env", STORE)}, "without ssl_truststore_location"),
    ({"ssl_keystore_location": "a"}, "without ssl_keystore_password"),
    ({"ssl_truststore_location": "a", "security_protocol": "PLAINTEXT"}, "no effect with PLAIN"),
]


@pytest.mark.parametrize(("given", "expected"), BLOCKS)
def test_blocks_that_cannot_be_meant(given: dict[str, Any], expected: str) -> None:
    """Seen by `validate`, without reading a file."""
    faults = provider_block.check({"bootstrap_servers": ("b:1",), **given})
    assert faults and all(expected in fault.summary and fault.advice for _, fault in faults)
    assert {name for name, _ in faults} <= provider_block.CONFIG.attributes.keys()
