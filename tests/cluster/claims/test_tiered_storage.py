"""What the rules of remote storage say (KIP-405), tried with a folder as the store."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from kafkaform_kafka.capacity.readings import (
    measure_partitions,
    read_disks,
    read_growth,
    read_settings,
)
from kafkaform_kafka.inspect.source import DescribeSource
from kafkaform_kafka.wire.topics import list_topics

from ...kit.kafka.sessions import connect
from ...kit.kafka.tiered_storage import TieredBroker, tiered_broker
from ...kit.kafka.topic_clients import Clients, wait_for
from .broker_configs import ALL, BROKER, alter

TIERED = {"remote_storage_enable": "true", "segment_ms": 100}
"""A segment that is not written to for so long ends with the next record, and is copied."""


@pytest.fixture(scope="module")
def broker(own_brokers: None) -> Iterator[TieredBroker]:
    """A broker with remote storage, for this file alone."""
    with tiered_broker(f"tests-tiered-{os.getpid()}") as broker:
        yield broker


@pytest.fixture(scope="module")
def clients(broker: TieredBroker) -> Clients:
    return Clients(broker.box.bootstrap, broker.box.admin_password)


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A name of this test's own."""
    return f"{request.node.name.removeprefix('test_')[:200]}"


def write_segments(clients: Clients, topic: str, size: int = 1) -> None:
    """Three segments of one record each, the last of which brokers do not copy."""
    for value in "012":
        assert clients.write(topic, value * size, "a", compression_type="none") == ""
        time.sleep(0.2)


def test_copied_segments_leave_the_broker_and_are_read_from_remote_storage(
    broker: TieredBroker, clients: Clients, topic: str
) -> None:
    """`topic-local-data-cut`: consumers get every record. Without remote storage, the same config
    deletes nothing."""
    plain = f"{topic[:100]}.plain"
    assert clients.create(topic, **TIERED) == ""
    assert clients.create(plain, segment_ms=100) == ""
    for name in (topic, plain):
        write_segments(clients, name)
    wait_for(lambda: broker.count_remote(topic) == 2)
    assert broker.list_local(topic) == broker.list_local(plain) == [0, 1, 2]
    for name in (topic, plain):
        assert clients.set(name, local_retention_bytes=1) == ""
    wait_for(lambda: broker.list_local(topic) == [2])
    assert clients.values(topic) == ["0", "1", "2"]
    assert broker.list_local(plain) == [0, 1, 2]


def test_a_topic_that_leaves_remote_storage_loses_what_is_only_there(
    broker: TieredBroker, clients: Clients, topic: str
) -> None:
    """`topic-remote-data-deleted`, `topic-remote-data-at-risk`: without
    remote.log.delete.on.disable the broker refuses it. With that config alone nothing goes, and
    with remote.log.copy.disable everything can still be read."""
    assert clients.create(topic, **TIERED, local_retention_bytes=1) == ""
    write_segments(clients, topic)
    wait_for(lambda: broker.list_local(topic) == [2])
    assert clients.set(topic, remote_storage_enable="false") == "INVALID_CONFIG"
    assert clients.set(topic, remote_log_copy_disable="true", local_retention_bytes=-2) == ""
    assert clients.set(topic, remote_log_delete_on_disable="true") == ""
    time.sleep(2)
    assert broker.count_remote(topic) == 2
    assert clients.values(topic) == ["0", "1", "2"]
    assert clients.set(topic, remote_storage_enable="false") == ""
    wait_for(lambda: broker.count_remote(topic) == 0)
    wait_for(lambda: clients.values(topic) == ["2"])


def test_a_lower_rate_delays_copies_to_remote_storage(
    broker: TieredBroker, clients: Clients, topic: str
) -> None:
    """`broker-remote-storage-throttled`: after the first segment the broker waits until the rate of
    its window is below the limit again, which takes longer than this test; a higher limit lets the
    other segment follow. The limit counts for the broker, so another topic waits, too."""
    session = connect(broker.box)
    key, others = "remote.log.manager.copy.max.bytes.per.second", f"{topic[:100]}.others"
    try:
        assert alter(session, BROKER, ALL, {key: "100"}) == ""
        assert clients.create(topic, **TIERED) == ""
        write_segments(clients, topic, 200_000)
        wait_for(lambda: broker.count_remote(topic) == 1)
        assert clients.create(others, **TIERED) == ""
        write_segments(clients, others)
        time.sleep(3)
        assert (broker.count_remote(topic), broker.count_remote(others)) == (1, 0)
        assert alter(session, BROKER, ALL, {key: "100000000"}) == ""
        wait_for(lambda: broker.count_remote(topic) == broker.count_remote(others) == 2)
    finally:
        assert alter(session, BROKER, ALL, {key: None}) == ""
        session.close()


def test_growth_counts_what_is_on_the_disk(
    broker: TieredBroker, clients: Clients, topic: str
) -> None:
    """`disk-too-small`: of 40 records, an hour apart, the broker has kept the last ten hours. A day
    adds 24 of them, and the local retention ends the growth."""
    hour, now = 3_600_000, int(time.time() * 1000)
    assert clients.create(topic, **TIERED) == ""
    for age in range(40, 0, -1):
        settings = {"time_ms": now - age * hour, "compression_type": "none"}
        assert clients.write(topic, "x" * 1000, "a", **settings) == ""
    wait_for(lambda: broker.count_remote(topic) == 39)
    assert clients.set(topic, local_retention_ms=10 * hour + hour // 2) == ""
    wait_for(lambda: len(broker.list_local(topic)) <= 11)
    session = connect(broker.box)
    try:
        source = DescribeSource(session.context, session.sweep)
        sizes = measure_partitions(read_disks(source, [1]).disks)
        rows = list_topics(session.context.wire, [topic], 15.0)
        growth = read_growth(source, rows, read_settings(source, [topic]), sizes)[topic, 0]
    finally:
        session.close()
    record = sizes[topic, 0] / len(broker.list_local(topic))
    assert 1000 < record < 1200
    assert growth.rate == pytest.approx(24 * record, rel=0.05)
    assert growth.ceiling == pytest.approx(10.5 * record, rel=0.05)
