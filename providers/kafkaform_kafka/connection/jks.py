"""Parse Java's own key store format, JKS, and open the keys in it.

There is no specification. The source is OpenJDK: `sun.security.provider.JavaKeyStore` for the file,
`sun.security.provider.KeyProtector` for the keys. All numbers are big-endian. SHA-1 is what the
format demands.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator

from msgspec import Struct

MAGIC = b"\xfe\xed\xfe\xed"
_KEY, _TRUSTED = 1, 2
_DIGEST = 20
"""Bytes of a SHA-1 hash, which is also the length of the salt."""
_WHITENER = b"Mighty Aphrodite"
_PROTECTOR = bytes.fromhex("060a2b060104012a02110101")
"""Object identifier 1.3.6.1.4.1.42.2.17.1.1 in DER: the only protection of keys in JKS."""


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
    if magic != MAGIC or version not in (1, 2):
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
