"""Read Java's key stores, JKS and PKCS12, and convert them to PEM in memory.

Which of both it is decides the content, as in Java since version 9: its types JKS and PKCS12 read
either format.
"""

from __future__ import annotations

import base64
import ssl
from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec import Struct

from kafkaform.core.installation import render_extra_command
from kafkaform.core.secret import Secret
from kafkaform.core.storage import read_named_file
from kafkaform.provider.http.tls import PEM_BEGIN

from . import jks
from .stores import KEYSTORE, KEYSTORE_PASSWORD, TRUSTSTORE, TRUSTSTORE_PASSWORD

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates
    from cryptography.x509 import Certificate

_LARGEST = 16 << 20
"""Bytes. The store of all authorities that Java knows has 200 KB."""
_JCEKS = b"\xce\xce\xce\xce"
_LINE = 64
_DAMAGED = "write the right password, or copy the file again"
_KEY_PASSWORD = "client_key_passphrase"


class StoreFault(Exception):
    """A store cannot be used. No text repeats anything of it but the names of its entries."""

    def __init__(self, summary: str, advice: str) -> None:
        super().__init__(summary)
        self.summary = summary
        self.advice = advice


class KeyPair(Struct, frozen=True):
    """Our certificate and its key."""

    chain: str
    """PEM, our own certificate first."""
    key: Secret
    """PEM, not encrypted."""


def read_trusted(path: str, password: Secret | None) -> str:
    """PEM of all certificates in a truststore. Raises StoreFault."""
    data = _read_file(path, TRUSTSTORE, "ca_cert")
    if data.startswith(jks.MAGIC):
        entries = _open_jks(data, path, password, TRUSTSTORE_PASSWORD)
        # As Java does it: of a key entry, its own certificate is trusted, and not its issuers.
        found = _write_certificates(e.certificates[0] for e in entries if e.certificates)
    else:
        store = _open_pkcs12(data, path, password, TRUSTSTORE_PASSWORD)
        own = [store.cert] if store.cert else []
        found = _write_pem(one.certificate for one in (*own, *store.additional_certs))
    if not found:
        raise StoreFault(
            f"{TRUSTSTORE} {path} contains no certificate",
            "import the certificate of the brokers' authority: keytool -importcert",
        )
    return found


def read_key_pair(path: str, password: Secret | None, key_password: Secret | None) -> KeyPair:
    """The key in a keystore. key_password: that of the key; None if it is the store's. Raises
    StoreFault."""
    data = _read_file(path, KEYSTORE, "client_cert and client_key")
    if data.startswith(jks.MAGIC):
        return _read_jks_pair(data, path, password, key_password)
    store = _open_pkcs12(data, path, password, KEYSTORE_PASSWORD)
    if store.key is None or store.cert is None:
        raise _make_keyless_fault(path)
    if key_password and key_password != password:
        raise StoreFault(
            f"{_KEY_PASSWORD} differs from {KEYSTORE_PASSWORD}, and {path} is a PKCS12 store, "
            "which has one password",
            f"remove {_KEY_PASSWORD}",
        )
    from cryptography.hazmat.primitives import serialization as form  # noqa: PLC0415  # the keystores extra has it

    text = store.key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    others = [one.certificate for one in store.additional_certs]
    return KeyPair(_write_pem(_sort_chain(store.cert.certificate, others)), Secret(text.decode()))


def _read_file(path: str, attribute: str, pem: str) -> bytes:
    try:
        data = read_named_file(path, _LARGEST)
    except OSError as error:
        raise StoreFault(
            f"{attribute} {path} cannot be read: {error.strerror}", "correct the path"
        ) from None
    if PEM_BEGIN.encode() in data[:4096]:
        raise StoreFault(f"{attribute} {path} is a PEM file", f"name it in {pem}")
    if data.startswith(_JCEKS):
        raise StoreFault(
            f"{attribute} {path} is a JCEKS store; only JKS and PKCS12 are read",
            "convert it: keytool -importkeystore -srckeystore STORE -srcstoretype JCEKS "
            "-destkeystore store.p12 -deststoretype PKCS12",
        )
    if not data.startswith((jks.MAGIC, b"\x30")):
        raise StoreFault(
            f"{attribute} {path} is neither a JKS nor a PKCS12 store",
            "check that it is the right file",
        )
    return data


