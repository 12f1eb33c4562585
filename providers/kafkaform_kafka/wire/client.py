"""Open the connection to a cluster, and send one raw request to one broker. If it fails, say
whether the request can have left; if no broker lets us in, say why.

This uses the connections of kafka-python instead of its admin client. That one routes to a
"controller" that KRaft does not have, repeats writes on its own, and hides error codes.
`tests/cluster/kafka/test_wire.py` tests that the parts work as they are used here.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

from kafka.errors import (
    IncompatibleBrokerVersion,
    KafkaError,
    KafkaTimeoutError,
    NodeNotReadyError,
    SaslAuthenticationFailedError,
    UnknownBrokerIdError,
)
from kafka.errors import RequestTimedOutError as TimedOut
from kafka.net.selector import NetworkSelector
from kafka.protocol.admin import DescribeClusterRequest

from kafkaform.core.errors import ConnectError, KafkaformError

from .. import connection as connection_package
from ..connection.failures import ConnectionFailure, FailureKind, Listener, connect_error, look_at
from ..connection.login_attributes import OAUTHBEARER
from ..connection.settings import (
    LOOK,
    PATIENCE,
    ClusterProof,
    KafkaSettings,
    fence_logs,
    make_client_config,
    refuse_two_clusters,
    ssl_context,
)
from ..protocol.apis import APIS
from .answers import HANDSHAKE_FAILED, describe_error, name_address, name_broker
from .connections import PER_BROKER, ConnectionPool, Elsewhere, SaslLogin, TokenProvider, make_login

_PAUSE = 0.05
_LARGEST_ANSWER = 100_000_000
"""Bytes, as in kafka-python's admin client."""
# A starting broker needs longer, but then the caller asks again.
_REFUSED, _SILENT = 2.0, 8.0
"""Seconds to wait for one particular broker that refuses connections, or does not answer them."""
# Without these, a command that asks each broker several questions would wait for a dead broker with
# each of them.
_ONCE_MORE, _JUST_NOW = 1.0, 3.0
"""Seconds to wait for a broker that did not answer last time, and seconds after that time during
which waiting is pointless."""
# A broker that lost its power or its network says nothing, not even that the connection has ended:
# TCP alone would wait for minutes.
_ANSWER = 10.0
"""Seconds to wait for an answer that a broker can give at once, before another broker is asked."""
_TRIES = 3
_TOLD_AT_ONCE = frozenset(api.key for api in APIS.values() if api.at_once)
"""Keys of the requests that a broker answers from its own memory."""
CHANGES = frozenset(api.key for api in APIS.values() if api.limits is not None)
"""Keys of the requests that change something. The cluster id is checked right before and right
after each of them."""
_FOR_CONTROLLER = frozenset(api.key for api in APIS.values() if api.for_controller)
"""Keys of the requests that only the controller of a cluster with ZooKeeper takes."""


class RequestNotSent(Exception):
    """The request never left: nothing happened. throttled: a broker takes no requests for now."""

    def __init__(self, cause: str, *, throttled: bool = False) -> None:
        super().__init__(cause)
        self.throttled = throttled


class NoConnection(RequestNotSent):
    """No broker of the bootstrap list lets us in."""

    def __init__(self, cause: str, failures: Mapping[str, ConnectionFailure]) -> None:
        """failures: server -> what the last attempt there met."""
        super().__init__(cause)
        self.failures = failures


class Unsupported(Exception):
    """The broker does not know this request: nothing happened."""


class RequestUnanswered(Exception):
    """The request left and no usable answer came: it may have been executed."""

    def __init__(self, cause: str, *, timed_out: bool) -> None:
        super().__init__(cause)
        self.timed_out = timed_out


