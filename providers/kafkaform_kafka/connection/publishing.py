"""Copy records to a topic: each once, in order, and again only from where the topic ends.

What was published before is found in the topic itself, so nothing has to be remembered between
runs. Records of one key go to one partition; their numbers stand in a header.
"""

from __future__ import annotations

import logging
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from msgspec import Struct

from kafkaform.core.errors import KafkaformError
from kafkaform.core.value import FrozenMap
from kafkaform.provider.contract import Secrets

from .clients import NATIVE_LOGGER, fence_logs, native_config
from .cluster_proof import Proof
from .native import NATIVE, oauth_config, open_native
from .settings import read_settings
from .tokens import open_token_source

NUMBER = "seq"
WINDOW = 1_000
"""How many records are read at first, from the end, to find the last one of a key."""
_PAUSE = 0.1
PATIENCE = 30.0
"""Seconds without any progress after which publishing is given up."""
QUEUED, QUEUED_KILOBYTES = 10_000, 65_536
BATCH = 65_536
"""Bytes that travel together, if it is more than one record: a topic's limit is on what it gets at
once, and one for small records must not refuse many of them."""
_AFTERMATH = frozenset({KafkaError._FATAL, KafkaError._GAPLESS_GUARANTEE, KafkaError._PURGE_QUEUE})
_ADVICE = {
    "UNKNOWN_TOPIC_OR_PART": "Declare it as a kafka_topic; it is never created by the way.",
    **dict.fromkeys(
        # The latter is the answer to a producer that may write to no topic at all.
        ("TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED"),
        "Grant Describe, Read and Write on the topic to this user.",
    ),
    "MSG_SIZE_TOO_LARGE": "Raise max.message.bytes of the topic, and run the command again.",
}
"""librdkafka's name of the cause -> what to do."""


class NumberedRecord(Struct, frozen=True):
    """One record to publish. number: grows by one."""

    number: int
    value: bytes


class DeliveryState(Struct):
    """What became of the records. last: the highest number that arrived; refused: why no more
    may be sent."""

    last: int = 0
    refused: KafkaError | None = None

    def note_delivery(self, number: int, error: KafkaError | None, _: Message) -> None:
        """librdkafka's delivery callback; it keeps the order."""
        if error is not None:
            self.fail(error)
        elif self.refused is None:
            self.last = number

    def fail(self, error: KafkaError) -> None:
        """Keep the first cause. That nothing can be sent any more is none: it has one."""
        if self.refused is None or self.refused.code() in _AFTERMATH:
            self.refused = error


class PublishResult(Struct, frozen=True):
    """before: the number of the last record that the topic already had, 0 for none; last: the
    one that it has now."""

    before: int
    last: int


def publish(
    instance: str,
    config: FrozenMap,
    secrets: Secrets,
    topic: str,
    key: str,
    entries: Iterable[NumberedRecord],
) -> PublishResult:
    """Append what the topic lacks of these entries; returns when every replica in sync has it.

    Raises KafkaformError: no such topic, a missing right, a record that is too large.
    """
    fence_logs()
    settings = read_settings(instance, config, secrets)
    tokens = open_token_source(settings)
    proof = open_native(settings, tokens).proof  # names the cause if nobody answers
    native = {
        **native_config(settings),
        **oauth_config(tokens),
        "logger": logging.getLogger(NATIVE_LOGGER),
    }
    partition, before = _find_last_number(native, proof, topic, key)
    todo = (entry for entry in entries if entry.number > before)
    return PublishResult(
        before, _send_records(native, proof, topic, partition, key, todo) or before
    )


def _read_metadata(client: Consumer | Producer, proof: Proof, topic: str) -> Any:
    """The topic's metadata, from a cluster that is proven to be the one that answered first. Raises
    OtherSystem, KafkaException."""
    found = client.list_topics(topic, timeout=PATIENCE)
    if found.cluster_id is not None:
        proof.hear(NATIVE, found.cluster_id)
        proof.refuse()
    return found.topics[topic]


# ── what the topic has ──────────────────────────────────────────────────────────────────


def _find_last_number(
    native: Mapping[str, Any], proof: Proof, topic: str, key: str
) -> tuple[int, int]:
    """The partition of the key, and the number of its last record there, 0 for none."""
    reader = Consumer(
        {
            **native,
            "group.id": "kafkaform-publish",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "allow.auto.create.topics": False,
            "fetch.wait.max.ms": 50,  # most of the time there is nothing to wait for
        }
    )
    try:
        found = _read_metadata(reader, proof, topic)
        if found.error is not None:
            raise _make_refusal(topic, found.error)
        # The topic may get more partitions, so the last record is looked for in all of them.
        last = max(
            _search_last_number(reader, TopicPartition(topic, n), key) for n in found.partitions
        )
        return zlib.crc32(key.encode()) % len(found.partitions), last
    except KafkaException as error:
        raise _make_refusal(topic, error.args[0]) from None
    finally:
        reader.close()


