"""Stream a Kafka topic into Spark: a Python data source over librdkafka that needs no jar.

Spark pickles this module by value and sends it to its workers, so it must not import kafkaform. The
connection comes from an environment variable and never from an option of the source, because
options show in query plans and logs. An offset is the next one to read, per partition.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import confluent_kafka
import pyarrow
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

SETTINGS = "KAFKAFORM_TOPIC_SETTINGS"
"""Environment variable of the driver and of each worker: librdkafka's settings as a JSON object."""
NAME = "kafkaform_topic"
COLUMNS = "line string, lineage string, number int, place bigint"
"""The record's value, key, partition and offset."""
PREFIX = "the topic cannot be read: "
"""Prefix of our own error messages, by which `build.intake` finds them inside Spark's."""
PATIENCE = 30.0
"""Seconds without progress after which reading fails."""
PIECE = 100_000
"""How many offsets one task reads."""
BATCH = 2_000
"""How many records travel to Spark in one Arrow batch."""

Offsets = Mapping[str, int]
"""Partition -> the next offset to read. Partitions are texts because Spark stores offsets as JSON.
"""


class TopicUnreadable(Exception):
    """The topic cannot be read. The message is meant for the user."""

    def __init__(self, topic: str, cause: str) -> None:
        super().__init__(f"{PREFIX}{topic}: {cause}")


@dataclass
class OffsetRange(InputPartition):
    """Some offsets of one partition."""

    number: int
    start: int
    """Inclusive."""
    end: int
    """Exclusive."""


