"""What the rules of configs of groups say, tried with members of such groups."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import (
    AcknowledgeType,
    Consumer,
    KafkaException,
    Producer,
    ShareConsumer,
    TopicPartition,
)

from kafkaform.sandbox import Sandbox
from kafkaform_kafka.session import KafkaSession

from ...kit.kafka.clusters import own_sandbox
from ...kit.kafka.jar_messages import define_messages
from ...kit.kafka.scripted_wire import fill
from ...kit.kafka.sessions import connect
from ...kit.kafka.share_members import (
    RENEW,
    ShareMember,
    define_share_messages,
    open_consumer,
    poll_records,
)
from ...kit.kafka.streams_members import StreamsMember
from ...kit.kafka.topic_clients import Clients, wait_for
from ...kit.kafka.versions import get_choice
from .broker_configs import GROUP, alter

LIMITS = (
    ("group.consumer.min.heartbeat.interval.ms", "500"),
    ("group.consumer.min.session.timeout.ms", "1000"),
    ("group.share.min.record.lock.duration.ms", "1000"),
)
"""A broker that allows shorter times than Kafka's own settings."""
UNKNOWN_MEMBER_ID = 25
EARLIEST = {"share.auto.offset.reset": "earliest"}


@pytest.fixture(scope="module")
def box(own_brokers: None) -> Iterator[Sandbox]:
    """One broker for this file alone."""
    if get_choice().lacks("4.2", zookeeper=False):
        pytest.skip("share groups are complete since Kafka 4.2")
    with own_sandbox(f"tests-groups-{os.getpid()}", config=LIMITS) as box:
        yield box


@pytest.fixture(scope="module")
def clients(box: Sandbox) -> Clients:
    """Clients of `admin`, with a coordinator of groups: brokers make the topic of groups when a
    client looks for that, and these tests ask the broker at once."""
    clients = Clients(box.bootstrap, box.admin_password)
    assert clients.create("any") == ""
    consumer = Consumer({**clients.config, "group.id": "any"})

    def has_coordinator() -> bool:
        try:
            consumer.committed([TopicPartition("any", 0)], 10)
        except KafkaException:
            return False
        return True

    wait_for(has_coordinator)
    consumer.close()
    return clients


@pytest.fixture(scope="module")
def session(box: Sandbox) -> Iterator[KafkaSession]:
    session = connect(box)
    yield session
    session.close()


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A name of this test's own."""
    return f"{request.node.name.removeprefix('test_')[:200]}"


def set_configs(session: KafkaSession, groups: Mapping[str, Mapping[str, str]]) -> None:
    """Group -> its configs."""
    for group, config in groups.items():
        assert alter(session, GROUP, group, config) == ""


def read_values(consumer: ShareConsumer, count: int) -> list[str]:
    """The first so many values, which are accepted."""
    values: list[str] = []

    def has_all() -> bool:
        for message in poll_records(consumer):
            values.append(message.value().decode())
            consumer.acknowledge(message)
        return len(values) >= count

    wait_for(has_all)
    return values


def test_a_share_group_begins_where_its_config_says(
    session: KafkaSession, clients: Clients, topic: str
) -> None:
    """`group-start-changed`: with `earliest` at the first record, without at the next one. A group
    that has begun stays where it is."""
    early, late = f"{topic}-early", f"{topic}-late"
    set_configs(session, {early: EARLIEST})
    assert clients.create(topic) == ""
    assert clients.write(topic, "first", "a") == ""
    with (
        open_consumer(clients, early, topic) as first,
        open_consumer(clients, late, topic) as second,
    ):
        assert read_values(first, 1) == ["first"]
        written: list[str] = []

        def is_read() -> bool:
            # A share partition begins when a member first asks for its records.
            written.append(f"later {len(written)}")
            assert clients.write(topic, written[-1], "a") == ""
            messages = poll_records(second)
            for message in messages:
                assert message.value().decode() in written
                second.acknowledge(message)
            return bool(messages)

        wait_for(is_read)
        set_configs(session, {late: EARLIEST})
        assert clients.write(topic, "last", "a") == ""
        assert "first" not in read_values(second, 1)