class _Preference:
    """The broker that gets the requests that any broker takes.

    It stays the same one as long as it answers, and is the one with the lowest id at first: what is
    read twice, also by two commands, comes from one broker and not from two that can lag behind
    each other.
    """

    def __init__(self) -> None:
        self._usual: int | None = None
        self._silent: set[int] = set()
        """Brokers that left a request without an answer, and have answered none since."""

    def choose(self, pool: ConnectionPool) -> int | None:
        """The broker to ask now, None if there is none."""
        # One that throttles us pauses its connection (KIP-219), and another one is asked meanwhile.
        ready: list[int] = [
            broker.node_id
            for broker in pool.cluster.brokers()
            if pool.connection_delay(broker.node_id) <= 0
            and not (broker.node_id in pool.connections and pool.connections[broker.node_id].paused)
        ]
        if not ready:
            node: int | None = pool.least_loaded_node()
            return node
        return min(ready, key=lambda node: (node != self._usual, node in self._silent, node))

    def note_answer(self, pool: ConnectionPool, node: int) -> None:
        """This broker has answered."""
        self._silent.discard(node)
        usual = pool.connections.get(self._usual)
        if usual is None or not usual.connected:
            self._usual = node

    def note_silence(self, node: int) -> None:
        """This broker left a request without an answer."""
        self._silent.add(node)
        if self._usual == node:
            self._usual = None


class Wire:
    """A connection pool to one cluster. All methods may be called from several threads."""

    def __init__(
        self,
        config: Mapping[str, Any],
        patience: float,
        proof: ClusterProof | None = None,
        login: SaslLogin | None = None,
    ) -> None:
        """patience: seconds to wait for the first broker; proof: gets the cluster that must answer
        on every connection; login: for a mechanism that kafka-python lacks. Raises NoConnection,
        OtherSystem, ConnectError if no broker says its cluster's id."""
        self._proof = proof or ClusterProof()
        limits = {"receive_message_max_bytes": _LARGEST_ANSWER}
        self._net = NetworkSelector(**config)
        self._pool = ConnectionPool(self._net, self._proof, login, **{**limits, **config})
        self._net.start()
        try:
            self._pool.bootstrap(int(patience * 1000))
        except (KafkaError, OSError) as error:
            # Otherwise its thread would try again in the background.
            self.close()
            self._proof.refuse()
            if self._proof.unproven is not None:
                raise self._proof.unproven from None
            raise NoConnection(describe_error(error), self._pool.failures) from None
        self._closed = False
        self._missed: dict[str | None, float] = {}
        """Broker -> when it was last waited for in vain (`time.monotonic`)."""
        self._failures: dict[int | None, str] = {}
        """Broker -> why it could not be reached last time."""
        self._preference = _Preference()
        self._forwards = True
        """Whether brokers pass requests on to their controller."""

    @property
    def cluster_id(self) -> str | None:
        """The cluster that must answer on every connection."""
        return self._proof.expected

    def send(self, request: Any, timeout: float, node: str | None = None) -> Any:
        """The answer to a request. node: the broker that must get it, None for any; timeout:
        seconds to wait for a usable connection, and again for the answer. One particular broker
        that cannot be reached is given up earlier. A request that changes nothing goes to another
        broker if the first one does not answer.

        Raises RequestNotSent, Unsupported, RequestUnanswered and OtherSystem. After OtherSystem
        nobody knows what a request that has left did.
        """
        # A write is never sent twice: the first broker may have forwarded it to the controller
        # (KIP-590), so that it is executed although the broker did not answer.
        # Also if another broker was named: with KRaft that one would have asked the controller.
        if not self._forwards and request.API_KEY in _FOR_CONTROLLER:
            node = self._find_controller(timeout)
        patience = min(timeout, _ANSWER) if request.API_KEY in _TOLD_AT_ONCE else timeout
        validates = getattr(request, "validate_only", False) is True
        harmless = validates or request.API_KEY in _TOLD_AT_ONCE
        tries = _TRIES if harmless and node is None else 1
        while True:
            tries -= 1
            try:
                return self._send_once(request, timeout, patience, node)
            except RequestUnanswered as lost:
                if lost.timed_out and node is not None:
                    self._missed[node] = time.monotonic()
                if not tries or (lost.timed_out and patience == timeout):
                    raise
                patience = timeout if lost.timed_out else patience

    def seek_controller(self) -> None:
        """Send requests for the controller to the broker that it is (ZooKeeper). With KRaft every
        broker forwards them (KIP-590)."""
        self._forwards = False

    def _find_controller(self, timeout: float) -> str:
        # Asked anew each time: after a change of controllers the old one answers NOT_CONTROLLER.
        request = DescribeClusterRequest(
            include_cluster_authorized_operations=False, include_fenced_brokers=False
        )
        controller = self.send(request, timeout).controller_id
        if controller < 0:
            raise RequestNotSent("the cluster has no controller at the moment")
        return str(controller)

    def _send_once(self, request: Any, timeout: float, patience: float, node: str | None) -> Any:
        """Send it to one broker. patience: seconds to wait for the answer."""
        if self._closed:
            raise RequestNotSent("the session is closed")
        pool = self._pool
        reach = min(timeout, self._choose_reach(node))
        changes = request.API_KEY in CHANGES
        self._proof.refuse()
        choose = partial(self._preference.choose, pool) if node is None else partial(int, node)
        try:
            connection = pool.run(
                _get_connection, pool, reach, node, choose, self._failures, changes
            )
        except RequestNotSent as error:
            self._proof.refuse()
            # A broker that throttles us is there, and the next request is worth the same wait.
            if reach != _PAUSE and not error.throttled:
                self._missed[node] = time.monotonic()
            raise
        self._missed.pop(node, None)
        try:
            answer = pool.run(_exchange, connection, request, patience)
        except RequestUnanswered:
            self._preference.note_silence(connection.node_id)
            raise
        if node is None:
            self._preference.note_answer(pool, connection.node_id)
        if changes:
            # A proxy can lead an open connection to another cluster. If it did so before the
            # answer, that answer proves nothing.
            pool.run(_prove, pool, (connection,))
            self._proof.refuse()
        return answer

    def _choose_reach(self, node: str | None) -> float:
        """How long it is worth waiting for this broker, in seconds."""
        # Another thread may forget the broker meanwhile.
        missed = self._missed.get(node)
        if missed is None:
            return math.inf
        just_now = time.monotonic() - missed < _JUST_NOW
        return _PAUSE if just_now and node is not None else _ONCE_MORE

    def prove(self) -> None:
        """Ask on every open connection which cluster it leads to. Raises OtherSystem."""
        if not self._closed:
            self._pool.run(_prove, self._pool, None)
            self._proof.refuse()

    def reach_broker(self, patience: float) -> None:
        """Connect to a broker of the cluster at the address that it advertises. patience: seconds
        to try. Raises RequestNotSent, OtherSystem."""
        try:
            self._pool.run(_reach_broker, self._pool, patience)
        finally:
            self._proof.refuse()

    def ask_addresses(self, seconds: float) -> Mapping[str, str]:
        """Address of the bootstrap list -> the id of the cluster that answers there, for the
        addresses that answer in time."""
        addresses = self._pool.run(_connect_all, self._pool, seconds)
        return {name: id_ for name, id_ in self._proof.answers.items() if name in addresses}

    def close(self) -> None:
        self._closed = True
        self._pool.close()
        self._net.close()


