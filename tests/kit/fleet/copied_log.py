"""The copy of an audit log in a topic of a real broker."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql.streaming.datasource import ReadAllAvailable

from kafkaform.core.value import FrozenMap, SecretRef
from kafkaform_kafka.connection.settings import make_librdkafka_config
from kafkaform_kafka.publishing import NumberedRecord, publish

from ..kafka.sessions import eventually, login

SECONDS = 30.0
SETTINGS = "KAFKAFORM_TOPIC_SETTINGS"


class Copy:
    """A topic with two partitions."""

    def __init__(self, broker: Any) -> None:
        self.broker, self.name = broker, f"copy-{uuid4().hex[:10]}"
        self.native = make_librdkafka_config(login(broker, "admin"))
        self.admin = AdminClient({**self.native, "log_level": 0})
        for future in self.admin.create_topics([NewTopic(self.name, 2, 1)]).values():
            future.result(SECONDS)
        eventually(self.led, bool)

    def led(self) -> bool:
        """Whether both partitions can be read and written."""
        reader = Consumer({**self.native, "group.id": "look", "log_level": 0})
        try:
            for number in (0, 1):
                reader.get_watermark_offsets(TopicPartition(self.name, number), timeout=SECONDS)
        except KafkaException:
            return False
        finally:
            reader.close()
        return True

    def publish(self, lineage: str, lines: list[bytes]) -> None:
        """As `audit publish --to-topic` does."""
        password = SecretRef("env", "PASSWORD")
        config = FrozenMap(
            bootstrap_servers=(self.broker.bootstrap,),
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="PLAIN",
            sasl_username="admin",
            sasl_password=password,
        )
        secrets: Any = {str(password): login(self.broker, "admin").password}
        entries = (NumberedRecord(number, line) for number, line in enumerate(lines, 1))
        publish("kafka", config, secrets, self.name, lineage, lambda before: entries)

    def disturb(self) -> None:
        """Something else writes, too: what it takes back is not there, and its marks are no
        records. Returns when the marks are there, which come after the answer."""
        from kafkaform.fleet.landed.topic_source import TopicReader

        reader = TopicReader(self.name)
        before = reader.latestOffset({}, ReadAllAvailable())
        writer = Producer({**self.native, "transactional.id": self.name, "log_level": 0})
        writer.init_transactions(SECONDS)
        for value, keep in ((b"not ours", True), (b"taken back", False)):
            writer.begin_transaction()
            writer.produce(self.name, value, partition=0)
            writer.flush(SECONDS)
            (writer.commit_transaction if keep else writer.abort_transaction)(SECONDS)
        eventually(
            lambda: reader.latestOffset({}, ReadAllAvailable())["0"] - before["0"],
            lambda records: records == 4,
        )

    def lose(self) -> None:
        """All records are deleted, as a topic's retention does it."""
        ends = [TopicPartition(self.name, number, -1) for number in (0, 1)]
        for future in self.admin.delete_records(ends).values():
            future.result(SECONDS)

    def remove(self) -> None:
        for future in self.admin.delete_topics([self.name]).values():
            future.result(SECONDS)
