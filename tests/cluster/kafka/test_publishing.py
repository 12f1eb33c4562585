"""The audit log in a topic of a real broker: every record once and in order, whatever came between,
and each refusal with what to do."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from kafkaform.core.errors import KafkaformError
from kafkaform.core.secret import Secret
from kafkaform.core.value import FrozenMap, SecretRef
from kafkaform_kafka import publishing
from kafkaform_kafka.connection.settings import make_librdkafka_config
from kafkaform_kafka.publishing import NumberedRecord, PublishResult, publish

from ...kit.kafka.logins import Login, admin_login
from ...kit.kafka.sessions import eventually, grant, login

SECONDS = 60.0
LINEAGE, OTHER = "lineage-1", "lineage-2"


class Shelf:
    """A topic of this test, and what is published to it."""

    def __init__(self, broker: Any, name: str) -> None:
        self.broker, self.name = broker, name
        self.admin = AdminClient({**make_librdkafka_config(login(broker, "admin")), "log_level": 0})

    def make(self, partitions: int = 1, largest: int = 1_000_000) -> None:
        config = {"max.message.bytes": str(largest)}
        new = NewTopic(self.name, partitions, 1, config=config)
        for future in self.admin.create_topics([new]).values():
            future.result(SECONDS)
        eventually(lambda: self.count(), lambda count: count == partitions)

    def grow(self, partitions: int) -> None:
        for future in self.admin.create_partitions([NewPartitions(self.name, partitions)]).values():
            future.result(SECONDS)
        eventually(lambda: self.count(), lambda count: count == partitions)

    def count(self) -> int:
        found = self.admin.list_topics(timeout=SECONDS).topics.get(self.name)
        return len(found.partitions) if found else 0

    def publish(
        self,
        entries: Sequence[NumberedRecord] | Iterator[NumberedRecord],
        key: str = LINEAGE,
        user: Login | None = None,
    ) -> PublishResult:
        config, secrets = self.connection(user)
        return publish("kafka", config, secrets, self.name, key, lambda before: entries)

    def connection(self, user: Login | None) -> tuple[FrozenMap, Any]:
        who, password = user or admin_login(self.broker), SecretRef("env", "PASSWORD")
        config = FrozenMap(
            bootstrap_servers=(self.broker.bootstrap,),
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism=who.mechanism,
            sasl_username=who.user,
            sasl_password=password,
            operation_timeout=5,
        )
        return config, {str(password): Secret(who.password)}

    def values(self, key: str = LINEAGE) -> list[tuple[int, bytes]]:
        """(number in the header, value) of every record of the key, by partition and offset."""
        native = make_librdkafka_config(login(self.broker, "admin"))
        reader = Consumer({**native, "group.id": "look", "fetch.wait.max.ms": 20})
        found = []
        for partition in range(self.count()):
            place = TopicPartition(self.name, partition)
            offset, high = reader.get_watermark_offsets(place, timeout=SECONDS)
            reader.assign([TopicPartition(self.name, partition, offset)])
            deadline = time.monotonic() + SECONDS
            while offset < high:
                assert time.monotonic() < deadline
                message = reader.poll(0.2)
                if message is None or message.error():
                    continue
                offset = (message.offset() or 0) + 1
                if message.key() == key.encode():
                    number = dict(message.headers() or ())["seq"]
                    found.append((int(number or b""), message.value() or b""))
        reader.close()
        return found

    def numbers(self, key: str = LINEAGE) -> list[int]:
        return [number for number, _ in self.values(key)]


@pytest.fixture
def shelf(broker: Any, prefix: str) -> Iterator[Shelf]:
    made = Shelf(broker, f"{prefix}-audit")
    yield made
    if made.count():
        for future in made.admin.delete_topics([made.name]).values():
            future.result(SECONDS)


def entries(count: int, first: int = 1, size: int = 10) -> list[NumberedRecord]:
    return [NumberedRecord(n, b"%d:" % n + b"x" * size) for n in range(first, count + 1)]


def upto(count: int) -> list[int]:
    return list(range(1, count + 1))


def test_all_then_nothing_then_the_new_ones(shelf: Shelf) -> None:
    """What the topic has is found in the topic, so that each record goes there once."""
    shelf.make()
    assert shelf.publish(entries(5)) == PublishResult(0, 5)
    assert shelf.publish(entries(5)) == PublishResult(5, 5)
    assert shelf.publish(entries(8)) == PublishResult(5, 8)
    assert shelf.values() == [(e.number, e.value) for e in entries(8)]


def test_states_share_a_topic_and_its_partitions(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two lineages in three partitions, later in four: each has its own numbers, and the last one
    of a key is found behind many records of the other, wherever it is."""
    monkeypatch.setattr(publishing, "WINDOW", 2)
    shelf.make(3)
    shelf.publish(entries(3))
    assert shelf.publish(entries(7), OTHER) == PublishResult(0, 7)
    assert shelf.publish(entries(4)) == PublishResult(3, 4)
    shelf.grow(4)
    assert shelf.publish(entries(6)) == PublishResult(4, 6)
    assert sorted(shelf.numbers()) == upto(6) and sorted(shelf.numbers(OTHER)) == upto(7)


def test_what_breaks_off_is_gone_on_with(shelf: Shelf) -> None:
    """A log that cannot be read to its end leaves its sound beginning, or less; the next time goes
    on behind it without a gap and without a second copy."""
    shelf.make()

    def breaking() -> Iterator[NumberedRecord]:
        yield from entries(200)
        raise KafkaformError("record 201 was changed")

    with pytest.raises(KafkaformError, match="201"):
        shelf.publish(breaking())
    known = shelf.publish(entries(300))
    assert known.last == 300 and shelf.numbers() == upto(300)


