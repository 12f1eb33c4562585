"""Open connections that log in, survive malformed answers and check which cluster they lead to.

This replaces private parts of kafka-python: the parser of a connection, how it is initialized, and
how the manager opens one. `tests/cluster/kafka/test_wire.py` tests that they still fit.
"""

from __future__ import annotations

import math
import struct
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from kafka.errors import (
    CorrelationIdError,
    IncompatibleBrokerVersion,
    KafkaError,
    KafkaProtocolError,
    KafkaTimeoutError,
    NodeNotReadyError,
)
from kafka.net.connection import KafkaConnection
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.protocol.admin import DescribeClusterRequest
from kafka.protocol.parser import KafkaProtocol

from ..connection.failures import FINAL, ConnectionFailure, FailureKind
from ..connection.settings import ClusterProof
from ..protocol.faults import fault_of
from .answers import describe_error, explain_failure, name_address
from .logins import SaslLogin, find_login, log_in

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