async def _exchange(connection: Any, request: Any, timeout: float) -> Any:
    before = request.header
    try:
        return await connection.send_request(request, request_timeout_ms=timeout * 1000)
    except IncompatibleBrokerVersion as error:
        raise Unsupported(describe_error(error)) from None
    except (KafkaError, OSError) as error:
        # kafka-python gives a request a new header right before it makes its bytes. With the old
        # header it waited for a connection all the time, so no broker can have seen it.
        if request.header is before:
            raise RequestNotSent(describe_error(error)) from None
        if isinstance(error, (TimedOut, KafkaTimeoutError)):
            raise RequestUnanswered(f"waited {timeout:g} s", timed_out=True) from None
        raise RequestUnanswered(describe_error(error), timed_out=False) from None


class _Attempts:
    """Why no connection takes requests so far.

    The most exact cause counts: a refused login or certificate (verdict), the last other failure
    (cause), the failure before this call (failures), and "too early for another attempt" (early),
    which kafka-python says while it backs off and which explains nothing.
    """

    def __init__(self, pool: ConnectionPool, failures: dict[int | None, str]) -> None:
        self._pool = pool
        self._failures = failures
        self._verdict = self._cause = self._early = ""
        self._throttled = False
        self._nodes: set[Any] = set()

    def note_early(self, error: Exception) -> None:
        """It was too early for another attempt."""
        self._early = describe_error(error)

    def note_failure(self, target: int | None, error: Exception) -> None:
        """This broker could not be reached. Raises RequestNotSent if another cluster answers."""
        self._cause, self._throttled = describe_error(error), False
        if isinstance(error, Elsewhere):
            raise RequestNotSent(self._cause) from None
        if isinstance(error, SaslAuthenticationFailedError) or HANDSHAKE_FAILED in self._cause:
            self._verdict = self._cause
        self._failures[target] = self._verdict or self._cause
        self._nodes.add(target)
        if isinstance(error, UnknownBrokerIdError):
            # A broker that has just joined is not in the metadata that was read before.
            self._pool.cluster.request_update()

    def note_throttling(self, target: int | None) -> bool:
        """Whether a broker takes no requests for now: this one, or with None one of all."""
        connections = self._pool.connections
        nodes = connections if target is None else [target]
        throttling = [node for node in nodes if "throttle" in connections[node].paused]
        self._throttled = bool(throttling)
        if throttling:
            self._nodes.add(throttling[0])
            self._cause = "the broker throttles this client"
        return self._throttled

    def make_error(self, target: int | None) -> RequestNotSent:
        """The error with the most exact cause and the brokers that had it: `connection refused
        (broker 1 at localhost:9092)`."""
        earlier_cause = self._failures.get(target, "")
        cause = (
            self._verdict or self._cause or earlier_cause or self._early or "no broker is available"
        )
        nodes = self._nodes or {target} - {None}
        brokers = sorted(filter(None, (name_broker(self._pool.cluster, node) for node in nodes)))
        sentence = f"{cause} ({', '.join(brokers)})" if brokers else cause
        return RequestNotSent(sentence, throttled=self._throttled)


