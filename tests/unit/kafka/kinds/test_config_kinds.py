"""Configs of brokers, the cluster, groups and client metrics: what a block means and sends."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaform.core.change import Evidence, Repeat, Step
from kafkaform.core.value import FrozenMap
from kafkaform_kafka.provider import TYPES

from ....kit.kafka.changes import FACTS, facts
from ....kit.kafka.config_changes import PASSWORD, declared, faults, payloads, planned, warnings

BROKER, CLUSTER = "kafka_broker_config", "kafka_cluster_config"
GROUP, METRICS = "kafka_group_config", "kafka_client_metrics"
KEYSTORE = "listener.name.tls.ssl.keystore.password"


def broker(**given: Any) -> FrozenMap:
    return declared(BROKER, broker_id=1, **given)


def steps(change: Any) -> tuple[Step, ...]:
    return TYPES[change.identity.kind].steps(change, FACTS)


@pytest.mark.parametrize(
    ("kind", "given", "live", "key", "resource", "name", "node"),
    [
        (BROKER, {"broker_id": 2}, {"broker_id": 2}, "2", "broker", "2", "2"),
        (CLUSTER, {}, {}, "default", "broker", "", None),
        (GROUP, {"group": "g"}, {"group": "g"}, "g", "group", "g", None),
        (METRICS, {"name": "m"}, {"name": "m"}, "m", "client_metrics", "m", None),
    ],
)
def test_each_kind_goes_to_its_resource(
    kind: str, given: Any, live: Any, key: str, resource: str, name: str, node: str | None
) -> None:
    """One broker's configs go to that broker alone, all others to any; removals come in part 2."""
    setting = {"interval.ms": "1000"} if kind == METRICS else {"x.y": "1000"}
    create = planned(kind, declared(kind, **given, config=setting))
    (step,) = steps(create)
    assert create.identity.key == key
    assert (step.request.part, step.request.phase, step.request.node) == (1, 50, node)
    assert (step.payload["resource"], step.payload["name"]) == (resource, name)
    assert (step.evidence, step.repeat) == (Evidence.REMOTE, Repeat.SAFE)
    delete = planned(kind, None, {**live, "config": setting})
    (removal,) = steps(delete)
    assert (removal.request.part, removal.request.phase) == (2, 40)
    assert removal.payload["delete"] == tuple(setting)
    assert removal.payload["set"] == {}


def test_config_is_the_whole_truth_unless_it_is_additive() -> None:
    """An undeclared config goes; additive, null, an adoption and throttles leave some."""
    live = {
        "broker_id": 1,
        "config": {
            "log.cleaner.threads": "2",
            "background.threads": "12",
            "num.io.threads": "9",
            "leader.replication.throttled.rate": "1000",
        },
    }
    wish = broker(config={"log.cleaner.threads": "3", "num.io.threads": None})
    (sent,) = payloads(planned(BROKER, wish, live))
    assert (sent["set"], sent["delete"]) == ({"log.cleaner.threads": "3"}, ("background.threads",))
    additive = wish.with_items({"config_mode": "additive"})
    (kept,) = payloads(planned(BROKER, additive, live))
    assert kept["delete"] == ()
    assert payloads(planned(BROKER, wish, live, adopts=True))[0]["delete"] == ()
    throttle = broker(config={"leader.replication.throttled.rate": "2000"})
    changed = payloads(planned(BROKER, throttle, live))[0]
    assert changed["set"] == {"leader.replication.throttled.rate": "2000"}


def test_equal_values_are_no_change() -> None:
    """Numbers, switches and lists that a broker would print alike are alike here."""
    live = {
        "config": {
            "message.max.bytes": "5000",
            "log.preallocate": "true",
            "log.cleanup.policy": "compact,delete",
            "log.cleaner.min.cleanable.ratio": "0.5",
        }
    }
    wish = declared(
        CLUSTER,
        config={
            "message.max.bytes": " +5000 ",
            "log.preallocate": "TRUE",
            "log.cleanup.policy": "delete, compact",
            "log.cleaner.min.cleanable.ratio": "0.50",
        },
    )
    change = planned(CLUSTER, wish, live)
    assert change.paths == ()
    assert payloads(change) == []


def test_the_order_of_most_lists_counts() -> None:
    """Of two lists with other orders only those of sets are alike."""
    wish = broker(config={"listener.name.tls.ssl.cipher.suites": "b,a"})
    live = {"broker_id": 1, "config": {"listener.name.tls.ssl.cipher.suites": "a,b"}}
    assert len(planned(BROKER, wish, live).paths) == 1
    metrics = declared(METRICS, name="m", config={"metrics": "b,a"})
    assert planned(METRICS, metrics, {"name": "m", "config": {"metrics": "a,b"}}).paths == ()


