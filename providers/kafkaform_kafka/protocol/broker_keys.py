"""The 360 configs of a Kafka 4.3.1 broker and its three throttles: type, range, and update mode.

Source: `AbstractKafkaConfig`, `DynamicConfig.Broker` and `DynamicBrokerConfig`; a test compares
them with what a broker lists. A config of the form `listener.name.LISTENER.KEY` follows KEY. What
brokers of older releases have is in `broker_key_history`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from . import broker_key_history as history
from .config_keys import THROTTLES, ConfigKey


class UpdateMode(StrEnum):
    """Where a broker config can be changed (KIP-226)."""

    READ_ONLY = "read-only"
    """In server.properties; a change needs a restart."""
    LISTENER = "listener"
    """For one broker, and only with a listener's prefix."""
    BROKER = "broker"
    """For one broker."""
    CLUSTER = "cluster"
    """For one broker or for all brokers."""


class BrokerKey(Struct, frozen=True):
    """One broker config."""

    key: ConfigKey
    mode: UpdateMode
    listener: bool = False
    """True if the name has a listener's prefix."""

    @property
    def secret(self) -> bool:
        """True if a broker never reveals the value."""
        # DescribeConfigs returns passwords, and keys that the broker itself does not know, as
        # sensitive and without a value. The authorizer's keys are of the second sort.
        return self.key.kind == "password" or self.key.name in _AUTHORIZER


