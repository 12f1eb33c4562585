"""One sentence for a failed connection: the clearest cause, and how many brokers had which.

The connection itself says what each broker of the list did. A listener with another protocol only
closes it, so such a listener is inspected, without a secret: by a TLS handshake that verifies the
broker as always, and by the only request that a listener answers before the login (SaslHandshake
v1, KIP-43 and KIP-152).
"""

from __future__ import annotations

import os
import re
import socket
import ssl
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum, IntEnum, auto

from msgspec import Struct

from kafkaform.core.errors import ConnectError
from kafkaform.core.secret import MASK, mask_secrets
from kafkaform.core.text import parse_whole
from kafkaform.provider.http.connection import advise_certificate

from .settings import KafkaSettings

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


class FailureKind(Enum):
    """How an attempt to connect to one broker ended."""

    REFUSED_LOGIN = auto()
    """The broker refused the login."""
    NO_CREDENTIALS = auto()
    """There is no ticket or token to log in with."""
    OTHER_LISTENER = auto()
    """The listener takes another security protocol or other mechanisms."""
    TLS = auto()
    """The TLS handshake failed, or the broker ended TLS with an alert."""
    UNKNOWN_HOST = auto()
    UNREACHABLE = auto()
    """No connection was made."""
    CLOSED = auto()
    """The broker closed the connection, or sent what is not an answer."""
    SILENT = auto()
    """The broker did not answer in time."""


class ConnectionFailure(Struct, frozen=True):
    """Why one broker could not be used."""

    kind: FailureKind
    text: str
    listener: Listener | None = None
    """What the attempt showed about the listener."""


FINAL = frozenset({FailureKind.REFUSED_LOGIN, FailureKind.OTHER_LISTENER, FailureKind.TLS})
"""After these, another attempt at the same broker ends in the same way."""
_LOGIN_FAILURES = (FailureKind.REFUSED_LOGIN, FailureKind.NO_CREDENTIALS)

NAMED = 3
"""How many brokers are named with a cause; more are counted."""

_ADVICE = {
    FailureKind.TLS: "check ca_cert, client_cert and client_key, and the host name in "
    "bootstrap_servers",
    FailureKind.UNKNOWN_HOST: "check the host names in bootstrap_servers",
    **dict.fromkeys(
        (FailureKind.UNREACHABLE, FailureKind.SILENT),
        "check bootstrap_servers, security_protocol, the network, and that the broker runs",
    ),
}
_OTHERWISE = (
    "check bootstrap_servers, and that security_protocol is the one of that listener "
    "(a controller's listener takes no clients)"
)
_NOT_TRIED = ConnectionFailure(FailureKind.SILENT, "no answer in time")

_WRONG_PASSWORD = re.compile(
    r"Authentication failed(: Invalid username or password"
    r"|( during authentication)? due to invalid credentials( with SASL mechanism \S+)?)?"
)
"""What Kafka's brokers answer to a wrong password with PLAIN and SCRAM."""
_WRONG_TOKEN = "wrong token ID or HMAC, or the token has expired"
_LONGEST = 300
"""Characters of a cause: it can repeat what a broker sent."""

_UNREAD = {
    "KAFKA_CA_CERT": ("ca_cert", "ca"),
    "KAFKA_CLIENT_CERT": ("client_cert", "certificate"),
    "KAFKA_CLIENT_KEY": ("client_key", "key"),
    "KAFKA_SASL_USERNAME": ("sasl_username", "username"),
    "KAFKA_SASL_PASSWORD": ("sasl_password", "password"),
    "KAFKA_SASL_TOKEN_URL": ("sasl_token_url", "token_url"),
}
"""Environment variable with which other tools connect -> the attribute and the field of
KafkaSettings that have the same meaning."""


class _Rank(IntEnum):
    """How much a cause says about what to change: the first ones say most."""

    LOGIN, CREDENTIALS, LISTENER, TLS, HOST, NETWORK, UNKNOWN = range(7)


