"""A topic that Metadata shows and DescribeConfigs does not know, on the wire: the proxy answers for
a broker that lags behind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kafkaform.core.resource import Absent, Failed, Observed
from kafkaform_kafka.session import KafkaSession

from ...kit.kafka.sessions import apply, connect, gone, new, read
from ...kit.proxy import rewrite
from ...kit.proxy.faults import FOR_EVER, Fault
from ...kit.proxy.frames import Asked
from ...kit.proxy.proxy import Proxy, proxying

UNKNOWN_TOPIC = 3
CONFIG = {"retention.ms": "7000"}
READ = ("ListPartitionReassignments", "Metadata", "DescribeConfigs")


@pytest.fixture(scope="module")
def proxy(broker: Any) -> Iterator[Proxy]:
    """Before the run's broker."""
    with proxying(int(broker.bootstrap.rpartition(":")[2])) as proxy:
        yield proxy


@pytest.fixture
def session(broker: Any, proxy: Proxy) -> Iterator[KafkaSession]:
    """A session of the super user behind the proxy."""
    session = connect(broker, "admin", servers=(proxy.bootstrap,))
    yield session
    proxy.disarm()
    session.close()


@pytest.fixture
def live(admin: KafkaSession, prefix: str) -> Iterator[str]:
    """A topic with a config of its own."""
    (made,) = apply(admin, new(prefix, config=CONFIG))
    yield prefix
    apply(admin, gone(prefix, made.incarnation))


def lag(times: int) -> Fault:
    """So many answers of a broker that does not know the topic yet."""
    return Fault("DescribeConfigs", "say", code=UNKNOWN_TOPIC, times=times)


def test_it_is_read_again_until_its_configs_are_told(
    session: KafkaSession, proxy: Proxy, live: str
) -> None:
    """Two answers come too early, the third one counts."""
    proxy.arm(lag(2))
    reading = read(session, live)
    assert isinstance(reading, Observed) and reading.attributes["config"] == CONFIG
    # The last request asks for what lies below the overrides.
    assert proxy.take()["DescribeConfigs"] == 2 + 1 + 1


def test_a_read_that_misses_nothing_asks_once(
    session: KafkaSession, proxy: Proxy, live: str
) -> None:
    """Each request once, and DescribeConfigs for what lies below the overrides."""
    proxy.arm()
    assert isinstance(read(session, live), Observed)
    taken = proxy.take()
    assert [taken[api] for api in READ] == [1, 1, 2]


def test_it_is_asked_for_a_few_seconds_and_then_told(
    session: KafkaSession, proxy: Proxy, live: str
) -> None:
    """A broker that never knows it is a failed read, with what it said."""
    proxy.arm(lag(FOR_EVER))
    reading = read(session, live)
    assert isinstance(reading, Failed)
    assert reading.fault.code == "UNKNOWN_TOPIC_OR_PARTITION"
    assert "wait if it was created a moment ago" in reading.fault.advice
    assert proxy.take()["DescribeConfigs"] > 2


def test_it_is_gone_if_it_is_deleted_between_the_two_requests(
    admin: KafkaSession, session: KafkaSession, proxy: Proxy, prefix: str
) -> None:
    """Somebody deletes it after Metadata has shown it: it is absent, as every broker says."""
    (made,) = apply(admin, new(prefix))
    deleted: list[Any] = []

    def delete(request: Asked, data: bytes) -> bytes:
        if request.api != "DescribeConfigs":
            return data
        deleted.extend(apply(admin, gone(prefix, made.incarnation)))
        return rewrite.said(request, data, UNKNOWN_TOPIC)

    proxy.tamper = delete
    try:
        assert isinstance(read(session, prefix), Absent)
    finally:
        proxy.tamper = None
    assert [outcome.fault for outcome in deleted] == [None]
