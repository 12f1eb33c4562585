"""What provider blocks check of durations, addresses and certificates without a connection. By
itself, because `validate` and editors need it and start fast: it loads neither ssl nor a client."""

from __future__ import annotations

import re
from decimal import Decimal
from ipaddress import ip_address
from urllib.parse import urlsplit

from ..core.schema import STRING, AttributeSchema
from ..core.value import Value

# Some protocols carry whole milliseconds. A request with 0 can expire before
# anybody looks at it, and some clients report that as success.
MIN_SECONDS, MAX_SECONDS = 0.001, 3600.0

_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)\s*(ms|s|m)?", re.ASCII)
_UNITS = {None: 1.0, "s": 1.0, "ms": 0.001, "m": 60.0}


def parse_seconds(value: Value) -> float | None:
    """The seconds that a number or a text such as `30s` means; None if it is no duration, not
    positive, or over an hour."""
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
        return None
    match = _DURATION.fullmatch(str(value).strip())
    if match is None:
        return None
    length = float(match[1]) * _UNITS[match[2]]
    return length if MIN_SECONDS <= length <= MAX_SECONDS else None


PEM_BEGIN = "-----BEGIN"


def is_pem(value: str | None) -> bool:
    """True if this is PEM text and not the path of a file."""
    return value is not None and value.lstrip().startswith(PEM_BEGIN)


def is_safe_url(url: str) -> bool:
    """True for https and for http to this computer, both without a login in the URL."""
    # A login in a URL is shown by proxies, logs and error texts.
    try:
        address = urlsplit(url)
        host, _ = address.hostname, address.port
    except ValueError:
        return False
    if not host or address.username is not None or address.password is not None:
        return False
    return address.scheme == "https" or (address.scheme == "http" and _is_here(host))


def _is_here(host: str) -> bool:
    """True for a literal loopback address or `localhost`."""
    # Other names are not resolved: whoever answers for a name could say 127.0.0.1 now and another
    # address when the secret is sent.
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


CERTIFICATES = (
    AttributeSchema(
        "ca_cert",
        STRING,
        "Certificates to trust: a PEM file or PEM text. Default: those of the operating system.",
        aliases=("ca_cert_file",),
    ),
    AttributeSchema(
        "client_cert",
        STRING,
        "Our certificate for mutual TLS: a PEM file or PEM text.",
        aliases=("client_cert_file",),
    ),
    AttributeSchema(
        "client_key",
        STRING,
        "Private key of client_cert: a PEM file or PEM text.",
        sensitive=True,
        aliases=("client_key_file",),
    ),
)
"""The passphrase of the key has different names, so each block has its own."""