_RANKS = {
    FailureKind.REFUSED_LOGIN: _Rank.LOGIN,
    FailureKind.NO_CREDENTIALS: _Rank.CREDENTIALS,
    FailureKind.OTHER_LISTENER: _Rank.LISTENER,
    FailureKind.TLS: _Rank.TLS,
    FailureKind.UNKNOWN_HOST: _Rank.HOST,
    FailureKind.UNREACHABLE: _Rank.NETWORK,
    FailureKind.CLOSED: _Rank.UNKNOWN,
    FailureKind.SILENT: _Rank.UNKNOWN,
}


class _Cause(Struct, frozen=True):
    rank: _Rank
    sentence: str
    advice: str


def connect_error(
    settings: KafkaSettings,
    failures: Mapping[str, ConnectionFailure],
    listeners: Mapping[str, Listener] = {},
) -> ConnectError:
    """The error for a failed connection. failures: server -> what the last attempt there met;
    listeners: server -> what an inspection of its listener showed, which is more exact."""
    groups: dict[str, list[str]] = {}
    causes: dict[str, _Cause] = {}
    for server in settings.servers:
        failure = failures.get(server, _NOT_TRIED)
        cause = _explain_failure(settings, failure, listeners.get(server) or failure.listener)
        causes.setdefault(cause.sentence, cause)
        groups.setdefault(cause.sentence, []).append(server)
    clearest, *further_causes = sorted(causes.values(), key=lambda cause: cause.rank)
    reasons = clearest.sentence
    if further_causes:
        reasons = "; ".join(
            cause.sentence + _render_count(groups[cause.sentence], len(settings.servers))
            for cause in (clearest, *further_causes)
        )
    advice = "; ".join((clearest.advice, *_find_unread_variables(settings)))
    servers = ", ".join(groups[clearest.sentence])
    if clearest.rank is _Rank.LOGIN:
        return ConnectError(f"Kafka at {servers} refused the login: {reasons}", advice)
    if clearest.rank is _Rank.CREDENTIALS:
        return ConnectError(f"cannot log in to Kafka at {servers}: {reasons}", advice)
    servers = ", ".join(settings.servers)
    return ConnectError(f"cannot reach Kafka at {servers}: {reasons}", advice)


def _render_count(servers: Sequence[str], total: int) -> str:
    names = ", ".join(servers[:NAMED]) + (" …" if servers[NAMED:] else "")
    return f" ({len(servers)} of {total}: {names})"


def _explain_failure(
    settings: KafkaSettings, failure: ConnectionFailure, listener: Listener | None
) -> _Cause:
    """The clearest cause of one broker. listener: what is known about its listener."""
    cause = _explain_listener(settings, failure.text, listener) if listener else None
    if cause is not None:
        return cause
    sentence = _redact(failure.text, settings)
    if failure.kind in _LOGIN_FAILURES:
        if settings.password is not None and _WRONG_PASSWORD.fullmatch(failure.text):
            sentence = _WRONG_TOKEN if settings.token_auth else "wrong username or password"
        sentence = f"{sentence} ({_describe_login(settings)})"
    return _Cause(_RANKS[failure.kind], sentence, _advise(settings, failure.kind))


def _describe_login(settings: KafkaSettings) -> str:
    """With which mechanism, and as whom."""
    user = settings.username or (settings.kerberos.principal if settings.kerberos else None)
    if settings.aws_login is not None:
        user = settings.aws_login.describe()
    return f"{settings.mechanism}" + (f", as {user}" if user else "")


