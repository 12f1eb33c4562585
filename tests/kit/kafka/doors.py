"""One broker with a listener for every way to connect, and certificates that are right or wrong.

The sandbox's own listeners stay; the others are added to its properties, where the last value of
a key wins (java.util.Properties).
"""

from __future__ import annotations

import base64
import datetime
import ipaddress
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from msgspec.structs import replace

from kafkaform import sandbox
from kafkaform.cli.commands.sandbox import count_brokers
from kafkaform.core.progress import ignore_event
from kafkaform.sandbox import brokers, configuration, lifecycle, record

from .versions import make_options

HOST = "127.0.0.1"
AUDIENCE = "kafka"
PATIENCE = 300
"""Seconds for the broker to start, on a computer that is busy with other things."""
_PEM = serialization.Encoding.PEM
_LOGIN = "org.apache.kafka.common.security"
_VALIDATOR = "OAuthBearerValidatorCallbackHandler"
_DOORS = ("OPEN", "MTLS", "EXPIRED", "STRANGER", "OAUTH", "SCRAM")


@dataclass(frozen=True)
class Authority:
    """A certificate authority that signs whatever a test needs."""

    key: rsa.RSAPrivateKey
    certificate: x509.Certificate

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(_PEM).decode()

    def issue(self, name: str, host: str | None = HOST, days: int = 30) -> tuple[str, str]:
        """PEM of a certificate and of its key. host: for a server, None for a client; days: until
        it expires, negative for one that has."""
        key = new_key()
        built = _builder(name, self.certificate.subject, key, days)
        if host is not None:
            names = x509.SubjectAlternativeName([_san(host)])
            built = built.add_extension(names, critical=False)
        usage = ExtendedKeyUsageOID.CLIENT_AUTH if host is None else ExtendedKeyUsageOID.SERVER_AUTH
        built = built.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        certificate = built.sign(self.key, hashes.SHA256())
        return certificate.public_bytes(_PEM).decode(), private(key)


@dataclass(frozen=True)
class Doors:
    """The running broker. ports: listener -> port; tokens: signs what OAUTH accepts."""

    box: sandbox.Sandbox
    ports: Mapping[str, int]
    authority: Authority
    tokens: Tokens

    def at(self, door: str) -> str:
        """host:port of a listener."""
        return f"{HOST}:{self.ports[door]}"


