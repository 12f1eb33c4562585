"""Salted passwords, which SCRAM sends in place of passwords (RFC 5802)."""

from __future__ import annotations

import hashlib
import os

from kafkaform.core.secret import PartialRepr

SALT_BYTES = 32


class SaltedPassword(PartialRepr, frozen=True):
    """What is sent instead of a password. Whoever has it can guess at the password, so it is not
    shown."""

    _unshown = frozenset({"salt", "password"})

    salt: bytes
    password: bytes


def salt_password(password: str, digest: str, iterations: int) -> SaltedPassword:
    """Hi(password, salt, iterations) of RFC 5802 with a new salt. digest: the hash's name in
    `hashlib`. The password is its UTF-8 bytes: Kafka's ScramFormatter does not prepare strings
    (SASLprep) either."""
    salt = os.urandom(SALT_BYTES)
    return SaltedPassword(
        salt, hashlib.pbkdf2_hmac(digest, password.encode("utf-8"), salt, iterations)
    )
