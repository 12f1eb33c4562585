"""Read from a certificate whose it is and when it is valid.

Python's `ssl` tells this only of a peer that it trusts, and the package cryptography comes with
few extras. RFC 5280 §4.1 has the structure, X.690 the encoding.
"""

from __future__ import annotations

import re
import ssl
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from kafkaform.provider.block_checks import is_pem

from .settings import KafkaSettings

_VERSION, _UTC_TIME = 0xA0, 0x17
_TEXTS = {0x0C: "utf-8", 0x13: "ascii", 0x14: "latin-1", 0x16: "ascii", 0x1E: "utf-16-be"}
"""Tag of a text -> how it is encoded."""
_ATTRIBUTES = {
    "550403": "CN",
    "550406": "C",
    "550407": "L",
    "550408": "ST",
    "55040a": "O",
    "55040b": "OU",
    "0992268993f22c640101": "UID",
    "0992268993f22c640119": "DC",
}
"""Object identifier in DER -> the name of RFC 4514 §3."""
_BLOCK = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


class Certificate(Struct, frozen=True):
    """What a certificate says. Times are milliseconds since 1970."""

    subject: str
    """`CN=broker-1,O=Acme`, in the order of the certificate."""
    begins: int
    ends: int


def read_own_certificate(settings: KafkaSettings) -> Certificate | None:
    """The certificate with which we log in; None if there is none or it cannot be read."""
    value = settings.certificate
    if value is None or not settings.tls:
        return None
    try:
        text = value if is_pem(value) else Path(value).read_text("ascii", "replace")
        # The first one is ours, the others are its issuers: TLS wants this order.
        block = _BLOCK.search(text)
        return parse_certificate(ssl.PEM_cert_to_DER_cert(block[0])) if block else None
    except (OSError, ValueError):
        return None


def parse_certificate(data: bytes) -> Certificate:
    """Parse a certificate in DER. Raises ValueError: it is none."""
    try:
        ((_, outer),) = _list_elements(data)
        elements = _list_elements(_list_elements(outer)[0][1])
        if elements[0][0] == _VERSION:
            del elements[0]
        _serial, _algorithm, _issuer, (_, validity), (_, subject), *_rest = elements
        begins, ends = (_parse_time(*element) for element in _list_elements(validity))
    except (IndexError, TypeError) as error:
        raise ValueError("it is not a certificate") from error
    return Certificate(",".join(_list_attributes(subject)), begins, ends)


def _list_attributes(name: bytes) -> list[str]:
    pairs = [
        _list_elements(attribute)
        for _, group in _list_elements(name)
        for _, attribute in _list_elements(group)
    ]
    return [
        f"{_ATTRIBUTES.get(key.hex(), key.hex())}={value.decode(_TEXTS.get(tag, 'latin-1'))}"
        for (_, key), (tag, value) in pairs
    ]


def _parse_time(tag: int, data: bytes) -> int:
    """Milliseconds since 1970. A UTCTime has two digits for the year, from 1950 on."""
    text = data.decode("ascii")
    if tag == _UTC_TIME:
        text = f"{'19' if text >= '50' else '20'}{text}"
    moment = datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
    return int(moment.timestamp()) * 1000


def _list_elements(data: bytes) -> list[tuple[int, bytes]]:
    """The tags and contents of elements that follow each other in DER. Raises ValueError: one ends
    too early."""
    elements, position = [], 0
    while position < len(data):
        tag, length = data[position], data[position + 1]
        position += 2
        if length & 0x80:
            count = length & 0x7F
            length = int.from_bytes(data[position : position + count])
            position += count
        content = data[position : position + length]
        if len(content) < length:
            raise ValueError("an element ends too early")
        elements.append((tag, content))
        position += length
    return elements
