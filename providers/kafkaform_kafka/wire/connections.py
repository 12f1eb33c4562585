"""Open connections that log in, survive malformed answers and check which cluster they lead to.

This replaces private parts of kafka-python: the parser of a connection, how it is initialized, and
how the manager opens one. `tests/cluster/kafka/test_wire.py` tests that they still fit.

The login (SASL, KIP-43 and KIP-152) keeps what the broker says about it. kafka-python's own login
drops the reason of a refusal and tries again until its time is over. Its mechanisms also lack
delegation tokens, and Kerberos credentials other than the default ones of the process: ours come
from a keytab or a ticket cache (SASL/GSSAPI, RFC 4752).
"""

from __future__ import annotations

import errno
import math
import os
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka.errors import (
    CorrelationIdError,
    IncompatibleBrokerVersion,
    KafkaError,
    KafkaProtocolError,
    KafkaTimeoutError,
    NodeNotReadyError,
    SaslAuthenticationFailedError,
)
from kafka.net.connection import KafkaConnection
from kafka.net.manager import KafkaConnectionManager
from kafka.net.sasl import get_sasl_mechanism
from kafka.net.sasl.abc import SaslMechanism
from kafka.net.sasl.oauth import AbstractTokenProvider
from kafka.net.sasl.scram import SaslMechanismScram, ScramClient
from kafka.net.selector import NetworkSelector
from kafka.protocol.admin import DescribeClusterRequest
from kafka.protocol.parser import KafkaProtocol
from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from msgspec import Struct

from kafkaform.core.errors import ConfigurationError, ConnectError
from kafkaform.core.installation import render_extra_command
from kafkaform.core.secret import Secret
from kafkaform.core.storage import require_regular_file

from ..connection.failures import FINAL, ConnectionFailure, FailureKind
from ..connection.login_attributes import KerberosSettings
from ..connection.settings import ClusterProof, KafkaSettings
from ..protocol.faults import fault_of
from .answers import NoCredentials, OtherMechanisms, describe_error, explain_failure, name_address

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


# ── the pool ────────────────────────────────────────────────────────────────────────

_NONSENSE = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    TypeError,
    ValueError,
    struct.error,
)
"""What kafka-python's decoders raise at bytes that they do not expect."""
_PROOF = "DescribeCluster"
_TOO_OLD, _UNKNOWN = 35, -1
"""Error codes: of a broker without the request, and for an answer without an id."""
# A hung broker accepts connections too: its kernel does.
PER_BROKER = 3.0
"""Seconds to wait for one broker before another one is tried."""
SETTLED = 2.0
"""Seconds after which it is final that all brokers refuse the connection."""
_MORE = bytes(255 if byte & 128 else 0 for byte in range(256))
# While the bytes of a varint have their first bit, kafka-python reads on, in a time that grows with
# the square of the length: hours for a megabyte. No timeout ends that, because it is Python code in
# the thread of the loop. Nothing that Kafka stores is so long without a byte of ASCII.
_ENDLESS = b"\xff" * 40_000
"""After `_MORE`, the sign of a number of variable size that does not end."""


class _Parser(KafkaProtocol):  # type: ignore[misc]  # it has no types
    """Reads every answer of a connection, also those to kafka-python's own requests. Raises
    KafkaProtocolError for what is no answer."""

    # kafka-python's own parser turns two kinds of error into a KafkaProtocolError, which closes the
    # connection. Any other error ends the task that reads the socket: the connection stays open,
    # nobody reads from it, and each request on it waits for its whole timeout.

    def _process_response(self, frame: Any) -> tuple[int, Any]:
        """Number and content of the answer in a frame."""
        if _ENDLESS in frame.translate(_MORE):
            raise KafkaProtocolError("an answer with a number that does not end")
        try:
            # A broker answers the requests of one connection in their order.
            header = self.in_flight_requests.popleft()
            kind = header.get_response_class()
            number = kind.parse_header(frame).correlation_id
            if number != header.correlation_id:
                raise CorrelationIdError(f"sent {header.correlation_id}, received {number}")
            # The headers of `fast_decoding.py` have a decoder of their own.
            parse = getattr(header, "parse_answer", None)
            if parse is None:
                return number, kind.decode(frame)
            return number, parse(frame.read(), header.request_api_version)
        except _NONSENSE as error:
            raise KafkaProtocolError(
                f"an answer that makes no sense: {describe_error(error)}"
            ) from None


