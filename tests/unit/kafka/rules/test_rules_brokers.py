"""Rules of configs of brokers, of the cluster, of groups and of client metrics."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaform.core.change import Action, Change, PathChange
from kafkaform.core.finding import Block, Harm, Level
from kafkaform.core.resource import Facts, Identity
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform_kafka.kinds.topic.configs import list_default_keys
from kafkaform_kafka.protocol.config_keys import (
    GROUP_KEYS,
    METRICS_KEYS,
    UpdateMode,
    broker_keys,
    find_broker_key,
)
from kafkaform_kafka.rules.broker_config_values import JUDGES as VALUE_JUDGES
from kafkaform_kafka.rules.brokers import BROKER_HARMS
from kafkaform_kafka.rules.brokers import JUDGES as BROKER_JUDGES
from kafkaform_kafka.rules.groups import GROUP_HARMS, METRICS_HARMS
from kafkaform_kafka.rules.groups import JUDGES as GROUP_JUDGES

from ....kit.kafka.changes import FACTS, facts
from ....kit.kafka.config_changes import PASSWORD, declared, planned
from ....kit.kafka.judgement import find_rule, judge, name_rules

BROKER, CLUSTER = "kafka_broker_config", "kafka_cluster_config"
GROUP, METRICS = "kafka_group_config", "kafka_client_metrics"
NAMES: dict[str, dict[str, Any]] = {
    BROKER: {"broker_id": 1},
    CLUSTER: {},
    GROUP: {"group": "g"},
    METRICS: {"name": "m"},
}
KEYSTORE = "listener.name.tls.ssl.keystore.password"
NOW, OLD = facts(kafka_version="4.3"), facts(kafka_version="3.6")


# ── what a change does ──────────────────────────────────────────────────────────────────


def set_config(
    key: str, before: str | None, after: str | None, kind: str = BROKER, below: str | None = None
) -> Change:
    """An update of one config. below: what takes effect without it."""
    item = PathChange(("config", key), before, after, below)
    return Change(
        Identity("kafka", kind, "1"), f"{kind}.x", Action.UPDATE, EMPTY, EMPTY, paths=(item,)
    )


def test_every_dynamic_broker_config_has_a_row() -> None:
    """A row of its own, or the topic config whose default it sets; never both. Configs that need a
    restart cannot be declared, but for those of one listener's login."""
    dynamic = {name for name, row in broker_keys().items() if row.mode is not UpdateMode.READ_ONLY}
    assert dynamic <= BROKER_HARMS.keys() | list_default_keys().keys()
    assert not BROKER_HARMS.keys() & list_default_keys().keys()
    assert all(find_broker_key(name) for name in BROKER_HARMS)


def test_every_group_and_metrics_config_has_a_row() -> None:
    """Both tables name exactly what Kafka 4.3 has."""
    assert set(GROUP_HARMS) == set(GROUP_KEYS)
    assert set(METRICS_HARMS) == set(METRICS_KEYS)


