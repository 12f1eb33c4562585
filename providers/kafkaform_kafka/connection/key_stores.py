"""Read Java's key stores, JKS and PKCS12, and convert them to PEM in memory.

The content decides which of both it is, as in Java since version 9: its types JKS and PKCS12 read
either format. JKS has no specification. The source is OpenJDK: `sun.security.provider.JavaKeyStore`
for the file, `sun.security.provider.KeyProtector` for the keys. All its numbers are big-endian, and
it demands SHA-1.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import ssl
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from kafkaform.core.installation import render_extra_command
from kafkaform.core.secret import Secret
from kafkaform.core.storage import read_named_file
from kafkaform.provider.block_checks import PEM_BEGIN

from .provider_block import KEYSTORE, KEYSTORE_PASSWORD, TRUSTSTORE, TRUSTSTORE_PASSWORD

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates
    from cryptography.x509 import Certificate


_LARGEST = 16 << 20
"""Bytes. The store of all authorities that Java knows has 200 KB."""
_JCEKS = b"\xce\xce\xce\xce"
_LINE = 64
_DAMAGED = "write the right password, or copy the file again"
_KEY_PASSWORD = "client_key_passphrase"
_JKS_MAGIC = b"\xfe\xed\xfe\xed"
_KEY, _TRUSTED = 1, 2
_DIGEST = 20
"""Bytes of a SHA-1 hash, which is also the length of the salt."""
_WHITENER = b"Mighty Aphrodite"
_PROTECTOR = bytes.fromhex("060a2b060104012a02110101")
"""Object identifier 1.3.6.1.4.1.42.2.17.1.1 in DER: the only protection of keys in JKS."""


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
    if data.startswith(_JKS_MAGIC):
        entries = _open_jks(data, path, password, TRUSTSTORE_PASSWORD)
        # As Java does it: of a key entry, its own certificate is trusted, and not its issuers.
        pem = _write_certificates(e.certificates[0] for e in entries if e.certificates)
    else:
        store = _open_pkcs12(data, path, password, TRUSTSTORE_PASSWORD)
        own = [store.cert] if store.cert else []
        pem = _write_pem(entry.certificate for entry in (*own, *store.additional_certs))
    if not pem:
        raise StoreFault(
            f"{TRUSTSTORE} {path} contains no certificate",
            "import the certificate of the brokers' authority: keytool -importcert",
        )
    return pem


def read_key_pair(path: str, password: Secret | None, key_password: Secret | None) -> KeyPair:
    """The key in a keystore. key_password: that of the key; None if it is the store's. Raises
    StoreFault."""
    data = _read_file(path, KEYSTORE, "client_cert and client_key")
    if data.startswith(_JKS_MAGIC):
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
    issuers = [entry.certificate for entry in store.additional_certs]
    return KeyPair(_write_pem(_sort_chain(store.cert.certificate, issuers)), Secret(text.decode()))


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
    if not data.startswith((_JKS_MAGIC, b"\x30")):
        raise StoreFault(
            f"{attribute} {path} is neither a JKS nor a PKCS12 store",
            "check that it is the right file",
        )
    return data


# ── JKS ─────────────────────────────────────────────────────────────────────────────────


def _open_jks(data: bytes, path: str, password: Secret | None, attribute: str) -> tuple[Entry, ...]:
    try:
        return parse_store(data, password.reveal() if password else None)
    except WrongPassword:
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
        key = open_key(keys[0].protected_key, secret.reveal())
    except WrongPassword:
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


def _sort_chain(own: Certificate, certificates: Iterable[Certificate]) -> Iterable[Certificate]:
    """Our certificate, its issuer, and so on, without what else is in the store."""
    chain, candidates = [own], list(certificates)
    while chain[-1].issuer != chain[-1].subject:
        issuer = next(
            (candidate for candidate in candidates if candidate.subject == chain[-1].issuer), None
        )
        if issuer is None:
            break
        candidates.remove(issuer)
        chain.append(issuer)
    return chain


def _write_pem(certificates: Iterable[Certificate]) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding  # noqa: PLC0415  # the keystores extra has it

    return "".join(certificate.public_bytes(Encoding.PEM).decode() for certificate in certificates)


# ── faults ──────────────────────────────────────────────────────────────────────────────


def _make_password_fault(path: str, attribute: str) -> StoreFault:
    return StoreFault(f"{attribute} does not open {path}, or the file is damaged", _DAMAGED)


def _make_keyless_fault(path: str) -> StoreFault:
    return StoreFault(
        f"{KEYSTORE} {path} contains no private key",
        "name the store that contains our certificate with its key",
    )


# ── JKS ─────────────────────────────────────────────────────────────────────────────────


class WrongPassword(ValueError):
    """The password does not open the store or the key, or the file is damaged."""


class Entry(Struct, frozen=True):
    """One entry of a store."""

    alias: str
    certificates: tuple[bytes, ...]
    """In DER: the chain of a key with its own certificate first, or one trusted certificate."""
    protected_key: bytes | None = None
    """None for a trusted certificate."""


def parse_store(data: bytes, password: str | None) -> tuple[Entry, ...]:
    """The entries of a store. Without a password nobody knows whether it was changed. Raises
    WrongPassword, ValueError for what is no store."""
    if password is not None:
        body, digest = data[:-_DIGEST], data[-_DIGEST:]
        if not hmac.compare_digest(_hash(_encode_password(password) + _WHITENER + body), digest):
            raise WrongPassword
    reader = _Reader(data)
    magic, version, count = reader.take(4), reader.take_number(4), reader.take_number(4)
    if magic != _JKS_MAGIC or version not in (1, 2):
        raise ValueError("it is not a JKS file that is known")
    return tuple(_read_entries(reader, version, count))


def open_key(protected: bytes, password: str) -> bytes:
    """The private key in DER (PKCS #8). Raises WrongPassword, ValueError."""
    secret = _encode_password(password)
    # EncryptedPrivateKeyInfo of PKCS #8: an algorithm, and an octet string.
    algorithm, data = _read_der(_read_der(protected, 0x30)[0], 0x30)
    if not algorithm.startswith(_PROTECTOR):
        raise ValueError("a key is protected in a way that is not JKS")
    sealed, _ = _read_der(data, 0x04)
    salt, hidden, check = sealed[:_DIGEST], sealed[_DIGEST:-_DIGEST], sealed[-_DIGEST:]
    stream, block = b"", salt
    while len(stream) < len(hidden):
        block = _hash(secret + block)
        stream += block
    key = bytes(a ^ b for a, b in zip(hidden, stream, strict=False))
    if not hmac.compare_digest(_hash(secret + key), check):
        raise WrongPassword
    return key


def _encode_password(password: str) -> bytes:
    return password.encode("utf-16-be", "surrogatepass")


def _hash(data: bytes) -> bytes:
    return hashlib.sha1(data, usedforsecurity=False).digest()


def _read_entries(reader: _Reader, version: int, count: int) -> Iterator[Entry]:
    for _ in range(count):
        kind = reader.take_number(4)
        alias = reader.take_text()
        reader.take(8)  # when the entry was made
        if kind == _KEY:
            key = reader.take(reader.take_number(4))
            chain = [_read_certificate(reader, version) for _ in range(reader.take_number(4))]
            yield Entry(alias, tuple(chain), key)
        elif kind == _TRUSTED:
            yield Entry(alias, (_read_certificate(reader, version),))
        else:
            raise ValueError("it has an entry of an unknown kind")


def _read_certificate(reader: _Reader, version: int) -> bytes:
    if version == 2:
        reader.take_text()  # the type, which is X.509
    return reader.take(reader.take_number(4))


class _Reader:
    """Takes one part of the data after the other. Raises ValueError at its end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, length: int) -> bytes:
        chunk = self._data[self._at : self._at + length]
        if len(chunk) < length:
            raise ValueError("it is cut off")
        self._at += length
        return chunk

    def take_number(self, length: int) -> int:
        return int.from_bytes(self.take(length), "big")

    def take_text(self) -> str:
        """A text in Java's modified UTF-8."""
        return self.take(self.take_number(2)).decode("utf-8", "replace")


def _read_der(data: bytes, tag: int) -> tuple[bytes, bytes]:
    """The content of an element with this tag, and what follows it (X.690). Raises ValueError."""
    reader = _Reader(data)
    first_tag, length = reader.take_number(1), reader.take_number(1)
    if length > 0x80:
        length = reader.take_number(length - 0x80)
    if first_tag != tag:
        raise ValueError("a key is not in DER")
    content = reader.take(length)
    return content, data[reader._at :]
