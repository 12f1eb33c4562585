"""Sends one raw request to one broker and says, if it fails, whether it can have left.

Uses `KafkaAdminClient._manager` (run, get_connection, least_loaded_node, wait_for, _net.sleep):
the public methods route to a "controller" that KRaft does not have, repeat writes on their own, and
hide error codes. Its connections are in `pool`. `tests/kafka/test_wire.py` holds this contract.
"""

from __future__ import annotations

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
)
from kafka.errors import RequestTimedOutError as TimedOut

from ..proof import Proof
from .pool import Elsewhere, open_client, text_of

_PAUSE = 0.05
_HANDSHAKE = "Handshake failed"
_PER_BROKER = 3.0
"""Seconds to wait for one broker before another is tried; a hung one accepts connections too."""
_ONCE_MORE = 1.0
"""Seconds to wait for a broker that was waited for in vain before: whoever asks each broker again
and again would else wait for the whole time with each question."""


CHANGES = frozenset({19, 20, 30, 31, 37, 43, 44, 45, 49, 51})
"""Keys of the requests that change something (CreateTopics, DeleteTopics, CreateAcls, DeleteAcls,
CreatePartitions, ElectLeaders, IncrementalAlterConfigs, AlterPartitionReassignments,
AlterClientQuotas, AlterUserScramCredentials): who answers is asked right before and after one."""


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
        connection, None for whoever does. Raises NotSent, OtherCluster."""
        self._proof = proof
        try:
            self._admin = KafkaAdminClient(
                **config,
                kafka_client=partial(open_client, proof),
                bootstrap_timeout_ms=int(patience * 1000),
            )
        except (KafkaError, OSError) as error:
            self._refuse()
            raise NotSent(text_of(error)) from None
        self._closed = False
        self._missed: set[str | None] = set()
        self._failures: dict[int | None, str] = {}

    def send(self, request: Any, timeout: float, node: str | None = None) -> Any:
        """The answer to a request. node: the broker that must get it, None for any.
        timeout: seconds to wait for a usable connection, and again for the answer.
        Raises NotSent, Unsupported, AnswerLost; OtherCluster, and then what a request that has
        left did is not known."""
        if self._closed:
            raise NotSent("the session is closed")
        manager = self._admin._manager
        patience = min(timeout, _ONCE_MORE) if node in self._missed else timeout
        changes = request.API_KEY in CHANGES
        self._refuse()
        try:
            connection = manager.run(_connection, manager, patience, node, self._failures, changes)
        except NotSent:
            self._refuse()
            self._missed.add(node)
            raise
        self._missed.discard(node)
        answer = manager.run(_exchange, connection, request, timeout)
        if changes:
            # A proxy may lead a connection elsewhere while it is open.
            manager.run(_prove, (connection,))
            self._refuse()
        return answer

    def prove(self) -> None:
        """Ask every open connection once more whose it is. Raises OtherCluster."""
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


async def _exchange(connection: Any, request: Any, timeout: float) -> Any:
    try:
        return await connection.send_request(request, request_timeout_ms=timeout * 1000)
    except IncompatibleBrokerVersion as error:
        raise Unsupported(text_of(error)) from None
    except (TimedOut, KafkaTimeoutError):
        raise AnswerLost(f"waited {timeout:g} s", timed_out=True) from None
    except (KafkaError, OSError) as error:
        raise AnswerLost(text_of(error), timed_out=False) from None


async def _connection(
    manager: Any,
    timeout: float,
    node: str | None,
    failures: dict[int | None, str],
    prove: bool = False,
) -> Any:
    """A connection that takes requests now. Waiting is safe here because nothing has been sent:
    a broker that throttles us pauses its connection, a lost one is opened again. What a broker said
    about who we are, or we about its certificate, is told rather than that it then hung up.
    failures: why brokers could not be reached last time; told where it is too early for another
    attempt, which says nothing about why. prove: ask who is there once more, right now."""
    deadline = time.monotonic() + timeout
    cause = verdict = early = ""
    target: int | None = None
    while True:
        try:
            target = manager.least_loaded_node() if node is None else int(node)
            if target is not None:
                connection = manager.get_connection(target)
                await manager.wait_for(connection.init_future, _milliseconds(deadline))
                failures.pop(target, None)
                if prove and not connection.paused:
                    await connection.prove(_milliseconds(deadline))
                if not connection.paused:
                    return connection
                cause = f"broker {target} throttles us"
        except (NodeNotReadyError, KafkaTimeoutError) as error:
            # These only say that it is too early, or too late, for another attempt.
            early = text_of(error)
        except (KafkaError, OSError) as error:
            cause = text_of(error)
            if isinstance(error, Elsewhere):
                raise NotSent(cause) from None
            if isinstance(error, SaslAuthenticationFailedError) or _HANDSHAKE in cause:
                verdict = cause
            failures[target] = verdict or cause
        if time.monotonic() > deadline:
            known = failures.get(target, "")
            raise NotSent(verdict or cause or known or early or "no broker is available")
        await manager._net.sleep(_PAUSE)


async def _prove(connections: Iterable[Any]) -> None:
    """Ask all of these at once. One that does not answer has not answered as another cluster."""
    ready = [each for each in connections if each.connected and not each.paused]
    asked = [each.net.call_soon_with_future(each.prove, 1000 * _PER_BROKER) for each in ready]
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
            await manager.wait_for(connection.init_future, _milliseconds(deadline))
        connection.close()
    return {f"{place.host}:{place.port}" for place in places}


def _milliseconds(deadline: float) -> float:
    """Until then, at least one and at most what one broker gets."""
    return 1000 * min(_PER_BROKER, max(0.001, deadline - time.monotonic()))
