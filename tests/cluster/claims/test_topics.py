"""What the rules of topics say about brokers and clients, tried with real ones."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, TopicCollection
from kafka.errors import RequestTimedOutError

from ...kit.kafka.clusters import own_sandbox
from ...kit.kafka.three_brokers import COUNT, Brokers
from ...kit.kafka.topic_clients import Clients, wait_for
from ...kit.kafka.versions import get_choice

QUICK = (
    ("auto.create.topics.enable", "true"),
    ("broker.session.timeout.ms", "3000"),
    ("log.cleaner.backoff.ms", "200"),
    ("log.initial.task.delay.ms", "200"),
    ("log.retention.check.interval.ms", "300"),
    ("min.insync.replicas", "1"),
)
"""Brokers that clean at once what Kafka's own settings clean after minutes. Before Kafka 3.7, the
two replicas in sync that a sandbox demands would close topics with one replica to acks=all."""
SEGMENT = {"segment_ms": 100}
"""A segment that is not written to for so long ends with the next record."""
COMPACT = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0.001"}
HOUR = 3_600_000
OFFSETS = "__consumer_offsets"


@pytest.fixture(scope="module")
def brokers(own_brokers: None) -> Iterator[Brokers]:
    """Three brokers that clean quickly, for this file alone."""
    with own_sandbox(f"tests-claims-{os.getpid()}", COUNT, QUICK) as box:
        yield Brokers(box)


@pytest.fixture(scope="module")
def clients(brokers: Brokers) -> Clients:
    """Clients of `admin` at all three brokers."""
    return Clients(brokers.box.bootstrap, brokers.box.admin_password)


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A name of this test's own."""
    return f"{request.node.name.removeprefix('test_')[:200]}"


def end_segment(clients: Clients, *topics: str) -> None:
    """Write one more record, which begins a segment."""
    time.sleep(0.2)
    for topic in topics:
        assert clients.write(topic, "last", "last") == ""


# ── records that are deleted or kept ────────────────────────────────────────────────────


def test_a_shorter_retention_deletes_older_records(clients: Clients, topic: str) -> None:
    """`topic-retention-cut`: older records go, and stay where the retention stays."""
    other = f"{topic}.kept"
    for name in (topic, other):
        assert clients.create(name, **SEGMENT) == ""
        assert clients.write(name, "old", "a") == ""
    end_segment(clients, topic, other)
    assert clients.set(topic, retention_ms=1000) == ""
    wait_for(lambda: "old" not in clients.values(topic))
    assert clients.values(other) == ["old", "last"]


def test_a_smaller_size_deletes_the_oldest_records(clients: Clients, topic: str) -> None:
    """`topic-size-cut`: the oldest segments of a partition go, the newest stays."""
    assert clients.create(topic, **SEGMENT) == ""
    for number in range(3):
        assert clients.write(topic, f"{number}" * 100_000, "a", compression_type="none") == ""
        time.sleep(0.2)
    assert [str(value)[0] for value in clients.values(topic)] == ["0", "1", "2"]
    assert clients.set(topic, retention_bytes=150_000) == ""
    wait_for(lambda: [str(value)[0] for value in clients.values(topic)] == ["1", "2"])


def test_compaction_deletes_older_records_and_those_without_a_key(
    clients: Clients, topic: str
) -> None:
    """`topic-compaction-started`: the latest record of each key stays, and none without a key."""
    assert clients.create(topic, **SEGMENT) == ""
    for key, value in ((None, "keyless"), ("a", "a1"), ("a", "a2"), ("b", "b1"), (None, "more")):
        assert clients.write(topic, value, key) == ""
    end_segment(clients, topic)
    assert clients.values(topic) == ["keyless", "a1", "a2", "b1", "more", "last"]
    assert clients.set(topic, **COMPACT) == ""
    wait_for(lambda: clients.values(topic) == ["a2", "b1", "last"])


def test_a_compacted_topic_refuses_records_without_a_key(clients: Clients, topic: str) -> None:
    """`topic-keyless-refused`: with a key they are accepted."""
    assert clients.create(topic) == ""
    assert clients.write(topic, "keyless") == ""
    assert clients.set(topic, cleanup_policy="compact,delete") == ""
    wait_for(lambda: clients.write(topic, "keyless") == "INVALID_RECORD")
    assert clients.write(topic, "value", "key") == ""