# Name, type, mode, default (- for none), and the valid range or words.
_DYNAMIC = """
background.threads int cluster 10 1..
compression.gzip.level int cluster -1 1..9|-1
compression.lz4.level int cluster 9 1..17
compression.type string cluster producer uncompressed|zstd|lz4|snappy|gzip|producer
compression.zstd.level int cluster 3 -131072..22
config.providers list cluster -
cordoned.log.dirs list broker -
follower.fetch.last.tiered.offset.enable boolean cluster false
follower.replication.throttled.rate long cluster 9223372036854775807 0..
group.consumer.assignment.interval.ms int cluster 1000 0..
group.coordinator.cached.buffer.max.bytes int cluster 1048588 524288..
group.share.assignment.interval.ms int cluster 1000 0..
group.streams.assignment.interval.ms int cluster 1000 0..
leader.replication.throttled.rate long cluster 9223372036854775807 0..
listener.security.protocol.map string broker \
SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT
listeners list broker PLAINTEXT://:9092
log.cleaner.backoff.ms long cluster 15000 0..
log.cleaner.dedupe.buffer.size long cluster 134217728
log.cleaner.delete.retention.ms long cluster 86400000 0..
log.cleaner.io.buffer.load.factor double cluster 0.9
log.cleaner.io.buffer.size int cluster 524288 0..
log.cleaner.io.max.bytes.per.second double cluster 1.7976931348623157E308
log.cleaner.max.compaction.lag.ms long cluster 9223372036854775807 1..
log.cleaner.min.cleanable.ratio double cluster 0.5 0..1
log.cleaner.min.compaction.lag.ms long cluster 0 0..
log.cleaner.threads int cluster 1 0..
log.cleanup.policy list cluster delete compact|delete
log.flush.interval.messages long cluster 9223372036854775807 1..
log.flush.interval.ms long cluster 9223372036854775807
log.index.interval.bytes int cluster 4096 0..
log.index.size.max.bytes int cluster 10485760 4..
log.local.retention.bytes long cluster -2 -2..
log.local.retention.ms long cluster -2 -2..
log.message.timestamp.after.max.ms long cluster 3600000 0..
log.message.timestamp.before.max.ms long cluster 9223372036854775807 0..
log.message.timestamp.type string cluster CreateTime CreateTime|LogAppendTime
log.preallocate boolean cluster false
log.retention.bytes long cluster -1
log.retention.ms long cluster 604800000
log.roll.jitter.ms long cluster 0
log.roll.ms long cluster 604800000
log.segment.bytes int cluster 1073741824 1048576..
log.segment.delete.delay.ms long cluster 60000 0..
max.connection.creation.rate int cluster 2147483647 0..
max.connections int cluster 2147483647 0..
max.connections.per.ip int cluster 2147483647 0..
max.connections.per.ip.overrides string cluster -
message.max.bytes int cluster 1048588 0..
metric.reporters list cluster org.apache.kafka.common.metrics.JmxReporter
min.insync.replicas int cluster 1 1..
num.io.threads int cluster 8 1..
num.network.threads int cluster 3 1..
num.recovery.threads.per.data.dir int cluster 2 1..
num.replica.fetchers int cluster 1 1..
principal.builder.class class broker \
org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder
producer.id.expiration.ms int cluster 86400000 1..
remote.fetch.max.wait.ms int cluster 500 1..
remote.list.offsets.request.timeout.ms long cluster 30000 1..
remote.log.index.file.cache.total.size.bytes long cluster 1073741824 1..
remote.log.manager.copier.thread.pool.size int cluster 10 1..
remote.log.manager.copy.max.bytes.per.second long cluster 9223372036854775807 1..
remote.log.manager.expiration.thread.pool.size int cluster 10 1..
remote.log.manager.fetch.max.bytes.per.second long cluster 9223372036854775807 1..
remote.log.manager.follower.thread.pool.size int cluster 2 1..
remote.log.reader.threads int cluster 10 1..
replica.alter.log.dirs.io.max.bytes.per.second long cluster 9223372036854775807 0..
sasl.enabled.mechanisms list broker GSSAPI
sasl.jaas.config password broker -
sasl.kerberos.kinit.cmd string broker /usr/bin/kinit
sasl.kerberos.min.time.before.relogin long broker 60000
sasl.kerberos.principal.to.local.rules list broker DEFAULT
sasl.kerberos.service.name string broker -
sasl.kerberos.ticket.renew.jitter double broker 0.05
sasl.kerberos.ticket.renew.window.factor double broker 0.8
sasl.login.refresh.buffer.seconds short broker 300
sasl.login.refresh.min.period.seconds short broker 60
sasl.login.refresh.window.factor double broker 0.8
sasl.login.refresh.window.jitter double broker 0.05
sasl.mechanism.inter.broker.protocol string broker GSSAPI
share.coordinator.cached.buffer.max.bytes int cluster 1048588 524288..
ssl.cipher.suites list broker -
ssl.client.auth string broker none required|requested|none
ssl.enabled.protocols list broker TLSv1.2,TLSv1.3
ssl.endpoint.identification.algorithm string broker https
ssl.engine.factory.class class broker -
ssl.key.password password listener -
ssl.keymanager.algorithm string broker SunX509
ssl.keystore.certificate.chain password listener -
ssl.keystore.key password listener -
ssl.keystore.location string listener -
ssl.keystore.password password listener -
ssl.keystore.type string listener JKS
ssl.protocol string broker TLSv1.3
ssl.provider string broker -
ssl.secure.random.implementation string broker -
ssl.trustmanager.algorithm string broker PKIX
ssl.truststore.certificates password listener -
ssl.truststore.location string listener -
ssl.truststore.password password listener -
ssl.truststore.type string listener JKS
transaction.partition.verification.enable boolean cluster true
unclean.leader.election.enable boolean cluster false
"""

