"""Log in with what kafka-python's own mechanisms lack: delegation tokens and Kerberos credentials.

librdkafka has neither: its SCRAM sends no extensions, and the wheel of confluent-kafka is built
without GSSAPI. So sessions with such a login use this client for everything.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafka.errors import (
    KafkaConnectionError,
    SaslAuthenticationFailedError,
    UnsupportedSaslMechanismError,
)
from kafka.net.sasl.scram import SaslMechanismScram, ScramClient
from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from msgspec import Struct

from kafkaform.core.secret import Secret

from ..connection.settings import KafkaSettings
from .kerberos import TicketError, prepare_kerberos


class SaslLogin(Struct, eq=False):
    """How the connections of one session log in. They are all opened in one thread."""

    mechanism: str
    make: Callable[[str], Any]
    """Host of a broker -> a new SaslMechanism."""
    # kafka-python goes on connecting until its time is over, and passes on no cause.
    failure: str = ""
    """Why the last login failed; empty if it did not."""
    # Every attempt counts where failed logins lock an account.
    refused: bool = False
    """A broker refused the login, so that it is not tried again."""

    def hear(self, answer: Any) -> None:
        """Take a broker's answer to a step of a login."""
        if answer.error_code:
            self.failure, self.refused = answer.error_message or "the login is refused", True


def make_login(settings: KafkaSettings) -> SaslLogin:
    """The login of settings with `kerberos` or `token_auth`. Raises ConfigurationError if a package
    or a file is missing."""
    if settings.kerberos is not None:
        return SaslLogin("GSSAPI", prepare_kerberos(settings.kerberos))
    mechanism, user = settings.mechanism or "", settings.username or ""
    hmac = settings.password or Secret("")
    return SaslLogin(mechanism, lambda _: TokenScram(user, hmac.reveal(), mechanism))


async def log_in(connection: Any, login: SaslLogin, timeout_at: float) -> None:
    """Log in on a connection (KIP-43, KIP-152). timeout_at: seconds on `time.monotonic`. Raises
    KafkaError."""
    if login.refused:
        raise SaslAuthenticationFailedError(login.failure)
    shake = SaslHandshakeRequest(mechanism=login.mechanism, min_version=1)
    answer = await connection._send_request(shake, timeout_at=timeout_at)
    if answer.error_code:
        login.failure = f"the listener does not offer {login.mechanism}"
        raise UnsupportedSaslMechanismError(login.failure)
    try:
        exchange = login.make(connection.transport.host)
        while not exchange.is_done():
            request = SaslAuthenticateRequest(exchange.auth_bytes())
            reply = connection._send_request(request, timeout_at=timeout_at)
            # The broker closes the connection right after a refusal, so the answer is taken before
            # anything else can happen to this task.
            reply.add_callback(login.hear)
            answer = await reply
            if answer.error_code:
                raise SaslAuthenticationFailedError(login.failure)
            exchange.receive(answer.auth_bytes)
    except TicketError as error:
        # Not final: somebody can renew the ticket, or the KDC can come back.
        login.failure = str(error)
        raise KafkaConnectionError(login.failure) from None
    login.failure = ""
    # The broker says how long the login counts (KIP-368).
    connection._reauth.session_updated(answer.session_lifetime_ms)


class TokenScram(SaslMechanismScram):  # type: ignore[misc]  # kafka-python has no types
    """SCRAM with the id and the HMAC of a delegation token (KIP-48)."""

    def __init__(self, user: str, password: str, mechanism: str) -> None:
        super().__init__(
            sasl_plain_username=user, sasl_plain_password=password, sasl_mechanism=mechanism
        )
        self._scram_client = _TokenClient(user, password, mechanism)


class _TokenClient(ScramClient):  # type: ignore[misc]  # kafka-python has no types
    def first_message(self) -> bytes:
        """The client's first message, with the extension that tells a token from a user
        (RFC 5802 §5.1, KIP-48)."""
        bare: bytes = b"n=" + self.user + b",r=" + self.nonce + b",tokenauth=true"
        self.auth_message += bare
        return b"n,," + bare
