"""What the rules say about replicas, leaders and the brokers' own connections, tried with three
brokers of which some are killed."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from confluent_kafka import (
    Consumer,
    ElectionType,
    KafkaException,
    Producer,
    TopicPartition,
)
from kafka.errors import KafkaError

from kafkaform.sandbox import Sandbox
from kafkaform.sandbox.record import Broker
from kafkaform_kafka.session import KafkaSession

from ...kit.kafka.clusters import own_sandbox
from ...kit.kafka.sessions import connect
from ...kit.kafka.three_brokers import COUNT, Brokers
from ...kit.kafka.topic_clients import Clients, wait_for
from ...kit.kafka.versions import get_choice
from .broker_configs import ALL, BROKER, alter, read_rows

QUICK = (
    ("auto.leader.rebalance.enable", "false"),
    ("broker.session.timeout.ms", "3000"),
    ("log.initial.task.delay.ms", "200"),
    ("log.retention.check.interval.ms", "300"),
    ("replica.lag.time.max.ms", "5000"),
    ("offsets.topic.num.partitions", "1"),
)
"""Brokers that notice at once what Kafka's own settings notice after minutes, and that elect
nobody by themselves."""
PEERS = "sasl.mechanism.inter.broker.protocol"
INTERNAL, OTHER = "listener.name.internal", "SCRAM-SHA-512"
RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")


def allow_other_login(box: Sandbox, _: Broker) -> dict[str, str]:
    """Brokers accept another mechanism from each other, with a user that does not exist."""
    login = "org.apache.kafka.common.security.scram.ScramLoginModule required"
    return {
        f"{INTERNAL}.sasl.enabled.mechanisms": f"PLAIN,{OTHER}",
        f"{INTERNAL}.{OTHER.lower()}.sasl.jaas.config": f'{login} username="x" password="x";',
    }


@pytest.fixture(scope="module")
def brokers(own_brokers: None) -> Iterator[Brokers]:
    """Three brokers for this file alone."""
    with own_sandbox(
        f"tests-replicas-{os.getpid()}", COUNT, QUICK, settings=allow_other_login
    ) as box:
        yield Brokers(box)


@pytest.fixture(scope="module")
def clients(brokers: Brokers) -> Clients:
    return Clients(brokers.box.bootstrap, brokers.box.admin_password)


@pytest.fixture(scope="module")
def session(brokers: Brokers) -> Iterator[KafkaSession]:
    session = connect(brokers.box, servers=tuple(brokers.box.bootstrap.split(",")))
    yield session
    session.close()


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A name of this test's own."""
    return f"{request.node.name.removeprefix('test_')[:200]}"


def ask_alive(brokers: Brokers, down: int) -> Clients:
    """Clients of the other brokers."""
    addresses = (brokers.address(number) for number in brokers.ids if number != down)
    return Clients(",".join(addresses), brokers.box.admin_password)


def read_replicas(clients: Clients, topic: str) -> tuple[list[int], set[int]]:
    """The replicas of the first partition, and which of them are in sync; nothing as long as the
    broker does not know the topic."""
    partition = clients.admin.list_topics(topic, 15).topics[topic].partitions.get(0)
    return ([], set()) if partition is None else (list(partition.replicas), set(partition.isrs))


def elect(clients: Clients, topic: str) -> str:
    """Elect the preferred leader of the first partition; the refusal's name, or an empty text."""
    place = TopicPartition(topic, 0)
    answers = clients.admin.elect_leaders(ElectionType.PREFERRED, [place]).result(15)
    fault = answers[place]
    return "" if fault is None else str(fault.name())


def test_a_broker_that_cannot_log_in_to_another_replicates_nothing_from_it(
    brokers: Brokers, session: KafkaSession, clients: Clients, topic: str
) -> None:
    """`broker-peer-login-changed`: from a broker from which it began to replicate before the
    change, it still does. Brokers refuse a mechanism that the listener does not have. This test
    is the first one, so that no topic makes the broker replicate from the others before."""
    target = brokers.plain()
    old, new = (number for number in brokers.ids if number != target)
    refusal = alter(session, BROKER, str(target), {PEERS: "SCRAM-SHA-256"})
    assert "must be included in sasl.enabled.mechanisms" in refusal

    def create(name: str, source: int) -> None:
        assert clients.create(name, assignment=[[source, target]], min_insync_replicas=1) == ""
        wait_for(lambda: clients.write(name, "1", "a") == "")

    before, names = f"{topic[:100]}.before", {old: f"{topic[:100]}.old", new: f"{topic[:100]}.new"}
    create(before, old)
    wait_for(lambda: read_replicas(clients, before)[1] == {old, target})
    assert alter(session, BROKER, str(target), {PEERS: OTHER}) == ""
    wait_for(lambda: read_rows(session, str(target))[PEERS].value == OTHER)
    for source, name in names.items():
        create(name, source)
    # A replica that does not follow leaves the replicas in sync after replica.lag.time.max.ms.
    wait_for(lambda: read_replicas(clients, names[new])[1] == {new})
    assert read_replicas(clients, names[old])[1] == {old, target}
    assert alter(session, BROKER, str(target), {PEERS: None}) == ""
    # What replicates with the wrong login goes on with it.
    brokers.kill(target)
    brokers.revive()


def start_move(clients: Clients, topic: str, replicas: list[int]) -> bool:
    """Start a move of the only partition; False as long as the client asks the dead broker."""
    try:
        clients.move(topic, [replicas])
    except KafkaError:
        return False
    return True


