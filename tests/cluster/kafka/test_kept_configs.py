"""Which configs stay though no block declares them, each with its reason on a real broker: others
set it for the time of their work, or the cluster refuses to remove it. All others go."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaform.core.change import Change
from kafkaform.core.resource import Absent, Facts, Observed
from kafkaform_kafka.kinds.topic import placement
from kafkaform_kafka.kinds.topic.configs import is_foreign_config
from kafkaform_kafka.protocol.config_keys import (
    GROUP_KEYS,
    IRREMOVABLE,
    METRICS_KEYS,
    THROTTLES,
    TOPIC_KEYS,
    UpdateMode,
    broker_keys,
)
from kafkaform_kafka.session import KafkaSession
from kafkaform_kafka.wire.configs import alter_configs

from ...kit.kafka.config_changes import declared, payloads, planned
from ...kit.kafka.sessions import apply, eventually, new, read

TOPIC, TOPIC_CONFIG = "kafka_topic", "kafka_topic_config"
GROUP, METRICS = "kafka_group_config", "kafka_client_metrics"
INVALID_CONFIG = 40

OTHERS = {
    "cleanup.policy": "compact",
    "compression.gzip.level": "3",
    "compression.type": "gzip",
    "leader.replication.throttled.replicas": "0:1",
    "follower.replication.throttled.replicas": "*",
    "message.timestamp.type": "LogAppendTime",
    "min.insync.replicas": "3",
    "preallocate": "true",
    "segment.bytes": "2097152",
    "unclean.leader.election.enable": "true",
}
"""Values that somebody else might set; any other config gets Kafka's own default."""

NEEDS_TIERED_STORAGE = {
    "local.retention.bytes",
    "local.retention.ms",
    "remote.log.copy.disable",
    "remote.log.delete.on.disable",
    "remote.storage.enable",
}


def code(session: KafkaSession, resource: str, name: str, **what: Any) -> int:
    """What the controller answers to one request that sets or removes configs."""
    item = {"resource": resource, "name": name, "set": {}, "delete": (), **what}
    dry = item.pop("dry", False)
    node = name if resource == "broker" and name else None
    answers = alter_configs(session.context.wire, [item], 10, validate_only=dry, node=node)
    (answer,) = answers.items.values()
    return answer.code


def show(session: KafkaSession, kind: str, name: str, config: dict[str, str]) -> Observed:
    """The object once it shows exactly these configs."""
    reading = eventually(
        lambda: read(session, name, kind),
        lambda found: isinstance(found, Observed) and found.attributes["config"] == config,
    )
    assert isinstance(reading, Observed)
    return reading


def release(live: Observed, facts: Facts) -> Change:
    """The change that follows from a block with one config that is not live."""
    attributes = dict(live.attributes)
    named = {name: attributes[name] for name in ("name", "topic", "group") if name in attributes}
    kind = live.identity.kind
    wish = declared(kind, **named, config=_OWN.get(kind, {"retention.ms": "5"}))
    return planned(kind, wish, attributes, facts=facts)


_OWN = {GROUP: {"consumer.session.timeout.ms": "50000"}, METRICS: {"interval.ms": "5000"}}


def test_every_other_config_of_a_topic_is_shown_and_removed(
    admin: KafkaSession, prefix: str
) -> None:
    """All that somebody else can set on a topic, one number of in-sync replicas included that
    stops every producer: only what belongs to a throttle stays."""
    name = f"{prefix}.all"
    apply(admin, new(name))
    config = {
        key: OTHERS.get(key, known.default)
        for key, known in TOPIC_KEYS.items()
        if key not in NEEDS_TIERED_STORAGE
    }
    assert code(admin, "topic", name, set=config) == 0
    for kind in (TOPIC, TOPIC_CONFIG):
        live = show(admin, kind, name, config)
        change = release(live, admin.facts)
        gone = {item.path[1] for item in change.paths if item.after is None}
        assert gone == config.keys() - {*THROTTLES["topic"]} - {"retention.ms"}
        (sent,) = payloads(change, admin.facts)
        assert sent["delete"] == tuple(sorted(gone))
    assert code(admin, "topic", name, delete=sent["delete"], dry=True) == 0
    assert code(admin, "topic", name, delete=sent["delete"]) == 0
    left = {key: config[key] for key in (*THROTTLES["topic"], "retention.ms")}
    show(admin, TOPIC, name, left)


