"""What comes back: the answers to a request with many items, topic ids (KIP-516) as Kafka writes
them (22 characters of base64url), and in plain words what kafka-python raises."""

from __future__ import annotations

import base64
import binascii
import os
import re
import ssl
import uuid
from collections.abc import Mapping
from sys import intern
from typing import Any

from kafka.errors import (
    KafkaConnectionError,
    KafkaTimeoutError,
    NodeNotReadyError,
    RequestTimedOutError,
    SaslAuthenticationFailedError,
    UnsupportedSaslMechanismError,
)
from msgspec import Struct

from ..connection.failures import ConnectionFailure, FailureKind, Listener


class Synonym(Struct, frozen=True):
    """The value of a config at one level, under this name or under another one."""

    # Another name, because a topic's `retention.ms` is the brokers' `log.retention.ms` (KIP-226).
    name: str
    value: str | None
    source: int
    """The config source's number in the protocol."""


class ConfigEntry(Struct, frozen=True):
    """One config of a resource."""

    name: str
    value: str | None
    # Whether a resource sets a config itself is decided by the source. `is_default` of old versions
    # is no answer to that: an override with the value of the default is an override.
    source: int
    """1 is a topic's own override, 5 the built-in default, the others are in between."""
    below: str | None = None
    """The value that takes effect without this entry, if synonyms were asked for."""
    sensitive: bool = False
    """The broker does not reveal the value: a password, or a key that it does not know."""
    read_only: bool = False
    synonyms: tuple[Synonym, ...] = ()
    """The values of all levels, the one that wins first, if they were asked for."""
    kind: int = 0
    """The number of its type in the protocol, 0 if it was not asked for."""
    doc: str = ""


class ItemAnswer(Struct, frozen=True):
    """The answer for one item."""

    code: int
    """0 is success."""
    message: str | None = None
    # The rest is filled for a new topic, and only for those who may describe its configs.
    topic_id: str | None = None
    partitions: int | None = None
    replication_factor: int | None = None
    configs: tuple[ConfigEntry, ...] | None = None


class ItemAnswers(Struct, frozen=True):
    """The answers for all items of a request."""

    items: Mapping[Any, ItemAnswer]
    """By name; by topic id for deletes; by resource and name for configs."""
    throttle: float
    """Seconds that the broker asks us to wait."""


_NO_ID = uuid.UUID(int=0)


def id_text(topic_id: uuid.UUID | None) -> str | None:
    """The text of an id; None for the all-zero id, which means that there is none."""
    # Metadata gives this id to a topic that is not there.
    if topic_id is None or topic_id == _NO_ID:
        return None
    return intern(base64.urlsafe_b64encode(topic_id.bytes).rstrip(b"=").decode("ascii"))


def parse_id(text: str) -> uuid.UUID:
    """The id that this text means. Raises ValueError."""
    try:
        return uuid.UUID(bytes=base64.urlsafe_b64decode(text + "=="))
    except (binascii.Error, ValueError):
        raise ValueError(f"{text!r} is not a topic id") from None


class NoCredentials(KafkaConnectionError):  # type: ignore[misc]  # kafka-python has no types
    """There is no ticket or token to log in with."""


class OtherMechanisms(UnsupportedSaslMechanismError):  # type: ignore[misc]  # the same
    """The listener does not take our mechanism."""

    def __init__(self, mechanism: str, offered: tuple[str, ...], *, tls: bool) -> None:
        """offered: the mechanisms of the listener, none if it takes no login; tls: whether it has
        TLS."""
        super().__init__(f"the listener does not offer {mechanism}")
        self.offered = offered
        self.tls = tls


_CLOSED = "the broker closed the connection"
_UNKNOWN_HOST = "the host name is unknown"
_TIMED_OUT = "no answer in time"
_WORDS: Mapping[str, str] = {
    "KafkaConnectionError": _CLOSED,
    "socket disconnected": _CLOSED,
    "Connection closed during connect": _CLOSED,
    "Connection closed during send": _CLOSED,
    "closed": _CLOSED,
    "Node not connected": _CLOSED,
    "NodeNotReadyError": "the broker cannot be reached yet",
    "DNS Resolution failure": _UNKNOWN_HOST,
    "Connection timed out": _TIMED_OUT,
    "KafkaTimeoutError": _TIMED_OUT,
    "RequestTimedOutError": _TIMED_OUT,
}
"""kafka-python's word for an error, or the error's class where it has none -> ours."""
_SYSTEM_ERROR = re.compile(r"(?:\[Errno )?(\d+)(?: E[A-Z]+|\] .*)")
HANDSHAKE_FAILED = "Handshake failed"
"""How kafka-python begins the text of a failed TLS handshake; it has no type of its own."""