class _Connection(KafkaConnection):  # type: ignore[misc]  # it has no types
    """A connection that reads with `_Parser`, logs in and checks the cluster id."""

    proof: ClusterProof
    login: SaslLogin | None
    address: str

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        # kafka-python makes the parser here, by its class; a changed class keeps its fields.
        self.parser.__class__ = _Parser
        # A broker closes the connection right after it refused a login, and kafka-python drops what
        # arrives together with the end of a connection: the reason would be lost.
        transport._sock_recv = partial(_receive_before_end, transport._sock_recv)

    async def initialize(self, timeout_at: float | None = None) -> None:
        """Ask for versions, log in, and check the cluster id.

        Requests are buffered until all of this is done. A connection to another cluster is closed
        before, so no request is sent there.
        """
        try:
            await self._get_api_versions(timeout_at)
            if self.sasl_enabled:
                await self._sasl_authenticate(timeout_at)
            await self._check_cluster(self._send_request, timeout_at=timeout_at)
        except Exception as error:  # noqa: BLE001  # whoever waits for the connection gets it
            self.close(error)
        else:
            self._init_complete()

    # kafka-python calls it for each login that the broker demands later, too.
    async def _sasl_authenticate(self, timeout_at: float | None = None) -> None:
        assert self.login is not None  # settings with SASL have a mechanism
        await log_in(self, self.login, self._timeout_at() if timeout_at is None else timeout_at)

    def expire(self) -> None:
        """Give up unless the connection is ready by now."""
        if not self.init_future.is_done:
            self.close(KafkaTimeoutError())

    async def prove(self, milliseconds: float) -> None:
        """Check the cluster id again. Raises KafkaError without an answer, Elsewhere for another
        cluster."""
        try:
            await self._check_cluster(self.send_request, request_timeout_ms=milliseconds)
        except Elsewhere as error:
            self.close(error)
            raise

    async def _check_cluster(self, send: Callable[..., Any], **limit: Any) -> None:
        # DescribeCluster needs no right (KIP-700) and says which cluster answers. Metadata does so
        # too, but kafka-python asks for it only now and then and drops the id.
        request = DescribeClusterRequest(
            include_cluster_authorized_operations=False, include_fenced_brokers=False
        )
        try:
            answer = await send(request, **limit)
        except IncompatibleBrokerVersion:
            self.proof.miss(self.address, fault_of(_PROOF, _TOO_OLD, ""))
            raise
        if answer.error_code or not answer.cluster_id:
            code, text = answer.error_code or _UNKNOWN, answer.error_message
            self.proof.miss(self.address, fault_of(_PROOF, code, "", text))
            raise KafkaProtocolError(f"{self.address} does not tell its cluster's id")
        if not self.proof.hear(self.address, answer.cluster_id):
            raise Elsewhere(f"{self.address} is of cluster {answer.cluster_id}")


def _receive_before_end(receive: Callable[[], tuple[bytes, Any]]) -> tuple[bytes, Any]:
    """What has arrived. An error is left to the next call, which finds it again."""
    data, error = receive()
    return data, None if data else error


class Elsewhere(KafkaError):  # type: ignore[misc]  # it has no types
    """The connection leads to another cluster. `ClusterProof.refuse` makes the message for
    people."""


class NoBroker(KafkaError):  # type: ignore[misc]  # it has no types
    """No broker of the bootstrap list lets us in, and trying again would not help."""