@pytest.mark.parametrize("key", sorted(NEEDS_TIERED_STORAGE))
def test_a_config_of_tiered_storage_is_no_exception(key: str, admin: KafkaSession) -> None:
    """A broker without tiered storage refuses some of them, so that they are not set above."""
    assert not is_foreign_config("topic", key, admin.facts)


@pytest.mark.parametrize("key", THROTTLES["topic"])
def test_a_topics_throttle_stays_until_it_is_declared(
    key: str, admin: KafkaSession, prefix: str
) -> None:
    """The broker would remove it: it stays because a move of somebody else may need it."""
    name = f"{prefix}.throttled"
    apply(admin, new(name))
    assert code(admin, "topic", name, set={key: "0:1", "flush.ms": "7"}) == 0
    live = show(admin, TOPIC_CONFIG, name, {key: "0:1", "flush.ms": "7"})
    assert live.foreign == {("config", key)}
    wish = declared(TOPIC_CONFIG, topic=name, config={"flush.ms": "7"})
    assert planned(TOPIC_CONFIG, wish, dict(live.attributes), facts=admin.facts).paths == ()
    ours = declared(TOPIC_CONFIG, topic=name, config={"flush.ms": "7", key: "0:2"})
    change = planned(TOPIC_CONFIG, ours, dict(live.attributes), facts=admin.facts)
    assert [item.path for item in change.paths] == [("config", key)]
    assert code(admin, "topic", name, delete=("flush.ms",)) == 0
    alone = eventually(
        lambda: read(admin, name, TOPIC_CONFIG), lambda found: isinstance(found, Absent)
    )
    assert isinstance(alone, Absent)
    assert alone.others is not None
    assert alone.others.attributes["config"] == {key: "0:1"}
    assert code(admin, "topic", name, delete=(key,)) == 0
    gone = eventually(
        lambda: read(admin, name, TOPIC_CONFIG),
        lambda reading: isinstance(reading, Absent) and reading.others is None,
    )
    assert isinstance(gone, Absent)
    assert gone == Absent(alone.identity, fallbacks=gone.fallbacks)


@pytest.mark.parametrize("name", ["1", ""], ids=["broker", "cluster"])
def test_what_the_cluster_refuses_to_remove_is_the_exception_and_nothing_else(
    name: str, admin: KafkaSession
) -> None:
    """Every dynamic config of a broker and of all brokers, with and without an exception."""
    assert admin.facts.recorded_values["elr"] is True
    modes = (UpdateMode.CLUSTER, UpdateMode.BROKER) if name else (UpdateMode.CLUSTER,)
    keys = [key for key, known in broker_keys().items() if known.mode in modes]
    answers = {key: code(admin, "broker", name, delete=(key,), dry=True) for key in keys}
    assert {key: found for key, found in answers.items() if found} == dict.fromkeys(
        IRREMOVABLE["broker"], INVALID_CONFIG
    )
    kept = {key for key in keys if is_foreign_config("broker", key, admin.facts)}
    assert kept == {*IRREMOVABLE["broker"], *THROTTLES["broker"]}


def test_no_config_of_a_group_or_of_client_metrics_stays(admin: KafkaSession, prefix: str) -> None:
    """What others have set on them is shown and removed."""
    group = {"consumer.heartbeat.interval.ms": "5001", "streams.num.standby.replicas": "1"}
    metrics = {"match": "client_id=a", "metrics": "org.apache"}
    for kind, resource, config in ((GROUP, "group", group), (METRICS, "client_metrics", metrics)):
        assert code(admin, resource, prefix, set=config) == 0
        live = show(admin, kind, prefix, config)
        (sent,) = payloads(release(live, admin.facts), admin.facts)
        assert sent["delete"] == tuple(sorted(config))
        assert code(admin, resource, prefix, delete=sent["delete"]) == 0
    for resource, keys in (("group", GROUP_KEYS), ("client_metrics", METRICS_KEYS)):
        assert not [key for key in keys if is_foreign_config(resource, key, admin.facts)]


def test_a_move_of_ours_uses_no_throttle_that_would_be_removed() -> None:
    """What a move sets for its time is among the exceptions: no plan removes it meanwhile."""
    assert {*placement.RATES} <= {*THROTTLES["broker"]}
    assert {*placement.REPLICAS} == {*THROTTLES["topic"]}
