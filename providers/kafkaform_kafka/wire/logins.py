"""Log in on a connection (SASL, KIP-43 and KIP-152), and keep what the broker says about it.

kafka-python's own login drops the reason of a refusal and tries again until its time is over. Its
mechanisms also lack delegation tokens, and Kerberos credentials other than those of the process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from kafka.errors import (
    KafkaConnectionError,
    SaslAuthenticationFailedError,
    UnsupportedSaslMechanismError,
)
from kafka.net.sasl import get_sasl_mechanism
from kafka.net.sasl.oauth import AbstractTokenProvider
from kafka.net.sasl.scram import SaslMechanismScram, ScramClient
from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from msgspec import Struct

from kafkaform.core.errors import ConnectError
from kafkaform.core.secret import Secret

from ..connection.settings import KafkaSettings
from .kerberos import TicketError, prepare_kerberos

if TYPE_CHECKING:
    from kafkaform.provider.http.tokens import TokenSource

_FOREIGN_SERVER = "the broker's answer does not fit our password"


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


class SaslLogin(Struct, frozen=True):
    """How the connections of one session log in."""

    mechanism: str
    start: Callable[[str], Any]
    """Host of a broker -> the SaslMechanism of one login."""


def make_login(settings: KafkaSettings) -> SaslLogin | None:
    """The login of settings with `kerberos` or `token_auth`, None for one that kafka-python has.
    Raises ConfigurationError if a package or a file is missing."""
    if settings.kerberos is not None:
        return SaslLogin("GSSAPI", prepare_kerberos(settings.kerberos))
    if not settings.token_auth:
        return None
    mechanism, user = settings.mechanism or "", settings.username or ""
    hmac = settings.password or Secret("")
    return SaslLogin(mechanism, lambda _: TokenScram(user, hmac.reveal(), mechanism))


def find_login(config: Mapping[str, Any]) -> SaslLogin | None:
    """The login that kafka-python's settings mean, None without one."""
    mechanism = config.get("sasl_mechanism")
    if not mechanism:
        return None
    return SaslLogin(mechanism, lambda host: get_sasl_mechanism(mechanism)(host=host, **config))


async def log_in(connection: Any, login: SaslLogin, timeout_at: float) -> None:
    """Log in on a connection. timeout_at: seconds on `time.monotonic`. Raises KafkaError."""
    handshake = SaslHandshakeRequest(mechanism=login.mechanism, min_version=1)
    answer = await connection._send_request(handshake, timeout_at=timeout_at)
    if answer.error_code:
        tls = connection.config["security_protocol"].endswith("SSL")
        raise OtherMechanisms(login.mechanism, tuple(answer.mechanisms or ()), tls=tls)
    try:
        exchange = login.start(connection.transport.host)
        while not exchange.is_done():
            request = SaslAuthenticateRequest(exchange.auth_bytes())
            answer = await connection._send_request(request, timeout_at=timeout_at)
            if answer.error_code:
                reason = answer.error_message or "the broker gives no reason"
                raise SaslAuthenticationFailedError(reason)
            exchange.receive(answer.auth_bytes)
    except TicketError as error:
        raise NoCredentials(str(error)) from None
    except (ValueError, LookupError):
        # SCRAM proves the server, too (RFC 5802 §3): one that does not know the password is none
        # that we may log in to.
        raise SaslAuthenticationFailedError(_FOREIGN_SERVER) from None
    # The broker says how long the login counts (KIP-368).
    connection._reauth.session_updated(answer.session_lifetime_ms)


class TokenProvider(AbstractTokenProvider):  # type: ignore[misc]  # kafka-python has no types
    """Gives a token for each login of a connection (SASL/OAUTHBEARER, KIP-255)."""

    # It is asked again at every re-authentication, which brokers with connections.max.reauth.ms
    # demand before a token expires (KIP-368).

    def __init__(self, tokens: TokenSource) -> None:
        super().__init__()
        self._tokens = tokens

    def token(self) -> str:
        """The text of a valid token. Raises NoCredentials if there is none."""
        try:
            return self._tokens.get_token().text.reveal()
        except ConnectError as error:
            raise NoCredentials(error.message) from None


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
