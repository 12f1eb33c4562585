"""Sends one raw request to one broker and says, if it fails, whether it can have left.

Uses `KafkaAdminClient._manager` (run, get_connection, least_loaded_node, wait_for, _net.sleep):
the public methods route to a "controller" that KRaft does not have, repeat writes on their own, and
hide error codes. Its connections are in `pool`. `tests/cluster/kafka/test_wire.py` holds this
contract.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Set
from contextlib import suppress
from functools import partial
from typing import Any

from kafka import KafkaAdminClient
from kafka.errors import (
    IncompatibleBrokerVersion,
    KafkaError,
    KafkaTimeoutError,
    NodeNotReadyError,
    SaslAuthenticationFailedError,
    UnknownBrokerIdError,
)
from kafka.errors import RequestTimedOutError as TimedOut

from ..connection.cluster_proof import Proof
from ..protocol.apis import APIS
from .pool import PER_BROKER, Elsewhere, Guarded, describe_error, open_client

_PAUSE = 0.05
_HANDSHAKE = "Handshake failed"
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
_TOLD_AT_ONCE = frozenset(api.key for api in APIS.values() if api.at_once)
CHANGES = frozenset(api.key for api in APIS.values() if api.limits is not None)
"""Keys of the requests that change something: who answers is asked right before and after one."""


class NotSent(Exception):
    """The request never left: nothing happened."""


class Unsupported(Exception):
    """The broker does not know this request: nothing happened."""


class AnswerLost(Exception):
    """The request left and no usable answer came: it may have been carried out."""

    def __init__(self, cause: str, *, timed_out: bool) -> None:
        super().__init__(cause)
        self.timed_out = timed_out


class Wire:
    """A connection pool to one cluster. All methods may be called from several threads."""

    def __init__(
        self, config: Mapping[str, Any], patience: float, proof: Proof | None = None
    ) -> None:
        """patience: seconds to wait for the first broker; proof: who must answer on every
        connection, None for whoever does. Raises NotSent, OtherSystem."""
        self._proof = proof
        try:
            self._admin = KafkaAdminClient(
                **config,
                kafka_client=partial(open_client, proof),
                bootstrap_timeout_ms=int(patience * 1000),
            )
        except (KafkaError, OSError) as error:
            self._refuse()
            raise NotSent(describe_error(error)) from None
        self._closed = False
        self._missed: dict[str | None, float] = {}
        self._failures: dict[int | None, str] = {}

    def send(self, request: Any, timeout: float, node: str | None = None) -> Any:
        """The answer to a request. node: the broker that must get it, None for any.
        timeout: seconds to wait for a usable connection, and again for the answer; a certain
        broker that cannot be reached is given up earlier. What changes nothing is asked of
        another broker if the first one does not answer.
        Raises NotSent, Unsupported, AnswerLost; OtherSystem, and then what a request that has
        left did is not known."""
        patience = min(timeout, _ANSWER) if request.API_KEY in _TOLD_AT_ONCE else timeout
        tries = _TRIES if node is None and _changes_nothing(request) else 1
        while True:
            tries -= 1
            try:
                return self._send_once(request, timeout, patience, node)
            except AnswerLost as lost:
                if lost.timed_out and node is not None:
                    self._missed[node] = time.monotonic()
                if not tries or (lost.timed_out and patience == timeout):
                    raise
                patience = timeout if lost.timed_out else patience

    def _send_once(self, request: Any, timeout: float, patience: float, node: str | None) -> Any:
        """patience: seconds to wait for the answer."""
        if self._closed:
            raise NotSent("the session is closed")
        manager = self._admin._manager
        reach = min(timeout, self._choose_reach(node))
        changes = request.API_KEY in CHANGES
        self._refuse()
        try:
            connection = manager.run(_get_connection, manager, reach, node, self._failures, changes)
        except NotSent:
            self._refuse()
            if reach != _PAUSE:
                self._missed[node] = time.monotonic()
            raise
        self._missed.pop(node, None)
        answer = manager.run(_exchange, connection, request, patience)
        if changes:
            # A proxy may lead a connection elsewhere while it is open.
            manager.run(_prove, (connection,))
            self._refuse()
        return answer

    def _choose_reach(self, node: str | None) -> float:
        """Seconds for which it is worth to wait for this broker."""
        if node not in self._missed:
            return math.inf
        just_now = time.monotonic() - self._missed[node] < _JUST_NOW
        return _PAUSE if just_now and node is not None else _ONCE_MORE

    def prove(self) -> None:
        """Ask every open connection once more whose it is. Raises OtherSystem."""
        if not self._closed:
            manager = self._admin._manager
            manager.run(_prove_open, manager)
            self._refuse()

    def ask_addresses(self, seconds: float) -> Mapping[str, str]:
        """Address of the bootstrap list -> the id of the cluster that answers there, for those
        that answer in time."""
        if self._proof is None:
            return {}
        manager = self._admin._manager
        asked = manager.run(_connect_all, manager, seconds)
        return {name: id_ for name, id_ in self._proof.answers.items() if name in asked}

    def _refuse(self) -> None:
        if self._proof is not None:
            self._proof.refuse()

    def close(self) -> None:
        self._closed = True
        self._admin.close()


def _changes_nothing(request: Any) -> bool:
    return request.API_KEY in _TOLD_AT_ONCE or getattr(request, "validate_only", False) is True


async def _exchange(connection: Any, request: Any, timeout: float) -> Any:
    guarded = Guarded(request)
    try:
        return await connection.send_request(guarded, request_timeout_ms=timeout * 1000)
    except IncompatibleBrokerVersion as error:
        raise Unsupported(describe_error(error)) from None
    except (KafkaError, OSError) as error:
        if not guarded.left:
            raise NotSent(describe_error(error)) from None
        if isinstance(error, (TimedOut, KafkaTimeoutError)):
            raise AnswerLost(f"waited {timeout:g} s", timed_out=True) from None
        raise AnswerLost(describe_error(error), timed_out=False) from None


async def _get_connection(
    manager: Any,
    timeout: float,
    node: str | None,
    failures: dict[int | None, str],
    prove: bool = False,
) -> Any:
    """A connection that takes requests now. Waiting is safe here because nothing has been sent:
    a broker that throttles us pauses its connection, a lost one is opened again. What a broker said
    about who we are, or we about its certificate, is told rather than that it then hung up.
    A certain broker that cannot be reached is given up after seconds.
    failures: why brokers could not be reached last time; told where it is too early for another
    attempt, which says nothing about why. prove: ask who is there once more, right now."""
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
                await manager.wait_for(connection.init_future, _count_milliseconds(until))
                failures.pop(target, None)
                if prove and not connection.paused:
                    await connection.prove(_count_milliseconds(deadline))
                if not connection.paused:
                    return connection
                cause, until = f"broker {target} throttles us", deadline
        except (NodeNotReadyError, KafkaTimeoutError) as error:
            # These only say that it is too early, or too late, for another attempt.
            early = describe_error(error)
        except (KafkaError, OSError) as error:
            cause = describe_error(error)
            if isinstance(error, Elsewhere):
                raise NotSent(cause) from None
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


async def _prove(connections: Iterable[Any]) -> None:
    """Ask all of these at once. One that does not answer has not answered as another cluster."""
    ready = [each for each in connections if each.connected and not each.paused]
    asked = [each.net.call_soon_with_future(each.prove, 1000 * PER_BROKER) for each in ready]
    for each in asked:
        with suppress(KafkaError, OSError):
            await each


async def _prove_open(manager: Any) -> None:
    await _prove(manager._conns.values())


async def _connect_all(manager: Any, seconds: float) -> Set[str]:
    """The addresses of the bootstrap list, after a connection to each has been tried."""
    deadline = time.monotonic() + seconds
    begun = []
    places = manager.cluster.bootstrap_brokers()
    for place in places:
        with suppress(KafkaError):
            begun.append(manager.get_connection(place.node_id, refresh_metadata_on_err=False))
    for connection in begun:
        with suppress(KafkaError, OSError):
            await manager.wait_for(connection.init_future, _count_milliseconds(deadline))
        connection.close()
    return {f"{place.host}:{place.port}" for place in places}


def _count_milliseconds(deadline: float) -> float:
    """Until then, at least one and at most what one broker gets."""
    return 1000 * min(PER_BROKER, max(0.001, deadline - time.monotonic()))
