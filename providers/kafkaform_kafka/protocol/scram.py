"""Salted passwords: what SCRAM sends instead of a password (RFC 5802, KIP-554)."""

from __future__ import annotations

import hashlib
import os

from kafkaform.core.secret import PartialRepr

SALT_BYTES = 32


class SaltedPassword(PartialRepr, frozen=True):
    """What is sent instead of a password. It allows an offline attack, so it is never shown."""

    _unshown = frozenset({"salt", "password"})

    salt: bytes
    password: bytes


def salt_password(password: str, digest: str, iterations: int) -> SaltedPassword:
    """Hi(password, salt, iterations) of RFC 5802. digest: the hash's name in `hashlib`."""
    # A new salt each time, as Kafka's tools do: no two requests are equal, so none is idempotent.
    salt = os.urandom(SALT_BYTES)
    # No SASLprep (RFC 4013): Kafka's ScramFormatter takes the UTF-8 bytes as they are, and a
    # normalized password would not match at login.
    return SaltedPassword(
        salt, hashlib.pbkdf2_hmac(digest, password.encode("utf-8"), salt, iterations)
    )
