"""What people read about configs while they write them: meaning, default, unit and valid values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial

from kafkaform.core.schema import KeySchema

from .broker_keys import UpdateMode, broker_keys
from .config_keys import (
    BROKER_DEFAULTS,
    BROKER_TIMES,
    GROUP_KEYS,
    METRICS_KEYS,
    TOPIC_KEYS,
    ConfigKey,
)

TOPIC_PAGES: Mapping[str, str] = {
    "cleanup.policy": "What happens to old records: delete removes them, compact keeps the last "
    "one of each key; both together do both.",
    "compression.gzip.level": "How hard gzip compresses, if brokers compress with it.",
    "compression.lz4.level": "How hard lz4 compresses, if brokers compress with it.",
    "compression.type": "How records are compressed on brokers; producer: as they arrive.",
    "compression.zstd.level": "How hard zstd compresses, if brokers compress with it.",
    "delete.retention.ms": "How long compaction keeps the record that says that a key is deleted.",
    "file.delete.delay.ms": "How long a file stays on the disk after its segment was deleted.",
    "flush.messages": "After how many records a broker forces them to the disk. Usually replicas "
    "protect records, not this.",
    "flush.ms": "After how long a broker forces records to the disk. Usually replicas protect "
    "records, not this.",
    "follower.replication.throttled.replicas": "Replicas whose copying is limited on the side that "
    "receives. Tools that move replicas set it.",
    "index.interval.bytes": "How many bytes of records lie between two entries of the index.",
    "leader.replication.throttled.replicas": "Replicas whose copying is limited on the side that "
    "sends. Tools that move replicas set it.",
    "local.retention.bytes": "With tiered storage: how much of a partition stays on brokers' "
    "disks. -2: as retention.bytes says.",
    "local.retention.ms": "With tiered storage: how long records stay on brokers' disks. -2: as "
    "retention.ms says.",
    "max.compaction.lag.ms": "The longest time that a record can stay without compaction.",
    "max.message.bytes": "The largest batch of records that is accepted, after compression.",
    "message.downconversion.enable": "Whether brokers convert records for very old consumers.",
    "message.format.version": "The format of records on the disk, as the version of Kafka that "
    "introduced it.",
    "message.timestamp.after.max.ms": "How far in the future the timestamp of a record can be.",
    "message.timestamp.before.max.ms": "How far in the past the timestamp of a record can be.",
    "message.timestamp.difference.max.ms": "How far the timestamp of a record can be from the "
    "broker's clock.",
    "message.timestamp.type": "Who sets the timestamp: the producer (CreateTime) or the broker "
    "(LogAppendTime).",
    "min.cleanable.dirty.ratio": "The share of a log that is not compacted yet from which "
    "compaction begins.",
    "min.compaction.lag.ms": "How long a record stays as it is before compaction can remove it.",
    "min.insync.replicas": "How many replicas must have a record before a producer with acks=all "
    "gets its answer. With fewer, its writes are refused.",
    "preallocate": "Whether the file of a new segment gets its whole size at once.",
    "remote.log.copy.disable": "With tiered storage: whether new segments stay on brokers' disks.",
    "remote.log.delete.on.disable": "Whether the copies in tiered storage are deleted when tiered "
    "storage is turned off.",
    "remote.storage.enable": "Whether old segments are moved to tiered storage.",
    "retention.bytes": "How large a partition can become before its oldest records are deleted. "
    "-1: without limit.",
    "retention.ms": "How long records are kept. -1: without limit.",
    "segment.bytes": "How large a file of the log becomes. Retention and compaction work on whole "
    "files.",
    "segment.index.bytes": "How large the index of a segment can become.",
    "segment.jitter.ms": "How much earlier, at random, a segment can end, so that not all end at "
    "once.",
    "segment.ms": "After how long a segment ends although it is not full.",
    "unclean.leader.election.enable": "Whether a replica that lacks records can become the leader. "
    "Then those records are lost.",
}
"""Config of a topic -> its meaning."""

GROUP_PAGES: Mapping[str, str] = {
    "assignment.interval.ms": "The shortest time between two assignments of partitions.",
    "heartbeat.interval.ms": "How often members say that they are alive.",
    "session.timeout.ms": "After how long without a heartbeat a member counts as gone.",
    "auto.offset.reset": "Where a new group begins: earliest, latest, or by a duration before now.",
    "delivery.count.limit": "How often a record is delivered before it is given up.",
    "isolation.level": "Whether records of transactions that are not committed are delivered.",
    "partition.max.record.locks": "How many records of a partition can be in delivery at once.",
    "record.lock.duration.ms": "How long a member has for a record before another one gets it.",
    "renew.acknowledge.enable": "Whether a member can ask for more time for a record.",
    "initial.rebalance.delay.ms": "How long a new group waits for members before it assigns tasks.",
    "num.standby.replicas": "How many copies of each local store are kept on other members.",
}
"""Config of a group, without the kind of the group in front -> its meaning."""

METRICS_PAGES: Mapping[str, str] = {
    "interval.ms": "How often clients send their metrics.",
    "match": "Which clients send them: NAME=PATTERN, all of which must match. Empty: all clients.",
    "metrics": "Prefixes of the names of metrics; empty: none, * for all of them.",
}
"""Config of a subscription to client metrics -> its meaning."""

_MODES: Mapping[UpdateMode, str] = {
    UpdateMode.CLUSTER: "It can be set for one broker or for all brokers.",
    UpdateMode.BROKER: "It can be set for one broker only.",
    UpdateMode.LISTENER: "It can be set for a listener of one broker, with the prefix "
    "listener.name.NAME.",
}


def render_range(key: ConfigKey) -> str:
    """The valid numbers with their unit: `from 0 ms`; empty for other types."""
    if key.kind not in ("int", "long", "double"):
        return ""
    low = "" if key.low is None else f"from {key.low}"
    high = "" if key.high is None else f"to {key.high}"
    also = "".join(f"or {number}" for number in key.also)
    return " ".join(phrase for phrase in (low, high, also, key.unit) if phrase)


def make_key_schema(key: ConfigKey, doc: str, *, secret: bool = False) -> KeySchema:
    """A config for people."""
    choices = ("true", "false") if key.kind == "boolean" else key.choices
    since = f"Since Kafka {key.since}." if key.since else ""
    text = " ".join(sentence for sentence in (doc, since) if sentence)
    return KeySchema(key.name, key.kind, text, key.default, key.unit, render_range(key), choices)


def list_topic_keys() -> tuple[KeySchema, ...]:
    """The configs of topics."""
    return _list_keys(TOPIC_KEYS.values(), TOPIC_PAGES.__getitem__)


def list_group_keys() -> tuple[KeySchema, ...]:
    """The configs of groups."""
    return _list_keys(GROUP_KEYS.values(), _find_group_page)


def list_metrics_keys() -> tuple[KeySchema, ...]:
    """The configs of subscriptions to client metrics."""
    return _list_keys(METRICS_KEYS.values(), METRICS_PAGES.__getitem__)


@cache
def _list_broker_keys(modes: frozenset[UpdateMode], secret: bool) -> tuple[KeySchema, ...]:
    return tuple(
        make_key_schema(broker_key.key, _find_broker_page(name, broker_key.mode))
        for name, broker_key in broker_keys().items()
        if broker_key.mode in modes and broker_key.secret is secret
    )


_CLUSTER = frozenset({UpdateMode.CLUSTER})
_BROKER = frozenset({UpdateMode.CLUSTER, UpdateMode.BROKER, UpdateMode.LISTENER})
list_cluster_keys = partial(_list_broker_keys, _CLUSTER, False)
"""The configs of all brokers."""
list_broker_keys = partial(_list_broker_keys, _BROKER, False)
"""The configs of one broker."""
list_broker_secrets = partial(_list_broker_keys, _BROKER, True)
"""The configs of one broker whose values it never reveals."""


def _list_keys(keys: Iterable[ConfigKey], find_page: Callable[[str], str]) -> tuple[KeySchema, ...]:
    return tuple(make_key_schema(key, find_page(key.name)) for key in keys)


def _find_group_page(name: str) -> str:
    kind, _, suffix = name.partition(".")
    return f"{GROUP_PAGES[suffix]} For {kind} groups."


@cache
def _get_default_setters() -> Mapping[str, str]:
    """Config of brokers -> the config of topics whose default it is."""
    times = {
        broker_config: topic
        for topic, sources in BROKER_TIMES.items()
        for broker_config, _ in sources
    }
    return {**{broker: topic for topic, broker in BROKER_DEFAULTS.items()}, **times}


def _find_broker_page(name: str, mode: UpdateMode) -> str:
    topic = _get_default_setters().get(name)
    doc = f"The default of the topics' {topic}. {TOPIC_PAGES[topic]} " if topic else ""
    return doc + _MODES[mode]
