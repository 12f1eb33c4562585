"""`alter group` sets the offsets of real groups: members go on there, Kafka's own tool plans the
same, and a group with members is left alone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, ShareConsumer, TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from kafkaform_kafka.connection.settings import make_librdkafka_config
from kafkaform_kafka.wire import groups as wire

from ...kit.commands.bare import Bare
from ...kit.kafka.java_tools import CONSUMER_GROUPS, read_tables, run_tool
from ...kit.kafka.sessions import connect, eventually, login
from ...kit.kafka.share_members import poll_records
from ...kit.kafka.versions import get_choice

APPROVED = "--auto-approve"
RECORDS, MINUTE = 40, 60_000
UNKNOWN_MEMBER_ID, NON_EMPTY_GROUP, SUBSCRIBED, NOT_FOUND = 25, 68, 86, 69
BLOCKED = 8


@pytest.fixture
def topic(bare: Bare) -> str:
    """A topic with two partitions: 20 records in each, one a minute, the newest a minute old."""
    bare.folder.create("orders", partitions=2)
    name = f"{bare.folder.prefix}orders"
    write(bare, name, RECORDS, int(time.time() * 1000) - RECORDS // 2 * MINUTE)
    return name


def write(bare: Bare, topic: str, count: int, first: int | None = None) -> None:
    """Write so many records, alternating between the partitions. first: the time of the first pair,
    which the others follow a minute apart; None for now."""
    producer = Producer(make_librdkafka_config(login(bare.folder.broker)))
    for number in range(count):
        moment = 0 if first is None else first + number // 2 * MINUTE
        producer.produce(topic, f"{number}", partition=number % 2, timestamp=moment)
    assert producer.flush(10) == 0


def open_consumer(bare: Bare, group: str, **more: Any) -> Consumer:
    config = make_librdkafka_config(login(bare.folder.broker))
    own = {"group.id": group, "auto.offset.reset": "earliest", "client.id": "reader-1"}
    return Consumer({**config, **own, **more})


def read(bare: Bare, topic: str, group: str, count: int, **more: Any) -> list[tuple[int, int]]:
    """Join the group, read until so many records came, commit and leave: partition and offset of
    each record."""
    consumer = open_consumer(bare, group, **more)
    consumer.subscribe([topic])
    places: list[tuple[int, int]] = []

    def has_all() -> bool:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            places.append((message.partition(), message.offset()))
        return len(places) >= count

    eventually(has_all, bool)
    consumer.commit(asynchronous=False)
    consumer.close()
    return sorted(places)


def list_offsets(bare: Bare, group: str) -> dict[int, int]:
    """Partition -> offset of the group, for a group without members."""

    def ask() -> dict[str, Any]:
        row: dict[str, Any] = bare.document("groups", group)["groups"][0]
        return row

    row = eventually(ask, lambda row: row["state"] == "Empty")
    name = "start_offset" if row["type"] == "share" else "committed_offset"
    return {item["partition"]: item[name] for item in row["offsets"] if item[name] is not None}


def last_run(bare: Bare) -> str:
    return str(bare.records("run_begin")[-1]["run"])


def reset(bare: Bare, group: str, *words: str) -> str:
    return bare.done("alter", "group", group, "--reset-offsets", *words, APPROVED).text


@pytest.fixture
def wires(bare: Bare) -> Iterator[Any]:
    """A connection that sends what kafkaform would refuse to send, and the broker's id."""
    session = connect(bare.folder.broker)
    yield session.context.wire, session.live_nodes()[0]
    session.close()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_records_are_read_again_and_an_undo_sets_the_offsets_back(
    bare: Bare, topic: str, protocol: str
) -> None:
    """The plan tells number and time; a member then gets exactly these records."""
    if protocol == "consumer" and get_choice().lacks("4.0", zookeeper=False):
        pytest.skip("the consumer protocol came with Kafka 4.0")
    group, more = f"{topic}-{protocol}", {"group.protocol": protocol}
    read(bare, topic, group, RECORDS, **more)
    assert list_offsets(bare, group) == {0: 20, 1: 20}
    text = reset(bare, group, "--by-duration", "10m50s", "--all-topics")
    assert "20 records in 2 partitions are read again" in text
    assert "0 records behind now, 20 afterwards; the first record after it is of" in text
    assert list_offsets(bare, group) == {0: 10, 1: 10}
    undone = bare.done("undo", last_run(bare), APPROVED).text
    assert "20 records in 2 partitions are skipped" in undone
    assert list_offsets(bare, group) == {0: 20, 1: 20}
    reset(bare, group, "--shift-by", "-3", "--topic", f"{topic}:1")
    assert read(bare, topic, group, 3, **more) == [(1, 17), (1, 18), (1, 19)]
    assert list_offsets(bare, group) == {0: 20, 1: 20}


