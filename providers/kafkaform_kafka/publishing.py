"""Copy numbered records to a topic: each once and in order.

The topic itself shows what was published before, so nothing has to be remembered between runs. All
records of a key are in one partition, and a header has the number of each.
"""

from __future__ import annotations

import logging
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from msgspec import Struct

from kafkaform.core.errors import ConfigurationError, KafkaformError
from kafkaform.core.value import FrozenMap
from kafkaform.provider.contract import Secrets

from .connection.login_attributes import OAUTHBEARER
from .connection.settings import (
    LIBRDKAFKA_LOGGER,
    ClusterProof,
    KafkaSettings,
    fence_logs,
    make_librdkafka_config,
    read_settings,
)
from .connection.tokens import open_token_source
from .wire.client import open_wire

NATIVE = "one of bootstrap_servers"
"""Where an answer comes from: librdkafka does not say which broker gave it."""

NUMBER = "seq"
WINDOW = 1_000
"""How many records at the end are read first to find the last one of a key."""
_PAUSE = 0.1
PATIENCE = 30.0
"""Seconds without progress after which publishing ends."""
CAUSE_PATIENCE = 5.0
"""Seconds to wait for the cause of a failure that is known already."""
QUEUED, QUEUED_KILOBYTES = 10_000, 65_536
# max.message.bytes of a topic limits a whole batch, not one record. Larger batches of small records
# would be refused by a topic whose limit fits its records.
BATCH = 65_536
"""The largest batch, in bytes."""
# These follow another error: the idempotent producer gives up all that is queued. They never name
# the cause.
_AFTERMATH = frozenset({KafkaError._FATAL, KafkaError._GAPLESS_GUARANTEE, KafkaError._PURGE_QUEUE})
_ADVICE = {
    "UNKNOWN_TOPIC_OR_PART": "Declare it as a kafka_topic. This command never creates it.",
    **dict.fromkeys(
        # The second one is the answer to a producer that can write to no topic at all (KIP-679).
        ("TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED"),
        "Grant Describe, Read and Write on the topic to this user.",
    ),
    "MSG_SIZE_TOO_LARGE": "Raise max.message.bytes of the topic, and run the command again.",
}
"""librdkafka's name for the cause -> what to do."""


class NumberedRecord(Struct, frozen=True):
    """One record to publish."""

    number: int
    """One more than that of the record before."""
    value: bytes


class DeliveryState(Struct):
    """Which records have arrived."""

    last: int = 0
    """The highest number that has arrived."""
    refused: KafkaError | None = None
    """Why no more can be sent."""

    def note_delivery(self, number: int, error: KafkaError | None, _: Message) -> None:
        """librdkafka's delivery callback, called in the order of the records."""
        if error is not None:
            self.fail(error)
        elif self.refused is None:
            self.last = number

    def fail(self, error: KafkaError) -> None:
        """Keep the first error that names a cause."""
        if self.refused is None or self.refused.code() in _AFTERMATH:
            self.refused = error


class PublishResult(Struct, frozen=True):
    """What publishing changed."""

    before: int
    """Number of the last record that the topic had before, 0 for none."""
    last: int
    """Number of the last record that it has now."""


def publish(
    instance: str,
    config: FrozenMap,
    secrets: Secrets,
    topic: str,
    key: str,
    list_entries: Callable[[int], Iterable[NumberedRecord]],
) -> PublishResult:
    """Append the entries that the topic does not have. Returns when every replica in sync has them.

    list_entries: called with the number of the last record that the topic has; returns at least
    all later ones. Raises KafkaformError for a missing topic, a missing right and a record that is
    too large.
    """
    fence_logs()
    settings = read_settings(instance, config, secrets)
    if settings.kerberos is not None or settings.token_auth:
        raise ConfigurationError(
            f'provider "{instance}" cannot publish records: it logs in with a delegation token or '
            "with Kerberos, and confluent-kafka, which publishes them, has neither",
            "Publish with a provider block that logs in with a password, a certificate or "
            "oauthbearer.",
        )
    # A producer and a consumer only time out if they cannot connect; this connection names the
    # cause, and the cluster.
    wire = open_wire(settings)
    wire.close()
    proof = ClusterProof(instance, wire.cluster_id)
    native = {**_log_in(settings), "logger": logging.getLogger(LIBRDKAFKA_LOGGER)}
    partition, before = _find_last_number(native, proof, topic, key)
    todo = (entry for entry in list_entries(before) if entry.number > before)
    return PublishResult(
        before, _send_records(native, proof, topic, partition, key, todo) or before
    )


