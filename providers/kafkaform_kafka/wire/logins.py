"""Log in on a connection (SASL, KIP-43 and KIP-152), and keep what the broker says about it.

kafka-python's own login drops the reason of a refusal and tries again until its time is over. Its
mechanisms also lack delegation tokens, and Kerberos credentials other than the default ones of the
process: ours come from a keytab or a ticket cache (SASL/GSSAPI, RFC 4752).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka.errors import (
    KafkaConnectionError,
    SaslAuthenticationFailedError,
    UnsupportedSaslMechanismError,
)
from kafka.net.sasl import get_sasl_mechanism
from kafka.net.sasl.abc import SaslMechanism
from kafka.net.sasl.oauth import AbstractTokenProvider
from kafka.net.sasl.scram import SaslMechanismScram, ScramClient
from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from msgspec import Struct

from kafkaform.core.errors import ConfigurationError, ConnectError
from kafkaform.core.installation import render_extra_command
from kafkaform.core.secret import Secret
from kafkaform.core.storage import require_regular_file

from ..connection.login_attributes import KerberosSettings
from ..connection.settings import KafkaSettings

if TYPE_CHECKING:
    from kafkaform.provider.http.tokens import TokenSource


_NO_LAYER = b"\x01\x00\x00\x00"
"""Security layer: none, and so no size of messages."""


class TicketError(Exception):
    """There is no ticket, or the broker's answer does not fit it."""


class KerberosExchange(SaslMechanism):  # type: ignore[misc]  # kafka-python has no types
    """One login of one connection."""

    # Three parts (RFC 4752 §3.1): tokens until the context is complete on our side, an empty
    # message if the last token was the broker's, and the choice of a security layer.

    def __init__(self, gssapi: Any, settings: KerberosSettings, host: str) -> None:
        """gssapi: the package; host: the broker's name in its principal. Raises TicketError."""
        self._errors = gssapi.exceptions.GSSError
        self._chosen = self._done = False
        with self._explain_errors():
            service = f"{settings.service}@{host}"
            self._context = gssapi.SecurityContext(
                name=gssapi.Name(service, gssapi.NameType.hostbased_service),
                creds=_find_credentials(gssapi, settings),
                mech=gssapi.MechType.kerberos,
                usage="initiate",
            )
            self._next: bytes = self._context.step() or b""

    def auth_bytes(self) -> bytes:
        """The next message to the broker."""
        return self._next

    def receive(self, auth_bytes: bytes) -> None:
        """Take the broker's answer to it. Raises TicketError."""
        with self._explain_errors():
            if not self._context.complete:
                self._next = self._context.step(auth_bytes) or b""
            elif not self._chosen:
                offer = self._context.unwrap(auth_bytes).message
                if not offer[0] & _NO_LAYER[0]:
                    raise TicketError("Kerberos: the broker demands a security layer")
                self._next = self._context.wrap(_NO_LAYER, False).message
                self._chosen = True
            else:
                self._done = True

    def is_done(self) -> bool:
        """True once the broker has accepted the choice."""
        return self._done

    def is_authenticated(self) -> bool:
        """The same: the broker refuses with an error."""
        return self._done

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        try:
            yield
        except self._errors as error:
            # The general part says "unspecified failure" for almost everything; the mechanism's own
            # part has the cause.
            texts = [str(status) for status in error.get_all_statuses(error.min_code, False)]
            raise TicketError(f"Kerberos: {'; '.join(filter(None, texts)) or error}") from None


def prepare_kerberos(settings: KerberosSettings) -> Callable[[str], KerberosExchange]:
    """A function that makes a login from the host of a broker. Raises ConfigurationError if the
    package or the keytab is missing."""
    try:
        import gssapi  # noqa: PLC0415  # an extra package, which only Kerberos logins need
    except (ImportError, OSError) as error:
        raise ConfigurationError(
            f"sasl_mechanism gssapi needs the Python package gssapi: {error}",
            f"Run `{render_extra_command('kerberos')}`. It needs a C compiler and the headers of "
            "MIT Kerberos (libkrb5-dev, krb5-devel).",
        ) from None
    _require_file("sasl_kerberos_keytab", settings.keytab)
    # A ticket cache has a type in front of its name; without one it is a file.
    kind, _, cache = (settings.ticket_cache or "").rpartition(":")
    if kind in ("", "FILE") and cache and Path(cache).exists():
        _require_file("sasl_kerberos_ticket_cache", cache)
    return partial(KerberosExchange, gssapi, settings)


def _require_file(attribute: str, path: str | None) -> None:
    """Raises ConfigurationError for what is no file that can be read: MIT Kerberos would wait for
    the other end of a pipe."""
    if path is None:
        return
    try:
        require_regular_file(path)
        if not os.access(path, os.R_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise ConfigurationError(
            f"{attribute} {path} cannot be read: {error.strerror}",
            "Check the path, and that this user can read the file.",
        ) from None


def _find_credentials(gssapi: Any, settings: KerberosSettings) -> Any:
    """Our credentials; None for the default ones of the process."""
    if not (settings.principal or settings.ticket_cache):
        return None
    name = None
    if settings.principal:
        name = gssapi.Name(settings.principal, gssapi.NameType.kerberos_principal)
    store = {"ccache": settings.ticket_cache} if settings.ticket_cache else {}
    if settings.keytab:
        # MIT Kerberos asks for tickets by itself, and again before they expire. In memory, so that
        # no other process finds them.
        store = {"client_keytab": settings.keytab, "ccache": f"MEMORY:{settings.principal}"}
    return gssapi.Credentials(name=name, usage="initiate", store=store or None)


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
