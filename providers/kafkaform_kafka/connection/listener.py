"""Inspect a listener that refused a connection, to say which protocol it uses and what was wrong.

A listener with another protocol only closes the connection. This sends no secret: a TLS handshake
that verifies the broker as always, and the only request that a listener answers before the login
(SaslHandshake v1, KIP-43 and KIP-152).
"""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Callable

from msgspec import Struct

from kafkaform.core.text.quantity import parse_whole

PATIENCE = 1.5
"""Seconds for each of at most three connections."""

_HANDSHAKE, _VERSION = 17, 1
# UNSUPPORTED_SASL_MECHANISM comes with the list of mechanisms. A listener without a login answers
# ILLEGAL_SASL_STATE.
_UNSUPPORTED, _NO_LOGIN = 33, 34
_ANSWER = 4096
_NOBODY = b"?"
_TLS_ALERT = 21  # RFC 8446 §5.1: the first byte with which TLS answers to anything else


class _Stranger(Exception):
    """The server does not speak Kafka's protocol."""


class Listener(Struct, frozen=True):
    """What an inspection has shown."""

    reached: bool
    """It accepts connections."""
    tls: bool | None = None
    """It expects TLS; None if that is unknown."""
    refused: str = ""
    """Why its certificate is not accepted."""
    mechanisms: tuple[str, ...] | None = None
    """The SASL mechanisms that it offers: empty without a login, None if it did not say."""
    kafka: bool = True
    """False if it answers in another protocol."""
    failure: str = ""
    """Why it does not accept connections."""

    @property
    def protocol(self) -> str | None:
        """Its security protocol, None if that is unknown."""
        if self.tls is None or self.mechanisms is None:
            return None
        login = "SASL_" if self.mechanisms else ""
        return login + ("SSL" if self.tls else "PLAINTEXT")


def look_at(server: str, context: Callable[[], ssl.SSLContext]) -> Listener:
    """Inspect the listener at host:port. context: makes the TLS context that verifies the broker.
    Never raises for what it finds."""
    # First without TLS: a listener with TLS answers that at once, with an alert.
    host, _, port_text = server.rpartition("://")[2].rpartition(":")
    # Nothing listens at port 0.
    host, port = host.strip("[]"), parse_whole(port_text) or 0
    try:
        plain = _ask_mechanisms(_connect(host, port))
    except _Stranger:
        return Listener(reached=True, kafka=False)
    except OSError as error:
        return Listener(reached=False, failure=error.strerror or str(error))
    if plain is not None:
        return Listener(reached=True, tls=False, mechanisms=plain)
    try:
        secure = context().wrap_socket(_connect(host, port), server_hostname=host)
        return Listener(reached=True, tls=True, mechanisms=_ask_mechanisms(secure))
    except ssl.SSLCertVerificationError as error:
        return Listener(reached=True, tls=True, refused=error.verify_message)
    except (_Stranger, ssl.SSLError) as error:
        is_stranger = isinstance(error, _Stranger) or error.reason == "WRONG_VERSION_NUMBER"
        return Listener(reached=True, kafka=not is_stranger)
    except OSError:
        return Listener(reached=True)


def _connect(host: str, port: int) -> socket.socket:
    try:
        return socket.create_connection((host, port), timeout=PATIENCE)
    except OverflowError:
        raise OSError("no such port") from None


def _ask_mechanisms(connection: socket.socket) -> tuple[str, ...] | None:
    """The SASL mechanisms that a broker offers, None without an answer."""
    with connection:
        try:
            connection.sendall(_encode_request())
            return _parse_mechanisms(_read_answer(connection))
        except (OSError, struct.error, UnicodeDecodeError):
            return None


def _encode_request() -> bytes:
    """A SaslHandshake with a mechanism that no broker has, to which a broker answers with its
    own."""
    header = struct.pack(">hhih", _HANDSHAKE, _VERSION, 1, -1)
    body = header + struct.pack(">h", len(_NOBODY)) + _NOBODY
    return struct.pack(">i", len(body)) + body


def _read_answer(connection: socket.socket) -> bytes:
    data = b""
    while len(data) < 4 or len(data) < 4 + _parse_length(data):
        chunk = connection.recv(_ANSWER)
        if not chunk:
            raise OSError("the connection ended")
        data += chunk
    return data


def _parse_length(data: bytes) -> int:
    """The length of the answer. Raises _Stranger for a length that no answer has, OSError for an
    alert of TLS."""
    (length,) = struct.unpack(">i", data[:4])
    if 10 <= length <= _ANSWER:
        return int(length)
    if data[0] == _TLS_ALERT:
        raise OSError("it wants TLS")
    raise _Stranger


def _parse_mechanisms(data: bytes) -> tuple[str, ...] | None:
    """The mechanisms in an answer. Raises struct.error if it is cut off."""
    correlation, code, count = struct.unpack_from(">ihi", data, 4)
    if correlation != 1 or code not in (_UNSUPPORTED, _NO_LOGIN):
        return None
    names, at = [], 14
    for _ in range(max(count, 0)):
        (length,) = struct.unpack_from(">h", data, at)
        names.append(struct.unpack_from(f"{length}s", data, at + 2)[0].decode("ascii"))
        at += 2 + length
    return tuple(names)