_KINDS = (
    (SaslAuthenticationFailedError, FailureKind.REFUSED_LOGIN),
    (NoCredentials, FailureKind.NO_CREDENTIALS),
    (OtherMechanisms, FailureKind.OTHER_LISTENER),
    (KafkaTimeoutError, FailureKind.SILENT),
    (RequestTimedOutError, FailureKind.SILENT),
)
_TEXT_KINDS = {_UNKNOWN_HOST: FailureKind.UNKNOWN_HOST, _TIMED_OUT: FailureKind.SILENT}


# ── errors of kafka-python ──────────────────────────────────────────────────────────────


def describe_error(error: Exception) -> str:
    """What happened, in words of people and without the name of a Python class."""
    name = type(error).__name__
    # kafka-python writes `Name: text`, and `[Error 7] Name` for what a broker answered.
    text = re.sub(rf"^(?:\[Error -?\d+\] )?(?:{name}(?:: |$))?", "", str(error))
    system = _SYSTEM_ERROR.fullmatch(text)
    if system:
        reason = os.strerror(int(system[1]))
        return reason[:1].lower() + reason[1:]
    if isinstance(error, NodeNotReadyError):
        return _WORDS[NodeNotReadyError.__name__]
    return _WORDS.get(text or name, text or name)


def explain_failure(error: Exception) -> ConnectionFailure:
    """Why a connection to one broker failed. error: what kafka-python or the login raised."""
    text = describe_error(error)
    # kafka-python puts the text of an error of TLS or the network into one of its own.
    cause: BaseException | None = None
    if error.args and isinstance(error.args[0], OSError):
        cause = error.args[0]
    if text.startswith(HANDSHAKE_FAILED) and isinstance(error.__context__, Exception):
        cause = error.__context__
        text = describe_error(cause)
    kind = next((kind for type_, kind in _KINDS if isinstance(error, type_)), None)
    if kind is None and isinstance(cause, ssl.SSLError) and not isinstance(cause, ssl.SSLEOFError):
        kind = FailureKind.TLS
    elif kind is None and cause is None and _is_unreachable(error):
        kind = FailureKind.UNREACHABLE
    kind = kind or _TEXT_KINDS.get(text, FailureKind.CLOSED)
    if kind is FailureKind.SILENT:
        text = _TIMED_OUT
    return ConnectionFailure(kind, text, _find_listener(error, cause))


def _is_unreachable(error: Exception) -> bool:
    """Whether no connection was made: kafka-python has a text for that and no type."""
    text = str(error.args[0]) if isinstance(error, KafkaConnectionError) and error.args else ""
    return bool(_SYSTEM_ERROR.fullmatch(text)) or text.startswith("unable to connect")


def _find_listener(error: Exception, cause: BaseException | None) -> Listener | None:
    """What the attempt showed about the listener. cause: the error of TLS or the network."""
    if isinstance(error, OtherMechanisms):
        return Listener(True, error.tls, mechanisms=error.offered)
    if isinstance(cause, ssl.SSLCertVerificationError):
        return Listener(True, True, cause.verify_message)
    # After the handshake, so the listener has TLS.
    if isinstance(cause, ssl.SSLError) and cause is not error.__context__:
        return Listener(True, True)
    return None


def name_address(broker: Any) -> str:
    """`localhost:9092`, as a bootstrap list has it."""
    host = f"[{broker.host}]" if ":" in broker.host else broker.host
    return f"{host}:{broker.port}"


def name_broker(cluster: Any, node: Any) -> str:
    """`broker 1 at localhost:9092`, or the address alone while the broker's id is unknown."""
    broker = cluster.broker_metadata(node)
    address = name_address(broker) if broker is not None else ""
    if cluster.is_bootstrap(node):
        return address
    return f"broker {node} at {address}" if address else f"broker {node}"