def test_a_topic_that_is_no_longer_compacted_keeps_every_record(
    clients: Clients, topic: str
) -> None:
    """`topic-compaction-stopped`: the same records are compacted in another topic meanwhile."""
    other = f"{topic}.compacted"
    for name in (topic, other):
        assert clients.create(name, **SEGMENT, **COMPACT) == ""
    assert clients.set(topic, cleanup_policy="delete") == ""
    wait_for(lambda: clients.write(topic, "keyless") == "")
    for value in ("1", "2"):
        for name in (topic, other):
            assert clients.write(name, value, "a") == ""
    end_segment(clients, topic, other)
    wait_for(lambda: clients.values(other) == ["2", "last"])
    assert clients.values(topic)[-3:] == ["1", "2", "last"]


def test_expiry_deletes_the_latest_records_of_keys_too(clients: Clients, topic: str) -> None:
    """`topic-expiry-started`: what compaction alone keeps for ever goes."""
    assert clients.create(topic, **SEGMENT, **COMPACT, retention_ms=500) == ""
    assert clients.write(topic, "1", "a") == ""
    end_segment(clients, topic)
    assert clients.set(topic, cleanup_policy="compact,delete") == ""
    wait_for(lambda: "1" not in clients.values(topic))


def test_a_compacted_topic_keeps_old_records_of_keys(clients: Clients, topic: str) -> None:
    """`topic-expiry-stopped`: retention.ms has no effect any more; where it has, the record goes in
    the same time."""
    other = f"{topic}.expires"
    for name in (topic, other):
        assert clients.create(name, **SEGMENT, cleanup_policy="compact,delete") == ""
    assert clients.set(topic, cleanup_policy="compact") == ""
    for name in (topic, other):
        assert clients.set(name, retention_ms=500) == ""
        assert clients.write(name, "1", "a") == ""
    end_segment(clients, topic, other)
    wait_for(lambda: "1" not in clients.values(other))
    assert clients.values(topic) == ["1", "last"]


def test_deletions_of_keys_go_too(clients: Clients, topic: str) -> None:
    """`topic-tombstones-missed`: who reads later finds neither the value nor its deletion."""
    assert clients.create(topic, **SEGMENT, **COMPACT, delete_retention_ms=100) == ""
    assert clients.write(topic, "1", "a") == ""
    assert clients.write(topic, None, "a") == ""
    end_segment(clients, topic)
    wait_for(lambda: "1" not in clients.values(topic))

    def is_gone() -> bool:
        end_segment(clients, topic)
        return all(record.key != "a" for record in clients.read(topic))

    wait_for(is_gone)


def test_keys_go_to_other_partitions(clients: Clients, topic: str) -> None:
    """`topic-partitions-added`, `topic-old-values-kept`: a key has two records in two partitions of
    a compacted topic, and compaction leaves both."""
    assert clients.create(topic, partitions=1, **SEGMENT, **COMPACT) == ""
    keys = [f"key-{number}" for number in range(8)]
    for key in keys:
        assert clients.write(topic, "old", key) == ""
    end_segment(clients, topic)
    assert clients.grow(topic, 4) == ""
    wait_for(lambda: len(clients.admin.list_topics(topic, 10).topics[topic].partitions) == 4)
    for key in keys:
        assert clients.write(topic, "new", key) == ""
    end_segment(clients, topic)
    records = clients.read(topic, range(4))
    moved = {record.key for record in records if record.value == "new" and record.partition != 0}
    assert moved and moved != set(keys)
    # A key that stayed in its partition has only its new value once compaction has been there.
    stays = next(key for key in keys if key not in moved)

    def is_compacted() -> bool:
        end_segment(clients, topic)
        values = [item.value for item in clients.read(topic, range(4)) if item.key == stays]
        return values == ["new"]

    wait_for(is_compacted)
    kept = {item.key for item in clients.read(topic, range(4)) if item.value == "old"}
    assert kept == moved


def test_partitions_cannot_be_removed(clients: Clients, topic: str) -> None:
    """`topic-partitions-removed`."""
    assert clients.create(topic, partitions=3) == ""
    assert clients.grow(topic, 2) == "INVALID_PARTITIONS"


def test_a_deleted_topic_comes_back_empty(clients: Clients, topic: str) -> None:
    """`topic-deleted`, `topic-comes-back`: its records are gone, and a producer that goes on makes
    a topic with default settings."""
    assert clients.create(topic, partitions=3, **SEGMENT) == ""
    assert clients.write(topic, "before", "a") == ""
    assert clients.delete(topic) == ""

    def has_come_back() -> bool:
        # For a moment, a broker still takes records for the deleted topic, and shows none of it.
        # Whoever reads it then waits for records that are gone: it has three partitions.
        refusal = clients.write(topic, "after", "a", allow_auto_create_topics="true")
        partitions = clients.admin.list_topics(topic, 10).topics[topic].partitions
        return not refusal and len(partitions) == 1 and bool(clients.values(topic))

    wait_for(has_come_back)
    assert set(clients.values(topic)) == {"after"}


