"""The addresses of a bootstrap list: joined texts are split, and wrong ones get a correction."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[^\s:/\[\],@]+):(\d{1,5})", re.ASCII)
"""What clients read: a host and a port."""
_SCHEME = re.compile(r"([A-Za-z][\w+.-]*)://", re.ASCII)
_DEFAULT_PORT = "9092"


def list_servers(block: Mapping[str, Any]) -> tuple[str, ...]:
    """The brokers of a provider block to ask first, each once and without its protocol.

    A text can name several between commas, as consoles of clouds and properties of Java do.
    """
    servers = (_split_protocol(server)[1] for server in split_servers(block))
    return tuple(dict.fromkeys(servers))


def split_servers(block: Mapping[str, Any]) -> Iterator[str]:
    """The addresses as they are written, without the blanks and empty texts between them."""
    for text in block.get("bootstrap_servers") or ():
        # A value that is not known yet has no text.
        yield from filter(None, (server.strip() for server in str(text or "").split(",")))


def find_protocols(servers: Iterable[str]) -> Mapping[str, str]:
    """Address -> the security protocol in front of it, for those that name one, as Confluent Cloud
    and `advertised.listeners` write it."""
    pairs = ((server, _split_protocol(server)[0]) for server in servers)
    return {server: protocol for server, protocol in pairs if protocol}


def find_address_fault(server: str) -> tuple[str, str] | None:
    """What is wrong with an address, for a sentence that begins with it, and what to do."""
    match = _ADDRESS.fullmatch(_split_protocol(server)[1])
    if match and 0 < int(match[2]) < 1 << 16:
        return None
    scheme, host, port = _take_apart(server)
    advice = _advise_address(host, port)
    checks = (
        (not server, "is empty"),
        (bool(match) or len(port) > 5, "has a port that does not exist"),
        (bool(scheme) and scheme.upper() not in PROTOCOLS, "is a URL of another protocol"),
        ("@" in server, "contains a login"),
        (bool(re.search(r"\s", server)), "contains a space"),
        (host.startswith("[") and "[" not in server, "is an IPv6 address without brackets"),
        (not port, "has no port"),
        ("/" in server.rpartition("://")[2], "has a path"),
    )
    return next((text for wrong, text in checks if wrong), "is not an address"), advice


def _advise_address(host: str, port: str) -> str:
    possible = port.isdigit() and 0 < int(port[:6]) < 1 << 16
    right = f"{host}:{port if possible else _DEFAULT_PORT}"
    if not _ADDRESS.fullmatch(right):
        return 'write each broker as host and port, such as ["kafka-1:9092", "kafka-2:9092"]'
    return f"write {right}" if possible else f"write host and port, such as {right}"


def render_address(server: str) -> str:
    """The address for a message, without a login that it may contain."""
    scheme, slashes, location = server.rpartition("://")
    return repr(f"{scheme}{slashes}{location.rpartition('@')[2]}")


def _split_protocol(server: str) -> tuple[str, str]:
    """The security protocol in front of an address, empty without one, and the rest."""
    match = _SCHEME.match(server)
    if match and match[1].upper() in PROTOCOLS:
        return match[1].upper(), server[match.end() :]
    return "", server


def _take_apart(server: str) -> tuple[str, str, str]:
    """Scheme, host (an IPv6 address in brackets) and port as they were meant, as far as there."""
    scheme, _, location = server.rpartition("://")
    authority = re.split(r"[/?#]", re.sub(r"\s+", "", location))[0].rpartition("@")[2]
    bare = authority.strip("[]")
    if _is_ipv6(bare):
        # 2001:db8::1:9092 is an address as a whole, and who writes it means a port.
        host, _, port = bare.rpartition(":")
        meant = len(port) > 3 and port.isdigit() and _is_ipv6(host)
        return (scheme, f"[{host}]", port) if meant else (scheme, f"[{bare}]", "")
    host, _, port = (
        authority.rpartition(":") if re.search(r":\d*$", authority) else (authority, "", "")
    )
    bare = host.strip("[]")
    return scheme, f"[{bare}]" if _is_ipv6(bare) else host.rstrip(":"), port


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True