@dataclass(frozen=True)
class Tokens:
    """Signs JSON web tokens with a key that the broker knows."""

    key: rsa.RSAPrivateKey

    def make(self, subject: str = "admin", seconds: float = 600, **claims: Any) -> str:
        """A token for this subject that is valid for so long; negative: it has expired."""
        now = int(time.time())
        body = {"sub": subject, "aud": AUDIENCE, "iat": now - 900, "exp": int(now + seconds)}
        parts = ({"alg": "RS256", "kid": "test", "typ": "JWT"}, {**body, **claims})
        text = ".".join(_encoded(json.dumps(part).encode()) for part in parts)
        signature = self.key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{text}.{_encoded(signature)}"

    def jwks(self) -> str:
        """The public key as the broker reads it (RFC 7517)."""
        numbers = self.key.public_key().public_numbers()
        n, e = (
            _encoded(value.to_bytes((value.bit_length() + 7) // 8, "big"))
            for value in (numbers.n, numbers.e)
        )
        key = {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "test", "n": n, "e": e}
        return json.dumps({"keys": [key]})


def new_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


def private(key: rsa.RSAPrivateKey) -> str:
    """PKCS #8, as Kafka demands."""
    form = serialization.PrivateFormat.PKCS8
    return key.private_bytes(_PEM, form, serialization.NoEncryption()).decode()


def authority(name: str) -> Authority:
    key = new_key()
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    limits = x509.BasicConstraints(ca=True, path_length=0)
    built = _builder(name, subject, key, 30).add_extension(limits, critical=True)
    return Authority(key, built.sign(key, hashes.SHA256()))


@contextmanager
def opened(name: str) -> Iterator[Doors]:
    """Start the broker; end it afterwards."""
    options = replace(make_options(name), tls=True)
    with record.hold_lock(name):
        prepared = lifecycle._prepare(options, None)
        folder, own, tokens = prepared.folder, authority("test authority"), Tokens(new_key())
        found = brokers.find_free_ports(len(_DOORS))
        numbers = dict(zip(_DOORS, found, strict=True))
        _write(folder, own, tokens)
        _extend(folder / "broker-1.properties", prepared, numbers)
        urls = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={_jwks(folder)}"
        # With JAVA_TOOL_OPTIONS it would not start from the classes that are kept.
        with mock.patch.object(configuration, "_JVM", (*configuration._JVM, urls)):
            runtime = lifecycle._find_runtime(options, ignore_event)
            box = brokers.start_sandbox(prepared, runtime, PATIENCE, count_brokers, ignore_event)
    numbers |= {"CLIENT": box.brokers[0].ports.client, "TLS": box.brokers[0].ports.tls or 0}
    try:
        yield Doors(box, numbers, own, tokens)
    finally:
        sandbox.down(name)


def _write(folder: Path, own: Authority, tokens: Tokens) -> None:
    (folder / "doors.pem").write_text(own.pem)
    Path(folder, "jwks.json").write_text(tokens.jwks())
    stores = {"mtls": own.issue("broker"), "expired": own.issue("broker", days=-2)}
    stores["stranger"] = own.issue("broker", "kafka.example.com")
    for door, (certificate, key) in stores.items():
        (folder / f"{door}.pem").write_text(key + certificate + own.pem)


def _extend(properties: Path, box: sandbox.Sandbox, numbers: Mapping[str, int]) -> None:
    text = properties.read_text("latin-1")
    old = dict(line.split("=", 1) for line in text.splitlines())
    added = ",".join(f"{door}://{HOST}:{port}" for door, port in numbers.items())
    protocols = dict.fromkeys(("MTLS", "EXPIRED", "STRANGER"), "SSL")
    protocols |= {"OPEN": "PLAINTEXT", "OAUTH": "SASL_PLAINTEXT", "SCRAM": "SASL_PLAINTEXT"}
    mapped = ",".join(f"{door}:{protocol}" for door, protocol in protocols.items())
    settings = {
        key: f"{old[key]},{more}"
        for key, more in (
            ("listeners", added),
            ("advertised.listeners", added),
            ("listener.security.protocol.map", mapped),
        )
    }
    settings["super.users"] = f"{old['super.users']};User:CN=ops"
    settings |= _stores(box.folder) | _oauth(box.folder)
    prefix = "listener.name.scram"
    settings[f"{prefix}.sasl.enabled.mechanisms"] = "SCRAM-SHA-512"
    jaas = f"{_LOGIN}.scram.ScramLoginModule required;"
    settings[f"{prefix}.scram-sha-512.sasl.jaas.config"] = jaas
    properties.write_text(text + "".join(f"{k}={v}\n" for k, v in settings.items()), "latin-1")


def _stores(folder: Path) -> Mapping[str, str]:
    settings = {}
    for door in ("mtls", "expired", "stranger"):
        prefix = f"listener.name.{door}.ssl"
        settings[f"{prefix}.keystore.type"] = settings[f"{prefix}.truststore.type"] = "PEM"
        settings[f"{prefix}.keystore.location"] = str(folder / f"{door}.pem")
        settings[f"{prefix}.truststore.location"] = str(folder / "doors.pem")
    return {**settings, "listener.name.mtls.ssl.client.auth": "required"}


def _oauth(folder: Path) -> Mapping[str, str]:
    prefix, own = "listener.name.oauth.oauthbearer", f"{_LOGIN}.oauthbearer"
    return {
        "listener.name.oauth.sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{prefix}.sasl.jaas.config": f"{own}.OAuthBearerLoginModule required;",
        f"{prefix}.sasl.server.callback.handler.class": f"{own}.{_VALIDATOR}",
        f"{prefix}.sasl.oauthbearer.jwks.endpoint.url": _jwks(folder),
        f"{prefix}.sasl.oauthbearer.expected.audience": AUDIENCE,
        # KIP-368: a connection must log in again before this many milliseconds are over.
        "listener.name.oauth.oauthbearer.connections.max.reauth.ms": "2000",
    }


def _jwks(folder: Path) -> str:
    return (folder / "jwks.json").as_uri()


def _builder(
    name: str, issuer: x509.Name, key: rsa.RSAPrivateKey, days: int
) -> x509.CertificateBuilder:
    end = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=days)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(end - datetime.timedelta(days=60))
        .not_valid_after(end)
    )


def _san(host: str) -> x509.GeneralName:
    if host == HOST:
        return x509.IPAddress(ipaddress.ip_address(host))
    return x509.DNSName(host)


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