class TopicSource(DataSource):
    """The data source. Option: topic."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return COLUMNS

    def streamReader(self, schema: object) -> TopicReader:
        return TopicReader(self.options["topic"])


class TopicReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Read each committed record once, in the order of its partition."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        # The end is fixed once per run. Otherwise a busy topic would keep an `availableNow` query
        # running.
        self.goal: Offsets | None = None

    def initialOffset(self) -> dict[str, int]:
        return {number: low for number, (low, _) in self._read_marks().items()}

    def prepareForTriggerAvailableNow(self) -> None:
        self.goal = self._read_ends()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        return dict(self._read_ends() if self.goal is None else self.goal)

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[OffsetRange]:
        """Cut the offsets into tasks. Raises TopicUnreadable: records were deleted before they were
        read."""
        marks = self._read_marks()
        pieces = []
        for number in sorted({*start, *end}):
            # A partition that is new since the last time is read from its beginning.
            first, last = start.get(number, 0), end.get(number, 0)
            low, high = marks.get(number, (0, 0))
            # Never skip silently: a gap in the log would look like a fault of the log itself.
            if last < first or (first < last and (low > first or high < last)):
                raise TopicUnreadable(
                    self.topic,
                    f"partition {number} was read up to offset {first} and now has {low} to {high}:"
                    " records were deleted before they were read, or it is another topic",
                )
            # Several tasks per partition: after a long pause, one task would read everything alone.
            steps = range(first, last, PIECE)
            pieces += [OffsetRange(int(number), at, min(at + PIECE, last)) for at in steps]
        return pieces

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        assert isinstance(partition, OffsetRange)
        reader = _make_consumer(self.topic)
        try:
            yield from _make_batches(_read_records(reader, self.topic, partition))
        finally:
            reader.close()

    def _read_ends(self) -> dict[str, int]:
        return {number: high for number, (_, high) in self._read_marks().items()}

    def _read_marks(self) -> dict[str, tuple[int, int]]:
        """Return partition -> its first offset and the one after its last."""
        reader = _make_consumer(self.topic)
        try:
            about = reader.list_topics(self.topic, timeout=PATIENCE).topics[self.topic]
            if about.error is not None:
                raise TopicUnreadable(self.topic, about.error.str())
            return {
                str(number): reader.get_watermark_offsets(
                    confluent_kafka.TopicPartition(self.topic, number), timeout=PATIENCE
                )
                for number in about.partitions
            }
        except confluent_kafka.KafkaException as error:
            raise TopicUnreadable(self.topic, error.args[0].str()) from None
        finally:
            reader.close()


def _make_consumer(topic: str) -> confluent_kafka.Consumer:
    """Raises TopicUnreadable: the environment variable is not set."""
    text = os.environ.get(SETTINGS)
    if not text:
        raise TopicUnreadable(topic, f"{SETTINGS} is not set where Spark runs this")
    settings = json.loads(text)
    fixed = {
        # librdkafka requires a name. Nothing is committed: Spark's checkpoint holds the offsets.
        "group.id": "kafkaform-fleet",
        "enable.auto.commit": False,
        # Without the end-of-partition event, a range that ends in transaction markers would wait
        # until it times out.
        "enable.partition.eof": True,
        # Records of aborted transactions were never part of the log.
        "isolation.level": "read_committed",
        "allow.auto.create.topics": False,
        # `earliest` or `latest` would jump over deleted records without a word.
        "auto.offset.reset": "error",
        # librdkafka writes its log to stderr by itself; errors reach us as events anyway.
        "log_level": 0,
    }
    # Ours come last: a user's setting must not turn off exactly-once reading.
    return confluent_kafka.Consumer({**settings, **fixed})


def _read_records(
    reader: confluent_kafka.Consumer, topic: str, piece: OffsetRange
) -> Iterator[confluent_kafka.Message]:
    """Yield the records of a range. Raises TopicUnreadable.

    The end of the partition ends it too: the last offsets of a range may be transaction markers,
    which a consumer never receives.
    """
    reader.assign([confluent_kafka.TopicPartition(topic, piece.number, piece.start)])
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        message = reader.poll(0.5)
        if message is None:
            continue
        error = message.error()
        if error is not None:
            if error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
                if (message.offset() or 0) >= piece.end:
                    return
                continue  # a transaction is still open, and what comes after it is not shown
            if error.code() == confluent_kafka.KafkaError.GROUP_AUTHORIZATION_FAILED:
                continue  # its name is all that there is of a group: nothing is committed
            if error.code() == confluent_kafka.KafkaError._TRANSPORT and not error.fatal():
                continue  # it connects again by itself, as long as there is patience
            raise TopicUnreadable(topic, error.str())
        deadline = time.monotonic() + PATIENCE
        offset = message.offset()
        assert offset is not None  # a message that was read has one
        if offset >= piece.end:
            return
        yield message
        if offset == piece.end - 1:
            return
    raise TopicUnreadable(
        topic, f"no record of partition {piece.number} arrived for {PATIENCE:.0f} s"
    )


def _make_batches(records: Iterator[confluent_kafka.Message]) -> Iterator[pyarrow.RecordBatch]:
    rows: list[tuple[Any, ...]] = []
    for record in records:
        rows.append(
            (
                # A tombstone has no value. An empty line is rejected later, with its offset as
                # position.
                _decode_text(record.value()) or "",
                _decode_text(record.key()),
                record.partition(),
                record.offset(),
            )
        )
        if len(rows) == BATCH:
            yield _make_batch(rows)
            rows = []
    if rows:
        yield _make_batch(rows)


def _make_batch(rows: Sequence[tuple[Any, ...]]) -> pyarrow.RecordBatch:
    # Explicit types: a batch of nulls only would become Arrow's null type, which Spark rejects.
    types = (pyarrow.string(), pyarrow.string(), pyarrow.int32(), pyarrow.int64())
    names = [column.split()[0] for column in COLUMNS.split(", ")]
    columns = zip(zip(*rows, strict=True), types, strict=True)
    return pyarrow.RecordBatch.from_arrays(
        [pyarrow.array(values, kind) for values, kind in columns], names=names
    )


def _decode_text(data: str | bytes | None) -> str | None:
    # Bad bytes must not fail the task: the line then fails its hash and goes to quarantine.
    return data.decode("utf-8", "replace") if isinstance(data, bytes) else data