def test_only_a_move_takes_a_replica_off_a_broker_that_is_down(
    brokers: Brokers, clients: Clients, topic: str
) -> None:
    """`topic-replicas-not-live`: it stays a replica that is not in sync."""
    down = brokers.plain()
    up, third = (number for number in brokers.ids if number != down)
    assert clients.create(topic, assignment=[[up, down]], min_insync_replicas=1) == ""
    wait_for(lambda: read_replicas(clients, topic) == ([up, down], {up, down}))
    brokers.kill(down)
    try:
        others = ask_alive(brokers, down)
        wait_for(lambda: read_replicas(others, topic) == ([up, down], {up}))
        wait_for(lambda: start_move(others, topic, [up, third]))
        wait_for(lambda: read_replicas(others, topic) == ([up, third], {up, third}))
    finally:
        brokers.revive()


def test_a_replica_that_is_not_in_sync_is_not_elected(
    brokers: Brokers, clients: Clients, topic: str
) -> None:
    """`leaders-elected`: the preferred leader leads again once it is back and in sync."""
    down = brokers.plain()
    up = next(number for number in brokers.ids if number != down)
    assert clients.create(topic, assignment=[[down, up]], min_insync_replicas=1) == ""
    wait_for(lambda: clients.find_leader(topic) == down)
    wait_for(lambda: read_replicas(clients, topic)[1] == {up, down})
    brokers.kill(down)
    try:
        others = ask_alive(brokers, down)
        wait_for(lambda: others.find_leader(topic) == up)
        assert elect(others, topic) == "PREFERRED_LEADER_NOT_AVAILABLE"
        assert others.find_leader(topic) == up
    finally:
        brokers.revive()
    wait_for(lambda: read_replicas(clients, topic)[1] == {up, down})
    assert clients.find_leader(topic) == up
    assert elect(clients, topic) == ""
    wait_for(lambda: clients.find_leader(topic) == down)


def fill(clients: Clients, topic: str, megabytes: int) -> None:
    producer = Producer({**clients.config, "compression.type": "none"})
    for _ in range(megabytes * 10):
        producer.produce(topic, os.urandom(100_000))
    assert producer.flush(60) == 0


@pytest.mark.parametrize("shared", [True, False], ids=["all brokers", "two brokers"])
def test_a_rate_slows_the_copies_that_topics_name(
    brokers: Brokers, session: KafkaSession, clients: Clients, shared: bool
) -> None:
    """`broker-replication-throttled`: the copy of the same size that no topic names is complete
    while the other one still waits, and a higher rate lets that go on. Before Kafka 3.9, a rate of
    all brokers slows nothing (KAFKA-10190)."""
    source, target = brokers.ids[:2]
    slowed, free = f"rate.{shared}.slowed", f"rate.{shared}.free"
    named = {f"{side}_replication_throttled_replicas": "*" for side in ("leader", "follower")}
    for name, config in ((slowed, named), (free, {})):
        assert clients.create(name, assignment=[[source]], min_insync_replicas=1, **config) == ""
        fill(clients, name, 8)

    def set_rates(rate: str | None) -> None:
        for name in (ALL,) if shared else (str(source), str(target)):
            assert alter(session, BROKER, name, dict.fromkeys(RATES, rate)) == ""

    set_rates("1000")
    try:
        clients.move(slowed, [[source, target]])
        clients.move(free, [[source, target]])
        wait_for(lambda: read_replicas(clients, free)[1] == {source, target})
        if not shared or not get_choice().lacks("3.9", zookeeper=True):
            assert read_replicas(clients, slowed)[1] == {source}
            set_rates("100000000")
        wait_for(lambda: read_replicas(clients, slowed)[1] == {source, target})
    finally:
        set_rates(None)


def read_offset(clients: Clients, group: str, place: TopicPartition) -> int:
    """The committed offset; negative for none, or as long as nobody answers."""
    consumer = Consumer({**clients.config, "group.id": group})
    try:
        (committed,) = consumer.committed([place], 10)
        return int(committed.offset)
    except KafkaException:
        return -2
    finally:
        consumer.close()


def test_the_topic_of_groups_loses_offsets_without_compaction(
    brokers: Brokers, clients: Clients, topic: str
) -> None:
    """`topic-internal`: what is deleted there is missing when another broker becomes the
    coordinator. With Kafka's own configs it is not."""
    internal, place = "__consumer_offsets", TopicPartition(topic, 0, 7)
    assert clients.create(topic, assignment=[[1, 2, 3]]) == ""

    def commit(group: str) -> bool:
        consumer = Consumer({**clients.config, "group.id": group})
        try:
            consumer.commit(offsets=[place], asynchronous=False)
        except KafkaException:
            return False
        finally:
            consumer.close()
        return True

    def change_coordinator() -> None:
        leads = clients.find_leader(internal)
        brokers.kill(leads)
        wait_for(lambda: ask_alive(brokers, leads).find_leader(internal) not in (leads, -1))
        brokers.revive()

    wait_for(lambda: commit("kept"))
    change_coordinator()
    wait_for(lambda: read_offset(clients, "kept", place) == 7)
    short = {"cleanup_policy": "delete", "retention_ms": 1000, "segment_ms": 100}
    assert clients.set(internal, **short) == ""

    def is_empty() -> bool:
        """Whether every broker has deleted what it had of the only partition."""
        logs = [*brokers.box.data.glob(f"*/{internal}-0/*.log")]
        return len(logs) == COUNT and all(log.stat().st_size == 0 for log in logs)

    wait_for(is_empty)
    assert read_offset(clients, "kept", place) == 7
    change_coordinator()
    wait_for(lambda: read_offset(clients, "kept", place) == -1001)
