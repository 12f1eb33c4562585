"""The configs of topics, groups and client metrics of Kafka 3.0 to 4.3: type, unit, valid values,
and the releases that have them.

Configs of brokers are in `broker_keys`. Ranges and defaults are those of Kafka 4.3. A broker of
another version, or with limits of its own, decides in the dry run. Source: `LogConfig`,
`GroupConfig` and `ClientMetricsConfigs` of each release.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from msgspec import Struct

INT_MAX, LONG_MAX = 2**31 - 1, 2**63 - 1


# The types are a table, because `validate` checks values without a cluster. DescribeConfigs returns
# types only from version 3 on, and librdkafka uses version 1.
class ConfigKey(Struct, frozen=True):
    """One config."""

    name: str
    kind: str
    """int, long, short, double, boolean, string, list, class or password."""
    default: str
    """Kafka's default, which applies unless a broker config overrides it."""
    unit: str = ""
    """ms, bytes, bytes/s or empty."""
    low: int | None = None
    """The lowest number."""
    high: int | None = None
    """The highest number."""
    also: tuple[int, ...] = ()
    """Valid numbers outside that range."""
    choices: tuple[str, ...] = ()
    """Valid words."""
    ordered: bool = True
    """True if the order of a list's elements counts."""
    since: str = ""
    """The first release that has it, empty if 3.0 does."""
    until: str = ""
    """The first release that does not have it any more, empty if the newest one does."""
    lower: tuple[str, int] | None = None
    """A release, and the lowest number in the releases before it."""

    def allows(self, number: Decimal) -> bool:
        """True if the number is in range."""
        low = self.low if self.low is not None else -LONG_MAX - 1
        return number in self.also or low <= number <= self.limit

    @property
    def limit(self) -> int:
        """The highest valid number."""
        widest = INT_MAX if self.kind == "int" else LONG_MAX
        return widest if self.high is None else self.high


_CODECS = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")

_KEYS = (
    # An empty list is valid since Kafka 4.2 (KIP-1161): records are kept without limit.
    ConfigKey("cleanup.policy", "list", "delete", choices=("compact", "delete"), ordered=False),
    ConfigKey("compression.gzip.level", "int", "-1", low=1, high=9, also=(-1,), since="3.8"),
    ConfigKey("compression.lz4.level", "int", "9", low=1, high=17, since="3.8"),
    ConfigKey("compression.type", "string", "producer", choices=_CODECS),
    ConfigKey("compression.zstd.level", "int", "3", low=-131072, high=22, since="3.8"),
    ConfigKey("delete.retention.ms", "long", "86400000", "ms", 0),
    ConfigKey("file.delete.delay.ms", "long", "60000", "ms", 0),
    ConfigKey("flush.messages", "long", "9223372036854775807", "", 1, lower=("3.3", 0)),
    ConfigKey("flush.ms", "long", "9223372036854775807", "ms", 0),
    ConfigKey("follower.replication.throttled.replicas", "list", ""),
    ConfigKey("index.interval.bytes", "int", "4096", "bytes", 0),
    ConfigKey("leader.replication.throttled.replicas", "list", ""),
    # -2: the value of retention.bytes or retention.ms (KIP-405). Kafka 3.0 to 3.5 accept the three
    # configs of tiered storage, which they neither list nor use.
    ConfigKey("local.retention.bytes", "long", "-2", "bytes", -2, since="3.6"),
    ConfigKey("local.retention.ms", "long", "-2", "ms", -2, since="3.6"),
    ConfigKey("max.compaction.lag.ms", "long", "9223372036854775807", "ms", 1),
    ConfigKey("max.message.bytes", "int", "1048588", "bytes", 0),
    # One hour since Kafka 4.0, before that without limit (KIP-1030).
    ConfigKey("message.timestamp.after.max.ms", "long", "3600000", "ms", 0, since="3.6"),
    ConfigKey(
        "message.timestamp.before.max.ms", "long", "9223372036854775807", "ms", 0, since="3.6"
    ),
    ConfigKey(
        "message.timestamp.type", "string", "CreateTime", choices=("CreateTime", "LogAppendTime")
    ),
    ConfigKey("min.cleanable.dirty.ratio", "double", "0.5", "", 0, 1),
    ConfigKey("min.compaction.lag.ms", "long", "0", "ms", 0),
    ConfigKey("min.insync.replicas", "int", "1", "", 1),
    ConfigKey("preallocate", "boolean", "false"),
    ConfigKey("remote.log.copy.disable", "boolean", "false", since="3.9"),
    ConfigKey("remote.log.delete.on.disable", "boolean", "false", since="3.9"),
    ConfigKey("remote.storage.enable", "boolean", "false", since="3.6"),
    ConfigKey("retention.bytes", "long", "-1", "bytes"),
    ConfigKey("retention.ms", "long", "604800000", "ms", -1),
    # At least 1 MiB since Kafka 4.1; the brokers' log.segment.bytes already since 4.0 (KIP-1030).
    ConfigKey("segment.bytes", "int", "1073741824", "bytes", 1024 * 1024, lower=("4.1", 14)),
    ConfigKey("segment.index.bytes", "int", "10485760", "bytes", 4, lower=("3.3", 0)),
    ConfigKey("segment.jitter.ms", "long", "0", "ms", 0),
    ConfigKey("segment.ms", "long", "604800000", "ms", 1),
    ConfigKey("unclean.leader.election.enable", "boolean", "false"),
)

