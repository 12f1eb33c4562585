"""What a login makes of a broker's answers, and how the failure is told."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.errors import KafkaConnectionError, KafkaTimeoutError, SaslAuthenticationFailedError

from kafkaform_kafka.connection.failures import FailureKind, Listener
from kafkaform_kafka.wire.answers import NoCredentials, OtherMechanisms, explain_failure
from kafkaform_kafka.wire.connections import (
    SaslLogin,
    TicketError,
    find_login,
    log_in,
)

HANDSHAKE = SimpleNamespace(error_code=0, mechanisms=["SCRAM-SHA-256"])
SCRAM = {
    "sasl_mechanism": "SCRAM-SHA-256",
    "sasl_plain_username": "ci",
    "sasl_plain_password": "hunter2",
}


class Connection:
    """Answers each request of a login in turn."""

    def __init__(self, *answers: Any, protocol: str = "SASL_SSL") -> None:
        self.answers = [*answers]
        self.config = {"security_protocol": protocol}
        self.transport = SimpleNamespace(host="b1")
        self.lifetimes: list[int] = []
        self._reauth = SimpleNamespace(session_updated=self.lifetimes.append)

    async def _send_request(self, request: Any, timeout_at: float) -> Any:
        answer = self.answers.pop(0)
        return answer(request) if callable(answer) else answer


def run(connection: Connection, login: SaslLogin | None) -> None:
    assert login is not None
    asyncio.run(log_in(connection, login, 1.0))


def authenticate(data: bytes = b"", code: int = 0, message: str | None = None) -> Any:
    """An answer to SaslAuthenticate."""
    return SimpleNamespace(
        error_code=code, error_message=message, auth_bytes=data, session_lifetime_ms=2000
    )


def challenge(request: Any) -> Any:
    """The server's first message of SCRAM."""
    nonce = request.auth_bytes.rpartition(b"r=")[2]
    return authenticate(b"r=" + nonce + b"x,s=c2FsdA==,i=4096")


@pytest.mark.parametrize(
    ("code", "offered", "protocol", "listener"),
    [
        (33, ["PLAIN"], "SASL_SSL", Listener(True, True, mechanisms=("PLAIN",))),
        (34, [], "SASL_PLAINTEXT", Listener(True, False, mechanisms=())),
    ],
)
def test_a_listener_with_other_mechanisms(
    code: int, offered: list[str], protocol: str, listener: Listener
) -> None:
    """It names them in its answer, so it need not be inspected. One without a login has none."""
    answer = SimpleNamespace(error_code=code, mechanisms=offered)
    with pytest.raises(OtherMechanisms) as caught:
        run(Connection(answer, protocol=protocol), find_login(SCRAM))
    failure = explain_failure(caught.value)
    assert failure.kind is FailureKind.OTHER_LISTENER
    assert failure.listener == listener


def test_the_broker_s_reason_is_kept() -> None:
    """Without the names of Python classes."""
    refusal = authenticate(code=58, message="account is locked")
    with pytest.raises(SaslAuthenticationFailedError) as caught:
        run(Connection(HANDSHAKE, refusal), find_login(SCRAM))
    failure = explain_failure(caught.value)
    assert (failure.kind, failure.text) == (FailureKind.REFUSED_LOGIN, "account is locked")


def test_a_broker_that_does_not_know_the_password_is_refused() -> None:
    """SCRAM proves both sides: somebody who only claims to be the broker has no signature."""
    forged = authenticate(b"v=Zm9yZ2Vk")
    connection = Connection(HANDSHAKE, challenge, forged)
    with pytest.raises(SaslAuthenticationFailedError) as caught:
        run(connection, find_login(SCRAM))
    assert "does not fit our password" in explain_failure(caught.value).text
    assert connection.lifetimes == []


def fail(_: str) -> Any:
    raise TicketError("Kerberos: no ticket")


def test_a_missing_ticket_is_no_refusal() -> None:
    """Nothing was sent to the broker but the name of the mechanism."""
    with pytest.raises(NoCredentials) as caught:
        run(Connection(HANDSHAKE), SaslLogin("GSSAPI", fail))
    failure = explain_failure(caught.value)
    assert (failure.kind, failure.text) == (FailureKind.NO_CREDENTIALS, "Kerberos: no ticket")


def wrap(cause: Exception) -> Exception:
    """As kafka-python does with what a TLS handshake raises."""
    try:
        try:
            raise cause
        except OSError as error:
            raise KafkaConnectionError(f"Handshake failed: {error}")  # noqa: B904  # as there
    except KafkaConnectionError as error:
        return error


def make_certificate_error() -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_message = "certificate has expired"
    return error


@pytest.mark.parametrize(
    ("error", "kind", "listener"),
    [
        (
            lambda: wrap(make_certificate_error()),
            FailureKind.TLS,
            Listener(True, True, "certificate has expired"),
        ),
        (lambda: wrap(ssl.SSLError(1, "wrong version number")), FailureKind.TLS, None),
        (lambda: wrap(ConnectionResetError(104, "reset")), FailureKind.CLOSED, None),
        (
            lambda: KafkaConnectionError(ssl.SSLError(1, "alert bad certificate")),
            FailureKind.TLS,
            Listener(True, True),
        ),
        (lambda: KafkaConnectionError("111 ECONNREFUSED"), FailureKind.UNREACHABLE, None),
        (lambda: KafkaConnectionError("DNS Resolution failure"), FailureKind.UNKNOWN_HOST, None),
        (lambda: KafkaConnectionError("Connection timed out"), FailureKind.SILENT, None),
        (KafkaTimeoutError, FailureKind.SILENT, None),
        (lambda: KafkaConnectionError("socket disconnected"), FailureKind.CLOSED, None),
    ],
)
def test_what_a_failed_connection_shows(
    error: Callable[[], Exception], kind: FailureKind, listener: Listener | None
) -> None:
    """kafka-python has one type for almost all of it."""
    failure = explain_failure(error())
    assert (failure.kind, failure.listener) == (kind, listener)