_READ_ONLY = {
    "boolean": """
        auto.create.topics.enable auto.leader.rebalance.enable controlled.shutdown.enable
        controller.quorum.auto.join.enable delete.topic.enable log.cleaner.enable
        remote.log.storage.system.enable sasl.oauthbearer.assertion.claim.jti.include
        ssl.allow.dn.changes ssl.allow.san.changes transaction.two.phase.commit.enable
        unstable.api.versions.enable unstable.feature.versions.enable
    """,
    "class": """
        alter.config.policy.class.name client.quota.callback.class create.topic.policy.class.name
        sasl.client.callback.handler.class sasl.login.callback.handler.class sasl.login.class
        sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class
        sasl.server.callback.handler.class
    """,
    "double": """
        remote.log.manager.task.retry.jitter
    """,
    "int": """
        add.partitions.to.txn.retry.backoff.max.ms add.partitions.to.txn.retry.backoff.ms
        alter.log.dirs.replication.quota.window.num
        alter.log.dirs.replication.quota.window.size.seconds broker.heartbeat.interval.ms
        broker.id broker.session.timeout.ms connection.failed.authentication.delay.ms
        controller.quorum.append.linger.ms controller.quorum.election.backoff.max.ms
        controller.quorum.election.timeout.ms controller.quorum.fetch.max.bytes
        controller.quorum.fetch.snapshot.max.bytes controller.quorum.fetch.timeout.ms
        controller.quorum.request.timeout.ms controller.quorum.retry.backoff.ms
        controller.quota.window.num controller.quota.window.size.seconds
        controller.socket.timeout.ms default.replication.factor
        delete.records.purgatory.purge.interval.requests fetch.max.bytes
        fetch.purgatory.purge.interval.requests group.consumer.heartbeat.interval.ms
        group.consumer.max.assignment.interval.ms group.consumer.max.heartbeat.interval.ms
        group.consumer.max.session.timeout.ms group.consumer.max.size
        group.consumer.min.assignment.interval.ms group.consumer.min.heartbeat.interval.ms
        group.consumer.min.session.timeout.ms group.consumer.regex.refresh.interval.ms
        group.consumer.session.timeout.ms group.coordinator.append.linger.ms
        group.coordinator.background.threads group.coordinator.threads
        group.initial.rebalance.delay.ms group.max.session.timeout.ms group.max.size
        group.min.session.timeout.ms group.share.delivery.count.limit
        group.share.heartbeat.interval.ms group.share.initialize.retry.interval.ms
        group.share.max.assignment.interval.ms group.share.max.delivery.count.limit
        group.share.max.heartbeat.interval.ms group.share.max.partition.max.record.locks
        group.share.max.record.lock.duration.ms group.share.max.session.timeout.ms
        group.share.max.share.sessions group.share.max.size group.share.min.assignment.interval.ms
        group.share.min.delivery.count.limit group.share.min.heartbeat.interval.ms
        group.share.min.partition.max.record.locks group.share.min.record.lock.duration.ms
        group.share.min.session.timeout.ms group.share.partition.max.record.locks
        group.share.record.lock.duration.ms group.share.session.timeout.ms
        group.streams.heartbeat.interval.ms group.streams.initial.rebalance.delay.ms
        group.streams.max.assignment.interval.ms group.streams.max.heartbeat.interval.ms
        group.streams.max.session.timeout.ms group.streams.max.size
        group.streams.max.standby.replicas group.streams.min.assignment.interval.ms
        group.streams.min.heartbeat.interval.ms group.streams.min.session.timeout.ms
        group.streams.num.standby.replicas group.streams.session.timeout.ms
        initial.broker.registration.timeout.ms internal.metadata.log.segment.bytes
        internal.metadata.max.batch.size.in.bytes kafka.metrics.polling.interval.secs
        log.flush.offset.checkpoint.interval.ms log.flush.start.offset.checkpoint.interval.ms
        log.retention.hours log.retention.minutes log.roll.hours log.roll.jitter.hours
        max.incremental.fetch.session.cache.slots max.request.partition.size.limit
        metadata.log.segment.bytes metadata.max.idle.interval.ms metrics.num.samples node.id
        num.partitions num.replica.alter.log.dirs.threads offset.metadata.max.bytes
        offsets.commit.timeout.ms offsets.load.buffer.size offsets.retention.minutes
        offsets.topic.compression.codec offsets.topic.num.partitions offsets.topic.segment.bytes
        producer.id.expiration.check.interval.ms producer.purgatory.purge.interval.requests
        queued.max.requests quota.window.num quota.window.size.seconds
        remote.log.manager.copy.quota.window.num remote.log.manager.copy.quota.window.size.seconds
        remote.log.manager.fetch.quota.window.num
        remote.log.manager.fetch.quota.window.size.seconds remote.log.manager.thread.pool.size
        remote.log.metadata.custom.metadata.max.bytes remote.log.reader.max.pending.tasks
        replica.fetch.backoff.ms replica.fetch.max.bytes replica.fetch.min.bytes
        replica.fetch.response.max.bytes replica.fetch.wait.max.ms
        replica.socket.receive.buffer.bytes replica.socket.timeout.ms replication.quota.window.num
        replication.quota.window.size.seconds request.timeout.ms sasl.login.connect.timeout.ms
        sasl.login.read.timeout.ms sasl.oauthbearer.assertion.claim.exp.seconds
        sasl.oauthbearer.assertion.claim.nbf.seconds sasl.oauthbearer.clock.skew.seconds
        sasl.server.max.receive.size share.coordinator.append.linger.ms
        share.coordinator.cold.partition.snapshot.interval.ms share.coordinator.load.buffer.size
        share.coordinator.snapshot.update.records.per.snapshot
        share.coordinator.state.topic.compression.codec
        share.coordinator.state.topic.num.partitions
        share.coordinator.state.topic.prune.interval.ms
        share.coordinator.state.topic.segment.bytes share.coordinator.threads
        share.coordinator.write.timeout.ms share.fetch.purgatory.purge.interval.requests
        socket.listen.backlog.size socket.receive.buffer.bytes socket.request.max.bytes
        socket.send.buffer.bytes telemetry.max.bytes
        transaction.abort.timed.out.transaction.cleanup.interval.ms transaction.max.timeout.ms
        transaction.remove.expired.transaction.cleanup.interval.ms
        transaction.state.log.load.buffer.size transaction.state.log.min.isr
        transaction.state.log.num.partitions transaction.state.log.segment.bytes
        transactional.id.expiration.ms
    """,
    "list": """
        advertised.listeners controller.listener.names controller.quorum.bootstrap.servers
        controller.quorum.voters early.start.listeners group.consumer.assignors
        group.coordinator.rebalance.protocols group.share.assignors kafka.metrics.reporters
        log.dir log.dirs process.roles sasl.oauthbearer.expected.audience
    """,
    "long": """
        connections.max.idle.ms connections.max.reauth.ms
        controller.performance.always.log.threshold.ms controller.performance.sample.period.ms
        delegation.token.expiry.check.interval.ms delegation.token.expiry.time.ms
        delegation.token.max.lifetime.ms internal.metadata.delete.delay.millis
        leader.imbalance.check.interval.seconds log.dir.failure.timeout.ms
        log.flush.scheduler.interval.ms log.initial.task.delay.ms log.retention.check.interval.ms
        metadata.log.max.record.bytes.between.snapshots metadata.log.max.snapshot.interval.ms
        metadata.log.segment.ms metadata.max.retention.bytes metadata.max.retention.ms
        metrics.sample.window.ms offsets.retention.check.interval.ms queued.max.request.bytes
        remote.log.index.file.cache.ttl.ms remote.log.manager.task.interval.ms
        remote.log.manager.task.retry.backoff.max.ms remote.log.manager.task.retry.backoff.ms
        replica.high.watermark.checkpoint.interval.ms replica.lag.time.max.ms
        sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms
        sasl.oauthbearer.jwks.endpoint.refresh.ms
        sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
        sasl.oauthbearer.jwks.endpoint.retry.backoff.ms server.max.startup.time.ms
        socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms
        unclean.leader.election.interval.ms
    """,
    "password": """
        delegation.token.secret.key sasl.oauthbearer.assertion.private.key.passphrase
        sasl.oauthbearer.client.credentials.client.secret
    """,
    "short": """
        offsets.topic.replication.factor share.coordinator.state.topic.min.isr
        share.coordinator.state.topic.replication.factor transaction.state.log.replication.factor
    """,
    "string": """
        authorizer.class.name broker.rack group.consumer.migration.policy
        group.share.persister.class.name inter.broker.listener.name metadata.log.dir
        metrics.recording.level remote.log.metadata.manager.class.name
        remote.log.metadata.manager.class.path remote.log.metadata.manager.impl.prefix
        remote.log.metadata.manager.listener.name remote.log.storage.manager.class.name
        remote.log.storage.manager.class.path remote.log.storage.manager.impl.prefix
        replica.selector.class sasl.mechanism.controller.protocol
        sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud
        sasl.oauthbearer.assertion.claim.iss sasl.oauthbearer.assertion.claim.sub
        sasl.oauthbearer.assertion.file sasl.oauthbearer.assertion.private.key.file
        sasl.oauthbearer.assertion.template.file sasl.oauthbearer.client.credentials.client.id
        sasl.oauthbearer.expected.issuer sasl.oauthbearer.jwks.endpoint.url sasl.oauthbearer.scope
        sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name
        sasl.oauthbearer.token.endpoint.url security.inter.broker.protocol security.providers
        ssl.principal.mapping.rules
    """,
}