LISTENER = "listener.name.client."
KEPT = "; listeners that run keep their setting"
HARMS: tuple[tuple[str, str | None, str | None, str, str], ...] = (
    # config, value before and after, the rule, the sentence
    (
        "max.connections",
        None,
        "5",
        "broker-connections-wait",
        "max.connections no limit (default) → 5: connections beyond 5 wait until others end",
    ),
    (
        "max.connections.per.ip",
        "10",
        "5",
        "broker-connections-refused",
        "max.connections.per.ip 10 → 5: connections of an address beyond 5 are refused",
    ),
    (
        "max.connections.per.ip.overrides",
        None,
        "127.0.0.1:5",
        "broker-connections-refused",
        "max.connections.per.ip.overrides (empty) → 127.0.0.1:5: connections beyond the "
        "new limits of these addresses are refused",
    ),
    (
        f"{LISTENER}max.connection.creation.rate",
        None,
        "1",
        "broker-connection-rate-cut",
        f"{LISTENER}max.connection.creation.rate no limit (default) → 1: new connections "
        "beyond 1 a second wait",
    ),
    (
        "listeners",
        "A://:1,B://:2",
        "B://:2",
        "broker-listeners-changed",
        f"listeners A://:1,B://:2 → B://:2: clients that know only A://:1 cannot connect{KEPT}",
    ),
    (
        f"{LISTENER}sasl.kerberos.principal.to.local.rules",
        None,
        "RULE:[1:$1](a long rule that nobody wants to read in a sentence)",
        "broker-login-changed",
        f"{LISTENER}sasl.kerberos.principal.to.local.rules: clients may be unable to log in as "
        f"before{KEPT}",
    ),
    (
        f"{LISTENER}plain.connections.max.reauth.ms",
        None,
        "60000",
        "broker-reauthentication-shortened",
        f"{LISTENER}plain.connections.max.reauth.ms no limit (default) → 1 min: clients that do "
        f"not log in again within 1 min are disconnected{KEPT}",
    ),
    (
        f"{LISTENER}sasl.enabled.mechanisms",
        "PLAIN,SCRAM-SHA-256",
        "SCRAM-SHA-256",
        "broker-mechanism-removed",
        f"{LISTENER}sasl.enabled.mechanisms PLAIN,SCRAM-SHA-256 → SCRAM-SHA-256: clients that log "
        f"in with PLAIN are refused{KEPT}",
    ),
    (
        f"{LISTENER}principal.builder.class",
        None,
        "com.example.Builder",
        "broker-principals-changed",
        f"{LISTENER}principal.builder.class: clients can get principals that no ACL names{KEPT}",
    ),
    (
        "sasl.mechanism.inter.broker.protocol",
        "PLAIN",
        "GSSAPI",
        "broker-peer-login-changed",
        "sasl.mechanism.inter.broker.protocol PLAIN → GSSAPI: brokers that cannot log in to each "
        "other no longer replicate",
    ),
    (
        "ssl.client.auth",
        None,
        "required",
        "broker-certificate-required",
        "ssl.client.auth none (default) → required: clients without a certificate are refused"
        f"{KEPT}",
    ),
    (
        "ssl.client.auth",
        "required",
        None,
        "broker-certificate-optional",
        f"ssl.client.auth required → none: clients without a certificate can connect{KEPT}",
    ),
    (
        "ssl.enabled.protocols",
        None,
        "TLSv1.3",
        "broker-tls-changed",
        "ssl.enabled.protocols TLSv1.2,TLSv1.3 (default) → TLSv1.3: clients that have only TLSv1.2 "
        f"cannot connect{KEPT}",
    ),
    (
        "listener.name.tls.ssl.truststore.location",
        "/a",
        "/b",
        "broker-store-changed",
        "listener.name.tls.ssl.truststore.location /a → /b: clients whose certificate the broker "
        "does not trust any more cannot connect",
    ),
    ("ssl.client.auth", None, "requested", "", ""),
    ("ssl.enabled.protocols", "TLSv1.3", None, "", ""),
    (f"{LISTENER}sasl.enabled.mechanisms", "PLAIN", "PLAIN,SCRAM-SHA-256", "", ""),
    ("producer.id.expiration.ms", None, "600000000", "", ""),
    (
        "producer.id.expiration.ms",
        None,
        "60000",
        "broker-producers-forgotten",
        "producer.id.expiration.ms 1 d (default) → 1 min: a producer that is silent for 1 min may "
        "write a record twice",
    ),
    (
        "transaction.partition.verification.enable",
        None,
        "false",
        "broker-transactions-unverified",
        "transaction.partition.verification.enable true (default) → false: a transaction that was "
        "aborted late can hang",
    ),
    (
        "num.io.threads",
        None,
        "4",
        "broker-threads-removed",
        "num.io.threads 8 (default) → 4: clients and replicas wait longer",
    ),
    (
        "leader.replication.throttled.rate",
        None,
        "1",
        "broker-replication-throttled",
        "leader.replication.throttled.rate no limit (default) → 1 B/s: replicas and moves get at "
        "most 1 B/s",
    ),
    (
        "remote.log.manager.copy.max.bytes.per.second",
        None,
        "1048576",
        "broker-remote-storage-throttled",
        "remote.log.manager.copy.max.bytes.per.second no limit (default) → 1 MiB/s: transfers of "
        "remote storage get at most 1 MiB/s",
    ),
    (
        "cordoned.log.dirs",
        None,
        "/data/1",
        "broker-disks-cordoned",
        "cordoned.log.dirs (empty) → /data/1: new partitions go only to the other log directories",
    ),
    ("max.connections", "5", None, "", ""),
    ("max.connections", None, "2147483647", "", ""),
    ("max.connections.per.ip", "5", "-1", "", ""),
    (f"{LISTENER}plain.connections.max.reauth.ms", "60000", "0", "", ""),
    ("listeners", "B://:2", "A://:1,B://:2", "", ""),
    ("transaction.partition.verification.enable", "false", "true", "", ""),
    ("num.io.threads", "4", "8", "", ""),
    ("log.cleaner.threads", "4", "1", "", ""),
    ("my.plugin.key", "4", "1", "", ""),
)