TOPIC_KEYS: Mapping[str, ConfigKey] = {key.name: key for key in _KEYS}
"""The configs of the newest release."""

_OLD_KEYS = (
    ConfigKey("message.downconversion.enable", "boolean", "true", until="4.0"),
    ConfigKey("message.format.version", "string", "3.0-IV1", until="4.0"),
    ConfigKey(
        "message.timestamp.difference.max.ms", "long", "9223372036854775807", "ms", 0, until="4.0"
    ),
)

ALL_TOPIC_KEYS: Mapping[str, ConfigKey] = {
    **TOPIC_KEYS,
    **{key.name: key for key in _OLD_KEYS},
}
"""The configs of all releases."""

OLD_DEFAULTS: Mapping[str, tuple[str, str]] = {
    "message.timestamp.after.max.ms": ("4.0", "9223372036854775807"),  # KIP-1030
}
"""Topic config -> a release, and the default in the releases before it."""

# `consumer.*` are of KIP-848, `share.*` of KIP-932, `streams.*` of KIP-1071. Classic groups have no
# configs on the cluster: their consumers bring them along.
_GROUP_KEYS = (
    ConfigKey("consumer.assignment.interval.ms", "int", "1000", "ms", 0, since="4.3"),
    ConfigKey("consumer.heartbeat.interval.ms", "int", "5000", "ms", 1),
    ConfigKey("consumer.session.timeout.ms", "int", "45000", "ms", 1),
    ConfigKey("share.assignment.interval.ms", "int", "1000", "ms", 0, since="4.3"),
    ConfigKey("share.auto.offset.reset", "string", "latest"),
    ConfigKey("share.delivery.count.limit", "int", "5", "", 2, since="4.3"),
    ConfigKey("share.heartbeat.interval.ms", "int", "5000", "ms", 1),
    ConfigKey(
        "share.isolation.level",
        "string",
        "read_uncommitted",
        choices=("read_committed", "read_uncommitted"),
        since="4.1",
    ),
    ConfigKey("share.partition.max.record.locks", "int", "2000", "", 100, since="4.3"),
    ConfigKey("share.record.lock.duration.ms", "int", "30000", "ms", 1000),
    ConfigKey("share.renew.acknowledge.enable", "boolean", "true", since="4.3"),
    ConfigKey("share.session.timeout.ms", "int", "45000", "ms", 1),
    ConfigKey("streams.assignment.interval.ms", "int", "1000", "ms", 0, since="4.3"),
    ConfigKey("streams.heartbeat.interval.ms", "int", "5000", "ms", 1, since="4.1"),
    ConfigKey("streams.initial.rebalance.delay.ms", "int", "3000", "ms", 0, since="4.2"),
    ConfigKey("streams.num.standby.replicas", "int", "0", "", 0, since="4.1"),
    ConfigKey("streams.session.timeout.ms", "int", "45000", "ms", 1, since="4.1"),
)
"""Typed as in Kafka's GroupConfig; a broker adds its own limits (group.*.min.*, group.*.max.*).
Groups have configs since Kafka 4.0."""

GROUP_KEYS: Mapping[str, ConfigKey] = {key.name: key for key in _GROUP_KEYS}

METRICS_KEYS: Mapping[str, ConfigKey] = {
    key.name: key
    for key in (
        ConfigKey("interval.ms", "int", "300000", "ms", 100, 3_600_000),
        ConfigKey("match", "list", "", ordered=False),
        ConfigKey("metrics", "list", "", ordered=False),
    )
}
"""Typed as in Kafka's ClientMetricsConfigs (KIP-714)."""

