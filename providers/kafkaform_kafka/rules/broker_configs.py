"""Rules of the configs of brokers, of the cluster, of groups and of client metrics.

Every config of Kafka 4.3 that can be changed without a restart has a row in one of the tables; a
test checks that. What a default of topics does is in `followers`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from kafkaform.core.change import Action, Change
from kafkaform.core.diagnostics import suggest
from kafkaform.core.finding import Finding
from kafkaform.core.resource import Facts
from kafkaform.core.rule import Judge, Needs, Rule
from kafkaform.core.text.quantity import render_with_exact
from kafkaform.core.value import EMPTY

from ..kinds.config import faults
from ..protocol import broker_keys, broker_rules, config_values
from ..protocol.config_keys import GROUP_KEYS, METRICS_KEYS, MIN_IN_SYNC, ConfigKey
from ..protocol.config_values import Lookup, parse_limit
from ..protocol.releases import NEWEST
from ..protocol.version_rules import fit_range, presence_faults
from . import broker_rows as rows
from .followers import FOLLOWED

LOWERED, CHANGED, TO_TRUE, TO_FALSE = "lowered", "changed", "true", "false"


class Harm(Struct, frozen=True):
    """When a change of a config does harm, and what happens then."""

    rule: Rule
    when: str
    """LOWERED, CHANGED, TO_TRUE or TO_FALSE."""
    text: str
    """The harm; `{new}` stands for the new value with its unit."""


def _repeat(harm: Harm, *names: str) -> dict[str, tuple[Harm, ...]]:
    return dict.fromkeys(names, (harm,))


_CLIENTS: Mapping[str, tuple[Harm, ...]] = {
    **_repeat(
        Harm(rows.CONNECTIONS_REFUSED, LOWERED, "connections beyond {new} are refused"),
        *("max.connections", "max.connections.per.ip"),
    ),
    **_repeat(
        Harm(
            rows.CONNECTIONS_REFUSED,
            CHANGED,
            "connections beyond the new limits of these addresses are refused",
        ),
        "max.connections.per.ip.overrides",
    ),
    **_repeat(
        Harm(
            rows.CONNECTIONS_SLOWED,
            LOWERED,
            "clients wait when they connect more often than {new} times a second",
        ),
        "max.connection.creation.rate",
    ),
    **_repeat(
        Harm(
            rows.ADDRESSES_CHANGED,
            CHANGED,
            "clients that know only the old addresses cannot connect",
        ),
        *("listeners", "listener.security.protocol.map"),
    ),
    **_repeat(
        Harm(
            rows.PRINCIPALS_CHANGED,
            CHANGED,
            "clients can get other principals, which no ACL names",
        ),
        "principal.builder.class",
    ),
    **_repeat(
        Harm(
            rows.LOGINS_CHANGED,
            CHANGED,
            "clients that log in with a removed mechanism are refused",
        ),
        "sasl.enabled.mechanisms",
    ),
    **_repeat(
        Harm(rows.LOGINS_CHANGED, CHANGED, "clients may be unable to log in as before"),
        *("sasl.jaas.config", "sasl.kerberos.principal.to.local.rules"),
        *("sasl.kerberos.service.name", "sasl.login.callback.handler.class"),
        *("sasl.login.class", "sasl.server.callback.handler.class"),
    ),
    **_repeat(
        Harm(
            rows.INTER_BROKER_LOGIN_CHANGED,
            CHANGED,
            "brokers that cannot log in to each other stop replicating",
        ),
        "sasl.mechanism.inter.broker.protocol",
    ),
    **_repeat(
        Harm(
            rows.LOGINS_EXPIRE,
            LOWERED,
            "clients that do not log in again within {new} are disconnected",
        ),
        "connections.max.reauth.ms",
    ),
    **_repeat(
        Harm(rows.TLS_CHANGED, CHANGED, "clients that do not support the new setting are refused"),
        *("ssl.cipher.suites", "ssl.client.auth", "ssl.enabled.protocols"),
        *("ssl.endpoint.identification.algorithm", "ssl.engine.factory.class"),
        *("ssl.key.password", "ssl.keymanager.algorithm", "ssl.keystore.certificate.chain"),
        *("ssl.keystore.key", "ssl.keystore.location", "ssl.keystore.password"),
        *("ssl.keystore.type", "ssl.protocol", "ssl.provider"),
        *("ssl.trustmanager.algorithm", "ssl.truststore.certificates"),
        *("ssl.truststore.location", "ssl.truststore.password", "ssl.truststore.type"),
    ),
}

_WORK: Mapping[str, tuple[Harm, ...]] = {
    **_repeat(
        Harm(
            rows.PRODUCER_IDS_EXPIRE,
            LOWERED,
            "a producer that is silent for {new} may write a record twice",
        ),
        "producer.id.expiration.ms",
    ),
    **_repeat(
        Harm(
            rows.TRANSACTIONS_UNVERIFIED,
            TO_FALSE,
            "a transaction that was aborted late can hang",
        ),
        "transaction.partition.verification.enable",
    ),
    **_repeat(
        Harm(rows.THREADS_REDUCED, LOWERED, "fewer threads: clients and replicas wait longer"),
        *("background.threads", "num.io.threads", "num.network.threads"),
        *("num.replica.fetchers", "remote.log.manager.copier.thread.pool.size"),
        *("remote.log.manager.follower.thread.pool.size", "remote.log.reader.threads"),
    ),
    **_repeat(
        Harm(rows.REPLICATION_SLOWED, LOWERED, "replicas and moves get at most {new}"),
        *("follower.replication.throttled.rate", "leader.replication.throttled.rate"),
        "replica.alter.log.dirs.io.max.bytes.per.second",
    ),
    **_repeat(
        Harm(rows.REMOTE_SLOWED, LOWERED, "transfers of remote storage get at most {new}"),
        "remote.log.manager.copy.max.bytes.per.second",
        "remote.log.manager.fetch.max.bytes.per.second",
    ),
    **_repeat(
        Harm(
            rows.DISKS_CORDONED, CHANGED, "new partitions go only to the remaining log directories"
        ),
        "cordoned.log.dirs",
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
    **_CLIENTS,
    **_WORK,
    **dict.fromkeys((*HARMLESS, *FOLLOWED), ()),
}
"""Config of brokers -> what another value of it does, apart from what it does to topics."""

_SESSION = Harm(
    rows.MEMBERS_REMOVED,
    LOWERED,
    "a member that is silent for {new} is removed, and the group rebalances",
)

GROUP_HARMS: Mapping[str, tuple[Harm, ...]] = {
    "consumer.assignment.interval.ms": (),
    "consumer.heartbeat.interval.ms": (),
    "consumer.session.timeout.ms": (_SESSION,),
    "share.assignment.interval.ms": (),
    "share.auto.offset.reset": (
        Harm(rows.OFFSETS_RESET, CHANGED, "a new share group starts at another offset"),
    ),
    "share.delivery.count.limit": (
        Harm(rows.RECORDS_SKIPPED, LOWERED, "a record that fails {new} times is skipped"),
    ),
    "share.heartbeat.interval.ms": (),
    "share.isolation.level": (
        Harm(
            rows.ISOLATION_CHANGED,
            CHANGED,
            "members get other records of open and aborted transactions",
        ),
    ),
    "share.partition.max.record.locks": (
        Harm(
            rows.LOCKS_REDUCED,
            LOWERED,
            "members get at most {new} records of a partition at a time",
        ),
    ),
    "share.record.lock.duration.ms": (
        Harm(
            rows.RECORDS_REPEATED,
            LOWERED,
            "a record that takes longer than {new} is given to another member as well",
        ),
    ),
    "share.renew.acknowledge.enable": (
        Harm(rows.RECORDS_REPEATED, TO_FALSE, "members can no longer keep a record for longer"),
    ),
    "share.session.timeout.ms": (_SESSION,),
    "streams.assignment.interval.ms": (),
    "streams.heartbeat.interval.ms": (),
    "streams.initial.rebalance.delay.ms": (),
    "streams.num.standby.replicas": (
        Harm(rows.STANDBYS_REDUCED, LOWERED, "a task takes longer to continue after a failure"),
    ),
    "streams.session.timeout.ms": (_SESSION,),
}


def _find_server_key(name: str) -> ConfigKey | None:
    row = broker_keys.find_broker_key(name)
    return row.key if row else None


_HARMS: Mapping[str, tuple[Mapping[str, tuple[Harm, ...]], Lookup]] = {
    rows.BROKER: (BROKER_HARMS, _find_server_key),
    rows.CLUSTER: (BROKER_HARMS, _find_server_key),
    rows.GROUP: (GROUP_HARMS, GROUP_KEYS.get),
}
"""Resource type -> what its configs do, and the table of its configs."""
_WRITES = (Action.CREATE, Action.UPDATE, Action.DELETE)


def _judge_harms(change: Change, _: Facts) -> Iterator[Finding]:
    if change.action not in _WRITES:
        return
    harms, find = _HARMS[change.identity.kind]
    for item in change.paths:
        if len(item.path) != 2 or item.path[0] not in ("config", "secret_keys"):
            continue
        name, key = item.path[1], find(item.path[1])
        if key is None:
            continue  # a plugin's config, whose effect is unknown
        old = str(key.default if item.before is None else item.before)
        rest = item.effective if item.effective is not None else key.default
        new = str(rest if item.after is None else item.after)
        # `key` has the name without a listener's prefix, so all listeners share one row.
        for harm in harms.get(key.name, ()):
            if _applies(harm.when, old, new, key):
                text = harm.text.format(new=render_with_exact(new, key.unit))
                yield harm.rule.find(f"{name}: {text}", item.path)


def _applies(when: str, old: str, new: str, key: ConfigKey) -> bool:
    if when == CHANGED:
        return old != new or key.kind == "password"
    if when in (TO_TRUE, TO_FALSE):
        return new == when != old
    # Without a default of Kafka's, nobody knows what the value replaces.
    return bool(old and new) and parse_limit(new) < parse_limit(old)


# ── what brokers refuse ─────────────────────────────────────────────────────────────────


def _judge_servers(change: Change, facts: Facts) -> Iterator[Finding]:
    """Names, places and values of configs of a broker, or of all brokers."""
    if change.action not in (Action.CREATE, Action.UPDATE):
        return
    shared = change.identity.kind == rows.CLUSTER
    for name, value in broker_rules.select_changed_configs(change).items():
        path = ("config", name)
        row = faults.find_key(name, facts)
        if row is None:
            text, fix = faults.describe_unknown(name)
            yield rows.UNKNOWN.find(text, path, fix=fix)
        elif row.secret and row.mode is not broker_keys.UpdateMode.READ_ONLY:
            yield rows.SECRET_MISPLACED.find(
                f"{name} is a secret, which must not be in config", path, fix=faults.AS_SECRET
            )
        elif absences := list(presence_faults(row.key, name, facts, faults.DYNAMIC)):
            yield from (rows.ABSENT.find(text, path, fix=fix) for text, fix in absences)
        elif misplacements := list(_judge_level(name, row, shared=shared)):
            yield from misplacements
        else:
            for text, fix in broker_rules.value_faults(fit_range(row.key, facts), name, value):
                yield rows.VALUE_INVALID.find(text, path, fix=fix)
    yield from _judge_secrets(change, shared=shared)


def _judge_level(name: str, row: broker_keys.BrokerKey, *, shared: bool) -> Iterator[Finding]:
    path = ("config", name)
    for text, fix in faults.list_read_only(name, row):
        yield rows.READ_ONLY.find(text, path, fix=fix)
    for text, fix in faults.list_misplaced(name, row, shared=shared):
        yield rows.WRONG_LEVEL.find(text, path, fix=fix)


def _judge_secrets(change: Change, *, shared: bool) -> Iterator[Finding]:
    after = change.after or EMPTY
    config = after.get("config") or EMPTY
    for name in after.get("secret_config") or EMPTY:
        row, path = broker_keys.find_broker_key(name), ("secret_config", name)
        if name in config:
            yield rows.SECRET_MISPLACED.find(
                f"{name} is both in config and in secret_config", path, fix="Keep it in one of them"
            )
        elif row is None:
            yield rows.SECRET_UNKNOWN.find(
                f"brokers do not know {name}: they pass it to plugins without a check and never "
                "reveal its value",
                path,
                fix=suggest(name, broker_keys.broker_keys()) or None,
            )
        elif not row.secret:
            yield rows.SECRET_MISPLACED.find(
                f"{name} is not a secret: a broker reveals its value to everybody who can read its "
                "configs",
                path,
                fix="Put it into config.",
            )
        else:
            yield from _judge_level(name, row, shared=shared)


def _judge_broker(change: Change, facts: Facts) -> Iterator[Finding]:
    if change.action not in (Action.CREATE, Action.UPDATE) or not facts.values.get("elr"):
        return
    if MIN_IN_SYNC in broker_rules.select_changed_configs(change):
        yield rows.ONE_FOR_ALL.find(
            f"{MIN_IN_SYNC} cannot be set for one broker in this cluster, because it uses eligible "
            "leader replicas (KIP-966)",
            ("config", MIN_IN_SYNC),
        )


def _judge_lost_secrets(change: Change, _: Facts) -> Iterator[Finding]:
    for item in change.paths:
        if item.path[0] == "secret_keys" and item.after is None and item.path[1:]:
            yield rows.SECRET_LOST.find(
                f"{item.path[1]} is removed, and nobody can restore its secret", item.path
            )


_TABLES: Mapping[str, tuple[Mapping[str, ConfigKey], str]] = {
    rows.GROUP: (GROUP_KEYS, "a group"),
    rows.METRICS: (METRICS_KEYS, "client metrics"),
}
"""Resource type -> all its configs, and whose they are."""


def _judge_table(change: Change, facts: Facts) -> Iterator[Finding]:
    """Configs of a group, or of a subscription to client metrics."""
    if change.action not in (Action.CREATE, Action.UPDATE):
        return
    table, owner = _TABLES[change.identity.kind]
    for name, value in broker_rules.select_changed_configs(change).items():
        path, key = ("config", name), table.get(name)
        if key is None:
            advice = suggest(name, table, broker_rules.NEAR)
            if advice:
                text = f"{name} is not a config of {owner}"
                yield rows.NAME_UNKNOWN.find(text, path, fix=advice)
            else:
                yield rows.NEWER.find(f"Kafka {NEWEST} has no config {name} of {owner}", path)
            continue
        absences = list(presence_faults(key, name, facts))
        yield from (rows.ABSENT.find(text, path, fix=fix) for text, fix in absences)
        if not absences:
            for text, fix in broker_rules.value_faults(key, name, value):
                yield rows.VALUE_INVALID.find(text, path, fix=fix)
    if change.identity.kind == rows.METRICS:
        match = str(broker_rules.select_changed_configs(change).get("match") or "")
        for item in config_values.parse_items(match):
            for text, fix in faults.list_match_faults(item):
                yield rows.MATCH_INVALID.find(text, ("config", "match"), fix=fix)


def _judge_support(change: Change, facts: Facts) -> Iterator[Finding]:
    if change.action in (Action.CREATE, Action.UPDATE):
        for text, fix in faults.list_unsupported(change.identity.kind, facts):
            yield rows.UNSUPPORTED.find(text, fix=fix)


def _judge_emptiness(change: Change, _: Facts) -> Iterator[Finding]:
    after = change.after or EMPTY
    if change.action is Action.CREATE and not (after.get("config") or after.get("secret_config")):
        yield rows.EMPTY_BLOCK.find("the block has no config")


def _list_rules(*tables: Mapping[str, Sequence[Harm]]) -> tuple[Rule, ...]:
    rules = {harm.rule.id: harm.rule for table in tables for row in table.values() for harm in row}
    return tuple(rules.values())


JUDGES = (
    Judge(_list_rules(BROKER_HARMS), rows.SERVERS, Needs.OBJECT, _judge_harms),
    Judge(_list_rules(GROUP_HARMS), (rows.GROUP,), Needs.OBJECT, _judge_harms),
    Judge(
        (
            *(rows.ABSENT, rows.READ_ONLY, rows.SECRET_MISPLACED, rows.SECRET_UNKNOWN),
            *(rows.UNKNOWN, rows.VALUE_INVALID, rows.WRONG_LEVEL),
        ),
        rows.SERVERS,
        Needs.BLOCK,
        _judge_servers,
    ),
    Judge((rows.ONE_FOR_ALL,), (rows.BROKER,), Needs.FACTS, _judge_broker),
    Judge((rows.SECRET_LOST,), rows.SERVERS, Needs.OBJECT, _judge_lost_secrets),
    Judge(
        (
            *(rows.ABSENT, rows.MATCH_INVALID, rows.NAME_UNKNOWN, rows.NEWER),
            rows.VALUE_INVALID,
        ),
        (rows.GROUP, rows.METRICS),
        Needs.BLOCK,
        _judge_table,
    ),
    Judge((rows.UNSUPPORTED,), (rows.GROUP, rows.METRICS), Needs.FACTS, _judge_support),
    Judge((rows.EMPTY_BLOCK,), rows.TYPES, Needs.BLOCK, _judge_emptiness),
)