def test_skipped_records_are_never_read(bare: Bare, topic: str) -> None:
    """A member goes on behind them."""
    group = f"{topic}-skips"
    reset(bare, group, "--to-earliest", "--topic", topic)
    text = reset(bare, group, "--to-latest", "--all-topics")
    assert "40 records in 2 partitions are skipped: the group never reads them" in text
    write(bare, topic, 2)
    assert read(bare, topic, group, 2) == [(0, 20), (1, 20)]


def test_a_reset_creates_a_group_that_begins_there(bare: Bare, topic: str) -> None:
    """Without a member; the plan says that the name is new."""
    group = f"{topic}-new"
    text = reset(bare, group, "--to-offset", "15", "--topic", topic)
    assert f"there is no group {group}, so it is created" in text
    assert len(read(bare, topic, group, 10)) == 10
    missing = bare.fails(1, "alter", "group", f"{group}2", "--delete", APPROVED)
    assert f"there is no group {group}2" in missing


def test_a_group_that_forgets_its_offsets_starts_at_the_end(bare: Bare, topic: str) -> None:
    """Unless its members say otherwise; a deleted group does as well."""
    group = f"{topic}-forgets"
    for words in (("--delete-offsets", "--topic", topic), ("--delete",)):
        reset(bare, group, "--to-earliest", "--topic", topic)
        text = bare.done("alter", "group", group, *words, APPROVED).text
        assert "are deleted, so members begin" in text
        consumer = open_consumer(bare, group, **{"auto.offset.reset": "latest"})
        end = consumer.get_watermark_offsets(TopicPartition(topic, 0), 30)[1]
        consumer.subscribe([topic])
        first = eventually(partial(poll_new, bare, topic, consumer), lambda offset: offset >= 0)
        assert first >= end
        consumer.close()
        list_offsets(bare, group)


def poll_new(bare: Bare, topic: str, consumer: Consumer) -> int:
    """Write a record to each partition; the offset of one that the consumer gets, -1 for none."""
    write(bare, topic, 2)
    message = consumer.poll(1)
    return -1 if message is None or message.error() else message.offset()


def test_a_deleted_group_comes_back_with_its_offsets(bare: Bare, topic: str) -> None:
    """An undo creates it again."""
    group = f"{topic}-back"
    reset(bare, group, "--to-offset", "7", "--topic", topic)
    bare.done("alter", "group", group, "--delete", APPROVED)
    assert bare.run("describe", "groups", group).code == 1
    bare.done("undo", last_run(bare), APPROVED)
    assert list_offsets(bare, group) == {0: 7, 1: 7}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_with_members_is_left_alone(
    bare: Bare, topic: str, wires: Any, protocol: str
) -> None:
    """The plan names the members, and the coordinator refuses what is sent all the same."""
    if protocol == "consumer" and get_choice().lacks("4.0", zookeeper=False):
        pytest.skip("the consumer protocol came with Kafka 4.0")
    group = f"{topic}-{protocol}"
    consumer = open_consumer(bare, group, **{"group.protocol": protocol})
    consumer.subscribe([topic])
    eventually(lambda: (consumer.poll(0.2), consumer.assignment())[1], lambda a: len(a) == 2)
    consumer.commit(asynchronous=False)
    for words in (
        ("--reset-offsets", "--to-earliest", "--topic", topic),
        ("--delete-offsets", "--topic", topic),
        ("--delete",),
    ):
        text = bare.fails(BLOCKED, "alter", "group", group, *words, APPROVED)
        assert "has 1 member: reader-1 at" in text and "[group-active]" in text
    connection, node = wires
    place = (topic, 0)
    committed = wire.commit_offsets(connection, group, {place: 1}, node, 10)
    assert committed[place].code == UNKNOWN_MEMBER_ID
    deleted = wire.delete_offsets(connection, group, [place], node, 10)
    assert deleted[place].code in (SUBSCRIBED, NON_EMPTY_GROUP)
    assert wire.delete_group(connection, group, node, 10).code == NON_EMPTY_GROUP
    consumer.close()


