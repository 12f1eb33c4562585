"""The configs that brokers of Kafka 3.0 to 4.2 do not have yet, or had and lost.

Source: `KafkaConfig`, `AbstractKafkaConfig` and `DynamicBrokerConfig` of each release.
"""

from __future__ import annotations

from collections.abc import Mapping

from .releases import RELEASES

DYNAMIC_SINCE: Mapping[str, str] = {
    "compression.gzip.level": "3.8",
    "compression.lz4.level": "3.8",
    "compression.zstd.level": "3.8",
    "config.providers": "4.2",
    "cordoned.log.dirs": "4.3",
    "follower.fetch.last.tiered.offset.enable": "4.3",
    "group.consumer.assignment.interval.ms": "4.3",
    "group.coordinator.cached.buffer.max.bytes": "4.3",
    "group.share.assignment.interval.ms": "4.3",
    "group.streams.assignment.interval.ms": "4.3",
    "log.local.retention.bytes": "3.6",
    "log.local.retention.ms": "3.6",
    "log.message.timestamp.after.max.ms": "3.6",
    "log.message.timestamp.before.max.ms": "3.6",
    "producer.id.expiration.ms": "3.4",
    "remote.fetch.max.wait.ms": "3.8",
    "remote.list.offsets.request.timeout.ms": "4.0",
    "remote.log.index.file.cache.total.size.bytes": "3.7",
    "remote.log.manager.copier.thread.pool.size": "4.0",
    "remote.log.manager.copy.max.bytes.per.second": "3.8",
    "remote.log.manager.expiration.thread.pool.size": "4.0",
    "remote.log.manager.fetch.max.bytes.per.second": "3.8",
    "remote.log.manager.follower.thread.pool.size": "4.2",
    "remote.log.reader.threads": "4.0",
    "share.coordinator.cached.buffer.max.bytes": "4.3",
    "transaction.partition.verification.enable": "3.6",
}
"""Config -> the first release that can change it without a restart, if 3.0 cannot."""

# With KRaft a broker lists it as dynamic, too, and refuses every other value.
DYNAMIC_WITH_ZOOKEEPER: frozenset[str] = frozenset({"advertised.listeners"})
"""Configs that one broker of a cluster with ZooKeeper can change without a restart."""

LOWER: Mapping[str, tuple[str, int]] = {
    "log.segment.bytes": ("4.0", 14),  # KIP-1030
}
"""Config -> a release, and the lowest number in the releases before it."""

# In the form of `broker_keys`: name, type, mode, default, and the valid range or words.
REMOVED_DYNAMIC = """
log.message.downconversion.enable boolean cluster true
log.message.timestamp.difference.max.ms long cluster 9223372036854775807 0..
"""
REMOVED_READ_ONLY: Mapping[str, str] = {
    "boolean": """
        alter.config.policy.kraft.compatibility.enable auto.include.jmx.reporter
        broker.id.generation.enable eligible.leader.replicas.enable
        zookeeper.metadata.migration.enable zookeeper.set.acl zookeeper.ssl.client.enable
        zookeeper.ssl.crl.enable zookeeper.ssl.ocsp.enable
    """,
    "int": """
        controlled.shutdown.max.retries leader.imbalance.per.broker.percentage
        password.encoder.iterations password.encoder.key.length reserved.broker.max.id
        zookeeper.connection.timeout.ms zookeeper.max.in.flight.requests
        zookeeper.session.timeout.ms zookeeper.sync.time.ms
    """,
    "list": "zookeeper.ssl.cipher.suites zookeeper.ssl.enabled.protocols",
    "long": "controlled.shutdown.retry.backoff.ms",
    "password": """
        delegation.token.master.key password.encoder.old.secret password.encoder.secret
        zookeeper.ssl.keystore.password zookeeper.ssl.truststore.password
    """,
    "short": "group.share.max.groups offsets.commit.required.acks",
    "string": """
        control.plane.listener.name inter.broker.protocol.version log.message.format.version
        password.encoder.cipher.algorithm password.encoder.keyfactory.algorithm
        zookeeper.clientCnxnSocket zookeeper.connect zookeeper.ssl.endpoint.identification.algorithm
        zookeeper.ssl.keystore.location zookeeper.ssl.keystore.type zookeeper.ssl.protocol
        zookeeper.ssl.truststore.location zookeeper.ssl.truststore.type
    """,
}
REMOVED_IN = "4.0"
"""The release that removed them, except for those of REMOVED_AT."""
REMOVED_AT: Mapping[str, str] = {"group.share.max.groups": "4.1", "zookeeper.sync.time.ms": "3.2"}
"""Config -> the release that removed it."""

SPANS: Mapping[str, tuple[int, int]] = {
    **{name: (RELEASES.index(since), len(RELEASES)) for name, since in DYNAMIC_SINCE.items()},
    **{
        name: (0, RELEASES.index(REMOVED_IN))
        for name in (
            "log.message.downconversion.enable",
            "log.message.format.version",
            "log.message.timestamp.difference.max.ms",
        )
    },
}
"""Config -> the positions in RELEASES of the first release that has it and of the first one that
lacks it again, for the configs of brokers and topics that a plan can change."""
