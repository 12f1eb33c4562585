"""Producers and consumers as applications have them, and an admin client that checks nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from confluent_kafka import (
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)
from kafka import KafkaAdminClient
from kafka import TopicPartition as PlainPartition
from msgspec import Struct

from .sessions import eventually

PATIENCE = 60.0
SECONDS = 15.0


class Record(Struct, frozen=True):
    """What a consumer gets."""

    partition: int
    key: str | None
    value: str | None
    time: int
    """Milliseconds since the epoch."""


class Clients:
    """The clients of one login of a sandbox. servers: of the brokers; password: of `admin`."""

    def __init__(self, servers: str, password: str) -> None:
        self.config: dict[str, Any] = {
            "bootstrap.servers": servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "admin",
            "sasl.password": password,
            "log_level": 0,
        }
        self.admin = AdminClient(self.config)

    def create(
        self,
        name: str,
        partitions: int = 1,
        replicas: int = 1,
        assignment: list[list[int]] | None = None,
        **config: object,
    ) -> str:
        """Create a topic, and wait until a broker shows it; the refusal's name, or an empty text.
        config: with `_` for `.`."""
        places: dict[str, Any] = (
            {"num_partitions": partitions, "replication_factor": replicas}
            if assignment is None
            else {"num_partitions": len(assignment), "replica_assignment": assignment}
        )
        topic = NewTopic(name, config=_spell(config), **places)
        refusal = _settle(self.admin.create_topics([topic])[name])
        if not refusal:
            # The controller acknowledges a topic before the brokers have heard of it.
            eventually(lambda: self.admin.list_topics(timeout=SECONDS).topics, lambda t: name in t)
        return refusal

    def grow(self, name: str, partitions: int) -> str:
        """Set the number of partitions; the refusal's name, or an empty text."""
        return _settle(self.admin.create_partitions([NewPartitions(name, partitions)])[name])

    def delete(self, name: str) -> str:
        """Delete a topic; the refusal's name, or an empty text."""
        return _settle(self.admin.delete_topics([name])[name])

    def set(self, name: str, **config: object) -> str:
        """Set overrides of a topic; the refusal's name, or an empty text. config: with `_` for
        `.`."""
        entries = [
            ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
            for key, value in _spell(config).items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=entries)
        return _settle(self.admin.incremental_alter_configs([resource])[resource])

    def find_leader(self, name: str) -> int:
        """The broker that leads the first partition; -1 if none does, or nobody knows it."""
        first = self.admin.list_topics(name, SECONDS).topics[name].partitions.get(0)
        return -1 if first is None else int(first.leader)

    def move(self, name: str, rows: list[list[int]]) -> None:
        """Start a move of the replicas of each partition."""
        admin = KafkaAdminClient(
            bootstrap_servers=self.config["bootstrap.servers"],
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="PLAIN",
            sasl_plain_username="admin",
            sasl_plain_password=self.config["sasl.password"],
        )
        try:
            admin.alter_partition_reassignments(
                {PlainPartition(name, number): row for number, row in enumerate(rows)}
            )
        finally:
            admin.close()

    def write(
        self,
        topic: str,
        value: str | bytes | None,
        key: str | None = None,
        time_ms: int | None = None,
        **config: object,
    ) -> str:
        """Write one record once with acks=all; the refusal's name, or an empty text. config: of the
        producer, with `_` for `.`."""
        faults: list[str] = []
        producer = Producer({**self.config, "retries": 0, "acks": "all", **_spell(config)})
        more = {} if time_ms is None else {"timestamp": time_ms}
        producer.produce(
            topic,
            value,
            key=key,
            on_delivery=lambda error, _: faults.append(error.name() if error else ""),
            **more,
        )
        producer.flush(SECONDS)
        return faults[0] if faults else "NO_ANSWER"

    def read(self, topic: str, partitions: Sequence[int] = (0,)) -> list[Record]:
        """All records that are there now."""
        config = {
            **self.config,
            "group.id": "none",
            "enable.auto.commit": False,
            # The first records can be deleted between the question and the read.
            "auto.offset.reset": "earliest",
            # The last offsets can hold no record, so the end of the partition ends the loop.
            "enable.partition.eof": True,
        }
        consumer = Consumer(config)
        records: list[Record] = []
        for number in partitions:
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, number), SECONDS)
            if low == high:
                continue
            consumer.assign([TopicPartition(topic, number, low)])
            deadline = time.monotonic() + SECONDS
            while True:
                assert time.monotonic() < deadline, f"{topic}: nothing up to {high}"
                message = consumer.poll(0.5)
                if message is None:
                    continue
                if message.error():
                    if message.error().code() == KafkaError._PARTITION_EOF:
                        break
                    continue
                kind, moment = message.timestamp()
                assert kind != TIMESTAMP_NOT_AVAILABLE
                key, value = message.key(), message.value()
                records.append(
                    Record(
                        number,
                        None if key is None else key.decode(),
                        None if value is None else value.decode(),
                        moment,
                    )
                )
        consumer.close()
        return records

    def values(self, topic: str) -> list[str | None]:
        """The values of all records of the first partition."""
        return [record.value for record in self.read(topic)]


def wait_for(question: Callable[[], bool]) -> None:
    """Ask until the answer is yes."""
    deadline = time.monotonic() + PATIENCE
    while not question():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.2)


def _spell(config: Mapping[str, object]) -> dict[str, str]:
    return {key.replace("_", "."): str(value) for key, value in config.items()}


def _settle(future: Any) -> str:
    try:
        future.result(SECONDS)
    except KafkaException as error:
        return str(error.args[0].name())
    return ""
