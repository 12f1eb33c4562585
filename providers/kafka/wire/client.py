"""Sends one raw request to one broker and says, if it fails, whether it can have left.

Uses `KafkaAdminClient._manager` (run, get_connection, least_loaded_node, wait_for, _net.sleep),
its connections' `_send_request`, and what they ask of a request (see `_Guarded`): the public
methods route to a "controller" that KRaft does not have, repeat writes on their own, and hide error
codes. `tests/kafka/test_wire.py` holds this contract.
"""

from __future__ import annotations

import math
import struct
import time
from collections.abc import Callable, Mapping
from typing import Any

from kafka import KafkaAdminClient
from kafka.errors import (
    IncompatibleBrokerVersion,
    KafkaError,
    KafkaProtocolError,
    KafkaTimeoutError,
    NodeNotReadyError,
    SaslAuthenticationFailedError,
    UnknownBrokerIdError,
)
from kafka.errors import RequestTimedOutError as TimedOut
from kafka.net.compat import KafkaNetClient
from kafka.net.connection import KafkaConnection
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector

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
_MORE = bytes(255 if byte & 128 else 0 for byte in range(256))
_ENDLESS = b"\xff" * 40_000
"""As long as its bytes have the first bit, kafka-python reads on in a number of variable size, in
a time that grows with the square: hours for a megabyte. Nothing that Kafka stores is so long and
has no byte of ASCII."""
_PAUSE = 0.05
_HANDSHAKE = "Handshake failed"
_PER_BROKER = 3.0
"""Seconds to wait for one broker before another is tried; a hung one accepts connections too."""
_REFUSED, _SILENT = 2.0, 8.0
"""Seconds to wait for a certain broker that refuses connections, or does not answer them. A broker
that starts needs longer, and whoever wants it asks again."""
_ONCE_MORE, _JUST_NOW = 1.0, 3.0
"""Seconds to wait for a broker that was waited for in vain before, and for which that is no use
again: whoever asks each broker several questions would else wait with each of them."""
_ANSWER = 10.0
"""Seconds to wait for what a broker can tell at once, before another one is asked: one that lost
its power or its network says nothing, not even that the connection has ended."""
_TRIES = 3
_TOLD_AT_ONCE = frozenset({3, 18, 29, 32, 46, 48, 50, 55, 60, 74})
"""API keys of reads that any broker answers from memory: Metadata, ApiVersions, DescribeAcls,
DescribeConfigs, ListPartitionReassignments, DescribeClientQuotas, DescribeUserScramCredentials,
DescribeQuorum, DescribeCluster, ListConfigResources."""


class NotSent(Exception):
    """The request never left: nothing happened."""


class Unsupported(Exception):
    """The broker does not know this request: nothing happened."""


class AnswerLost(Exception):
    """The request left and no usable answer came: it may have been carried out."""

    def __init__(self, cause: str, *, timed_out: bool) -> None:
        super().__init__(cause)
        self.timed_out = timed_out


class _Answer:
    """The class of an answer, which reads one or raises KafkaProtocolError. kafka-python takes
    two other errors for that; at the rest its connection goes deaf, and whoever waits for the
    answer waits until the end."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind

    def parse_header(self, data: bytearray) -> Any:
        if _ENDLESS in data.translate(_MORE):
            raise KafkaProtocolError("an answer with a number that does not end")
        return _understood(self._kind.parse_header, data)

    def decode(self, data: Any) -> Any:
        return _understood(self._kind.decode, data)


class _Header:
    """A request's header that asks for a guarded class of answer."""

    def __init__(self, header: Any) -> None:
        self._header = header

    def __getattr__(self, name: str) -> Any:
        return getattr(self._header, name)

    def get_response_class(self) -> _Answer:
        return _Answer(self._header.get_response_class())


class _Guarded:
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
    def header(self) -> _Header:
        return _Header(self._request.header)


def _understood(read: Callable[[Any], Any], data: Any) -> Any:
    try:
        return read(data)
    except _NONSENSE as error:
        raise KafkaProtocolError(f"an answer that makes no sense: {_text(error)}") from None


class _Connection(KafkaConnection):  # type: ignore[misc]  # it has no types
    """Guards all that it asks, also on its own: for versions, the login and the list of brokers.
    While it reads such an answer nobody is served, and no timeout would end that."""

    def _send_request(self, request: Any, **named: Any) -> Any:
        guarded = request if isinstance(request, _Guarded) else _Guarded(request)
        return super()._send_request(guarded, **named)


class _Manager(KafkaConnectionManager):  # type: ignore[misc]  # it has no types
    _tried: frozenset[Any] = frozenset()

    def get_connection(self, node: Any, timeout_ms: float | None = None, **named: Any) -> Any:
        """One that is guarded. A new one has asked nothing yet: it begins when the loop, in whose
        thread this is called, goes on."""
        first = self.cluster.is_bootstrap(node) and node not in self._conns
        if first:
            self._refuse_before_others(node)
            timeout_ms = min(1000 * _PER_BROKER, timeout_ms or math.inf)
        connection = super().get_connection(node, timeout_ms, **named)
        connection.__class__ = _Connection
        self._tried |= {node} if first else set()
        return connection

    def _refuse_before_others(self, node: Any) -> None:
        """Of the brokers that are named first kafka-python takes any, a silent one again and again.
        Raises NodeNotReadyError if another one has not been tried yet."""
        if self._tried >= {broker.node_id for broker in self.cluster.bootstrap_brokers()}:
            self._tried = frozenset()
        if node in self._tried:
            raise NodeNotReadyError(node)


