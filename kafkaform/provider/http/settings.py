"""Where a system is, how to log in there, and how long to wait."""

from __future__ import annotations

from msgspec import Struct

from ...core.secret import Secret
from .tokens import TokenEndpoint

TIMEOUT = 30.0
CONCURRENCY = 8
MAX_BYTES = 32 * 1024 * 1024


class BasicLogin(Struct, frozen=True):
    """User and password (RFC 7617)."""

    username: str
    password: Secret


class BearerToken(Struct, frozen=True):
    """A token that somebody else made (RFC 6750)."""

    token: Secret


Auth = BasicLogin | BearerToken | TokenEndpoint
"""How to log in. TokenEndpoint: with a token of OAuth 2.0 (client credentials)."""


class HttpSettings(Struct, frozen=True):
    """A provider block without faults, with its secrets."""

    urls: tuple[str, ...]
    """Addresses of the same system, `https://HOST:PORT/PATH`. The next one is asked if one cannot
    be reached."""
    timeout: float = TIMEOUT
    """Seconds for one call, from its first byte to the last one of the answer; and for the
    connection before it."""
    concurrency: int = CONCURRENCY
    """Calls in flight at most."""
    ca: str | None = None
    """Certificates to trust, a path or PEM text; None for those of the operating system."""
    certificate: str | None = None
    """Our certificate for mutual TLS, a path or PEM text."""
    key: str | Secret | None = None
    """Its key: a path, or PEM text as a secret."""
    passphrase: Secret | None = None
    """Of the key."""
    auth: Auth | None = None
    max_bytes: int = MAX_BYTES
    """The largest answer that is read."""
