"""What a certificate says, as the package cryptography reads it, and nothing of its key."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins

from kafkaform.core.secret import Secret
from kafkaform.core.value import FrozenMap, SecretRef, freeze
from kafkaform_kafka.connection.certificates import parse_certificate, read_own_certificate
from kafkaform_kafka.connection.settings import KafkaSettings, read_settings

from ....kit.kafka import doors
from ....kit.kafka.key_stores import STORE, Client, make_jks, make_pkcs12, new_client, to_der

x509 = pytest.importorskip("cryptography.x509")
PASSWORD = SecretRef("env", STORE)


@pytest.fixture(scope="module")
def client() -> Client:
    """Our certificate and its key."""
    return new_client(doors.authority("test authority"))


def read(**block: Any) -> KafkaSettings:
    """The settings of a block with these attributes."""
    frozen = freeze({"bootstrap_servers": ["b1:9093"], **block})
    assert isinstance(frozen, FrozenMap)
    return read_settings("kafka", frozen, {str(PASSWORD): Secret(STORE)})


def millis(moment: datetime.datetime) -> int:
    """Milliseconds since 1970."""
    return int(moment.timestamp()) * 1000


@pytest.mark.parametrize("form", ["text", "chain", "file", "pkcs12", "jks"])
def test_our_own_certificate(client: Client, tmp_path: Path, form: str) -> None:
    """In every form in which fleet.hcl can name it: ours, not that of its issuer, with nothing of
    the key or of a password."""
    store = {"ssl_keystore_location": str(tmp_path / "store"), "ssl_keystore_password": PASSWORD}
    (tmp_path / "own.pem").write_text(client.key + client.certificate)
    blocks: dict[str, dict[str, Any]] = {
        "text": {"client_cert": client.certificate, "client_key": client.key},
        "chain": {"client_cert": client.certificate + client.authority, "client_key": client.key},
        "file": dict.fromkeys(("client_cert", "client_key"), str(tmp_path / "own.pem")),
        "pkcs12": store,
        "jks": store,
    }
    data = {
        "pkcs12": lambda: make_pkcs12(client, client.authority, STORE),
        "jks": lambda: make_jks(STORE, keys=[(client, STORE)]),
    }
    (tmp_path / "store").write_bytes(data.get(form, bytes)())
    certificate = read_own_certificate(read(**blocks[form]))
    known = x509.load_pem_x509_certificate(client.certificate.encode())
    assert to_builtins(certificate) == {
        "subject": "CN=ops",
        "begins": millis(known.not_valid_before_utc),
        "ends": millis(known.not_valid_after_utc),
    }


def test_logins_without_one(client: Client, tmp_path: Path) -> None:
    """A password, a file that is gone, and one that is no certificate say nothing, and fail
    nothing: whether we can log in is said elsewhere."""
    assert read_own_certificate(read(sasl_username="ops", sasl_password=PASSWORD)) is None
    path = tmp_path / "own.pem"
    settings = read(client_cert=str(path), client_key=client.key)
    for text in (None, "", "no certificate", client.key, client.certificate.replace("M", "A")):
        if text is not None:
            path.write_text(text)
        assert read_own_certificate(settings) is None


def test_any_subject_and_any_century() -> None:
    """Attributes in their order, in all texts that X.520 has; years from 1950 to 9999."""
    key = doors.new_key()
    oid = x509.NameOID
    subject = x509.Name(
        [
            x509.NameAttribute(oid.COUNTRY_NAME, "DE"),
            x509.NameAttribute(oid.ORGANIZATION_NAME, "Größe & Co"),
            x509.NameAttribute(oid.ORGANIZATIONAL_UNIT_NAME, "Ops", x509.name._ASN1Type.BMPString),
            x509.NameAttribute(oid.DOMAIN_COMPONENT, "example"),
            x509.NameAttribute(oid.COMMON_NAME, "fleet"),
            x509.NameAttribute(oid.TITLE, "reader"),
        ]
    )
    times = [datetime.datetime(year, 3, 4, 5, 6, 7, tzinfo=datetime.UTC) for year in (1951, 9999)]
    built = x509.CertificateBuilder(subject, subject, key.public_key(), 1, *times)
    pem = built.sign(key, doors.hashes.SHA256()).public_bytes(doors.serialization.Encoding.PEM)
    certificate = parse_certificate(to_der(pem.decode()))
    assert certificate.subject == "C=DE,O=Größe & Co,OU=Ops,DC=example,CN=fleet,55040c=reader"
    assert [certificate.begins, certificate.ends] == [millis(moment) for moment in times]


def test_damaged_certificates_are_refused(client: Client) -> None:
    """Wherever a file ends too early, and whatever byte of it is another one: an answer or a
    ValueError."""
    data = to_der(client.certificate)
    for end in range(len(data)):
        with pytest.raises(ValueError):
            parse_certificate(data[:end])
    for place in range(len(data)):
        for value in (0, 0x30, 0x84, 0xFF):
            try:
                parse_certificate(data[:place] + bytes([value]) + data[place + 1 :])
            except ValueError:
                continue