MATCHES = (
    "client_id",
    "client_instance_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)
"""The client properties that a client metrics subscription can match (KIP-714)."""

# DescribeConfigs lists these neither as synonyms nor under the topic's name, so the value that
# takes effect below an override has to be computed.
BROKER_TIMES: Mapping[str, tuple[tuple[str, int], ...]] = {
    "retention.ms": (
        ("log.retention.ms", 1),
        ("log.retention.minutes", 60_000),
        ("log.retention.hours", 3_600_000),
    ),
    "segment.ms": (("log.roll.ms", 1), ("log.roll.hours", 3_600_000)),
    "segment.jitter.ms": (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", 3_600_000)),
    "flush.ms": (("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)),
}
"""Topic config -> broker configs that set its default, the strongest first, with the milliseconds
in their unit."""

BROKER_DEFAULTS: Mapping[str, str] = {
    "cleanup.policy": "log.cleanup.policy",
    "compression.type": "compression.type",
    "delete.retention.ms": "log.cleaner.delete.retention.ms",
    "flush.messages": "log.flush.interval.messages",
    "local.retention.bytes": "log.local.retention.bytes",
    "local.retention.ms": "log.local.retention.ms",
    "max.compaction.lag.ms": "log.cleaner.max.compaction.lag.ms",
    "max.message.bytes": "message.max.bytes",
    "message.timestamp.after.max.ms": "log.message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms": "log.message.timestamp.before.max.ms",
    "message.timestamp.type": "log.message.timestamp.type",
    "min.compaction.lag.ms": "log.cleaner.min.compaction.lag.ms",
    "min.insync.replicas": "min.insync.replicas",
    "retention.bytes": "log.retention.bytes",
    "unclean.leader.election.enable": "unclean.leader.election.enable",
}
"""Topic config -> the broker config that sets its default (ServerTopicConfigSynonyms), of those
whose change can do harm; the times are in BROKER_TIMES."""

TOPIC_COUNTERPARTS: Mapping[str, str] = {
    **{broker: topic for topic, broker in BROKER_DEFAULTS.items()},
    **{broker: topic for topic, sources in BROKER_TIMES.items() for broker, _ in sources},
    "default.replication.factor": "replication_factor of the kafka_topic",
    "log.cleaner.min.cleanable.ratio": "min.cleanable.dirty.ratio",
    "log.index.interval.bytes": "index.interval.bytes",
    "log.index.size.max.bytes": "segment.index.bytes",
    "log.message.downconversion.enable": "message.downconversion.enable",
    "log.message.format.version": "message.format.version",
    "log.message.timestamp.difference.max.ms": "message.timestamp.difference.max.ms",
    "log.preallocate": "preallocate",
    "log.segment.bytes": "segment.bytes",
    "log.segment.delete.delay.ms": "file.delete.delay.ms",
    "num.partitions": "partitions of the kafka_topic",
}
"""Config of brokers -> what sets the same for one topic (ServerTopicConfigSynonyms)."""

# Whoever moves replicas writes these into the configs of others (KIP-73), so a plan must not take
# them for drift. Reassignment tools remove them afterwards.
THROTTLES: Mapping[str, tuple[str, ...]] = {
    "topic": ("follower.replication.throttled.replicas", "leader.replication.throttled.replicas"),
    "broker": (
        "follower.replication.throttled.rate",
        "leader.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    ),
}
"""Resource -> the replication throttles that are set for a move and removed after it."""

MIN_IN_SYNC = "min.insync.replicas"
# With ELR (KIP-966, on by default since 4.1) the cluster has a dynamic min.insync.replicas from
# birth, which nobody declared. Removing it fails with INVALID_CONFIG (40), and so does setting it
# for one broker. A topic loses its own like any other config.
IRREMOVABLE: Mapping[str, tuple[str, ...]] = {"broker": (MIN_IN_SYNC,)}
"""Resource -> configs of the cluster and of one broker that ELR clusters refuse to remove."""

REPLACEMENTS: Mapping[str, tuple[str, ...]] = {
    "message.timestamp.difference.max.ms": (
        "message.timestamp.before.max.ms",
        "message.timestamp.after.max.ms",
    ),
    "log.message.timestamp.difference.max.ms": (
        "log.message.timestamp.before.max.ms",
        "log.message.timestamp.after.max.ms",
    ),
}
"""Removed config -> the configs that replaced it (KIP-937)."""

AT_BROKERS: Mapping[str, str] = {
    "local.retention.bytes": "log.local.retention.bytes",
    "local.retention.ms": "log.local.retention.ms",
    "message.downconversion.enable": "log.message.downconversion.enable",
    "message.format.version": "log.message.format.version",
    "message.timestamp.after.max.ms": "log.message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms": "log.message.timestamp.before.max.ms",
    "message.timestamp.difference.max.ms": "log.message.timestamp.difference.max.ms",
}
"""Topic config of some releases -> the broker config of the same releases."""
