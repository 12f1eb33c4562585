"""TLS for both clients: keys behind passphrases, and what is said if they do not fit."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from kafkaform.core.errors import ConfigurationError
from kafkaform.core.secret import Secret
from kafkaform_kafka.connection.settings import (
    KafkaSettings,
    make_client_config,
    make_librdkafka_config,
)

from ....kit.kafka import doors
from ....kit.kafka.key_stores import KEY, Client, new_client

WRONG = "wrong-pass-99"


def count_open_files() -> int:
    """Files and pipes of this process."""
    return len(list(Path("/dev/fd").iterdir()))


@pytest.fixture(params=["memory", "pipe"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How OpenSSL gets text: by a file in memory, or by a pipe, as on systems without these."""
    if request.param == "pipe":
        monkeypatch.delattr(os, "memfd_create", raising=False)
    elif not hasattr(os, "memfd_create"):
        pytest.skip("this system has no files in memory")
    return str(request.param)


@pytest.fixture(scope="module")
def client() -> Client:
    """Our certificate and its key."""
    return new_client(doors.authority("test authority"))


def settings(certificate: str, key: str, passphrase: str | None = None) -> KafkaSettings:
    """Mutual TLS with these, which are paths or PEM text."""
    secret = Secret(key) if key.startswith("-----") else key
    hidden = Secret(passphrase) if passphrase else None
    return KafkaSettings(
        "kafka", ("b:1",), "SSL", certificate=certificate, key=secret, passphrase=hidden
    )


def refusal(given: KafkaSettings) -> str:
    """What is said of TLS settings that cannot be used, without a passphrase."""
    with pytest.raises(ConfigurationError) as caught:
        make_client_config(given)
    said = caught.value.message
    assert KEY not in said and WRONG not in said and "PRIVATE" not in said
    return said


@pytest.mark.parametrize("old", [False, True], ids=["PKCS8", "RFC 1423"])
@pytest.mark.parametrize("place", ["file", "text"])
def test_an_encrypted_key(old: bool, place: str, client: Client, tmp_path: Path, way: str) -> None:
    """Both clients load it, in each form, from a file and from text; nothing stays open."""
    certificate, key = client.certificate, client.encrypt_key(KEY, old=old)
    if place == "file":
        (tmp_path / "c.pem").write_text(certificate)
        (tmp_path / "k.pem").write_text(key)
        certificate, key = str(tmp_path / "c.pem"), str(tmp_path / "k.pem")
    given = settings(certificate, key, KEY)
    before = count_open_files()
    assert make_client_config(given)["ssl_context"] is not None
    assert count_open_files() == before
    AdminClient(make_librdkafka_config(given))


@pytest.mark.parametrize("old", [False, True], ids=["PKCS8", "RFC 1423"])
@pytest.mark.parametrize("place", ["file", "text"])
def test_a_wrong_passphrase(old: bool, place: str, client: Client, tmp_path: Path) -> None:
    """It is told apart from one that is missing."""
    certificate, key, name = client.certificate, client.encrypt_key(KEY, old=old), "client_key"
    if place == "file":
        (tmp_path / "k.pem").write_text(key)
        key = str(tmp_path / "k.pem")
        name = f"client_key {key}"
    said = refusal(settings(certificate, key, WRONG))
    assert f"client_key_passphrase does not open {name}, or " in said
    said = refusal(settings(certificate, key))
    assert f"{name} is encrypted, and client_key_passphrase is missing" in said


def test_a_wrong_passphrase_by_a_pipe(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """There the cause is less exact; it does not end in a word about pipes."""
    monkeypatch.delattr(os, "memfd_create", raising=False)
    said = refusal(settings(client.certificate, client.encrypt_key(KEY), WRONG))
    assert "client_cert, client_key and client_key_passphrase do not fit together" in said


def test_a_key_of_another_certificate(client: Client) -> None:
    """The passphrase is not to blame."""
    other = new_client(doors.authority("another"))
    said = refusal(settings(client.certificate, other.encrypt_key(KEY), KEY))
    assert "client_key is not the key of client_cert" in said


@pytest.mark.parametrize("broken", ["certificate", "key"])
def test_what_is_no_pem(broken: str, client: Client, tmp_path: Path) -> None:
    """A file with something else."""
    (tmp_path / "broken").write_text("hello")
    path = str(tmp_path / "broken")
    given = {"certificate": (path, client.key), "key": (client.certificate, path)}[broken]
    named = {"certificate": "client_cert", "key": "client_key"}[broken]
    what = {"certificate": "certificate", "key": "private key"}[broken]
    assert f"{named} {path} is not a {what} in PEM form" in refusal(settings(*given))


def test_a_long_chain(client: Client, way: str) -> None:
    """More than a pipe holds at once."""
    chain = client.certificate + client.authority * 120
    assert len(chain) > 100_000
    assert make_client_config(settings(chain, client.key))["ssl_context"] is not None


def test_text_behind_the_key_is_not_waited_for(client: Client, way: str) -> None:
    """OpenSSL stops reading at the end of the key, whatever follows."""
    key = client.key + "#" * (1 << 18)
    before = count_open_files()
    assert make_client_config(settings(client.certificate, key))["ssl_context"] is not None
    assert count_open_files() == before