def test_kafkas_own_tool_plans_the_same(bare: Bare, topic: str) -> None:
    """For each way to say where to."""
    group = f"{topic}-tool"
    reset(bare, group, "--to-offset", "12", "--topic", topic)
    moment = datetime.now(UTC).replace(microsecond=0)
    moment = datetime.fromtimestamp(moment.timestamp() - 8 * 60 - 30, UTC)
    ways = (
        ("--to-earliest",),
        ("--to-latest",),
        ("--to-current",),
        ("--to-offset", "99"),
        ("--shift-by", "-5"),
        ("--shift-by", "500"),
        ("--to-datetime", moment.strftime("%Y-%m-%dT%H:%M:%S.000")),
    )
    tool = ("--reset-offsets", "--group", group, "--topic", topic, "--dry-run")
    for way in ways:
        theirs = {
            int(row["PARTITION"]): int(row["NEW-OFFSET"])
            for row in read_tables(run_tool(bare.config, CONSUMER_GROUPS, *tool, *way))
        }
        reset(bare, group, *way, "--topic", topic)
        assert list_offsets(bare, group) == theirs, way
        reset(bare, group, "--to-offset", "12", "--topic", topic)


def test_offsets_of_a_share_group(bare: Bare, topic: str, wires: Any) -> None:
    """They are set by partition and deleted by topic, while the group has no members; a deleted
    group comes back as a share group."""
    if get_choice().lacks("4.2", zookeeper=False):
        pytest.skip("share groups are complete since Kafka 4.2")
    group = f"{topic}-share"
    entry = ConfigEntry(
        "share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET
    )
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=[entry])
    for future in bare.folder.admin.incremental_alter_configs([resource]).values():
        future.result(60)
    share_all(bare, topic, group)
    connection, node = wires
    # A broker keeps what is done with beside the start offset, which follows later.
    before = list_offsets(bare, group)
    reset(bare, group, "--to-offset", "15", "--topic", topic)
    assert list_offsets(bare, group) == {0: 15, 1: 15}
    bare.done("undo", last_run(bare), APPROVED)
    assert list_offsets(bare, group) == before
    reset(bare, group, "--to-offset", "18", "--topic", topic)
    assert sorted(share_all(bare, topic, group, 4)) == [18, 18, 19, 19]
    refused = bare.fails(1, "alter", "group", group, "--delete-offsets", f"--topic={topic}:0")
    assert "whose offsets are deleted by topic" in refused
    bare.done("alter", "group", group, "--delete-offsets", "--topic", topic, APPROVED)
    assert list_offsets(bare, group) == {}
    reset(bare, group, "--to-latest", "--topic", topic)
    bare.done("alter", "group", group, "--delete", APPROVED)
    assert bare.run("describe", "groups", group).code == 1
    answers = wire.delete_share_offsets(connection, group, [topic], node, 10)
    assert answers[topic].code == NOT_FOUND
    bare.done("undo", last_run(bare), APPROVED)
    assert bare.document("groups", group)["groups"][0]["type"] == "share"
    assert list_offsets(bare, group) == {0: 20, 1: 20}


def share_all(bare: Bare, topic: str, group: str, count: int = RECORDS) -> list[int]:
    """Join a share group, accept so many records, and leave."""
    offsets: list[int] = []
    config = make_librdkafka_config(login(bare.folder.broker))
    explicit = {"share.acknowledgement.mode": "explicit"}
    with ShareConsumer({**config, "group.id": group, **explicit}) as consumer:
        consumer.subscribe([topic])

        def has_all() -> bool:
            for message in poll_records(consumer):
                offsets.append(message.offset())
                consumer.acknowledge(message)
            return len(offsets) >= count

        eventually(has_all, bool, patience=60)
        consumer.commit_sync()
    return offsets