def test_a_topic_that_is_made_again_has_another_id(clients: Clients, topic: str) -> None:
    """`object-recreated`, `topic-id-unknown`: the name is the same, and nothing else."""

    ids: set[str] = set()

    def has_new_id() -> bool:
        described = clients.admin.describe_topics(TopicCollection([topic]))
        try:
            id = str(described[topic].result(10).topic_id)
        except KafkaException:
            # A broker learns of a topic a moment later.
            return False
        new = id not in ids
        ids.add(id)
        return new

    for _ in range(2):
        wait_for(lambda: clients.create(topic) == "")
        wait_for(has_new_id)
        assert clients.delete(topic) == ""


def test_brokers_make_topics_of_their_own(clients: Clients, topic: str) -> None:
    """`object-reserved`: the first member of a group makes them write `__consumer_offsets`, and no
    client may write there."""
    assert clients.create(topic) == ""
    member = Consumer({**clients.config, "group.id": topic})
    member.subscribe([topic])
    wait_for(lambda: member.poll(0.5) is None and bool(member.assignment()))
    member.close()
    # A broker's metadata can be a moment behind.
    wait_for(lambda: OFFSETS in clients.admin.list_topics(timeout=10).topics)
    assert clients.write(OFFSETS, "1", "a") == "TOPIC_EXCEPTION"


# ── replicas ────────────────────────────────────────────────────────────────────────────


def test_more_replicas_in_sync_than_there_are_protect_nothing_more(
    clients: Clients, topic: str
) -> None:
    """`topic-min-insync-above-replicas`: acks=all is accepted all the same."""
    for replicas in (1, 2):
        name = f"{topic}.{replicas}"
        assert clients.create(name, replicas=replicas, min_insync_replicas=3) == ""
        wait_for(lambda name=name: clients.write(name, "1", "a") == "")  # type: ignore[misc]


def test_a_broker_that_is_down_stops_acks_all_if_all_replicas_must_be_in_sync(
    brokers: Brokers, clients: Clients, topic: str
) -> None:
    """`topic-all-insync-required`, and `topic-min-insync-above-replicas` with more than one
    replica: acks=all is refused while a replica is down. With a lower number
    (`topic-min-insync-lowered`, `topic-min-insync-raised`) it is accepted at one replica."""
    down = brokers.plain()
    up = next(number for number in brokers.ids if number != down)
    # Before Kafka 3.7, nobody can write to a topic that has fewer replicas than that.
    numbers = (1, 2) if get_choice().lacks("3.7", zookeeper=True) else (1, 2, 3)
    names = {least: f"{topic[:100]}.{least}" for least in numbers}
    for least, name in names.items():
        assert clients.create(name, assignment=[[up, down]], min_insync_replicas=least) == ""
        wait_for(lambda name=name: clients.write(name, "1", "a") == "")  # type: ignore[misc]
    brokers.kill(down)
    try:
        for least in numbers[1:]:
            wait_for(
                lambda name=names[least]: (  # type: ignore[misc]
                    clients.write(name, "2", "a") == "NOT_ENOUGH_REPLICAS"
                )
            )
        wait_for(lambda: clients.write(names[1], "2", "a") == "")
        # An admin client that knows the broker can go on asking it.
        others = Clients(brokers.address(up), brokers.box.admin_password)
        assert others.set(names[2], min_insync_replicas=1) == ""
        wait_for(lambda: others.write(names[2], "2", "a") == "")
    finally:
        brokers.revive()


