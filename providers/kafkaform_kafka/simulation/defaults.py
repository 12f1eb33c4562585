"""The topic configs of a broker with default settings."""

from __future__ import annotations

from kafkaform.core.resource import Facts
from kafkaform.core.value import FrozenMap

from ..protocol.config_keys import ALL_TOPIC_KEYS
from ..protocol.releases import is_before, presence_faults

_NEVER = "9223372036854775807"

TOPIC_DEFAULTS = FrozenMap(
    {
        "cleanup.policy": "delete",
        "compression.gzip.level": "-1",
        "compression.lz4.level": "9",
        "compression.type": "producer",
        "compression.zstd.level": "3",
        "delete.retention.ms": "86400000",
        "file.delete.delay.ms": "60000",
        "flush.messages": _NEVER,
        "flush.ms": _NEVER,
        "follower.replication.throttled.replicas": "",
        "index.interval.bytes": "4096",
        "leader.replication.throttled.replicas": "",
        "local.retention.bytes": "-2",
        "local.retention.ms": "-2",
        "max.compaction.lag.ms": _NEVER,
        "max.message.bytes": "1048588",
        "message.timestamp.after.max.ms": "3600000",
        "message.timestamp.before.max.ms": _NEVER,
        "message.timestamp.type": "CreateTime",
        "min.cleanable.dirty.ratio": "0.5",
        "min.compaction.lag.ms": "0",
        "min.insync.replicas": "1",
        "preallocate": "false",
        "remote.log.copy.disable": "false",
        "remote.log.delete.on.disable": "false",
        "remote.storage.enable": "false",
        "retention.bytes": "-1",
        "retention.ms": "604800000",
        "segment.bytes": "1073741824",
        "segment.index.bytes": "10485760",
        "segment.jitter.ms": "0",
        "segment.ms": "604800000",
        "unclean.leader.election.enable": "false",
    }
)
"""Those of Kafka 4.3."""


def list_topic_defaults(release: str) -> dict[str, str]:
    """Those of this Kafka release."""
    facts = Facts("", values=FrozenMap(kafka_version=release))
    found = {
        key: TOPIC_DEFAULTS.get(key, known.default)
        for key, known in ALL_TOPIC_KEYS.items()
        if not any(presence_faults(known, key, facts))
    }
    # KIP-1030 lowered it.
    if "message.timestamp.after.max.ms" in found and is_before(release, "4.0"):
        found["message.timestamp.after.max.ms"] = _NEVER
    return found
