"""What happens on the demo's clusters without kafkaform: clients at work, and edits by hand."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

DEADLINE_SECONDS = 30.0
RECORD_BYTES = 200


@dataclass(frozen=True, slots=True)
class Cluster:
    """bootstrap: HOST:PORT; password: of the user admin."""

    name: str
    bootstrap: str
    password: str

    def properties(self) -> dict[str, str | int]:
        return {
            "bootstrap.servers": self.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "admin",
            "sasl.password": self.password,
            "log_level": 0,
        }

    def admin(self) -> AdminClient:
        return AdminClient(self.properties())


def produce(cluster: Cluster, topic: str, records: int) -> None:
    producer = Producer(cluster.properties())
    for number in range(records):
        producer.produce(topic, b"x" * RECORD_BYTES, key=str(number))
    if producer.flush(DEADLINE_SECONDS):
        raise SystemExit(f"{topic} on {cluster.name} did not take {records} records")


def consume(cluster: Cluster, topic: str, group: str, records: int) -> None:
    """Read as a member of a group, and commit."""
    more = {"group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = Consumer({**cluster.properties(), **more})
    consumer.subscribe([topic])
    read, deadline = 0, time.monotonic() + DEADLINE_SECONDS
    while read < records and time.monotonic() < deadline:
        read += len(consumer.consume(records - read, timeout=1.0))
    if read < records:
        raise SystemExit(f"{group} read {read} of {records} records of {topic} on {cluster.name}")
    consumer.commit(asynchronous=False)
    consumer.close()


def alter(cluster: Cluster, topic: str, key: str, value: str) -> None:
    admin = cluster.admin()
    entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
    wanted = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    for future in admin.incremental_alter_configs([wanted]).values():
        future.result(timeout=DEADLINE_SECONDS)

    def shown() -> bool:
        read = admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)])
        return all(future.result(timeout=10)[key].value == value for future in read.values())

    _until(shown)


def create(cluster: Cluster, topic: str, partitions: int) -> None:
    admin = cluster.admin()
    for future in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
        future.result(timeout=DEADLINE_SECONDS)
    _until(lambda: topic in admin.list_topics(timeout=10).topics)


def delete(cluster: Cluster, topic: str) -> None:
    admin = cluster.admin()
    for future in admin.delete_topics([topic]).values():
        future.result(timeout=DEADLINE_SECONDS)
    _until(lambda: topic not in admin.list_topics(timeout=10).topics)


def open_to_everybody(cluster: Cluster) -> None:
    """The ACL of somebody in a hurry: everybody may read every topic."""
    admin = cluster.admin()
    pattern = (ResourceType.TOPIC, "*", ResourcePatternType.LITERAL)
    rule = (AclOperation.READ, AclPermissionType.ALLOW)
    for future in admin.create_acls([AclBinding(*pattern, "User:*", "*", *rule)]).values():
        future.result(timeout=DEADLINE_SECONDS)
    wanted = AclBindingFilter(*pattern, "User:*", "*", *rule)
    _until(lambda: bool(admin.describe_acls(wanted).result(timeout=10)))


def _until(shown: Callable[[], bool]) -> None:
    """Wait until the brokers show what they have taken."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not shown():
        if time.monotonic() > deadline:
            raise SystemExit("the brokers do not show a change that they have taken")
        time.sleep(0.1)