def _read_bounds(reader: Consumer, place: TopicPartition) -> tuple[int, int]:
    """The first and the next offset. Of a partition that was just made, or that moves, a broker may
    not know yet that it leads it; that passes."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            low, high = reader.get_watermark_offsets(place, timeout=PATIENCE)
            return low, high
        except KafkaException as error:
            moves = error.args[0].code() == KafkaError.NOT_LEADER_FOR_PARTITION
            if not moves or time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE)


def _search_last_number(reader: Consumer, place: TopicPartition, key: str) -> int:
    """The highest number of this key in a partition: looked for from its end, in windows that
    double until it is found."""
    low, high = _read_bounds(reader, place)
    start, window = high, WINDOW
    while start > low:
        end, start = start, max(low, start - window)
        found = max((n for n in _read_numbers(reader, place, key, start, end)), default=0)
        if found:
            return found
        window *= 2
    return 0


def _read_numbers(
    reader: Consumer, place: TopicPartition, key: str, start: int, end: int
) -> Iterator[int]:
    """The numbers of this key between two offsets."""
    reader.assign([TopicPartition(place.topic, place.partition, start)])
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        message = reader.poll(0.5)
        if message is None:
            continue
        error = message.error()
        if error is not None:
            if error.code() == KafkaError._PARTITION_EOF:
                return
            if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
                continue  # its name is all that there is of a group: nothing is committed
            raise KafkaException(error)
        deadline = time.monotonic() + PATIENCE
        offset = message.offset()
        assert offset is not None  # a message that was read has one
        if offset >= end:
            return
        if message.key() == key.encode():
            yield _parse_number(message)
        if offset == end - 1:
            return
    raise KafkaformError(
        f"the topic {place.topic} could not be read to its end",
        "Run the command again; nothing was published.",
    )


def _parse_number(message: Message) -> int:
    """Of a record that somebody else wrote under our key: 0."""
    text = dict(message.headers() or ()).get(NUMBER, b"")
    return int(text) if isinstance(text, bytes) and text.isdigit() else 0


# ── sending ─────────────────────────────────────────────────────────────────────────────


def _send_records(
    native: Mapping[str, Any],
    proof: Proof,
    topic: str,
    partition: int,
    key: str,
    entries: Iterable[NumberedRecord],
) -> int:
    """The number of the last record that is there for certain, 0 if none was to be sent."""
    done = DeliveryState()
    writer = Producer(
        {
            **native,
            "acks": "all",
            "enable.idempotence": True,
            "enable.gapless.guarantee": True,
            "compression.type": "zstd",
            "batch.size": BATCH,
            "queue.buffering.max.messages": QUEUED,
            "queue.buffering.max.kbytes": QUEUED_KILOBYTES,
            "delivery.timeout.ms": int(PATIENCE * 1000),
        }
    )
    try:
        _read_metadata(writer, proof, topic)
    except KafkaException as error:
        raise _make_refusal(topic, error.args[0]) from None
    for entry in entries:
        _queue_record(writer, topic, partition, key, entry, done)
        if done.refused is not None:
            break
    left = _flush_records(writer, done)
    if done.refused is not None:
        raise _make_refusal(topic, done.refused)
    if left:
        raise KafkaformError(
            f"{left} records did not arrive in the topic {topic} within {PATIENCE:.0f} s",
            "Run the command again; it goes on where the topic ends.",
        )
    return done.last


def _queue_record(
    writer: Producer,
    topic: str,
    partition: int,
    key: str,
    entry: NumberedRecord,
    done: DeliveryState,
) -> None:
    while done.refused is None:
        with _catch_fatal(done):
            try:
                writer.produce(
                    topic,
                    entry.value,
                    key,
                    partition,
                    on_delivery=partial(done.note_delivery, entry.number),
                    headers={NUMBER: str(entry.number)},
                )
                writer.poll(0)
                return
            except BufferError:  # as many as may wait are waiting
                writer.poll(0.1)


def _flush_records(writer: Producer, done: DeliveryState) -> int:
    """How many records are left when all have arrived, or none does any more."""
    left, before = len(writer), len(writer) + 1
    while done.refused is None and 0 < left < before:
        left, before = 0, left
        with _catch_fatal(done):
            left = writer.flush(PATIENCE)
    return left


@contextmanager
def _catch_fatal(done: DeliveryState) -> Iterator[None]:
    """A fatal error is raised by whatever serves callbacks next: as itself, or out of a callback,
    which then cannot end well."""
    try:
        yield
    except (KafkaException, SystemError) as error:
        cause = error.__cause__ if isinstance(error, SystemError) else error
        if not isinstance(cause, KafkaException):
            raise
        done.fail(cause.args[0])


def _make_refusal(topic: str, error: KafkaError) -> KafkaformError:
    advice = _ADVICE.get(str(error.name()), "Run the command again; it goes on where it ended.")
    return KafkaformError(f"the topic {topic} cannot take the records: {error.str()}", advice)
