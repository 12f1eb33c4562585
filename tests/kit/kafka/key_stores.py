"""Key stores as Java's keytool makes them, and JKS files without Java for tests that start none."""

from __future__ import annotations

import hashlib
import os
import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12

from kafkaform.sandbox.versions import find_java

from . import doors

STORE, KEY = "store-pass-3a77", "key-pass-b8e1"
_DER = serialization.Encoding.DER
_PROTECTOR = bytes.fromhex("300e060a2b060104012a021101010500")


@dataclass(frozen=True)
class Client:
    """A certificate and its key, in PEM."""

    certificate: str
    key: str
    authority: str

    def encrypt_key(self, password: str, *, old: bool = False) -> str:
        """PEM of the key behind a password: PKCS #8, or as OpenSSL wrote it before (RFC 1423)."""
        form = serialization.PrivateFormat
        loaded = serialization.load_pem_private_key(self.key.encode(), None)
        return loaded.private_bytes(
            serialization.Encoding.PEM,
            form.TraditionalOpenSSL if old else form.PKCS8,
            serialization.BestAvailableEncryption(password.encode()),
        ).decode()


def new_client(authority: doors.Authority, name: str = "ops") -> Client:
    """A client whose certificate this authority has signed."""
    return Client(*authority.issue(name, host=None), authority.pem)


def to_der(pem: str) -> bytes:
    """A certificate in DER."""
    return x509.load_pem_x509_certificate(pem.encode()).public_bytes(_DER)


# ── without Java ────────────────────────────────────────────────────────────────────────


def make_pkcs12(client: Client | None, authority: str, password: str) -> bytes:
    """A PKCS12 store with the client's key, if there is one, and the authority's certificate."""
    key = client and serialization.load_pem_private_key(client.key.encode(), None)
    own = client and x509.load_pem_x509_certificate(client.certificate.encode())
    return pkcs12.serialize_key_and_certificates(
        b"own" if client else None,
        key,  # type: ignore[arg-type]  # a key of any kind
        own,
        [x509.load_pem_x509_certificate(authority.encode())],
        serialization.BestAvailableEncryption(password.encode()),
    )


def make_jks(
    password: str,
    trusted: Sequence[str] = (),
    keys: Sequence[tuple[Client, str]] = (),
    version: int = 2,
) -> bytes:
    """A JKS store. keys: clients, and the password of each one's key."""
    body = struct.pack(">4sII", b"\xfe\xed\xfe\xed", version, len(trusted) + len(keys))
    for number, (client, secret) in enumerate(keys):
        protected = _protect(client.key, secret)
        body += struct.pack(">I", 1) + _text(f"key{number}") + bytes(8)
        body += struct.pack(">I", len(protected)) + protected + struct.pack(">I", 2)
        body += _certificate(client.certificate, version) + _certificate(client.authority, version)
    for number, pem in enumerate(trusted):
        body += struct.pack(">I", 2) + _text(f"ca{number}") + bytes(8) + _certificate(pem, version)
    seal = password.encode("utf-16-be") + b"Mighty Aphrodite" + body
    return body + hashlib.sha1(seal).digest()


def _text(text: str) -> bytes:
    return struct.pack(">H", len(text.encode())) + text.encode()


def _certificate(pem: str, version: int) -> bytes:
    data = to_der(pem)
    kind = _text("X.509") if version == 2 else b""
    return kind + struct.pack(">I", len(data)) + data


def _protect(key: str, password: str) -> bytes:
    plain = serialization.load_pem_private_key(key.encode(), None).private_bytes(
        _DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    secret, salt = password.encode("utf-16-be"), os.urandom(20)
    hidden, block = bytearray(), salt
    for at, byte in enumerate(plain):
        if at % 20 == 0:
            block = hashlib.sha1(secret + block).digest()
        hidden.append(byte ^ block[at % 20])
    sealed = salt + bytes(hidden) + hashlib.sha1(secret + plain).digest()
    octets = b"\x04\x82" + struct.pack(">H", len(sealed)) + sealed
    inner = _PROTECTOR + octets
    return b"\x30\x82" + struct.pack(">H", len(inner)) + inner


# ── with keytool ────────────────────────────────────────────────────────────────────────


def run_keytool(*words: str) -> None:
    """Run the keytool of the packaged Java."""
    command = [str(find_java().parent / "keytool"), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def import_trusted(path: Path, kind: str, authority: str) -> Path:
    """A truststore of this type with one certificate."""
    pem = path.with_suffix(".pem")
    pem.write_text(authority)
    given = ("-file", str(pem), "-keystore", str(path), "-storetype", kind, "-storepass", STORE)
    run_keytool("-importcert", "-noprompt", "-alias", "authority", *given)
    return path


def import_key(path: Path, kind: str, client: Client) -> Path:
    """A keystore of this type with the client's key, which has a password of its own where the
    format allows it."""
    source = path.with_suffix(".source")
    source.write_bytes(make_pkcs12(client, client.authority, STORE))
    key = ("-destkeypass", KEY) if kind == "JKS" else ()
    run_keytool(
        *("-importkeystore", "-noprompt", "-srcalias", "own", "-srckeystore", str(source)),
        *("-srcstoretype", "PKCS12", "-srcstorepass", STORE, "-destkeystore", str(path)),
        *("-deststoretype", kind, "-deststorepass", STORE, *key),
    )
    return path