@pytest.mark.parametrize(("key", "before", "after", "rule", "text"), HARMS)
@pytest.mark.parametrize("kind", [BROKER, CLUSTER])
def test_what_configs_of_brokers_do(
    kind: str, key: str, before: str | None, after: str | None, rule: str, text: str
) -> None:
    """By the same rules on one broker and on all, in people's units."""
    findings = judge(set_config(key, before, after, kind), NOW)
    assert [(item.rule, item.text) for item in findings] == ([(rule, text)] if rule else [])
    assert all(item.path == ("config", key) for item in findings)


def test_no_change_is_no_harm() -> None:
    """A change that keeps the value sends nothing."""
    quiet = set_config("max.connections", None, "5")
    same = Change(quiet.identity, quiet.address, Action.NOOP, EMPTY, EMPTY, quiet.paths)
    assert judge(same, NOW) == []


def test_what_takes_effect_without_a_config_counts() -> None:
    """server.properties, not Kafka's default."""
    assert judge(set_config("num.io.threads", "4", None, below="2"), NOW) != []
    assert judge(set_config("num.io.threads", "4", None, below="4"), NOW) == []


def test_a_secret_is_never_part_of_a_sentence() -> None:
    """Only its name is known."""
    key = "listener.name.tls.ssl.keystore.password"
    item = PathChange(("secret_keys", key), None, "set")
    change = Change(Identity("kafka", BROKER, "1"), "x", Action.UPDATE, EMPTY, EMPTY, (item,))
    (finding,) = judge(change, NOW)
    assert finding.rule == "broker-store-changed"
    assert finding.text.startswith(f"{key}: ")


GROUP_CASES: tuple[tuple[str, str | None, str | None, str, str], ...] = (
    (
        "consumer.session.timeout.ms",
        None,
        "10000",
        "group-session-shortened",
        "consumer.session.timeout.ms 45 s (default) → 10 s: a member that is silent for 10 s is "
        "removed, and the group rebalances",
    ),
    (
        "share.auto.offset.reset",
        None,
        "earliest",
        "group-start-changed",
        "share.auto.offset.reset latest (default) → earliest: a new share group starts at another "
        "offset",
    ),
    (
        "share.delivery.count.limit",
        None,
        "2",
        "group-deliveries-cut",
        "share.delivery.count.limit 5 (default) → 2: a record that fails 2 times is skipped",
    ),
    (
        "share.isolation.level",
        None,
        "read_committed",
        "group-isolation-changed",
        "share.isolation.level read_uncommitted (default) → read_committed: members get other "
        "records of open and aborted transactions",
    ),
    (
        "share.partition.max.record.locks",
        None,
        "200",
        "group-locks-cut",
        "share.partition.max.record.locks 2,000 (default) → 200: members get at most 200 records "
        "of a partition at a time",
    ),
    (
        "share.record.lock.duration.ms",
        None,
        "15000",
        "group-lock-shortened",
        "share.record.lock.duration.ms 30 s (default) → 15 s: a record that takes longer than 15 s "
        "is given to another member as well",
    ),
    (
        "share.renew.acknowledge.enable",
        None,
        "false",
        "group-renewal-disabled",
        "share.renew.acknowledge.enable true (default) → false: members can no longer keep a "
        "record for longer",
    ),
    (
        "streams.num.standby.replicas",
        "1",
        None,
        "group-standbys-removed",
        "streams.num.standby.replicas 1 → 0: a task takes longer to continue after a failure",
    ),
    ("consumer.session.timeout.ms", "10000", None, "", ""),
    ("consumer.heartbeat.interval.ms", None, "1000", "", ""),
    ("share.auto.offset.reset", None, "latest", "", ""),
    ("share.delivery.count.limit", None, "9", "", ""),
    ("streams.num.standby.replicas", None, "1", "", ""),
)