def test_an_unclean_election_loses_acknowledged_records_and_a_clean_one_waits(
    brokers: Brokers, clients: Clients, topic: str
) -> None:
    """`topic-unclean-election`, `topic-clean-election`, `topic-replicas-removed`: a replica that
    lags behind becomes leader without what was acknowledged, or nothing can be written until the
    other one is back. A topic with one replica waits as well."""
    third = brokers.controller()
    late, early = (number for number in brokers.ids if number != third)
    unclean, clean, single = (f"{topic[:100]}.{kind}" for kind in ("unclean", "clean", "single"))
    for name, rows, flag in (
        (unclean, [[early, late]], "true"),
        (clean, [[early, late]], "false"),
        (single, [[early]], "true"),
    ):
        config = {"unclean_leader_election_enable": flag, "min_insync_replicas": 1}
        assert clients.create(name, assignment=rows, **config) == ""
        wait_for(lambda name=name: clients.write(name, "both", "a") == "")  # type: ignore[misc]
    others = Clients(
        ",".join(brokers.address(number) for number in (late, third)), brokers.box.admin_password
    )
    brokers.kill(late)
    try:
        for name in (unclean, clean):
            wait_for(
                lambda name=name: clients.write(name, "acknowledged", "a") == ""  # type: ignore[misc]
            )
        brokers.kill(early)
        brokers.start(late)
        wait_for(lambda: others.find_leader(unclean) == late)
        wait_for(lambda: has_values(others, unclean, ["both"]))
        assert others.find_leader(clean) == others.find_leader(single) == -1
        assert others.write(clean, "refused", "a") != ""
    finally:
        brokers.revive()
    wait_for(lambda: clients.find_leader(clean) == early)
    assert clients.values(clean)[:2] == ["both", "acknowledged"]
    assert clients.values(unclean) == ["both"]


def has_values(clients: Clients, topic: str, values: list[str]) -> bool:
    """Whether these are all that is there; False as long as clients do not know the leader."""
    try:
        return clients.values(topic) == values
    except KafkaException:
        return False


def test_a_higher_minimum_refuses_acks_all_until_the_copy_is_complete(
    brokers: Brokers, clients: Clients, topic: str
) -> None:
    """`topic-min-insync-early`: a broker that is frozen stands for a copy that takes its time."""
    slow = brokers.plain()
    up = next(number for number in brokers.ids if number != slow)
    assert clients.create(topic, assignment=[[up]], min_insync_replicas=2) == ""
    # Before the move there is one replica, and brokers count the smaller number.
    wait_for(lambda: clients.write(topic, "1", "a") == "")
    brokers.freeze(slow)
    try:
        others = Clients(brokers.address(up), brokers.box.admin_password)
        wait_for(lambda: start_move(others, topic, [up, slow]))
        wait_for(lambda: others.write(topic, "2", "a") == "NOT_ENOUGH_REPLICAS")
    finally:
        brokers.thaw(slow)
    wait_for(lambda: others.write(topic, "3", "a") == "")


def start_move(clients: Clients, topic: str, replicas: list[int]) -> bool:
    """Start a move of the only partition; False if the client asked the frozen broker first."""
    try:
        clients.move(topic, [replicas])
    except RequestTimedOutError:
        return False
    return True


def test_assignments_that_kafka_refuses(clients: Clients, topic: str) -> None:
    """`topic-assignment-invalid`, `topic-assignment-not-live`: all before anything is created."""
    for rows in ([[1, 1]], [[1, 2], [3]], [[1, 99]]):
        assert clients.create(topic, assignment=rows) == "INVALID_REPLICA_ASSIGNMENT"
    assert clients.create(topic, assignment=[[1, 2], [2, 3]]) == ""


def test_numbers_that_kafka_refuses(clients: Clients, topic: str) -> None:
    """`topic-partitions-invalid`, `topic-replicas-invalid`, `topic-replicas-above-brokers`,
    `topic-too-large`."""
    assert clients.create(topic, partitions=0) == "INVALID_PARTITIONS"
    assert clients.create(topic, replicas=0) == "INVALID_REPLICATION_FACTOR"
    assert clients.create(topic, replicas=COUNT + 1) == "INVALID_REPLICATION_FACTOR"
    assert clients.create(topic, partitions=10_000) in ("INVALID_PARTITIONS", "POLICY_VIOLATION")


def test_names_that_kafka_refuses(clients: Clients) -> None:
    """`topic-name-invalid`."""
    for name in ("a b", "a/b", "bestätigt", ".", "..", "x" * 250):
        assert clients.create(name) == "TOPIC_EXCEPTION", name
    assert clients.create("x" * 249) == ""


def test_names_that_collide(clients: Clients, topic: str) -> None:
    """`topic-name-collides`."""
    assert clients.create(f"{topic}.b_c") == ""
    assert clients.create(f"{topic}_b.c") == "TOPIC_EXCEPTION"
    assert clients.create(f"{topic}-b.c") == ""


# ── writes ──────────────────────────────────────────────────────────────────────────────


def test_a_lower_size_refuses_larger_batches(clients: Clients, topic: str) -> None:
    """`topic-batches-refused`."""
    value = os.urandom(2000)
    assert clients.create(topic) == ""
    assert clients.write(topic, value, "a") == ""
    assert clients.set(topic, max_message_bytes=1000) == ""
    wait_for(lambda: clients.write(topic, value, "a") == "MSG_SIZE_TOO_LARGE")
    assert clients.write(topic, value[:500], "a") == ""


