"""What the rules say about the work of brokers: producers, transactions, threads, replication and
disks."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from kafkaform.sandbox import Sandbox
from kafkaform.sandbox.record import Broker
from kafkaform_kafka.session import KafkaSession

from ...kit.kafka.clusters import own_sandbox
from ...kit.kafka.raw_batches import write_batch
from ...kit.kafka.sessions import connect
from ...kit.kafka.topic_clients import Clients, wait_for
from ...kit.kafka.versions import get_choice
from .broker_configs import ALL, BROKER, alter, read_rows

QUICK = (
    ("log.flush.offset.checkpoint.interval.ms", "200"),
    ("log.initial.task.delay.ms", "200"),
    ("producer.id.expiration.check.interval.ms", "200"),
)
"""A broker that does at once what Kafka's own settings do after minutes."""
INVALID_PRODUCER_ID_MAPPING = 49
PRODUCER = 80_000_000
"""The id of a producer that no broker gives out in this file."""


def make_disks(box: Sandbox, broker: Broker) -> dict[str, str]:
    """Two log directories."""
    folder = box.data / str(broker.id)
    return {"log.dirs": f"{folder},{folder}-second"}


@pytest.fixture(scope="module")
def box(own_brokers: None) -> Iterator[Sandbox]:
    """One broker with two disks, for this file alone."""
    with own_sandbox(f"tests-work-{os.getpid()}", config=QUICK, settings=make_disks) as box:
        yield box


@pytest.fixture(scope="module")
def clients(box: Sandbox) -> Clients:
    return Clients(box.bootstrap, box.admin_password)


@pytest.fixture(scope="module")
def session(box: Sandbox) -> Iterator[KafkaSession]:
    session = connect(box)
    yield session
    session.close()


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A name of this test's own."""
    return f"{request.node.name.removeprefix('test_')[:200]}"


# ── producers and transactions ──────────────────────────────────────────────────────────


def test_a_producer_that_is_forgotten_writes_a_record_twice(
    session: KafkaSession, clients: Clients, topic: str
) -> None:
    """`broker-producers-forgotten`: the repeated batch is found, until the broker forgets."""
    key = "producer.id.expiration.ms"
    assert clients.create(topic) == ""
    wait_for(lambda: write_batch(session, topic, PRODUCER) == (0, 0))
    assert write_batch(session, topic, PRODUCER) == (0, 0)
    assert len(clients.read(topic)) == 1
    try:
        assert alter(session, BROKER, ALL, {key: "1000"}) == ""
        wait_for(lambda: write_batch(session, topic, PRODUCER) == (0, 1))
        assert len(clients.read(topic)) == 2
    finally:
        assert alter(session, BROKER, ALL, {key: None}) == ""


def test_without_verification_a_late_record_begins_a_transaction_that_nobody_ends(
    session: KafkaSession, clients: Clients, topic: str
) -> None:
    """`broker-transactions-unverified`: with it, the broker refuses the record. Without it,
    consumers with read_committed get nothing from there on."""
    key = "transaction.partition.verification.enable"
    assert clients.create(topic) == ""
    wait_for(lambda: clients.write(topic, "before", "a") == "")
    # The first producer of a cluster makes the coordinator of transactions.
    Producer({**clients.config, "transactional.id": topic}).init_transactions(60)
    assert write_batch(session, topic, PRODUCER + 1, "nobody")[0] == INVALID_PRODUCER_ID_MAPPING
    try:
        assert alter(session, BROKER, "1", {key: "false"}) == ""
        wait_for(lambda: write_batch(session, topic, PRODUCER + 1, "nobody") == (0, 1))
    finally:
        assert alter(session, BROKER, "1", {key: None}) == ""
    assert clients.write(topic, "after", "a") == ""
    assert count_readable(clients, topic, "read_uncommitted") == 3
    assert count_readable(clients, topic, "read_committed") == 1