@pytest.mark.parametrize(("key", "before", "after", "rule", "text"), GROUP_CASES)
def test_what_configs_of_groups_do(
    key: str, before: str | None, after: str | None, rule: str, text: str
) -> None:
    """Each config of a group, and what does not count."""
    findings = judge(set_config(key, before, after, GROUP), NOW)
    assert [(item.rule, item.text) for item in findings] == ([(rule, text)] if rule else [])


# ── what brokers refuse ─────────────────────────────────────────────────────────────────

REFUSED: tuple[tuple[str, str, str, Facts, str], ...] = (
    # kind, config, value, facts, the rule
    (CLUSTER, "log.cleaner.thread", "1", NOW, "broker-config-unknown"),
    (BROKER, KEYSTORE, "secret", NOW, "broker-config-secret-exposed"),
    (BROKER, "log.message.downconversion.enable", "true", NOW, "broker-config-absent"),
    (BROKER, "num.partitions", "3", NOW, "broker-config-read-only"),
    (CLUSTER, "num.partitions", "3", NOW, "broker-config-read-only"),
    (BROKER, "ssl.keystore.type", "PEM", NOW, "broker-config-needs-listener"),
    (CLUSTER, "listeners", "A://:1", NOW, "broker-config-per-broker"),
    (CLUSTER, "log.cleaner.threads", "-1", NOW, "broker-config-value-invalid"),
    (CLUSTER, "log.segment.bytes", "1000", NOW, "broker-config-value-invalid"),
    (CLUSTER, "log.segment.bytes", "1", FACTS, "broker-config-value-invalid"),
    (GROUP, "consumer.session.timeout", "1", NOW, "group-config-misspelt"),
    (GROUP, "share.delivery.count.limit", "1", NOW, "group-config-value-invalid"),
    (GROUP, "share.delivery.count.limit", "3", facts(kafka_version="4.2"), "group-config-absent"),
    (GROUP, "consumer.session.timeout.ms", "50000", OLD, "group-config-unsupported"),
    (METRICS, "interval.ms", "99", NOW, "group-config-value-invalid"),
    (METRICS, "interval.ms", "1000", OLD, "client-metrics-unsupported"),
    (METRICS, "match", "nothing", NOW, "client-metrics-match-invalid"),
)


@pytest.mark.parametrize(("kind", "key", "value", "known", "rule"), REFUSED)
def test_what_brokers_refuse(kind: str, key: str, value: str, known: Facts, rule: str) -> None:
    """Each blocks the change, with what to do."""
    change = planned(kind, declared(kind, **NAMES[kind], config={key: value}), facts=known)
    blocks = [item for item in judge(change, known) if item.level is Level.BLOCK]
    assert [(item.rule, item.block) for item in blocks] == [(rule, Block.IMPOSSIBLE)]
    assert key in blocks[0].text or not blocks[0].path


VALID: tuple[tuple[str, str, str, Facts], ...] = (
    (BROKER, "log.cleaner.threads", "2", NOW),
    (BROKER, "log.message.downconversion.enable", "true", OLD),
    (BROKER, f"{LISTENER}ssl.keystore.type", "PEM", NOW),
    (BROKER, "listeners", "A://:1", NOW),
    (BROKER, "min.insync.replicas", "2", NOW),
    (CLUSTER, "log.segment.bytes", "1000", OLD),
    (GROUP, "share.delivery.count.limit", "3", NOW),
    (METRICS, "interval.ms", "1000", NOW),
    (METRICS, "match", "client_id=app-.*", NOW),
)


@pytest.mark.parametrize(("kind", "key", "value", "known"), VALID)
def test_what_brokers_take(kind: str, key: str, value: str, known: Facts) -> None:
    """Nothing stops it."""
    change = planned(kind, declared(kind, **NAMES[kind], config={key: value}), facts=known)
    assert [item.rule for item in judge(change, known) if item.level is Level.BLOCK] == []


def test_cautions_about_names_and_values() -> None:
    """What only some brokers take is worth a look."""
    odd = planned(GROUP, declared(GROUP, **NAMES[GROUP], config={"of.a.newer.kafka": "1"}))
    assert name_rules(judge(odd)) == ["group-config-unknown"]
    old = planned(CLUSTER, declared(CLUSTER, config={"log.segment.bytes": "1000"}))
    (finding,) = judge(old)
    assert finding.rule == "broker-config-value-outdated"
    assert finding.text == "log.segment.bytes = 1000 B: Kafka 4.0 and newer refuse less than 1 MiB"


