"""Connections that guard what they read and prove whose they are, and the pool that opens them.

Replaces parts of kafka-python's connections and of their manager (`_send_request`, `initialize`,
`get_connection`). `tests/cluster/kafka/test_wire.py` holds this contract.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

from kafka.errors import KafkaError, KafkaProtocolError, NodeNotReadyError
from kafka.net.compat import KafkaNetClient
from kafka.net.connection import KafkaConnection
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.protocol.admin import DescribeClusterRequest

from ..connection.cluster_proof import Proof

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
"""What a decoder raises that meets what it does not expect."""
PER_BROKER = 3.0
"""Seconds to wait for one broker before another is tried; a hung one accepts connections too."""
_MORE = bytes(255 if byte & 128 else 0 for byte in range(256))
_ENDLESS = b"\xff" * 40_000
"""As long as its bytes have the first bit, kafka-python reads on in a number of variable size, in
a time that grows with the square: hours for a megabyte. Nothing that Kafka stores is so long and
has no byte of ASCII."""


class _Answer:
    """The class of an answer, which reads one or raises KafkaProtocolError. kafka-python takes
    two other errors for that; at the rest its connection goes deaf, and whoever waits for the
    answer waits until the end."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind

    def parse_header(self, data: bytearray) -> Any:
        if _ENDLESS in data.translate(_MORE):
            raise KafkaProtocolError("an answer with a number that does not end")
        return _read_guarded(self._kind.parse_header, data)

    def decode(self, data: Any) -> Any:
        return _read_guarded(self._kind.decode, data)


class _GuardedHeader:
    """A request's header that asks for a guarded class of answer."""

    def __init__(self, header: Any) -> None:
        self._header = header

    def __getattr__(self, name: str) -> Any:
        return getattr(self._header, name)

    def get_response_class(self) -> _Answer:
        return _Answer(self._header.get_response_class())


class Guarded:
    """A request in every way, but for how its answer is read. left: its bytes were made to be
    sent; what did not come so far has certainly not arrived."""

    def __init__(self, request: Any) -> None:
        self._request = request
        self.left = False

    def encode(self, *arguments: Any, **named: Any) -> Any:
        data = self._request.encode(*arguments, **named)
        self.left = True
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._request, name)

    @property
    def API_VERSION(self) -> Any:
        return self._request.API_VERSION

    @API_VERSION.setter
    def API_VERSION(self, version: int) -> None:
        self._request.API_VERSION = version

    @property
    def header(self) -> _GuardedHeader:
        return _GuardedHeader(self._request.header)


def _read_guarded(read: Callable[[Any], Any], data: Any) -> Any:
    try:
        return read(data)
    except _NONSENSE as error:
        raise KafkaProtocolError(
            f"an answer that makes no sense: {describe_error(error)}"
        ) from None


class _Connection(KafkaConnection):  # type: ignore[misc]  # it has no types
    """Guards all that it asks, also on its own: for versions, the login and the list of brokers.
    While it reads such an answer nobody is served, and no timeout would end that."""

    proof: Proof | None
    address: str

    def _send_request(self, request: Any, **named: Any) -> Any:
        guarded = request if isinstance(request, Guarded) else Guarded(request)
        return super()._send_request(guarded, **named)

    async def initialize(self, timeout_at: float | None = None) -> None:
        """As kafka-python does it, and last the proof. Requests wait until all of it is done, and
        a connection to another cluster is closed, so that none of them goes there."""
        try:
            await self._get_api_versions(timeout_at)
            if self.sasl_enabled:
                await self._sasl_authenticate(timeout_at)
            if self.proof is not None:
                self._hear(
                    await self._send_request(_make_identity_request(), timeout_at=timeout_at)
                )
        except Exception as error:  # noqa: BLE001  # whoever waits for the connection gets it
            self.close(error)
        else:
            self._init_complete()

    async def prove(self, milliseconds: float) -> None:
        """Ask once more who is there. Raises KafkaError if nobody says so, or another cluster."""
        if self.proof is None:
            return
        try:
            self._hear(
                await self.send_request(_make_identity_request(), request_timeout_ms=milliseconds)
            )
        except Elsewhere as error:
            self.close(error)
            raise

    def _hear(self, answer: Any) -> None:
        if answer.error_code or not answer.cluster_id:
            raise KafkaProtocolError(f"{self.address} does not tell its cluster's id")
        if self.proof is not None and not self.proof.hear(self.address, answer.cluster_id):
            raise Elsewhere(f"{self.address} is of cluster {answer.cluster_id}")


class Elsewhere(KafkaError):  # type: ignore[misc]  # it has no types
    """The connection leads to another cluster; `Proof.refuse` says so to people."""


def _make_identity_request() -> Any:
    return DescribeClusterRequest(
        include_cluster_authorized_operations=False, include_fenced_brokers=False
    )


class _Manager(KafkaConnectionManager):  # type: ignore[misc]  # it has no types
    proof: Proof | None = None
    _tried: frozenset[Any] = frozenset()

    def get_connection(self, node: Any, timeout_ms: float | None = None, **named: Any) -> Any:
        """One that is guarded and proves itself. A new one has asked nothing yet: it begins when
        the loop, in whose thread this is called, goes on."""
        first = self.cluster.is_bootstrap(node) and node not in self._conns
        if first:
            self._refuse_before_others(node)
            timeout_ms = min(1000 * PER_BROKER, timeout_ms or math.inf)
        connection = super().get_connection(node, timeout_ms, **named)
        if not isinstance(connection, _Connection):
            place = self.cluster.broker_metadata(node)
            connection.__class__ = _Connection
            connection.proof, connection.address = self.proof, f"{place.host}:{place.port}"
        self._tried |= {node} if first else set()
        return connection

    def _refuse_before_others(self, node: Any) -> None:
        """Of the brokers that are named first kafka-python takes any, a silent one again and again.
        Raises NodeNotReadyError if another one has not been tried yet."""
        if self._tried >= {broker.node_id for broker in self.cluster.bootstrap_brokers()}:
            self._tried = frozenset()
        if node in self._tried:
            raise NodeNotReadyError(node)


def open_client(proof: Proof | None, **config: Any) -> Any:
    net = NetworkSelector(**config)
    manager = _Manager(net, **config)
    manager.proof = proof
    return KafkaNetClient(net, manager)


def describe_error(error: Exception) -> str:
    return str(error) or type(error).__name__