async def _get_connection(
    pool: ConnectionPool,
    timeout: float,
    node: str | None,
    choose: Callable[[], int | None],
    failures: dict[int | None, str],
    prove: bool = False,
) -> Any:
    """A connection that takes requests now. choose: names the broker for the next attempt;
    failures: why brokers could not be reached last time; prove: check the cluster id once more,
    right now. Raises RequestNotSent with the most exact cause.

    Waiting is safe, because nothing has been sent: a broker that throttles us pauses its
    connection, and a lost connection is opened again.
    """
    started_at = time.monotonic()
    deadline = started_at + timeout
    until = deadline if node is None else min(deadline, started_at + _SILENT)
    attempts = _Attempts(pool, failures)
    target: int | None = None
    while True:
        try:
            target = choose()
            if target is not None:
                connection = pool.get_connection(target)
                await pool.wait_for(connection.init_future, _count_milliseconds(until))
                failures.pop(target, None)
                # Throttling pauses a connection (KIP-219): a request would fail at once, and the
                # broker would not read it before the pause ends.
                if prove and not connection.paused:
                    await connection.prove(_count_milliseconds(deadline))
                if not connection.paused:
                    return connection
            if attempts.note_throttling(target):
                until = deadline
        except (NodeNotReadyError, KafkaTimeoutError) as error:
            attempts.note_early(error)
        except (KafkaError, OSError) as error:
            attempts.note_failure(target, error)
            if node is not None:
                until = min(until, started_at + _REFUSED)
        if time.monotonic() > until:
            raise attempts.make_error(target)
        await pool.net.sleep(_PAUSE)


async def _prove(pool: ConnectionPool, connections: Sequence[Any] | None) -> None:
    """Check the cluster id on these connections at once, None for all open ones. A connection that
    does not answer is no proof of another cluster."""
    chosen = pool.least_used_connections() if connections is None else connections
    ready = [connection for connection in chosen if connection.connected and not connection.paused]
    answers = [
        connection.net.call_soon_with_future(connection.prove, 1000 * PER_BROKER)
        for connection in ready
    ]
    for answer in answers:
        with suppress(KafkaError, OSError):
            await answer