def test_limits_of_timestamps_refuse_records(clients: Clients, topic: str) -> None:
    """`topic-timestamps-refused`: not with LogAppendTime, and again without it."""
    now = int(time.time() * 1000)
    # Kafka's own limit for the future since 4.0 (KIP-1030).
    assert clients.create(topic, message_timestamp_after_max_ms=HOUR) == ""
    assert clients.write(topic, "future", "a", now + 2 * HOUR) == "INVALID_TIMESTAMP"
    assert clients.write(topic, "past", "a", now - 2 * HOUR) == ""
    assert clients.set(topic, message_timestamp_before_max_ms=HOUR) == ""
    wait_for(lambda: clients.write(topic, "past", "a", now - 2 * HOUR) == "INVALID_TIMESTAMP")
    assert clients.set(topic, message_timestamp_type="LogAppendTime") == ""
    wait_for(lambda: clients.write(topic, "past", "a", now - 2 * HOUR) == "")
    assert clients.write(topic, "future", "a", now + 2 * HOUR) == ""
    assert clients.set(topic, message_timestamp_type="CreateTime") == ""
    wait_for(lambda: clients.write(topic, "future", "a", now + 2 * HOUR) == "INVALID_TIMESTAMP")


def test_the_time_of_the_broker_replaces_that_of_the_producer(clients: Clients, topic: str) -> None:
    """`topic-timestamps-changed`."""
    then = int(time.time() * 1000) - HOUR
    assert clients.create(topic, message_timestamp_type="LogAppendTime") == ""
    assert clients.write(topic, "1", "a", then) == ""
    assert clients.set(topic, message_timestamp_type="CreateTime") == ""

    def is_kept() -> bool:
        assert clients.write(topic, "2", "a", then) == ""
        return clients.read(topic)[-1].time == then

    wait_for(is_kept)
    assert clients.read(topic)[0].time > then + HOUR / 2


CODECS = {0: "none", 1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}


def read_codecs(brokers: Brokers, topic: str) -> list[str]:
    """How each batch of a topic is compressed on disk: the lowest bits of the attributes, which
    begin at the 21st byte of a batch."""
    (path,) = brokers.box.data.glob(f"*/{topic}-0/*.log")
    data, codecs = Path(path).read_bytes(), []
    while data:
        codecs.append(CODECS[data[22] & 7])
        data = data[12 + int.from_bytes(data[8:12], "big") :]
    return codecs


def test_another_compression_type_recompresses(
    brokers: Brokers, clients: Clients, topic: str
) -> None:
    """`topic-recompressed`: the broker keeps the producer's batch, or makes another one."""
    text = "text " * 1000
    assert clients.create(topic) == ""
    assert clients.write(topic, text, "a", compression_type="gzip") == ""
    assert clients.set(topic, compression_type="zstd") == ""
    wait_for(
        lambda: (
            clients.write(topic, text, "a", compression_type="gzip") == ""
            and read_codecs(brokers, topic)[-1] == "zstd"
        )
    )
    assert read_codecs(brokers, topic)[0] == "gzip"


# ── single configs ──────────────────────────────────────────────────────────────────────


def test_configs_that_no_topic_has_are_refused(clients: Clients, topic: str) -> None:
    """`topic-config-misspelt`, `topic-config-of-brokers`, `topic-config-absent`, and what
    `topic-config-unknown` says of brokers that do not know a config."""
    assert clients.create(topic) == ""
    for key in (
        *("retension.ms", "log.retention.ms", "log.roll.hours", "num.partitions"),
        *("default.replication.factor", "message.format.version", "redpanda.remote.read"),
    ):
        assert clients.set(topic, **{key: "1"}) == "INVALID_CONFIG", key


def test_values_that_no_broker_takes_are_refused(clients: Clients, topic: str) -> None:
    """`topic-config-value-invalid`, `topic-config-value-outdated`."""
    assert clients.create(topic) == ""
    # Older brokers take it, as `test_no_segment_was_too_small` shows.
    outdated = () if get_choice().lacks("4.1", zookeeper=True) else (("segment.bytes", "1000"),)
    for key, value in (
        *(("cleanup.policy", "none"), ("retention.ms", "-2"), ("retention.ms", "x")),
        *(("compression.type", "lz5"), ("preallocate", "yes"), ("min.insync.replicas", "0")),
        *outdated,
    ):
        assert clients.set(topic, **{key: value}) == "INVALID_CONFIG", (key, value)
    assert clients.set(topic, cleanup_policy="") == ""
