"""`describe transactions` shows what Kafka's own tool shows, and finds hanging transactions."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from kafkaform_kafka.connection.settings import make_librdkafka_config

from ...conftest import Broker
from ...kit.commands.bare import Bare
from ...kit.kafka.java_tools import TRANSACTIONS, read_tables, run_tool
from ...kit.kafka.logins import Login
from ...kit.kafka.raw_batches import write_batch
from ...kit.kafka.sessions import connect, eventually, grant, login

VERIFICATION = "transaction.partition.verification.enable"


@pytest.fixture
def broker(exclusive_broker: Broker) -> Broker:
    """One test at a time changes how the broker checks transactions."""
    return exclusive_broker


@pytest.fixture
def topic(bare: Bare) -> str:
    """A topic with two partitions."""
    bare.folder.create("orders", partitions=2)
    return f"{bare.folder.prefix}orders"


@contextmanager
def transaction(bare: Bare, topic: str, name: str) -> Iterator[Producer]:
    """An open transaction that has written to partition 1."""
    config = make_librdkafka_config(login(bare.folder.broker))
    producer = Producer({**config, "transactional.id": name, "transaction.timeout.ms": 600_000})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(topic, b"x", partition=1)
    assert producer.flush(60) == 0
    yield producer
    producer.abort_transaction(60)


def test_a_transaction_is_as_kafkas_own_tool_shows_it(bare: Bare, topic: str) -> None:
    """State, producer, epoch, timeout, start and partitions, while it is open and afterwards."""
    name = f"{topic}-tx"
    with transaction(bare, topic, name):
        found = bare.document("transactions", name)["transactions"][0]
        told = run_tool(bare.config, TRANSACTIONS, "describe", "--transactional-id", name)
        (theirs,) = read_tables(told)
        listed = read_tables(run_tool(bare.config, TRANSACTIONS, "list"))
        (row,) = (row for row in listed if row["TransactionalId"] == name)
        text = bare.done("describe", "transactions", "--name", name).out
    assert str(found["coordinator"]) == theirs["CoordinatorId"] == row["Coordinator"]
    assert str(found["producer_id"]) == theirs["ProducerId"] == row["ProducerId"]
    assert str(found["producer_epoch"]) == theirs["ProducerEpoch"]
    assert found["state"] == theirs["TransactionState"] == row["TransactionState"] == "Ongoing"
    assert str(found["timeout_ms"]) == theirs["TransactionTimeoutMs"]
    assert found["partitions"] == [{"topic": topic, "partitions": [1]}]
    assert theirs["TopicPartitions"] == f"{topic}-1"
    seconds = int(theirs["CurrentTransactionStartTimeMs"]) // 1000
    assert found["started"].startswith(time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)))
    assert 0 <= found["duration_ms"] <= int(theirs["TransactionDurationMs"])
    assert name in text and f"{topic} 1" in text
    ended = eventually(
        lambda: bare.document("transactions", name)["transactions"][0],
        lambda row: row["state"] == "CompleteAbort",
    )
    assert (ended["duration_ms"], ended["partitions"]) == (None, [])


def test_filters(bare: Bare, topic: str) -> None:
    """By name, state, topic and age."""
    name = f"{topic}-tx"
    with transaction(bare, topic, name):
        ask = ("transactions", "--name", f"{topic}*")
        for more, there in (
            ((), True),
            (("--state", "ongoing"), True),
            (("--state", "Empty"), False),
            (("--topic", topic), True),
            (("--topic", "nobody"), False),
            (("--older-than", "60"), False),
        ):
            found = bare.document(*ask, *more)["transactions"]
            assert [row["transactional_id"] for row in found] == [name] * there, more


def test_a_name_that_nobody_has_used_and_one_that_is_hidden(
    bare: Bare, topic: str, stranger: Login
) -> None:
    """The one does not exist, and for the other a right is missing."""
    name = f"{topic}-tx"
    with transaction(bare, topic, name):
        nope = bare.fails(1, "describe", "transactions", name, f"{name}-nope")
        assert "there is no such transactional id" in nope and "Ongoing" in nope
        hidden = bare.fails(1, "describe", "transactions", name, user=stranger)
        assert "grant Describe on TransactionalId" in hidden
        grant(bare.folder.broker, stranger, "TransactionalId", name, "DESCRIBE")
        seen = eventually(
            lambda: bare.run("describe", "transactions", name, user=stranger),
            lambda said: said.code == 0,
        )
        # Its topic is hidden still, and the answer says that there can be such topics.
        assert f"{topic} 1" not in seen.out and "topics that this principal may not" in seen.text


@contextmanager
def unverified(bare: Bare) -> Iterator[None]:
    """The broker takes writes of transactions that no coordinator knows, as before KIP-890."""

    def alter(operation: AlterConfigOpType) -> None:
        entry = ConfigEntry(VERIFICATION, "false", incremental_operation=operation)
        resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
        for future in bare.folder.admin.incremental_alter_configs([resource]).values():
            future.result(60)

    alter(AlterConfigOpType.SET)
    yield
    alter(AlterConfigOpType.DELETE)


def write_hanging(bare: Bare, topic: str, producer: int) -> int:
    """The error code of writing to partition 0 for a producer that has no transaction."""
    session = connect(bare.folder.broker)
    code, _ = write_batch(session, topic, producer, "nobody")
    session.close()
    return code


def test_a_hanging_transaction_is_found_as_kafkas_own_tool_finds_it(bare: Bare, topic: str) -> None:
    """It is told from one that its coordinator will end; and it is gone after Kafka's tool has
    ended it."""
    producer = 90_000_000 + int(time.time()) % 1_000_000
    with unverified(bare), transaction(bare, topic, f"{topic}-tx"):
        eventually(lambda: write_hanging(bare, topic, producer), lambda code: code == 0)
        ask = ("transactions", "--hanging", "--topic", topic, "--older-than", "0")
        found = eventually(lambda: bare.document(*ask)["hanging"], bool)
        limit = ("--topic", topic, "--max-transaction-timeout", "0")
        told = list(read_tables(run_tool(bare.config, TRANSACTIONS, "find-hanging", *limit)))
        text = bare.done("describe", *ask).out
        (row,) = found
        (theirs,) = told
        assert (row["topic"], str(row["partition"])) == (theirs["Topic"], theirs["Partition"])
        assert str(row["producer_id"]) == theirs["ProducerId"] == str(producer)
        assert str(row["start_offset"]) == theirs["StartOffset"]
        assert str(row["producer_epoch"]) == theirs["ProducerEpoch"]
        assert (row["reason"], row["transactional_id"]) == ("no_transaction", None)
        assert "no coordinator knows its producer" in text
        assert "2 partitions were searched." in text
        place = ("--topic", topic, "--partition", "0", "--start-offset", theirs["StartOffset"])
        run_tool(bare.config, TRANSACTIONS, "abort", *place)
        eventually(lambda: bare.document(*ask)["hanging"], lambda rows: rows == [])


def test_a_partition_that_we_may_not_read_is_not_searched(
    bare: Bare, topic: str, stranger: Login
) -> None:
    """The search is incomplete, and says which right is missing."""
    grant(bare.folder.broker, stranger, "Topic", topic, "DESCRIBE")
    ask = ("describe", "transactions", "--hanging", "--topic", topic)
    said = eventually(
        lambda: bare.run(*ask, user=stranger), lambda said: "not searched" in said.text
    )
    assert said.code == 1
    assert "2 partitions were not searched" in said.text
    assert f"grant Read on Topic {topic}" in said.text