def _client(**config: Any) -> Any:
    net = NetworkSelector(**config)
    return KafkaNetClient(net, _Manager(net, **config))


class Wire:
    """A connection pool to one cluster. All methods may be called from several threads."""

    def __init__(self, config: Mapping[str, Any], patience: float) -> None:
        """patience: seconds to wait for the first broker. Raises NotSent."""
        try:
            self._admin = KafkaAdminClient(
                **config, kafka_client=_client, bootstrap_timeout_ms=int(patience * 1000)
            )
        except (KafkaError, OSError) as error:
            raise NotSent(_text(error)) from None
        self._closed = False
        self._missed: dict[str | None, float] = {}
        self._failures: dict[int | None, str] = {}

    def send(self, request: Any, timeout: float, node: str | None = None) -> Any:
        """The answer to a request. node: the broker that must get it, None for any.
        timeout: seconds to wait for a usable connection, and again for the answer; a certain
        broker that cannot be reached is given up earlier. What changes nothing is asked of
        another broker if the first one does not answer.
        Raises NotSent, Unsupported, AnswerLost."""
        patience = min(timeout, _ANSWER) if request.API_KEY in _TOLD_AT_ONCE else timeout
        tries = _TRIES if node is None and _changes_nothing(request) else 1
        while True:
            tries -= 1
            try:
                return self._once(request, timeout, patience, node)
            except AnswerLost as lost:
                if lost.timed_out and node is not None:
                    self._missed[node] = time.monotonic()
                if not tries or (lost.timed_out and patience == timeout):
                    raise
                patience = timeout if lost.timed_out else patience

    def _once(self, request: Any, timeout: float, patience: float, node: str | None) -> Any:
        """patience: seconds to wait for the answer."""
        if self._closed:
            raise NotSent("the session is closed")
        manager = self._admin._manager
        reach = min(timeout, self._reach(node))
        try:
            connection = manager.run(_connection, manager, reach, node, self._failures)
        except NotSent:
            if reach != _PAUSE:
                self._missed[node] = time.monotonic()
            raise
        self._missed.pop(node, None)
        return manager.run(_exchange, connection, request, patience)

    def _reach(self, node: str | None) -> float:
        """Seconds for which it is worth to wait for this broker."""
        if node not in self._missed:
            return math.inf
        just_now = time.monotonic() - self._missed[node] < _JUST_NOW
        return _PAUSE if just_now and node is not None else _ONCE_MORE

    def close(self) -> None:
        self._closed = True
        self._admin.close()


def _changes_nothing(request: Any) -> bool:
    return request.API_KEY in _TOLD_AT_ONCE or getattr(request, "validate_only", False) is True


async def _exchange(connection: Any, request: Any, timeout: float) -> Any:
    guarded = _Guarded(request)
    try:
        return await connection.send_request(guarded, request_timeout_ms=timeout * 1000)
    except IncompatibleBrokerVersion as error:
        raise Unsupported(_text(error)) from None
    except (KafkaError, OSError) as error:
        if not guarded.left:
            raise NotSent(_text(error)) from None
        if isinstance(error, (TimedOut, KafkaTimeoutError)):
            raise AnswerLost(f"waited {timeout:g} s", timed_out=True) from None
        raise AnswerLost(_text(error), timed_out=False) from None


async def _connection(
    manager: Any, timeout: float, node: str | None, failures: dict[int | None, str]
) -> Any:
    """A connection that takes requests now. Waiting is safe here because nothing has been sent:
    a broker that throttles us pauses its connection, a lost one is opened again. What a broker said
    about who we are, or we about its certificate, is told rather than that it then hung up.
    A certain broker that cannot be reached is given up after seconds.
    failures: why brokers could not be reached last time; told where it is too early for another
    attempt, which says nothing about why."""
    begun = time.monotonic()
    deadline = begun + timeout
    until = deadline if node is None else min(deadline, begun + _SILENT)
    cause = verdict = early = ""
    target: int | None = None
    while True:
        try:
            target = manager.least_loaded_node() if node is None else int(node)
            if target is not None:
                connection = manager.get_connection(target)
                await manager.wait_for(connection.init_future, _milliseconds(until))
                failures.pop(target, None)
                if not connection.paused:
                    return connection
                cause, until = f"broker {target} throttles us", deadline
        except (NodeNotReadyError, KafkaTimeoutError) as error:
            # These only say that it is too early, or too late, for another attempt.
            early = _text(error)
        except (KafkaError, OSError) as error:
            cause = _text(error)
            if isinstance(error, SaslAuthenticationFailedError) or _HANDSHAKE in cause:
                verdict = cause
            failures[target] = verdict or cause
            if isinstance(error, UnknownBrokerIdError):
                manager.cluster.request_update()
            if node is not None:
                until = min(until, begun + _REFUSED)
        if time.monotonic() > until:
            known = failures.get(target, "")
            raise NotSent(verdict or cause or known or early or "no broker is available")
        await manager._net.sleep(_PAUSE)


def _milliseconds(deadline: float) -> float:
    """Until then, at least one and at most what one broker gets."""
    return 1000 * min(_PER_BROKER, max(0.001, deadline - time.monotonic()))


def _text(error: Exception) -> str:
    return str(error) or type(error).__name__
