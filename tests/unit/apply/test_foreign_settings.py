"""What others have set on an object that is ours stays theirs: the state does not record it, and
letting the object go removes only what the state records."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from kafkaform.core.change import Action
from kafkaform.core.resource import Identity, Observed
from kafkaform.core.value import FrozenMap
from kafkaform_kafka.kinds.config.simulation import make_configs

from ...kit.findings import list_notes
from ...model.test_worlds import Simulated, simulated
from ...model.worlds import KAFKA, Thing

OURS, THEIRS = {"background.threads": "11"}, {"log.cleaner.threads": "2"}
TOPIC = {"kafka_topic": {"t": {"name": "t0", "partitions": 1}}}
GROUP = {"consumer.session.timeout.ms": "50000", "consumer.heartbeat.interval.ms": "6000"}


@pytest.fixture
def town() -> Simulated:
    return simulated()


def declare(town: Simulated, resources: Mapping[str, Any]) -> None:
    provider = {"kafka": {"bootstrap_servers": ["localhost:9092"], "operation_timeout": 4}}
    town.declare(json.dumps({"provider": provider, "resource": {**TOPIC, **resources}}))


def live(town: Simulated, kind: str, key: str) -> FrozenMap | None:
    """The config of an object, None if it is not there."""
    identity = Identity(KAFKA, kind, key)
    seen = town.others.session.read([identity])[identity]
    return seen.attributes["config"] if isinstance(seen, Observed) else None


def recorded(town: Simulated, kind: str, key: str) -> FrozenMap | None:
    row = town.where.state.objects.get(Identity(KAFKA, kind, key))
    return row.attributes["config"] if row else None


def others_set(town: Simulated, kind: str, attributes: Mapping[str, Any]) -> None:
    with town.hands():
        assert town.others.put(Thing(kind, attributes))


CASES = [
    (
        "kafka_cluster_config",
        "default",
        {"config": OURS, "config_mode": "additive"},
        {"config": {**OURS, **THEIRS}},
    ),
    (
        "kafka_group_config",
        "g0",
        {"group": "g0", "config": {**GROUP, "consumer.heartbeat.interval.ms": None}},
        {"group": "g0", "config": GROUP},
    ),
    (
        "kafka_quota",
        "user=u0",
        {"user": "u0", "config": {"producer_byte_rate": 1000, "consumer_byte_rate": None}},
        {"user": "u0", "config": {"producer_byte_rate": 1000, "consumer_byte_rate": 5}},
    ),
]


@pytest.mark.parametrize(("kind", "key", "block", "whole"), CASES, ids=[c[0] for c in CASES])
def test_only_what_is_ours_goes(
    town: Simulated, kind: str, key: str, block: Mapping[str, Any], whole: Mapping[str, Any]
) -> None:
    """Declared, then added to by others, then no longer declared: their part is never recorded,
    never drift, and outlives ours."""
    mine = {k for k, v in block["config"].items() if v is not None}
    declare(town, {kind: {"x": block}})
    town.apply()
    others_set(town, kind, whole)
    assert not town.plan().changes
    town.apply()
    assert set(recorded(town, kind, key) or ()) == mine

    declare(town, {})
    [change] = town.plan().changes
    assert change.action is Action.UPDATE
    assert {path.path[1] for path in change.paths} == mine
    town.apply()
    assert set(live(town, kind, key) or ()) == set(whole["config"]) - mine
    assert recorded(town, kind, key) is None
    assert not town.plan().changes


def test_what_was_there_before_it_was_declared_is_taken_over_by_a_change(town: Simulated) -> None:
    """Somebody sets a config, then the block declares it just so: nothing is sent, but an approved
    change takes it over. From then on it is recorded, and goes with the rest."""
    kind, key = "kafka_cluster_config", "default"
    block = {"config": OURS, "config_mode": "additive"}
    declare(town, {kind: {"x": block}})
    town.apply()
    others_set(town, kind, {"config": {**OURS, **THEIRS}})
    declare(town, {kind: {"x": {**block, "config": {**OURS, **THEIRS}}}})
    [change] = town.plan().changes
    assert (change.action, change.steps, change.paths) == (Action.UPDATE, (), ())
    assert "log.cleaner.threads is already set" in list_notes(change)[0]
    town.apply()
    assert set(recorded(town, kind, key) or ()) == {*OURS, *THEIRS}
    assert not town.plan().changes
    declare(town, {})
    town.apply()
    assert live(town, kind, key) is None


def test_a_topics_config_that_was_there_before_it_was_declared_is_recorded(town: Simulated) -> None:
    """A topic is ours as a whole, so the state follows without a change to approve."""
    declare(town, {})
    town.apply()
    town.where.cluster.outside.alter("t0", {"retention.ms": "7"})
    with_it = {"kafka_topic": {"t": {**TOPIC["kafka_topic"]["t"], "config": {"retention.ms": "7"}}}}
    declare(town, with_it)
    [change] = town.plan().changes
    assert (change.action, [item.path for item in change.drift]) == (
        Action.NOOP,
        [("config", "retention.ms")],
    )
    town.apply()
    assert recorded(town, "kafka_topic", "t0") == {"retention.ms": "7"}
    assert not town.plan().changes


def test_all_of_it_goes_if_nobody_added_to_it(town: Simulated) -> None:
    """Then it is a deletion like any other."""
    declare(town, {"kafka_cluster_config": {"x": {"config": OURS}}})
    town.apply()
    declare(town, {})
    [change] = town.plan().changes
    assert change.action is Action.DELETE
    town.apply()
    assert live(town, "kafka_cluster_config", "default") is None


def test_what_an_adoption_keeps_for_one_plan_is_ours(town: Simulated) -> None:
    """An authoritative block takes the whole object over: the next plan removes the rest, and
    does not call it somebody's change."""
    others_set(town, "kafka_cluster_config", {"config": {**OURS, **THEIRS}})
    block = {"config": OURS, "lifecycle": {"adopt": True}}
    declare(town, {"kafka_cluster_config": {"x": block}})
    town.apply()
    assert set(recorded(town, "kafka_cluster_config", "default") or ()) == {*OURS, *THEIRS}
    [change] = town.plan().changes
    assert [path.path for path in change.paths] == [("config", "log.cleaner.threads")]
    assert not change.drift