# A broker accepts these as unknown keys, but its authorizer reads them only at the start, so a
# dynamic value would have no effect.
_AUTHORIZER = ("allow.everyone.if.no.acl.found", "super.users")
"""Configs of the authorizer."""

_PER_MECHANISM = (
    "connections.max.reauth.ms",
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
)
"""Configs that are dynamic after `listener.name.LISTENER.MECHANISM.`, whatever their own mode."""

# The only configs with a listener's prefix that DynamicBrokerConfig allows in the cluster's
# defaults.
_LISTENER_WIDE = ("max.connection.creation.rate", "max.connections", "num.network.threads")
"""Configs of one listener that can be set for all brokers."""

_UNORDERED = ("log.cleanup.policy",)
_LISTENER = re.compile(r"listener\.name\.[^.]+\.(.+)")
_WIDEST = {"short": 2**15 - 1}


def find_broker_key(name: str) -> BrokerKey | None:
    """The row of a config of any release by its full name, or None for one of a plugin."""
    prefixed = _LISTENER.fullmatch(name)
    if prefixed is None:
        return broker_keys().get(name) or _removed_keys().get(name)
    suffix = prefixed[1]
    base = next(
        (key for key in _PER_MECHANISM if suffix == key or suffix.endswith(f".{key}")), suffix
    )
    broker_key = broker_keys().get(base)
    if broker_key is None:
        return None
    if base in _PER_MECHANISM:
        mode = UpdateMode.BROKER
    elif broker_key.mode is UpdateMode.READ_ONLY or base in _LISTENER_WIDE:
        mode = broker_key.mode
    else:
        mode = UpdateMode.BROKER
    return BrokerKey(broker_key.key, mode, listener=True)