def _explain_listener(settings: KafkaSettings, text: str, listener: Listener) -> _Cause | None:
    """What is wrong and what to do, if the listener showed it. text: how the connection ended."""
    protocol, expected = settings.protocol, listener.protocol
    if not listener.kafka:
        advice = "check host and port in bootstrap_servers"
        return _Cause(_Rank.LISTENER, "the server there is not Kafka", advice)
    if listener.tls and not settings.tls:
        secure = protocol.replace("PLAINTEXT", "SSL")
        sentence = f"the listener expects TLS, but this connection uses {protocol}"
        advice = f'write security_protocol = "{expected or secure}" and give ca_cert'
        return _Cause(_Rank.LISTENER, sentence, advice)
    if listener.refused:
        sentence = f"the broker's certificate is refused: {listener.refused}"
        listener_advice = " (and into the broker's advertised.listeners)"
        advice = advise_certificate(
            listener.refused, "bootstrap_servers", "broker", listener_advice
        )
        return _Cause(_Rank.LISTENER, sentence, advice)
    if expected is not None and expected != protocol:
        sentence = f"the listener expects {expected}, but this connection uses {protocol}"
        advice = _advise_protocol(expected, listener.mechanisms or (), weaker=settings.tls)
        return _Cause(_Rank.LISTENER, sentence, advice)
    # With TLS 1.3 a server refuses the client's certificate only after the handshake, by an alert
    # (RFC 8446 §4.4.2.4), so that the client has connected and then loses the connection.
    if listener.tls and "alert" in text:
        if settings.certificate is None:
            sentence = "the broker requires a client certificate"
            return _Cause(_Rank.LOGIN, sentence, "give client_cert and client_key")
        advice = "give client_cert and client_key of an authority that the broker trusts"
        return _Cause(_Rank.LOGIN, "the broker refuses our client certificate", advice)
    if listener.mechanisms and settings.mechanism not in listener.mechanisms:
        sentence = f"the listener does not offer {settings.mechanism}"
        advice = f"choose another sasl_mechanism: {' or '.join(listener.mechanisms)}"
        return _Cause(_Rank.LOGIN, sentence, advice)
    return None


def _advise_protocol(expected: str, mechanisms: tuple[str, ...], *, weaker: bool) -> str:
    """What to do about another security protocol. weaker: this connection uses TLS, and the
    listener may not."""
    # A listener without TLS can be somebody who answers at that address to read a password, so the
    # first advice is to keep TLS.
    login = f" and log in with {' or '.join(mechanisms)}" if mechanisms else ""
    change = f'write security_protocol = "{expected}"{login}'
    if weaker and "SSL" not in expected:
        return (
            "name the port of a listener with TLS in bootstrap_servers; or, if others on the "
            f"network are allowed to read the traffic, {change}"
        )
    return change


def _advise(settings: KafkaSettings, kind: FailureKind) -> str:
    if kind not in _LOGIN_FAILURES:
        advice = _ADVICE.get(kind, _OTHERWISE)
        if settings.protocol == "PLAINTEXT":
            advice += "; for TLS without a login write tls_enabled = true"
        return advice
    if settings.aws_login:
        return (
            f"check that the policy of {settings.aws_login.describe()} allows "
            "kafka-cluster:Connect on the cluster, that sasl_aws_region is its region, and that "
            "the clock is right"
        )
    if settings.mechanism == "OAUTHBEARER":
        return (
            "check that the broker accepts tokens of this issuer, audience and time "
            "(sasl_token_url or sasl_token_file, sasl_oauth_scopes), and that the clocks agree"
        )
    if settings.kerberos is not None:
        return (
            "check the ticket or the keytab (klist, klist -k), sasl_kerberos_principal and "
            "sasl_kerberos_service_name, the brokers' host names, and that the clocks agree"
        )
    if settings.token_auth:
        return (
            "check that sasl_username and sasl_password are the id and the HMAC of one token, and "
            "that it has not expired (`kafkaform describe delegation-tokens`)"
        )
    return "check sasl_mechanism, sasl_username and sasl_password"


def _find_unread_variables(settings: KafkaSettings) -> Iterator[str]:
    """Advice about environment variables that another tool would use."""
    # Terraform's provider fills the attributes that its block omits from these variables. Here the
    # block alone says who connects, so that a reviewer can read it.
    variables = {
        variable: attribute
        for variable, (attribute, field) in _UNREAD.items()
        if os.environ.get(variable) and getattr(settings, field) is None
    }
    if variables:
        yield (
            f"the provider block does not take {', '.join(variables)} from the environment: "
            f"write {', '.join(variables.values())} into it"
        )


def _redact(text: str, settings: KafkaSettings) -> str:
    """The text of a client or a broker in one line and without secrets."""
    for secret in (settings.password, settings.passphrase):
        text = text.replace(secret.reveal(), MASK) if secret else text
    return " ".join(mask_secrets(text).split())[:_LONGEST]