def count_deliveries(consumer: ShareConsumer, value: str) -> int:
    """How often a record comes that is released each time, while all others are accepted."""
    seen: list[str] = []

    def has_ended() -> bool:
        messages = poll_records(consumer)
        for message in messages:
            seen.append(message.value().decode())
            fails = seen[-1] == value
            kind = AcknowledgeType.RELEASE if fails else AcknowledgeType.ACCEPT
            consumer.acknowledge(message, kind)
        return not messages and value in seen

    wait_for(has_ended)
    return seen.count(value)


def test_a_record_that_fails_is_skipped_after_its_last_delivery(
    session: KafkaSession, clients: Clients, topic: str
) -> None:
    """`group-deliveries-cut`: twice instead of five times."""
    few, usual = f"{topic}-few", f"{topic}-usual"
    set_configs(session, {few: {**EARLIEST, "share.delivery.count.limit": "2"}, usual: EARLIEST})
    assert clients.create(topic) == ""
    for value in ("bad", "good"):
        assert clients.write(topic, value, "a") == ""
    for group, count in ((few, 2), (usual, 5)):
        with open_consumer(clients, group, topic) as consumer:
            assert count_deliveries(consumer, "bad") == count


def test_a_share_group_gets_aborted_records_unless_it_reads_committed_ones(
    session: KafkaSession, clients: Clients, topic: str
) -> None:
    """`group-isolation-changed`."""
    all_records, committed = f"{topic}-all", f"{topic}-committed"
    isolation = {"share.isolation.level": "read_committed"}
    set_configs(session, {all_records: EARLIEST, committed: {**EARLIEST, **isolation}})
    assert clients.create(topic) == ""
    producer = Producer({**clients.config, "transactional.id": topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, "aborted")
    assert producer.flush(30) == 0
    producer.abort_transaction(30)
    assert clients.write(topic, "plain", "a") == ""
    with open_consumer(clients, all_records, topic) as consumer:
        assert read_values(consumer, 2) == ["aborted", "plain"]
    with open_consumer(clients, committed, topic) as consumer:
        assert read_values(consumer, 1) == ["plain"]


def test_a_record_whose_lock_ends_goes_to_another_member(
    session: KafkaSession, clients: Clients, topic: str
) -> None:
    """`group-lock-shortened`: while the other group, with 30 s, still keeps the record for the
    member that has it."""
    short, usual = f"{topic}-short", f"{topic}-usual"
    set_configs(
        session, {short: {**EARLIEST, "share.record.lock.duration.ms": "1000"}, usual: EARLIEST}
    )
    assert clients.create(topic) == ""
    assert clients.write(topic, "1", "a") == ""
    slow = {group: open_consumer(clients, group, topic) for group in (usual, short)}
    quick = {group: open_consumer(clients, group, topic) for group in (usual, short)}
    try:
        for consumer in slow.values():
            wait_for(lambda consumer=consumer: bool(poll_records(consumer)))  # type: ignore[misc]
        wait_for(lambda: bool(poll_records(quick[short])))
        assert poll_records(quick[usual]) == []
    finally:
        for consumer in (*slow.values(), *quick.values()):
            consumer.close()


@pytest.fixture
def kinds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, Any]:
    """The requests of share groups."""
    return define_share_messages(tmp_path, monkeypatch)


def test_a_group_gets_no_further_records_while_so_many_are_locked(
    session: KafkaSession, clients: Clients, topic: str, kinds: Mapping[str, Any]
) -> None:
    """`group-locks-cut`: 100 of 300 records, and all with Kafka's own limit."""
    few, usual = f"{topic}-few", f"{topic}-usual"
    locks = {"share.partition.max.record.locks": "100"}
    set_configs(session, {few: {**EARLIEST, **locks}, usual: EARLIEST})
    assert clients.create(topic) == ""
    producer = Producer({**clients.config, "batch.num.messages": 1})
    for number in range(300):
        producer.produce(topic, str(number))
    assert producer.flush(30) == 0
    assert ShareMember(session, kinds, few, topic).fetch_all() == 100
    assert ShareMember(session, kinds, usual, topic).fetch_all() == 300