def count_readable(clients: Clients, topic: str, isolation: str) -> int:
    """The offset up to which a consumer gets records."""
    consumer = Consumer({**clients.config, "group.id": "none", "isolation.level": isolation})
    try:
        place = TopicPartition(topic, 0)
        return int(consumer.get_watermark_offsets(place, timeout=15)[1])
    finally:
        consumer.close()


# ── threads ─────────────────────────────────────────────────────────────────────────────


def count_threads(box: Sandbox) -> int:
    """The threads for requests. Linux keeps 15 characters of a name, as network threads have."""
    process = box.brokers[0].process
    assert process is not None
    names = Path(f"/proc/{process.pid}/task").glob("*/comm")
    return sum(name.read_text().startswith("data-plane-kaf") for name in names)


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="only Linux lists threads so")
def test_a_lower_number_ends_threads_at_once(box: Sandbox, session: KafkaSession) -> None:
    """`broker-threads-removed`: without a restart. Less than half at once is refused."""
    key, before = "num.io.threads", count_threads(box)
    # With KRaft, the controller in the same process has as many.
    ended = 4 if get_choice().zookeeper else 8
    assert read_rows(session)[key].value == "8"
    assert "at least half" in alter(session, BROKER, "1", {key: "3"}, dry=True)
    try:
        assert alter(session, BROKER, "1", {key: "4"}) == ""
        wait_for(lambda: count_threads(box) == before - ended)
    finally:
        assert alter(session, BROKER, "1", {key: None}) == ""
    wait_for(lambda: count_threads(box) == before)


# ── disks ───────────────────────────────────────────────────────────────────────────────


def read_recovery_point(box: Sandbox, topic: str) -> int:
    """The offset up to which the broker has written the only partition to disk; -1 if it has not
    noted any."""
    lines = (
        line.split()
        for path in box.data.glob("*/recovery-point-offset-checkpoint")
        for line in path.read_text().splitlines()
    )
    return next((int(words[2]) for words in lines if words[0] == topic), -1)


def test_a_limit_of_records_writes_to_disk_at_once(
    box: Sandbox, clients: Clients, topic: str
) -> None:
    """`topic-flushed-more`: after each record; without the limit nothing is written."""
    plain = f"{topic}.plain"
    for name in (topic, plain):
        assert clients.create(name) == ""
        wait_for(lambda name=name: clients.write(name, "1", "a") == "")  # type: ignore[misc]
    wait_for(lambda: read_recovery_point(box, topic) == read_recovery_point(box, plain) == 0)
    assert clients.set(topic, flush_messages=1) == ""

    def is_written() -> bool:
        for name in (topic, plain):
            assert clients.write(name, "1", "a") == ""
        return read_recovery_point(box, topic) > 0

    wait_for(is_written)
    assert read_recovery_point(box, plain) == 0


def count_places(box: Sandbox, topic: str) -> tuple[int, int]:
    """The partitions of a topic on the first and on the second disk."""
    first, second = box.data / "1", box.data / "1-second"
    return len([*first.glob(f"{topic}-*")]), len([*second.glob(f"{topic}-*")])


def test_a_cordoned_disk_gets_no_new_partitions(
    box: Sandbox, session: KafkaSession, clients: Clients, topic: str
) -> None:
    """`broker-disks-cordoned`: both get some before; what is there stays."""
    if get_choice().lacks("4.3", zookeeper=False):
        pytest.skip("log directories are cordoned since Kafka 4.3 (KIP-1066)")
    key, after = "cordoned.log.dirs", f"after.{topic[:100]}"
    assert clients.create(topic, partitions=20) == ""
    wait_for(lambda: sum(count_places(box, topic)) == 20)
    spread = count_places(box, topic)
    assert min(spread) > 0
    try:
        assert alter(session, BROKER, "1", {key: str(box.data / "1-second")}) == ""
        wait_for(lambda: bool(read_rows(session)[key].value))
        time.sleep(2)
        assert clients.create(after, partitions=20) == ""
        wait_for(lambda: sum(count_places(box, after)) == 20)
        assert count_places(box, after) == (20, 0)
        assert count_places(box, topic) == spread
    finally:
        assert alter(session, BROKER, "1", {key: None}) == ""