def test_secrets() -> None:
    """An open config, one in two places, an unknown one, and one that goes."""

    def rules(**attributes: Any) -> list[str]:
        wish = declared(BROKER, broker_id=1, **attributes)
        return name_rules(
            [item for item in judge(planned(BROKER, wish), NOW) if item.harm is Harm.NONE]
        )

    assert rules(secret_config={KEYSTORE: PASSWORD}) == []
    assert rules(secret_config={"num.io.threads": PASSWORD}) == ["broker-config-not-secret"]
    assert "broker-config-set-twice" in rules(
        config={KEYSTORE: "x"}, secret_config={KEYSTORE: PASSWORD}
    )
    assert rules(secret_config={"my.key": PASSWORD}) == ["broker-secret-unknown"]
    assert rules(secret_config={"ssl.key.password": PASSWORD}) == ["broker-config-needs-listener"]
    live = {"broker_id": 1, "config": {}, "secret_keys": {KEYSTORE: "set"}}
    gone = planned(BROKER, declared(BROKER, broker_id=1, config={"num.io.threads": "9"}), live)
    assert "broker-secret-removed" in name_rules(judge(gone, NOW))


def test_one_number_for_all_brokers_with_elr() -> None:
    """KIP-966; without it, one broker can have another one."""
    change = planned(BROKER, declared(BROKER, broker_id=1, config={"min.insync.replicas": "2"}))
    assert "broker-config-min-insync-shared" in name_rules(judge(change, facts(elr=True)))
    assert judge(change, NOW) == []


def test_an_empty_block_sets_nothing() -> None:
    """It cannot be created; configs that go with an update are no fault."""
    empty = planned(CLUSTER, declared(CLUSTER))
    assert name_rules(judge(empty)) == ["config-block-empty"]
    live = {"config": {"metric.reporters": "x.Y"}}
    assert judge(planned(CLUSTER, declared(CLUSTER, config={}), live)) == []


@pytest.mark.parametrize(
    ("kind", "key", "value", "rules"),
    [
        (CLUSTER, "num.partitions", "3", ["broker-config-read-only"]),
        (CLUSTER, "log.segment.bytes", "1000", ["broker-config-value-outdated"]),
        (CLUSTER, "log.retention.ms", "1000", []),
        # A broker of another distribution may know it.
        (CLUSTER, "confluent.balancer.enable", "true", []),
        # Only a cluster with ZooKeeper can change it, and nobody knows here.
        (BROKER, "advertised.listeners", "A://:1", []),
        (GROUP, "share.isolation.level", "comitted", ["group-config-value-invalid"]),
        (METRICS, "match", "nothing", ["client-metrics-match-invalid"]),
    ],
)
def test_what_the_block_alone_shows(kind: str, key: str, value: str, rules: list[str]) -> None:
    """`validate` and the editor know neither cluster nor live object."""
    block = FrozenMap(**NAMES[kind], config=FrozenMap({key: value, "num.io.threads": None}))
    change = Change(Identity("", kind, "x"), f"{kind}.x", Action.CREATE, None, block)
    assert name_rules(judge(change, Facts(""), only_block=True)) == rules


ZOOKEEPER = facts(kafka_version="3.9", zookeeper=True)


def test_zookeeper_lets_one_broker_change_its_advertised_listeners() -> None:
    """With KRaft they need a restart."""
    wish = declared(BROKER, broker_id=1, config={"advertised.listeners": "A://:1"})
    kraft = facts(kafka_version="3.9", zookeeper=False)
    assert "broker-config-read-only" in name_rules(judge(planned(BROKER, wish), kraft))
    assert judge(planned(BROKER, wish), ZOOKEEPER) == []


RULES = sorted(
    {
        rule.id: rule
        for part in (*VALUE_JUDGES, *BROKER_JUDGES, *GROUP_JUDGES)
        for rule in part.rules
    }
)


@pytest.mark.parametrize("id", RULES)
def test_every_row_says_why(id: str) -> None:
    """With an example; a block says what to do."""
    rule = find_rule(id)
    assert rule.why.endswith((".", ").")) and rule.example and rule.title[-1] not in ".!"
    assert rule.fix or rule.level is not Level.BLOCK