def test_a_lock_is_not_renewed_where_that_is_disabled(
    session: KafkaSession, clients: Clients, topic: str, kinds: Mapping[str, Any]
) -> None:
    """`group-renewal-disabled`: refused, and accepted in another group."""
    fixed, usual = f"{topic}-fixed", f"{topic}-usual"
    renewal = {"share.renew.acknowledge.enable": "false"}
    set_configs(session, {fixed: {**EARLIEST, **renewal}, usual: EARLIEST})
    assert clients.create(topic) == ""
    assert clients.write(topic, "1", "a") == ""
    for group, accepted in ((fixed, False), (usual, True)):
        member = ShareMember(session, kinds, group, topic)
        wait_for(lambda member=member: member.fetch() == [(0, 0)])  # type: ignore[misc]
        assert (member.acknowledge((0, 0), RENEW) == 0) is accepted


def test_a_silent_member_loses_its_partitions_after_the_session_timeout(
    session: KafkaSession,
    clients: Clients,
    topic: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`group-session-shortened`: the coordinator does not know it any more, and the other member
    gets all partitions. In a group with Kafka's own 45 s it is still a member then."""
    kind = define_messages("ConsumerGroupHeartbeat", tmp_path, monkeypatch)
    short, usual = f"{topic}-short", f"{topic}-usual"
    times = {"consumer.heartbeat.interval.ms": "500", "consumer.session.timeout.ms": "2000"}
    set_configs(session, {short: times})
    assert clients.create(topic, partitions=2) == ""
    member = str(uuid4())
    epochs = dict.fromkeys((usual, short), 0)

    def beat(group: str) -> int:
        """The code of the answer to a heartbeat, the first of which joins."""
        body = {
            "group_id": group,
            "member_id": member,
            "member_epoch": epochs[group],
            "rebalance_timeout_ms": 60_000,
            "subscribed_topic_names": [topic],
            "topic_partitions": [],
        }
        answer = session.context.wire.send(fill(kind, body), 30.0, "1")
        epochs[group] = answer.member_epoch or epochs[group]
        return int(answer.error_code)

    for group in (usual, short):
        # The first group of a cluster waits until its coordinator is ready.
        wait_for(lambda group=group: beat(group) == 0)  # type: ignore[misc]
    consumer = Consumer({**clients.config, "group.protocol": "consumer", "group.id": short})
    consumer.subscribe([topic])

    def has_both() -> bool:
        consumer.poll(0.2)
        return len(consumer.assignment()) == 2

    try:
        wait_for(has_both)
        assert (beat(short), beat(usual)) == (UNKNOWN_MEMBER_ID, 0)
    finally:
        consumer.close()


def test_a_streams_group_has_as_many_standbys_as_its_config_says(
    session: KafkaSession,
    clients: Clients,
    topic: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`group-standbys-removed`: the task of one process has a standby on the other, or none."""
    kind = define_messages("StreamsGroupHeartbeat", tmp_path, monkeypatch)
    some, none = f"{topic}-some", f"{topic}-none"
    set_configs(session, {some: {"streams.num.standby.replicas": "1"}})
    assert clients.create(topic) == ""
    for group in (some, none):
        assert clients.create(f"{group}-changelog") == ""
    members = {
        group: [StreamsMember(session, kind, group, topic, f"{group}-changelog") for _ in range(2)]
        for group in (some, none)
    }

    def count(group: str) -> tuple[int, int]:
        """The active and the standby tasks of the group."""
        for member in members[group]:
            member.beat()
        return (
            sum(len(member.tasks["active_tasks"]) for member in members[group]),
            sum(len(member.tasks["standby_tasks"]) for member in members[group]),
        )

    wait_for(lambda: count(some) == (1, 1) and count(none) == (1, 0))