class ConnectionPool(KafkaConnectionManager):  # type: ignore[misc]  # it has no types
    """The connections of one session. All methods run in the thread of `net`."""

    def __init__(
        self, net: NetworkSelector, proof: ClusterProof, login: SaslLogin | None, **config: Any
    ) -> None:
        super().__init__(net, **config)
        self.net = net
        self.proof = proof
        self.login = login or find_login(config)
        self.failures: dict[str, ConnectionFailure] = {}
        """Address of the bootstrap list -> how the last attempt there failed."""
        self._tried: frozenset[Any] = frozenset()
        self._began = time.monotonic()

    @property
    def connections(self) -> Mapping[Any, Any]:
        """Broker -> the connection to it, which may be about to open."""
        connections: Mapping[Any, Any] = self._conns
        return connections

    def get_connection(self, node: Any, timeout_ms: float | None = None, **named: Any) -> Any:
        """The connection to a broker, opened if there is none. Raises NoBroker, NodeNotReadyError
        and what else kafka-python raises."""
        first = self.cluster.is_bootstrap(node) and node not in self.connections
        if first:
            self._refuse_hopeless_attempts()
            self._refuse_before_others(node)
            timeout_ms = min(1000 * PER_BROKER, timeout_ms or math.inf)
        # kafka-python makes its connections by the name of their class, so the class is changed
        # afterwards. A new connection begins when the loop, in whose thread this runs, goes on.
        connection = super().get_connection(node, timeout_ms, **named)
        if not isinstance(connection, _Connection):
            self._adopt(connection, self.cluster.broker_metadata(node), first)
            limit = timeout_ms or self.socket_connection_setup_timeout_ms(node)
            # kafka-python waits for the answer to a TLS handshake without any limit.
            self.net.call_later(limit / 1000, connection.expire)
            if first and not named.get("pop_on_close", True):
                connection.close = partial(self._end_first, connection)
        self._tried |= {node} if first else set()
        return connection

    def _adopt(self, connection: Any, broker: Any, first: bool) -> None:
        """Make it one of ours. first: it goes to an address of the bootstrap list."""
        connection.__class__ = _Connection
        connection.proof, connection.login = self.proof, self.login
        connection.address = name_address(broker)
        address = connection.address if first else None
        connection.init_future.add_errback(partial(self._note_failure, address))

    def _note_failure(self, address: str | None, error: Exception) -> None:
        """Record why a connection was not made. address: that of the bootstrap list, None for the
        connection to a broker of the cluster."""
        if address is not None:
            self.failures[address] = explain_failure(error)
        # kafka-python leaves the socket open: it would stay so as long as the error is known.
        for exception in filter(None, (error, error.__context__)):
            exception.__traceback__ = None

    def _end_first(self, connection: Any, error: Exception | None = None) -> None:
        """Close the connection to an address of the bootstrap list; or keep it, as that of the
        broker which has this address."""
        # kafka-python ends it as soon as it knows the brokers, and would open another one to the
        # same address: seven round trips, and a second login.
        del connection.close
        listed = {name_address(broker): broker.node_id for broker in self.cluster.brokers()}
        node = listed.get(connection.address)
        ends = error is not None or self.closed or not connection.connected
        if ends or node is None or node in self.connections:
            connection.close(error)
            return
        connection.node_id = node
        self._conns[node] = connection
        self.reset_backoff(node)
        # As kafka-python does with each connection to a broker.
        connection.close_future.add_both(lambda _: self._conns.pop(node, None))
        connection.close_future.add_errback(lambda _: self.cluster.request_update())

    def _refuse_before_others(self, node: Any) -> None:
        """Raise NodeNotReadyError while another broker of the bootstrap list has not been tried."""
        # kafka-python picks a random one each time, so that a silent broker can be picked again and
        # again until the time is over.
        if self._tried >= {broker.node_id for broker in self.cluster.bootstrap_brokers()}:
            self._tried = frozenset()
        if node in self._tried:
            raise NodeNotReadyError(node)

    def _refuse_hopeless_attempts(self) -> None:
        """Raise NoBroker if no broker has let us in, and another attempt would not help."""
        if self.proof.expected is not None:
            return
        kinds = {failure.kind for failure in self.failures.values()}
        complete = self.failures.keys() >= {
            name_address(broker) for broker in self.cluster.bootstrap_brokers()
        }
        settled = time.monotonic() - self._began > SETTLED and FailureKind.SILENT not in kinds
        # Every attempt counts where refused logins lock an account.
        if FailureKind.REFUSED_LOGIN in kinds or (complete and (settled or kinds <= FINAL)):
            raise NoBroker("no broker can be used")
