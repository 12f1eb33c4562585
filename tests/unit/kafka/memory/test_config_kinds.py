"""Configs of the simulated cluster: what a session sees, and what a broker keeps to itself."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaform.core.change import Batch, Change, Outcome, OutcomeStatus
from kafkaform.core.resource import (
    Absent,
    CoverageKind,
    Depth,
    Failed,
    Hidden,
    Identity,
    Observed,
    Reading,
)
from kafkaform.core.secret import Secret
from kafkaform.core.value import EMPTY
from kafkaform.plan.diff import equals_target
from kafkaform.provider.contract import Session
from kafkaform_kafka.kinds.config.simulation import make_configs
from kafkaform_kafka.memory import MemoryProvider, SimulatedCluster
from kafkaform_kafka.provider import TYPES

from ....kit.kafka.config_changes import PASSWORD, declared, planned

BROKER, CLUSTER, GROUP = "kafka_broker_config", "kafka_cluster_config", "kafka_group_config"
METRICS = "kafka_client_metrics"


def session(cluster: SimulatedCluster, user: str = "admin") -> Session:
    return MemoryProvider(cluster, user).open("kafka", EMPTY, {})


def read(who: Session, kind: str, key: str) -> Reading:
    identity = Identity("kafka", kind, key)
    return who.read([identity])[identity]


def send(who: Session, change: Change) -> list[Outcome]:
    steps = TYPES[change.identity.kind].steps(change, who.facts)
    batch = Batch("b", "kafka", steps[0].request, steps)
    return [*who.apply(batch, {str(PASSWORD): Secret("hunter2")})]


def put(cluster: SimulatedCluster, kind: str, key: str, **config: str) -> None:
    """What somebody else has set; keyword `a_b` is config `a.b`."""
    said = {name.replace("_", "."): value for name, value in config.items()}
    cluster.commit({(kind, key): make_configs(kind, said)})


def test_a_broker_that_is_down_is_not_absent(cluster: SimulatedCluster) -> None:
    """Its configs are not known, while those of the others are."""
    put(cluster, BROKER, "2", background_threads="12")
    cluster.stop(2)
    who = session(cluster)
    down = read(who, BROKER, "2")
    assert isinstance(down, Failed)
    assert "broker 2 is not live" in down.fault.message
    assert isinstance(read(who, BROKER, "1"), Absent)
    assert who.sweep(BROKER, Depth.FULL).coverage.kind is CoverageKind.VISIBLE_ONLY


def test_a_secret_is_kept_and_not_told(cluster: SimulatedCluster) -> None:
    """The broker has it, and a reading says no more than that."""
    who = session(cluster)
    block = declared(BROKER, broker_id=1, secret_config={"plugin.password": PASSWORD})
    (outcome,) = send(who, planned(BROKER, block))
    assert outcome.status is OutcomeStatus.APPLIED
    seen = read(who, BROKER, "1")
    assert isinstance(seen, Observed)
    assert seen.attributes == {
        "broker_id": 1,
        "config": {},
        "secret_keys": {"plugin.password": "set"},
    }
    kept = cluster.world.get((BROKER, "1"))
    assert kept.secret == {"plugin.password": "hunter2"}
    assert "hunter2" not in repr(kept)


@pytest.mark.parametrize(
    ("kind", "key", "others"),
    [
        (CLUSTER, "default", {"min_insync_replicas": "2"}),
        (BROKER, "1", {"leader_replication_throttled_rate": "1000"}),
    ],
)
def test_what_others_own_neither_makes_an_object_nor_spoils_one(
    cluster: SimulatedCluster, kind: str, key: str, others: dict[str, str]
) -> None:
    """Alone it is no object; beside a config of ours, ours is still what was asked for."""
    cluster.elr = True
    put(cluster, kind, key, **others)
    who = session(cluster)
    assert isinstance(read(who, kind, key), Absent)
    named: dict[str, Any] = {"broker_id": 1} if kind == BROKER else {}
    create = planned(kind, declared(kind, **named, config={"background.threads": "12"}))
    send(who, create)
    seen = read(who, kind, key)
    assert isinstance(seen, Observed)
    assert create.after is not None
    assert equals_target(create.after, seen)
    put(cluster, kind, key, background_threads="12", num_io_threads="9", **others)
    more = read(who, kind, key)
    assert isinstance(more, Observed)
    assert not equals_target(create.after, more)


def test_what_may_not_be_seen_is_hidden(cluster: SimulatedCluster) -> None:
    """By the right of its kind; and a listing without it fails instead of being empty."""
    cluster.grant("ops", ("DescribeConfigs", "group:a"))
    put(cluster, GROUP, "a", consumer_session_timeout_ms="50000")
    who = session(cluster, "ops")
    assert isinstance(read(who, GROUP, "a"), Observed)
    other = read(who, GROUP, "b")
    assert other == Hidden(Identity("kafka", GROUP, "b"), "DescribeConfigs on Group b")
    assert who.sweep(GROUP, Depth.NAMES).coverage.kind is CoverageKind.FAILED


def test_a_broker_falls_back_to_the_cluster(cluster: SimulatedCluster) -> None:
    """Each level shows what takes effect without it."""
    put(cluster, CLUSTER, "default", background_threads="11")
    put(cluster, BROKER, "1", background_threads="12")
    who = session(cluster)
    one, shared = read(who, BROKER, "1"), read(who, CLUSTER, "default")
    assert isinstance(one, Observed) and isinstance(shared, Observed)
    assert one.fallbacks["config.background.threads"] == "11"
    assert shared.fallbacks["config.background.threads"] == "10"
    assert one.fallbacks["config.num.io.threads"] == "8"


def test_what_sets_nothing_shows_what_is_in_effect(cluster: SimulatedCluster) -> None:
    """A group or a subscription without configs of its own, and a broker."""
    put(cluster, CLUSTER, "default", background_threads="11")
    who = session(cluster)
    for kind, key, path, value in (
        (BROKER, "2", "config.background.threads", "11"),
        (GROUP, "a", "config.consumer.session.timeout.ms", "45000"),
        (METRICS, "m", "config.interval.ms", "300000"),
    ):
        reading = read(who, kind, key)
        assert isinstance(reading, Absent) and reading.fallbacks[path] == value