def _log_in(settings: KafkaSettings) -> Mapping[str, Any]:
    """librdkafka's settings. It asks for a token itself, and again before the token expires."""
    tokens = open_token_source(settings) if settings.mechanism == OAUTHBEARER else None
    if tokens is None:
        return make_librdkafka_config(settings)

    # It runs in a thread of librdkafka, where an exception counts as a failed login.
    def give_token(_: str) -> tuple[str, float]:
        token = tokens.get_token()
        return token.text.reveal(), token.expires

    return {**make_librdkafka_config(settings), "oauth_cb": give_token}


def _read_metadata(client: Consumer | Producer, proof: ClusterProof, topic: str) -> Any:
    """The metadata of the topic, from the cluster that answered first. Raises OtherSystem,
    KafkaException."""
    metadata = client.list_topics(topic, timeout=PATIENCE)
    if metadata.cluster_id is not None:
        proof.hear(NATIVE, metadata.cluster_id)
        proof.refuse()
    return metadata.topics[topic]


# ── what the topic has ──────────────────────────────────────────────────────────────────


def _find_last_number(
    native: Mapping[str, Any], proof: ClusterProof, topic: str, key: str
) -> tuple[int, int]:
    """The partition of the key, and the number of its last record there, 0 for none."""
    reader = Consumer(
        {
            **native,
            "group.id": "kafkaform-publish",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "allow.auto.create.topics": False,  # a consumer's metadata request creates topics
            "fetch.wait.max.ms": 50,  # at the end of a partition a broker waits 500 ms by default
        }
    )
    try:
        topic_metadata = _read_metadata(reader, proof, topic)
        if topic_metadata.error is not None:
            raise _make_refusal(topic, topic_metadata.error)
        # With more partitions a key belongs to another one, so the last record is looked for in
        # all.
        last = max(
            _search_last_number(reader, TopicPartition(topic, n), key)
            for n in topic_metadata.partitions
        )
        return zlib.crc32(key.encode()) % len(topic_metadata.partitions), last
    except KafkaException as error:
        raise _make_refusal(topic, error.args[0]) from None
    finally:
        reader.close()


def _read_bounds(reader: Consumer, partition: TopicPartition) -> tuple[int, int]:
    """The first and the next offset of a partition."""
    # NOT_LEADER_OR_FOLLOWER passes: a broker applies the metadata log later than the controller
    # writes it, so it may not know yet that it leads a new or a moved partition.
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            low, high = reader.get_watermark_offsets(partition, timeout=PATIENCE)
            return low, high
        except KafkaException as error:
            moves = error.args[0].code() == KafkaError.NOT_LEADER_FOR_PARTITION
            if not moves or time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE)


def _search_last_number(reader: Consumer, partition: TopicPartition, key: str) -> int:
    """The highest number of this key in a partition, 0 if there is none."""
    # From the end, in windows that double: mostly the last record is near, and a log of years is
    # read whole only if the key is not in it.
    low, high = _read_bounds(reader, partition)
    start, window = high, WINDOW
    while start > low:
        end, start = start, max(low, start - window)
        number = max((n for n in _read_numbers(reader, partition, key, start, end)), default=0)
        if number:
            return number
        window *= 2
    return 0