async def _reach_broker(pool: ConnectionPool, patience: float) -> None:
    """Connect to one broker of the cluster, the one with the lowest id that lets us in. Raises
    RequestNotSent."""
    started_at = time.monotonic()
    attempts = _Attempts(pool, {})
    while not pool.least_used_connections():
        for broker in sorted(pool.cluster.brokers(), key=lambda broker: broker.node_id):
            try:
                connection = pool.get_connection(broker.node_id)
                await pool.wait_for(connection.init_future, 1000 * PER_BROKER)
                return
            except NodeNotReadyError as error:
                attempts.note_early(error)
            except (KafkaError, OSError) as error:
                attempts.note_failure(broker.node_id, error)
            if time.monotonic() > started_at + patience:
                raise attempts.make_error(None)
        if time.monotonic() > started_at + _REFUSED:
            raise attempts.make_error(None)
        await pool.net.sleep(_PAUSE)


async def _connect_all(pool: ConnectionPool, seconds: float) -> Set[str]:
    """The addresses of the bootstrap list, after an attempt to connect to each of them."""
    deadline = time.monotonic() + seconds
    attempts = []
    brokers = pool.cluster.bootstrap_brokers()
    for broker in brokers:
        with suppress(KafkaError):
            attempts.append(pool.get_connection(broker.node_id, refresh_metadata_on_err=False))
    for attempt in attempts:
        with suppress(KafkaError, OSError):
            await pool.wait_for(attempt.init_future, _count_milliseconds(deadline))
        attempt.close()
    return {name_address(broker) for broker in brokers}


def _count_milliseconds(deadline: float) -> float:
    """Milliseconds until then: at least one, and at most those that one broker gets."""
    return 1000 * min(PER_BROKER, max(0.001, deadline - time.monotonic()))


# ── the first connection ────────────────────────────────────────────────────────────────


MOST_INSPECTED = 8
"""How many brokers are inspected, all at once."""
_TIME_TO_LOOK = 5.0
"""If connecting took longer than these seconds, the listeners are not inspected as well."""
_UNCLEAR = (FailureKind.TLS, FailureKind.CLOSED, FailureKind.SILENT)
"""After these, an inspection of the listener can show more."""


def open_wire(settings: KafkaSettings) -> Wire:
    """Connect and log in. The first broker that answers says which cluster every later connection
    must lead to. Raises ConnectError within 10 seconds, ConfigurationError, OtherSystem."""
    fence_logs()
    config = make_client_config(settings)
    if settings.mechanism == OAUTHBEARER:
        tokens = connection_package.tokens.open_token_source(settings)
        if tokens is not None:
            # If there is no token, this error names the cause, and no broker is asked.
            tokens.get_token()
            config["sasl_oauth_token_provider"] = TokenProvider(tokens)
    login = make_login(settings)
    began = time.monotonic()
    try:
        wire = Wire(config, PATIENCE, ClusterProof(settings.instance), login)
    except NoConnection as error:
        in_time = time.monotonic() - began < _TIME_TO_LOOK
        listeners = _inspect_listeners(settings, error.failures) if in_time else {}
        raise connect_error(settings, error.failures, listeners) from None
    try:
        if len(settings.servers) > 1:
            refuse_two_clusters(settings, wire.ask_addresses(LOOK))
        wire.reach_broker(PATIENCE)
    except RequestNotSent as error:
        wire.close()
        raise ConnectError(
            f"Kafka at {', '.join(settings.servers)} answers, but none of its brokers can be "
            f"reached at the address that it advertises: {error}",
            "check advertised.listeners of the brokers, and that this computer can resolve and "
            "reach the addresses in it",
        ) from None
    except KafkaformError:
        wire.close()
        raise
    return wire


def _inspect_listeners(
    settings: KafkaSettings, failures: Mapping[str, ConnectionFailure]
) -> Mapping[str, Listener]:
    """Server -> what its listener shows, for the first ones whose failure is not clear."""
    servers = [
        server
        for server, failure in failures.items()
        if failure.listener is None and failure.kind in _UNCLEAR
    ][:MOST_INSPECTED]
    if not servers:
        return {}
    with ThreadPoolExecutor(len(servers)) as pool:
        listeners = pool.map(lambda server: look_at(server, lambda: ssl_context(settings)), servers)
        return dict(zip(servers, listeners, strict=True))