# ── JKS ─────────────────────────────────────────────────────────────────────────────────


def _open_jks(
    data: bytes, path: str, password: Secret | None, attribute: str
) -> tuple[jks.Entry, ...]:
    try:
        return jks.parse_store(data, password.reveal() if password else None)
    except jks.WrongPassword:
        raise _make_password_fault(path, attribute) from None
    except ValueError as error:
        raise StoreFault(f"the store {path} cannot be read: {error}", _DAMAGED) from None


def _read_jks_pair(
    data: bytes, path: str, password: Secret | None, key_password: Secret | None
) -> KeyPair:
    entries = _open_jks(data, path, password, KEYSTORE_PASSWORD)
    keys = [entry for entry in entries if entry.protected_key is not None]
    if len(keys) > 1:
        # Java would choose by what the broker asks for, so another one each time.
        raise StoreFault(
            f"{KEYSTORE} {path} has several private keys: {', '.join(e.alias for e in keys)}",
            "make a store with one of them: keytool -importkeystore -srcalias NAME",
        )
    secret = key_password or password
    if not keys or keys[0].protected_key is None or secret is None:
        raise _make_keyless_fault(path)
    try:
        key = jks.open_key(keys[0].protected_key, secret.reveal())
    except jks.WrongPassword:
        attribute = _KEY_PASSWORD if key_password else KEYSTORE_PASSWORD
        raise StoreFault(
            f"{attribute} does not open the key {keys[0].alias} in {path}",
            f"write the password of the key into {_KEY_PASSWORD}",
        ) from None
    except ValueError as error:
        raise StoreFault(f"the store {path} cannot be read: {error}", _DAMAGED) from None
    return KeyPair(_write_certificates(keys[0].certificates), Secret(_write_key(key)))


def _write_certificates(certificates: Iterable[bytes]) -> str:
    return "".join(map(ssl.DER_cert_to_PEM_cert, certificates))


def _write_key(key: bytes) -> str:
    text = base64.b64encode(key).decode()
    lines = (text[at : at + _LINE] for at in range(0, len(text), _LINE))
    return "\n".join(("-----BEGIN PRIVATE KEY-----", *lines, "-----END PRIVATE KEY-----", ""))


# ── PKCS12 ──────────────────────────────────────────────────────────────────────────────


def _open_pkcs12(
    data: bytes, path: str, password: Secret | None, attribute: str
) -> PKCS12KeyAndCertificates:
    try:
        from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415  # the keystores extra has it
        from cryptography.hazmat.primitives.serialization import pkcs12  # noqa: PLC0415  # the keystores extra has it
    except ModuleNotFoundError:
        raise StoreFault(
            f"{path} is a PKCS12 store, and the Python package cryptography, which reads it, is "
            "not installed",
            f"run `{render_extra_command('keystores')}`",
        ) from None
    try:
        return pkcs12.load_pkcs12(data, password.reveal().encode() if password else None)
    except UnsupportedAlgorithm:
        raise StoreFault(
            f"the PKCS12 store {path} has a cipher that is not supported",
            "copy it with the keytool of a new Java: keytool -importkeystore",
        ) from None
    except (ValueError, TypeError):
        raise _make_password_fault(path, attribute) from None


def _sort_chain(own: Certificate, others: Iterable[Certificate]) -> Iterable[Certificate]:
    """Our certificate, its issuer, and so on, without what else is in the store."""
    chain, left = [own], list(others)
    while chain[-1].issuer != chain[-1].subject:
        issuer = next((one for one in left if one.subject == chain[-1].issuer), None)
        if issuer is None:
            break
        left.remove(issuer)
        chain.append(issuer)
    return chain


def _write_pem(certificates: Iterable[Certificate]) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding  # noqa: PLC0415  # the keystores extra has it

    return "".join(one.public_bytes(Encoding.PEM).decode() for one in certificates)


# ── faults ──────────────────────────────────────────────────────────────────────────────


def _make_password_fault(path: str, attribute: str) -> StoreFault:
    return StoreFault(f"{attribute} does not open {path}, or the file is damaged", _DAMAGED)


def _make_keyless_fault(path: str) -> StoreFault:
    return StoreFault(
        f"{KEYSTORE} {path} contains no private key",
        "name the store that contains our certificate with its key",
    )