def _read_numbers(
    reader: Consumer, partition: TopicPartition, key: str, start: int, end: int
) -> Iterator[int]:
    """The numbers of this key between two offsets."""
    reader.assign([TopicPartition(partition.topic, partition.partition, start)])
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
                # assign() needs no group, but the client looks for its coordinator all the same.
                # The answer does not matter, because nothing is committed.
                continue
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
        f"the topic {partition.topic} could not be read to its end",
        "Run the command again; nothing was published.",
    )


def _parse_number(message: Message) -> int:
    """The number of a record; 0 for a record that somebody else wrote under our key."""
    text = dict(message.headers() or ()).get(NUMBER, b"")
    return int(text) if isinstance(text, bytes) and text.isdigit() else 0


# ── sending ─────────────────────────────────────────────────────────────────────────────


def _send_records(
    native: Mapping[str, Any],
    proof: ClusterProof,
    topic: str,
    partition: int,
    key: str,
    entries: Iterable[NumberedRecord],
) -> int:
    """The number of the last record that has certainly arrived, 0 if none was to be sent."""
    state = DeliveryState()
    writer = Producer(
        {
            **native,
            "acks": "all",
            # Neither a second copy nor another order after a lost answer (KIP-98). The gapless
            # guarantee ends the producer at the first record that cannot be sent, instead of
            # sending those behind it.
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
        _queue_record(writer, topic, partition, key, entry, state)
        if state.refused is not None:
            break
    pending = _flush_records(writer, state)
    _wait_for_cause(writer, state)
    if state.refused is not None:
        raise _make_refusal(topic, state.refused)
    if pending:
        raise KafkaformError(
            f"{pending} records did not arrive in the topic {topic} within {PATIENCE:.0f} s",
            "Run the command again; it continues where the topic ends.",
        )
    return state.last


def _queue_record(
    writer: Producer,
    topic: str,
    partition: int,
    key: str,
    entry: NumberedRecord,
    state: DeliveryState,
) -> None:
    while state.refused is None:
        with _catch_fatal(state):
            try:
                writer.produce(
                    topic,
                    entry.value,
                    key,
                    partition,
                    on_delivery=partial(state.note_delivery, entry.number),
                    headers={NUMBER: str(entry.number)},
                )
                writer.poll(0)
                return
            except BufferError:  # the queue is full
                writer.poll(0.1)


def _flush_records(writer: Producer, state: DeliveryState) -> int:
    """Wait until all records have arrived, or no more do. Returns how many are left."""
    pending, before = len(writer), len(writer) + 1
    while state.refused is None and 0 < pending < before:
        pending, before = 0, pending
        with _catch_fatal(state):
            pending = writer.flush(PATIENCE)
    return pending


def _wait_for_cause(writer: Producer, state: DeliveryState) -> None:
    """Serve callbacks until one of them names the cause of a failure."""
    # `produce` can meet the end of the producer before the callback that says why it ended.
    deadline = time.monotonic() + CAUSE_PATIENCE
    while (
        state.refused is not None
        and state.refused.code() in _AFTERMATH
        and time.monotonic() < deadline
    ):
        with _catch_fatal(state):
            writer.poll(_PAUSE)


@contextmanager
def _catch_fatal(state: DeliveryState) -> Iterator[None]:
    """Record a fatal error instead of raising it."""
    # A fatal error is raised by the next call that serves callbacks: as a KafkaException, or, if
    # that call is in C code, as the cause of a SystemError.
    try:
        yield
    except (KafkaException, SystemError) as error:
        cause = error.__cause__ if isinstance(error, SystemError) else error
        if not isinstance(cause, KafkaException):
            raise
        state.fail(cause.args[0])


def _make_refusal(topic: str, error: KafkaError) -> KafkaformError:
    advice = _ADVICE.get(str(error.name()), "Run the command again; it continues where it ended.")
    return KafkaformError(f"the topic {topic} does not accept records: {error.str()}", advice)