KILLED = """
import sys, os
from kafkaform_kafka.publishing import NumberedRecord, publish
from tests.cluster.kafka.test_publishing import Shelf, entries
from types import SimpleNamespace

bootstrap, password, topic = sys.argv[1], os.environ["PASSWORD"], sys.argv[2]
broker = SimpleNamespace(bootstrap=bootstrap, admin_password=password)

def endless():
    for number in range(1, 1_000_000):
        yield NumberedRecord(number, b"x" * 100)
        if number == 2_000:
            print("going", flush=True)

Shelf(broker, topic).publish(endless())
"""


def test_killed_in_between(shelf: Shelf) -> None:
    """A publisher that is killed while it sends: what arrived has no gap, and the next one goes
    on behind it."""
    shelf.make()
    command = [sys.executable, "-c", KILLED, shelf.broker.bootstrap, shelf.name]
    environment = {"PASSWORD": shelf.broker.admin_password, "PYTHONPATH": ":".join(sys.path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None and process.stdout.readline() == b"going\n"
        reached = eventually(lambda: len(shelf.numbers()), lambda count: count > 0)
        process.kill()
        process.wait(SECONDS)
    assert reached
    there = shelf.numbers()
    assert there == upto(len(there))
    more = len(there) + 50
    assert shelf.publish(entries(more)).last == more
    assert shelf.numbers() == upto(more)


# ── refusals ────────────────────────────────────────────────────────────────────────────


def refused(act: Callable[[], object]) -> str:
    with pytest.raises(KafkaformError) as caught:
        act()
    return f"{caught.value} {caught.value.advice}"


def test_a_topic_that_is_not_there(shelf: Shelf) -> None:
    """It is named and never made by the way."""
    said = refused(lambda: shelf.publish(entries(3)))
    assert shelf.name in said and "Declare it as a kafka_topic" in said
    assert shelf.count() == 0


@pytest.mark.parametrize(
    "rights", [(), ("DESCRIBE",), ("DESCRIBE", "READ"), ("DESCRIBE", "WRITE")], ids="-".join
)
def test_without_the_right(shelf: Shelf, stranger: Login, rights: tuple[str, ...]) -> None:
    """Whichever right is missing, all three that it takes are named, and nothing arrives."""
    shelf.make()
    shelf.publish(entries(1))
    revoke = grant(shelf.broker, stranger, "Topic", shelf.name, *rights) if rights else None
    try:
        said = refused(lambda: shelf.publish(entries(3), user=stranger))
    finally:
        if revoke:
            revoke()
    assert shelf.name in said and "Grant Describe, Read and Write on the topic" in said
    assert shelf.numbers() == [1]


def test_three_rights_are_enough(shelf: Shelf, stranger: Login) -> None:
    """No right on a group, a transaction or the cluster is needed."""
    shelf.make()
    revoke = grant(shelf.broker, stranger, "Topic", shelf.name, "DESCRIBE", "READ", "WRITE")
    try:
        eventually(
            lambda: _published(shelf, stranger, entries(3)),
            lambda done: isinstance(done, PublishResult),
        )
        assert shelf.publish(entries(5), user=stranger) == PublishResult(3, 5)
    finally:
        revoke()
    assert shelf.numbers() == upto(5)


def _published(
    shelf: Shelf, stranger: Login, given: Sequence[NumberedRecord]
) -> PublishResult | str:
    """ACLs reach a broker a moment after they were made."""
    try:
        return shelf.publish(given, user=stranger)
    except KafkaformError as error:
        return f"{error} {error.advice}"


def test_a_record_that_the_topic_does_not_take(shelf: Shelf) -> None:
    """One record in the middle is too large: those before it arrive, none behind it does, the
    config is named, and once it is raised the rest follows."""
    shelf.make(largest=20_000)
    noise = random.Random(1).randbytes(60_000)  # which no compression makes smaller
    large = [*entries(3), NumberedRecord(4, noise), *entries(400, first=5)]
    said = refused(lambda: shelf.publish(large))
    assert "max.message.bytes" in said
    there = shelf.numbers()
    assert there == upto(len(there)) and len(there) <= 3
    raised = ConfigEntry("max.message.bytes", "200000", incremental_operation=AlterConfigOpType.SET)
    place = ConfigResource(ResourceType.TOPIC, shelf.name, incremental_configs=[raised])
    for future in shelf.admin.incremental_alter_configs([place]).values():
        future.result(SECONDS)
    assert shelf.publish(large).last == 400
    assert shelf.numbers() == upto(400)


class Moving:
    """A consumer whose broker answers with these errors before it tells the offsets."""

    def __init__(self, *codes: int) -> None:
        self.codes = list(codes)

    def get_watermark_offsets(self, place: object, timeout: float) -> tuple[int, int]:
        if self.codes:
            raise KafkaException(KafkaError(self.codes.pop(0)))
        return 0, 7


def test_a_leader_that_is_new_is_waited_for() -> None:
    """A partition just made, or moved; whatever else is wrong is told at once."""
    place, moves = TopicPartition("t", 0), KafkaError.NOT_LEADER_FOR_PARTITION
    assert publishing._read_bounds(Moving(moves, moves), place) == (0, 7)
    refused = Moving(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(KafkaException):
        publishing._read_bounds(refused, place)
    assert refused.codes == []