def test_elr_keeps_the_clusters_min_insync_replicas() -> None:
    """It is there from birth and cannot be removed (KIP-966), but it can be declared."""
    elr = facts(elr=True)
    live = {"config": {"min.insync.replicas": "1", "message.max.bytes": "5000"}}
    keep = declared(CLUSTER, config={"message.max.bytes": "5000"})
    assert planned(CLUSTER, keep, live, facts=elr).paths == ()
    (gone,) = payloads(planned(CLUSTER, None, live, facts=elr), elr)
    assert gone["delete"] == ("message.max.bytes",)
    raised = declared(CLUSTER, config={"message.max.bytes": "5000", "min.insync.replicas": "2"})
    (sent,) = payloads(planned(CLUSTER, raised, live, facts=elr), elr)
    assert sent["set"] == {"min.insync.replicas": "2"}
    one = planned(BROKER, broker(config={"min.insync.replicas": "2"}), facts=elr)
    assert "cannot be set for one broker" in faults(one, elr)[0][0]
    assert faults(one) == []


# ── secrets ─────────────────────────────────────────────────────────────────────────────


def secret(**more: Any) -> FrozenMap:
    return broker(secret_config={KEYSTORE: PASSWORD}, **more)


def test_secrets_are_sent_by_reference_and_only_with_cause() -> None:
    """With a new object, a new key and another version, and not again otherwise."""
    create = planned(BROKER, secret(), version=(None, "1"))
    (step,) = steps(create)
    assert step.payload["secrets"] == {KEYSTORE: PASSWORD}
    assert (step.evidence, step.repeat) == (Evidence.LOCAL, Repeat.NEVER)
    live = {"broker_id": 1, "config": {}, "secret_keys": {KEYSTORE: "set"}}
    assert payloads(planned(BROKER, secret(), live, version=("1", "1"))) == []
    (again,) = payloads(planned(BROKER, secret(), live, version=("1", "2")))
    assert again["secrets"] == {KEYSTORE: PASSWORD}
    (added,) = payloads(planned(BROKER, secret(), {"broker_id": 1, "config": {}}))
    assert added["secrets"] == {KEYSTORE: PASSWORD}
    adopted = planned(BROKER, secret(), live, version=(None, "1"), adopts=True)
    assert payloads(adopted) == []


def test_an_open_config_and_a_secret_travel_together() -> None:
    """A resource may stand in a request only once, and a keystore needs its password."""
    live = {"broker_id": 1, "config": {"background.threads": "12"}}
    wish = secret(config={"listener.name.tls.ssl.keystore.location": "/etc/k.p12"})
    (sent,) = payloads(planned(BROKER, wish, live))
    assert set(sent["set"]) == {"listener.name.tls.ssl.keystore.location"}
    assert sent["delete"] == ("background.threads",)
    assert set(sent["secrets"]) == {KEYSTORE}


def test_an_undeclared_secret_goes_only_with_a_warning() -> None:
    """It is shown by its name, and nobody could bring it back; additive keeps it."""
    live = {"broker_id": 1, "config": {}, "secret_keys": {KEYSTORE: "set"}}
    change = planned(BROKER, broker(config={"background.threads": "12"}), live)
    assert [path.path for path in change.paths] == [
        ("config", "background.threads"),
        ("secret_keys", KEYSTORE),
    ]
    (sent,) = payloads(change)
    assert sent["delete"] == (KEYSTORE,)
    ((summary, advice),) = warnings(change)
    assert KEYSTORE in summary and "nobody can restore" in summary
    assert "additive" in advice
    additive = broker(config={"background.threads": "12"}, config_mode="additive")
    kept = planned(BROKER, additive, live)
    assert payloads(kept)[0]["delete"] == ()
    assert warnings(kept) == []
    assert KEYSTORE in warnings(planned(BROKER, None, live))[0][0]


def test_a_secret_never_stands_in_config() -> None:
    """Its value is taken out before anything is compared, shown or sent."""
    change = planned(BROKER, broker(config={KEYSTORE: "hunter2", "my.plugin.level": "topsecret"}))
    assert "hunter2" not in repr(change)
    assert "topsecret" not in repr(change)
    summaries = [summary for summary, _ in faults(change)]
    assert any("is a secret" in text for text in summaries)
    assert any("brokers do not know my.plugin.level" in text for text in summaries)
    assert all("secret_config" in advice for _, advice in faults(change))


