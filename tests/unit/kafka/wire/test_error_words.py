"""What kafka-python raises is told in words of people, with the broker that it is about."""

from __future__ import annotations

import asyncio
from typing import Any, NoReturn

import pytest
from kafka.cluster import ClusterMetadata
from kafka.errors import (
    KafkaConnectionError,
    KafkaTimeoutError,
    NodeNotReadyError,
    RequestTimedOutError,
)

from kafkaform_kafka.wire.answers import describe_error
from kafkaform_kafka.wire.client import RequestNotSent, _get_connection

CLOSED = "the broker closed the connection"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (KafkaConnectionError("111 ECONNREFUSED"), "connection refused"),
        (KafkaConnectionError("113 EHOSTUNREACH"), "no route to host"),
        (KafkaConnectionError(ConnectionResetError(104, "reset")), "connection reset by peer"),
        (OSError(101, "Network is unreachable"), "network is unreachable"),
        (KafkaConnectionError("socket disconnected"), CLOSED),
        (KafkaConnectionError(), CLOSED),
        (NodeNotReadyError(3), "the broker cannot be reached yet"),
        (KafkaTimeoutError(), "no answer in time"),
        (RequestTimedOutError(), "no answer in time"),
        (KafkaConnectionError("DNS Resolution failure"), "the host name is unknown"),
        (KafkaConnectionError("Handshake failed: expired"), "Handshake failed: expired"),
    ],
)
def test_no_class_name_is_told(error: Exception, words: str) -> None:
    """A reader of a failed apply knows Kafka and the network, and not a library of Python."""
    assert describe_error(error) == words


class _Dead:
    """A manager of a cluster whose only broker refuses each connection."""

    def __init__(self) -> None:
        self.net = self
        self.cluster = ClusterMetadata(bootstrap_servers=["localhost:19092"])

    def choose(self) -> Any:
        (broker,) = self.cluster.bootstrap_brokers()
        return broker.node_id

    def get_connection(self, node: str) -> NoReturn:
        raise KafkaConnectionError("111 ECONNREFUSED")

    async def sleep(self, seconds: float) -> None:
        """No time goes by but the deadline's."""


def test_the_broker_is_named() -> None:
    """The address stands beside the cause."""
    dead = _Dead()
    with pytest.raises(RequestNotSent) as raised:
        asyncio.run(_get_connection(dead, 0.001, None, dead.choose, {}))
    assert str(raised.value) == "connection refused (localhost:19092)"
