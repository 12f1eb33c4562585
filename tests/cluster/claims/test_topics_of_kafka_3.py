"""What the rules of topics say about brokers of Kafka 3, and about those that delete no topic."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from kafka import KafkaConsumer, TopicPartition
from kafka.errors import UnsupportedCompressionTypeError, UnsupportedVersionError

from ...kit.kafka.clusters import own_sandbox
from ...kit.kafka.topic_clients import Clients, wait_for
from ...kit.kafka.versions import Choice

RELEASE = Choice("3.9.2")
SILENCE_MS = 4000


@pytest.fixture(scope="module")
def box(own_brokers: None) -> Iterator[Any]:
    """A broker that deletes no topic, for this file alone."""
    fixed = (("delete.topic.enable", "false"),)
    with own_sandbox(f"tests-claims-3-{os.getpid()}", 1, fixed, RELEASE) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def clients(box: Any) -> Clients:
    return Clients(box.bootstrap, box.admin_password)


def read_as(box: Any, topic: str, release: tuple[int, ...]) -> list[bytes]:
    """The values that a consumer gets that has the requests of this release."""
    consumer = KafkaConsumer(
        bootstrap_servers=box.bootstrap,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_plain_username="admin",
        sasl_plain_password=box.admin_password,
        api_version=release,
        consumer_timeout_ms=SILENCE_MS,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    try:
        consumer.assign([TopicPartition(topic, 0)])
        return [message.value for message in consumer]
    finally:
        consumer.close()


def test_zstd_stops_consumers_before_kafka_2_1(box: Any, clients: Clients) -> None:
    """`topic-zstd-consumers-refused`: newer ones read on."""
    assert clients.create("zstd") == ""
    wait_for(lambda: clients.write("zstd", "1", "a") == "")
    assert read_as(box, "zstd", (2, 0)) == [b"1"]
    assert clients.set("zstd", compression_type="zstd") == ""

    def is_refused() -> bool:
        try:
            read_as(box, "zstd", (2, 0))
        except UnsupportedCompressionTypeError:
            return True
        return False

    wait_for(is_refused)
    assert read_as(box, "zstd", (2, 2)) == [b"1"]


def test_without_conversion_consumers_before_kafka_0_11_stop(box: Any, clients: Clients) -> None:
    """`topic-old-consumers-refused`: newer ones read on."""
    assert clients.create("converted") == ""
    wait_for(lambda: clients.write("converted", "1", "a") == "")
    assert read_as(box, "converted", (0, 10, 1)) == [b"1"]
    assert clients.set("converted", message_downconversion_enable="false") == ""

    def is_refused() -> bool:
        try:
            read_as(box, "converted", (0, 10, 1))
        except UnsupportedVersionError:
            return True
        return False

    wait_for(is_refused)
    assert read_as(box, "converted", (0, 11)) == [b"1"]


def test_a_cluster_can_forbid_deletions(clients: Clients) -> None:
    """`topic-deletion-forbidden`."""
    assert clients.create("stays") == ""
    assert clients.delete("stays") == "TOPIC_DELETION_DISABLED"


def test_more_replicas_in_sync_than_there_are_are_accepted(clients: Clients) -> None:
    """`topic-min-insync-above-replicas`, before Kafka 4, too."""
    assert clients.create("above", min_insync_replicas=3) == ""
    wait_for(lambda: clients.write("above", "1", "a") == "")


def test_no_segment_was_too_small(clients: Clients) -> None:
    """`topic-config-value-outdated`: what Kafka 4.1 and newer refuse."""
    assert clients.create("small", segment_bytes=1000) == ""
