"""Finds the risks of changed configs of brokers, groups and client metrics.

Every config of Kafka 4.3 that can be changed without a restart has a row; a test checks that.
Configs that need a restart have none, because `rules.py` refuses them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from kafkaform.core.change import Action, Change, Path
from kafkaform.core.legacy import Risk, RiskKind
from kafkaform.core.resource import Facts
from kafkaform.core.text.quantity import render_with_exact

from ...protocol.config_keys import ConfigKey
from ...protocol.config_values import Lookup, parse_limit

LOWERED, RAISED, CHANGED, TO_TRUE, TO_FALSE = "lowered", "raised", "changed", "true", "false"


class Harm(Struct, frozen=True):
    """When a change of a config is dangerous, and what happens then."""

    kind: RiskKind
    when: str
    """LOWERED, RAISED, CHANGED, TO_TRUE or TO_FALSE."""
    text: str
    """The harm; `{new}` stands for the new value with its unit."""


_SLOWER = RiskKind.THROUGHPUT
_CUT = RiskKind.ACCESS
_NO_OVERRIDE = "of all topics without an override of their own"

_DATA: Mapping[str, tuple[Harm, ...]] = {
    "log.cleanup.policy": (
        Harm(RiskKind.DATA_LOSS, CHANGED, f"records {_NO_OVERRIDE} are deleted by other rules"),
    ),
    "log.retention.bytes": (
        Harm(
            RiskKind.DATA_LOSS,
            LOWERED,
            f"the oldest records are deleted from each partition over {{new}} {_NO_OVERRIDE}",
        ),
    ),
    "log.retention.ms": (
        Harm(RiskKind.DATA_LOSS, LOWERED, f"records older than {{new}} are deleted {_NO_OVERRIDE}"),
    ),
    "min.insync.replicas": (
        Harm(
            RiskKind.AVAILABILITY,
            RAISED,
            "producers with acks=all are refused while fewer than {new} replicas are in sync",
        ),
        Harm(
            RiskKind.AVAILABILITY,
            LOWERED,
            "a record counts as written at {new} of its replicas, and is lost with them",
        ),
    ),
    "log.message.downconversion.enable": (
        Harm(
            RiskKind.AVAILABILITY,
            TO_FALSE,
            "consumers before Kafka 0.11 cannot read topics any more",
        ),
    ),
    "unclean.leader.election.enable": (
        Harm(
            RiskKind.AVAILABILITY,
            TO_TRUE,
            "acknowledged records are lost when a replica that lags behind becomes leader",
        ),
        Harm(
            RiskKind.AVAILABILITY,
            TO_FALSE,
            "a partition stays offline until a replica that was in sync returns",
        ),
    ),
}

_WRITES: Mapping[str, tuple[Harm, ...]] = {
    "message.max.bytes": (
        Harm(RiskKind.REFUSED_WRITES, LOWERED, "record batches over {new} are refused"),
    ),
    "log.message.timestamp.after.max.ms": (
        Harm(
            RiskKind.REFUSED_WRITES,
            LOWERED,
            "records whose timestamp is more than {new} in the future are refused",
        ),
    ),
    "log.message.timestamp.before.max.ms": (
        Harm(
            RiskKind.REFUSED_WRITES,
            LOWERED,
            "records whose timestamp is more than {new} in the past are refused",
        ),
    ),
    "log.message.timestamp.difference.max.ms": (
        Harm(
            RiskKind.REFUSED_WRITES,
            LOWERED,
            "records whose timestamp differs by more than {new} from the broker's clock are "
            "refused",
        ),
    ),
    "log.message.timestamp.type": (
        Harm(
            RiskKind.ORDERING,
            CHANGED,
            "timestamps come from another clock from now on, and retention depends on them",
        ),
    ),
    "log.cleaner.delete.retention.ms": (
        Harm(
            RiskKind.ORDERING,
            LOWERED,
            "a consumer that is more than {new} behind misses deletions of keys",
        ),
    ),
    "log.cleaner.max.compaction.lag.ms": (
        Harm(
            RiskKind.ORDERING,
            LOWERED,
            "a consumer that is more than {new} behind misses older records of a key",
        ),
    ),
    "log.cleaner.min.compaction.lag.ms": (
        Harm(
            RiskKind.ORDERING,
            LOWERED,
            "a consumer that is more than {new} behind may miss older records of a key",
        ),
    ),
    "producer.id.expiration.ms": (
        Harm(
            RiskKind.ORDERING,
            LOWERED,
            "a producer that is silent for {new} may write a record twice",
        ),
    ),
    "transaction.partition.verification.enable": (
        Harm(
            RiskKind.ORDERING,
            TO_FALSE,
            "a transaction that was aborted late can hang (KIP-890)",
        ),
    ),
    "compression.type": (
        Harm(_SLOWER, CHANGED, "brokers recompress batches that have another compression type"),
    ),
}

_CLIENTS: Mapping[str, tuple[Harm, ...]] = {
    **{
        name: (Harm(_CUT, LOWERED, "connections beyond {new} are refused"),)
        for name in ("max.connections", "max.connections.per.ip")
    },
    "max.connections.per.ip.overrides": (
        Harm(_CUT, CHANGED, "connections beyond the new limits of these addresses are refused"),
    ),
    "max.connection.creation.rate": (
        Harm(_SLOWER, LOWERED, "clients wait when they connect more often than {new} a second"),
    ),
    **{
        name: (Harm(_CUT, CHANGED, "clients that know only the old addresses cannot connect"),)
        for name in ("listeners", "listener.security.protocol.map")
    },
    "principal.builder.class": (
        Harm(_CUT, CHANGED, "clients can get other principals, which no ACL names"),
    ),
    "sasl.enabled.mechanisms": (
        Harm(_CUT, CHANGED, "clients that log in with a removed mechanism are refused"),
    ),
    **{
        name: (Harm(_CUT, CHANGED, "clients may be unable to log in as before"),)
        for name in (
            *("sasl.jaas.config", "sasl.kerberos.principal.to.local.rules"),
            *("sasl.kerberos.service.name", "sasl.login.callback.handler.class"),
            *("sasl.login.class", "sasl.server.callback.handler.class"),
        )
    },
    "sasl.mechanism.inter.broker.protocol": (
        Harm(RiskKind.AVAILABILITY, CHANGED, "brokers that cannot log in to each other stop"),
    ),
    "connections.max.reauth.ms": (
        Harm(_CUT, LOWERED, "clients that do not log in again within {new} are disconnected"),
    ),
    **{
        name: (Harm(_CUT, CHANGED, "clients that do not support the new setting are refused"),)
        for name in (
            *("ssl.cipher.suites", "ssl.client.auth", "ssl.enabled.protocols"),
            *("ssl.endpoint.identification.algorithm", "ssl.engine.factory.class"),
            *("ssl.key.password", "ssl.keymanager.algorithm", "ssl.keystore.certificate.chain"),
            *("ssl.keystore.key", "ssl.keystore.location", "ssl.keystore.password"),
            *("ssl.keystore.type", "ssl.protocol", "ssl.provider"),
            *("ssl.trustmanager.algorithm", "ssl.truststore.certificates"),
            *("ssl.truststore.location", "ssl.truststore.password", "ssl.truststore.type"),
        )
    },
}

_WORK: Mapping[str, tuple[Harm, ...]] = {
    **{
        name: (Harm(_SLOWER, LOWERED, "fewer threads: clients and replicas wait longer"),)
        for name in (
            *("background.threads", "num.io.threads", "num.network.threads"),
            *("num.replica.fetchers", "remote.log.manager.copier.thread.pool.size"),
            *("remote.log.manager.follower.thread.pool.size", "remote.log.reader.threads"),
        )
    },
    **{
        name: (Harm(_SLOWER, LOWERED, "replicas and moves get at most {new} a second"),)
        for name in (
            *("follower.replication.throttled.rate", "leader.replication.throttled.rate"),
            "replica.alter.log.dirs.io.max.bytes.per.second",
        )
    },
    **{
        name: (Harm(_SLOWER, LOWERED, "transfers of remote storage get at most {new} a second"),)
        for name in (
            *("remote.log.manager.copy.max.bytes.per.second",),
            *("remote.log.manager.fetch.max.bytes.per.second",),
        )
    },
    **{
        name: (Harm(_SLOWER, LOWERED, "brokers write to disk more often"),)
        for name in ("log.flush.interval.messages", "log.flush.interval.ms")
    },
    **{
        name: (Harm(_SLOWER, LOWERED, "consumers read records beyond {new} from remote storage"),)
        for name in ("log.local.retention.bytes", "log.local.retention.ms")
    },
    "cordoned.log.dirs": (
        Harm(_SLOWER, CHANGED, "new partitions go only to the remaining log directories"),
    ),
}

# A change of these affects only how busy brokers are; it harms neither data nor clients.
HARMLESS = frozenset(
    """
    compression.gzip.level compression.lz4.level compression.zstd.level config.providers
    follower.fetch.last.tiered.offset.enable group.consumer.assignment.interval.ms
    group.coordinator.cached.buffer.max.bytes group.share.assignment.interval.ms
    group.streams.assignment.interval.ms log.cleaner.backoff.ms log.cleaner.dedupe.buffer.size
    log.cleaner.io.buffer.load.factor log.cleaner.io.buffer.size
    log.cleaner.io.max.bytes.per.second log.cleaner.min.cleanable.ratio log.cleaner.threads
    log.index.interval.bytes log.index.size.max.bytes log.preallocate log.roll.jitter.ms
    log.roll.ms log.segment.bytes log.segment.delete.delay.ms metric.reporters
    num.recovery.threads.per.data.dir remote.fetch.max.wait.ms
    remote.list.offsets.request.timeout.ms remote.log.index.file.cache.total.size.bytes
    remote.log.manager.expiration.thread.pool.size sasl.kerberos.kinit.cmd
    sasl.kerberos.min.time.before.relogin sasl.kerberos.ticket.renew.jitter
    sasl.kerberos.ticket.renew.window.factor sasl.login.refresh.buffer.seconds
    sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor
    sasl.login.refresh.window.jitter share.coordinator.cached.buffer.max.bytes
    ssl.secure.random.implementation
    """.split()  # noqa: SIM905  # a list of words is read more easily than one of strings
)

BROKER_HARMS: Mapping[str, tuple[Harm, ...]] = {
    **_DATA,
    **_WRITES,
    **_CLIENTS,
    **_WORK,
    **dict.fromkeys(HARMLESS, ()),
}

_SESSION = Harm(
    _SLOWER, LOWERED, "a member that is silent for {new} is removed, and the group rebalances"
)

GROUP_HARMS: Mapping[str, tuple[Harm, ...]] = {
    "consumer.assignment.interval.ms": (),
    "consumer.heartbeat.interval.ms": (),
    "consumer.session.timeout.ms": (_SESSION,),
    "share.assignment.interval.ms": (),
    "share.auto.offset.reset": (
        Harm(RiskKind.ORDERING, CHANGED, "a new share group starts at another offset"),
    ),
    "share.delivery.count.limit": (
        Harm(RiskKind.ORDERING, LOWERED, "a record that fails {new} times is skipped (KIP-932)"),
    ),
    "share.heartbeat.interval.ms": (),
    "share.isolation.level": (
        Harm(
            RiskKind.ORDERING,
            CHANGED,
            "members get other records of open and aborted transactions",
        ),
    ),
    "share.partition.max.record.locks": (
        Harm(_SLOWER, LOWERED, "members get at most {new} records of a partition at a time"),
    ),
    "share.record.lock.duration.ms": (
        Harm(
            RiskKind.ORDERING,
            LOWERED,
            "a record that takes longer than {new} is given to another member as well",
        ),
    ),
    "share.renew.acknowledge.enable": (
        Harm(RiskKind.ORDERING, TO_FALSE, "members can no longer keep a record for longer"),
    ),
    "share.session.timeout.ms": (_SESSION,),
    "streams.assignment.interval.ms": (),
    "streams.heartbeat.interval.ms": (),
    "streams.initial.rebalance.delay.ms": (),
    "streams.num.standby.replicas": (
        Harm(RiskKind.AVAILABILITY, LOWERED, "a task takes longer to continue after a failure"),
    ),
    "streams.session.timeout.ms": (_SESSION,),
}

METRICS_HARMS: Mapping[str, tuple[Harm, ...]] = {"interval.ms": (), "match": (), "metrics": ()}


def find_risks(
    harms: Mapping[str, tuple[Harm, ...]], find: Lookup, change: Change, _: Facts
) -> Sequence[Risk]:
    """The risks of one change of configs. harms, find: the tables of its kind."""
    if change.action not in (Action.CREATE, Action.UPDATE, Action.DELETE):
        return ()
    return tuple(_list_risks(harms, find, change))


def find_unit(find: Lookup, path: Path) -> str:
    """The unit of the value at a path, or an empty text."""
    known = find(path[1]) if len(path) == 2 and path[0] == "config" else None
    return known.unit if known is not None else ""


def _list_risks(
    harms: Mapping[str, tuple[Harm, ...]], find: Lookup, change: Change
) -> Iterator[Risk]:
    for item in change.paths:
        if len(item.path) != 2 or item.path[0] not in ("config", "secret_keys"):
            continue
        name, known = item.path[1], find(item.path[1])
        if known is None:
            continue  # a plugin's config, whose effect is unknown
        default = known.default
        old = str(default if item.before is None else item.before)
        gone = item.effective if item.effective is not None else default
        new = str(gone if item.after is None else item.after)
        for harm in _select_harms(harms, known):
            if _applies(harm.when, old, new, known):
                text = harm.text.format(new=render_with_exact(new, known.unit))
                yield Risk(harm.kind, f"{name}: {text}", item.path)


def _select_harms(harms: Mapping[str, tuple[Harm, ...]], known: ConfigKey) -> tuple[Harm, ...]:
    # `known` has the name without a listener's prefix, so all listeners share one row.
    return harms.get(known.name, ())


def _applies(when: str, old: str, new: str, known: ConfigKey) -> bool:
    if when == CHANGED:
        return old != new or known.kind == "password"
    if when in (TO_TRUE, TO_FALSE):
        return new == when != old
    # Without a default of Kafka's, nobody knows what the value replaces.
    if not old or not new:
        return False
    before, after = parse_limit(old), parse_limit(new)
    return after < before if when == LOWERED else after > before