@cache
def broker_keys() -> Mapping[str, BrokerKey]:
    """Name -> config, for all configs that a broker itself knows, without listeners' prefixes."""
    authorizer = {"string": " ".join(_AUTHORIZER)}
    rows = (*_parse_dynamic(_DYNAMIC), *_parse_read_only(_READ_ONLY), *_parse_read_only(authorizer))
    return {row.key.name: row for row in rows}


@cache
def _removed_keys() -> Mapping[str, BrokerKey]:
    """Name -> config, for those that only brokers of older releases have."""
    rows = (*_parse_dynamic(history.REMOVED_DYNAMIC), *_parse_read_only(history.REMOVED_READ_ONLY))
    names = {row.key.name: history.REMOVED_AT.get(row.key.name, history.REMOVED_IN) for row in rows}
    return {
        row.key.name: BrokerKey(replace(row.key, until=names[row.key.name]), row.mode)
        for row in rows
    }


def _parse_dynamic(table: str) -> Iterator[BrokerKey]:
    for line in table.split("\n")[1:-1]:
        name, kind, mode, default, *values = line.split()
        default = "" if default == "-" else default
        yield BrokerKey(_parse_key(name, kind, default, *values), UpdateMode(mode))


def _parse_read_only(table: Mapping[str, str]) -> Iterator[BrokerKey]:
    for kind, names in table.items():
        yield from (
            BrokerKey(_parse_key(name, kind), UpdateMode.READ_ONLY) for name in names.split()
        )


_UNITS: Mapping[str, str] = {
    ".ms": "ms",
    ".bytes": "bytes",
    **dict.fromkeys(THROTTLES["broker"], "bytes/s"),
    ".copy.max.bytes.per.second": "bytes/s",
    ".fetch.max.bytes.per.second": "bytes/s",
}
"""How a name ends -> the unit of its value."""


def _parse_key(name: str, kind: str, default: str = "", values: str = "") -> ConfigKey:
    """values: `LOW..HIGH` or `LOW..`, with `|OTHER` for a number outside; or words."""
    unit = next((unit for end, unit in _UNITS.items() if name.endswith(end)), "")
    since, lower = history.DYNAMIC_SINCE.get(name, ""), history.LOWER.get(name)
    config_key = ConfigKey(name, kind, default, unit, since=since, lower=lower)
    span, *more_choices = values.split("|")
    low, dots, high = span.partition("..")
    if not dots:
        choices = (span, *more_choices) if span else ()
        ordered = name not in _UNORDERED
        return replace(config_key, high=_WIDEST.get(kind), choices=choices, ordered=ordered)
    also = tuple(map(int, more_choices))
    return replace(config_key, low=int(low), high=int(high) if high else None, also=also)