def test_a_plugins_config_is_allowed_with_a_warning() -> None:
    """As a reference, because a broker never tells the value of what it does not know."""
    change = planned(BROKER, broker(secret_config={"my.plugin.level": PASSWORD}))
    assert faults(change) == []
    ((summary, _),) = warnings(change)
    assert "never reveal" in summary


# ── what is refused ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("kind", "config", "said", "advised"),
    [
        (BROKER, {"num.partitions": "3"}, "is read-only", "server.properties"),
        (CLUSTER, {"num.partitions": "3"}, "is read-only", "server.properties"),
        (CLUSTER, {"super.users": "User:x"}, "is read-only", "server.properties"),
        (CLUSTER, {"listeners": "A://:1"}, "only for single brokers", "kafka_broker_config"),
        (BROKER, {"ssl.keystore.type": "PEM"}, "only for a listener", "listener.name.LISTENER"),
        (CLUSTER, {"log.cleaner.thread": "1"}, "do not know", '"log.cleaner.threads"'),
        (CLUSTER, {"log.cleaner.threads": "many"}, "a whole number", "from 0"),
        (CLUSTER, {"log.cleaner.threads": "-1"}, "out of range", "from 0"),
        (CLUSTER, {"log.preallocate": "yes"}, "neither true nor false", "true or false"),
        (CLUSTER, {"log.cleanup.policy": "shred"}, "not a valid value", "compact, delete"),
        (CLUSTER, {"compression.type": "rar"}, "not a valid value", "zstd"),
        (GROUP, {"consumer.session.timeout": "1"}, "not a config of a group", ".timeout.ms"),
        (GROUP, {"share.delivery.count.limit": "1"}, "out of range", "from 2"),
        (METRICS, {"interval": "1"}, "not a config of client metrics", "interval.ms"),
        (METRICS, {"interval.ms": "99"}, "out of range", "from 100 up to 3600000"),
        (METRICS, {"match": "client_idd=x"}, "NAME=PATTERN", '"client_id"'),
        (METRICS, {"match": "nothing"}, "NAME=PATTERN", "client_software_name"),
    ],
)
def test_what_a_broker_would_refuse_is_refused_first(
    kind: str, config: dict[str, str], said: str, advised: str
) -> None:
    """With the reason, and with what to do about it."""
    given = {BROKER: {"broker_id": 1}, GROUP: {"group": "g"}, METRICS: {"name": "m"}}.get(kind, {})
    ((summary, advice),) = faults(planned(kind, declared(kind, **given, config=config)))
    assert said in summary
    assert advised in advice


def test_an_open_config_is_no_secret() -> None:
    """Whoever reads configs would see it, and so would every plan."""
    wish = broker(secret_config={"background.threads": PASSWORD})
    ((summary, advice),) = faults(planned(BROKER, wish))
    assert "is not a secret" in summary
    assert "config" in advice


def test_a_config_stands_in_one_place() -> None:
    """The same key in config and in secret_config would be sent twice."""
    wish = secret(config={KEYSTORE: "x"})
    assert any("in config and in secret_config" in s for s, _ in faults(planned(BROKER, wish)))


def test_a_block_says_something() -> None:
    """An object without a config of its own does not exist, so it cannot be made."""
    assert "the block has no config" in faults(planned(CLUSTER, declared(CLUSTER)))[0][0]


@pytest.mark.parametrize(
    ("kind", "text", "key"),
    [
        (BROKER, "2", "2"),
        (BROKER, "07", "7"),
        (CLUSTER, "default", "default"),
        (GROUP, "a|b", "a|b"),
        (METRICS, "m", "m"),
    ],
)
def test_import_ids_name_the_object(kind: str, text: str, key: str) -> None:
    """A broker by number, the cluster's configs by `default`, the others by name."""
    assert TYPES[kind].import_key(text) == key


@pytest.mark.parametrize(
    ("kind", "text"), [(BROKER, "one"), (BROKER, "-1"), (CLUSTER, "x"), (GROUP, ""), (METRICS, "")]
)
def test_wrong_import_ids_are_refused(kind: str, text: str) -> None:
    """What names nothing is an error with the form that is needed."""
    with pytest.raises(ValueError, match="import id"):
        TYPES[kind].import_key(text)


@pytest.mark.parametrize(("kind", "given"), [(BROKER, {"broker_id": -1}), (GROUP, {"group": ""})])
def test_a_block_must_name_its_object(kind: str, given: dict[str, Any]) -> None:
    """Kafka has no configs for all groups, and no broker below zero."""
    with pytest.raises(ValueError, match="needs"):
        TYPES[kind].key(declared(kind, **given))
