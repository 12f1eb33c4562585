"""The copy of an audit log in a topic of a real broker, into a table: every record once."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql.streaming.datasource import ReadAllAvailable

from kafkaform.core.errors import KafkaformError
from kafkaform.core.value import FrozenMap, SecretRef
from kafkaform_providers.kafka.connect import native_config
from kafkaform_providers.kafka.publishing import Entry, publish

from ..kafka.cluster import eventually, login
from .landings import collected, log, step

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kafkaform.fleet.store import Store
    from kafkaform.fleet.topicsource import Reader

pytestmark = pytest.mark.timeout(600)

SECONDS = 30.0
SETTINGS = "KAFKAFORM_TOPIC_SETTINGS"
GOLDEN = Path(__file__).parent.parent / "cases" / "audit" / "golden.jsonl"
LINEAGE, OTHER = "0d9c6f5e-lineage", "other"
OTHERS = log(OTHER, [("intent", "r", step("t"))] * 10)


class Copy:
    """A topic with two partitions."""

    def __init__(self, broker: Any) -> None:
        self.broker, self.name = broker, f"copy-{uuid4().hex[:10]}"
        self.native = native_config(login(broker, "admin"))
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
        entries = (Entry(number, line) for number, line in enumerate(lines, 1))
        publish("kafka", config, secrets, self.name, lineage, entries)

    def disturb(self) -> None:
        """Something else writes, too: what it takes back is not there, and its marks are no
        records. Returns when the marks are there, which come after the answer."""
        from kafkaform.fleet.topicsource import Reader

        reader = Reader(self.name)
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


@pytest.fixture
def copy(broker: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Copy]:
    made = Copy(broker)
    monkeypatch.setenv(SETTINGS, json.dumps(made.native))
    yield made
    for future in made.admin.delete_topics([made.name]).values():
        future.result(SECONDS)


@pytest.mark.spark
def test_each_record_once(copy: Copy, spark: SparkSession, tmp_path: Path) -> None:
    """Read, read again, more of it, a run that died between table and note, and records that were
    lost before they were read."""
    from kafkaform.fleet.store import Store

    follow = Follow(copy, Store(spark, str(tmp_path)))
    golden = GOLDEN.read_bytes().splitlines()
    copy.publish(LINEAGE, golden)
    copy.disturb()
    first = follow("b1")
    mine = {row["seq"]: row["line"].encode() for row in first if row["lineage"] == LINEAGE}
    assert [mine[seq] for seq in sorted(mine)] == golden
    assert [row["line"] for row in first if row["seq"] is None] == ["not ours"]
    assert len(first) == len(golden) + 1
    assert {row["_file"] for row in first} <= {f"topic {copy.name}/{n}" for n in (0, 1)}
    assert all(row["origin"].startswith(row["_file"] + "/") for row in first)

    assert len(follow("b2")) == len(first)

    copy.publish(OTHER, OTHERS[:3])
    more = follow("b3")
    assert sorted(r["seq"] for r in more if r["_build"] == "b3") == [1, 2, 3]
    note = follow.dies_before_the_last_note()
    again = follow("b4")
    assert note.exists()
    assert sorted(r["origin"] for r in again) == sorted(r["origin"] for r in more)

    copy.publish(OTHER, OTHERS)
    copy.lose()
    with pytest.raises(KafkaformError, match="deleted before they were read") as caught:
        follow("b5")
    assert copy.broker.admin_password not in str(caught.value)
    assert "checkpoints" in caught.value.advice


class Follow:
    """Builds that read the topic into one store."""

    def __init__(self, copy: Copy, store: Store) -> None:
        self.copy, self.store = copy, store
        # Where a session starts with the variable set, Java and its workers have it from there.
        store.spark.sparkContext.environment[SETTINGS] = os.environ[SETTINGS]

    def __call__(self, build: str) -> list[dict[str, Any]]:
        """All rows of the table once the build has read the topic."""
        from kafkaform.fleet.topic import follower

        follower(self.copy.name)(self.store, build)
        table = self.store.spark.read.format("delta").load(self.store.path("audit_raw"))
        return collected(table)

    def dies_before_the_last_note(self) -> Path:
        """As if the run had died when the rows were there, and the offsets were not noted."""
        from kafkaform.fleet.topic import checkpoint

        notes = Path(checkpoint(self.store.root, self.copy.name)) / "commits"
        last = max((p for p in notes.iterdir() if p.name.isdigit()), key=lambda p: int(p.name))
        for path in (last, last.with_name(f".{last.name}.crc")):
            path.unlink(missing_ok=True)
        return last


# -- without Spark


def read(reader: Reader, start: Mapping[str, int], end: Mapping[str, int]) -> list[str]:
    """The lines between two offsets, whatever partition they are in."""
    batches = [b for p in reader.partitions(dict(start), dict(end)) for b in reader.read(p)]
    return [line for batch in batches for line in batch.column("line").to_pylist()]


def test_only_what_was_committed_is_read(copy: Copy) -> None:
    """Records in the order of their partition, in pieces, and no marks of transactions, also where
    one is the last thing in a partition."""
    from kafkaform.fleet import topicsource

    copy.publish(LINEAGE, GOLDEN.read_bytes().splitlines())
    reader = topicsource.Reader(copy.name)
    start, end = reader.initialOffset(), reader.latestOffset({}, ReadAllAvailable())
    lines = [line.decode() for line in GOLDEN.read_bytes().splitlines()]
    assert start == {"0": 0, "1": 0}
    assert read(reader, start, end) == lines
    assert read(reader, {}, end) == lines
    assert list(reader.partitions(end, end)) == []
    copy.disturb()
    last = reader.latestOffset(end, ReadAllAvailable())
    assert read(reader, end, last) == ["not ours"]
    assert sum(last.values()) == sum(end.values()) + 4


def test_a_piece_ends_where_the_next_begins(copy: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut into pieces of four offsets and batches of three records it is the same."""
    from kafkaform.fleet import topicsource

    monkeypatch.setattr(topicsource, "PIECE", 4)
    monkeypatch.setattr(topicsource, "BATCH", 3)
    copy.publish(OTHER, OTHERS)
    reader = topicsource.Reader(copy.name)
    reader.prepareForTriggerAvailableNow()
    end = reader.latestOffset({}, ReadAllAvailable())
    assert len(reader.partitions({}, end)) == 3
    assert read(reader, {}, end) == [line.decode() for line in OTHERS]
    copy.publish(LINEAGE, GOLDEN.read_bytes().splitlines())
    assert reader.latestOffset(end, ReadAllAvailable()) == end


def test_what_cannot_be_read_is_told(copy: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records that were deleted before they were read, a topic that there is not, one that may not
    be read, and brokers that nobody has named."""
    from kafkaform.fleet.topicsource import Reader, TopicUnreadable

    copy.publish(OTHER, OTHERS)
    reader = Reader(copy.name)
    end = reader.latestOffset({}, ReadAllAvailable())
    copy.lose()
    with pytest.raises(TopicUnreadable, match="deleted before they were read"):
        reader.partitions({}, end)
    assert list(reader.partitions(end, end)) == []
    with pytest.raises(TopicUnreadable, match="no-such-topic.*Unknown topic"):
        Reader("no-such-topic").initialOffset()
    monkeypatch.setenv(SETTINGS, json.dumps(native_config(login(copy.broker, "ci"))))
    with pytest.raises(TopicUnreadable, match="uthoriz"):
        reader.initialOffset()
    monkeypatch.delenv(SETTINGS)
    with pytest.raises(TopicUnreadable, match=f"{SETTINGS} is not set"):
        reader.initialOffset()