CLAIMED = [
    ("kafka_cluster_config", "default", {}, "min.insync.replicas", ("2", "3")),
    (
        "kafka_broker_config",
        "1",
        {"broker_id": 1},
        "leader.replication.throttled.rate",
        ("1000000", "2000000"),
    ),
    (
        "kafka_topic_config",
        "s0",
        {"topic": "s0"},
        "leader.replication.throttled.replicas",
        ("0:1", "*"),
    ),
]


@pytest.mark.parametrize(("kind", "key", "named", "config", "values"), CLAIMED, ids=str)
def test_what_others_usually_own_is_ours_if_it_alone_is_declared(
    town: Simulated, kind: str, key: str, named: Mapping[str, Any], config: str, values: Any
) -> None:
    """Made, then there: no plan makes it again. It is changed, its drift is seen, and when it is
    let go it stays, because nobody knows who needs it or because Kafka refuses to remove it."""
    town.where.cluster.elr = True
    town.where.cluster.outside.create("s0", 1, 1, FrozenMap())
    first, second = values
    for value in (first, second):
        declare(town, {kind: {"x": {**named, "config": {config: value}}}})
        town.apply()
        assert not town.plan().changes
        assert recorded(town, kind, key) == {config: value}
    cluster = town.where.cluster
    if kind == "kafka_topic_config":
        cluster.outside.alter(key, {config: first})
    else:
        cluster.commit({(kind, key): make_configs(kind, {config: first})})
    [change] = town.plan().changes
    assert change.action is Action.UPDATE
    assert [item.path for item in change.drift] == [("config", config)]
    town.apply()
    declare(town, {})
    [change] = town.plan().changes
    assert (change.action, change.steps) == (Action.FORGET, ())
    assert "belongs to others" in change.reason
    town.apply()
    assert not town.plan().changes
