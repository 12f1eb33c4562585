"""A simulated cluster of any release: rules and controller agree, and nothing is planned twice."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaform.core.change import Action, OutcomeStatus
from kafkaform.core.clock import SimulatedClock
from kafkaform.core.finding import Level
from kafkaform.core.resource import Absent, CoverageKind, Depth, Failed, Identity, Observed
from kafkaform.core.secret import Secret
from kafkaform.core.value import EMPTY, FrozenMap, SecretRef
from kafkaform_kafka.memory import MemoryProvider, SimulatedCluster
from kafkaform_kafka.protocol.cluster_facts import NEWEST, RELEASES, is_before
from kafkaform_kafka.protocol.config_keys import ALL_TOPIC_KEYS
from kafkaform_kafka.provider import TYPES

from ....kit.kafka.changes import change, topic
from ....kit.kafka.config_changes import declared, faults, planned
from ....kit.kafka.judgement import judge
from ....kit.kafka.sessions import apply, batches

GROUP, METRICS = "kafka_group_config", "kafka_client_metrics"
_GROUP_CONFIG = "consumer.session.timeout.ms"
USER = "kafka_user_scram_credential"


def connect(release: str) -> Any:
    cluster = SimulatedCluster(brokers=3, clock=SimulatedClock(), kafka_version=release)
    return MemoryProvider(cluster).open("kafka", EMPTY, {})


@pytest.mark.parametrize("release", RELEASES)
def test_the_check_refuses_what_the_controller_refuses(release: str) -> None:
    """Each config of any release, on a topic of its own, and both say the same."""
    session = connect(release)
    for key, known in ALL_TOPIC_KEYS.items():
        wish = change(Action.CREATE, None, topic(f"t-{key}", config={key: known.default}))
        errors = [item for item in judge(wish, session.facts) if item.level is Level.BLOCK]
        (outcome,) = apply(session, wish)
        assert (outcome.status is OutcomeStatus.APPLIED) == (not errors), (key, errors)
        if outcome.fault is not None:
            assert outcome.fault.code == "INVALID_CONFIG"


@pytest.mark.parametrize("release", RELEASES)
def test_defaults_are_those_of_the_release(release: str) -> None:
    """What takes effect below an override."""
    cluster = SimulatedCluster(kafka_version=release)
    after = cluster.defaults.get("message.timestamp.after.max.ms")
    if is_before(release, "3.6"):
        assert after is None
    else:
        assert (after == "3600000") == (not is_before(release, "4.0"))
    assert ("message.format.version" in cluster.defaults) == is_before(release, "4.0")


@pytest.mark.parametrize("release", RELEASES)
def test_groups_and_subscriptions_exist_since_their_release(release: str) -> None:
    """Before, a read and a listing fail by name, and so does the plan; nothing looks absent."""
    session = connect(release)
    for kind, since, key, wish in (
        (
            GROUP,
            "4.0",
            "g",
            declared(GROUP, group="g", config={"share.auto.offset.reset": "latest"}),
        ),
        (METRICS, "3.7", "m", declared(METRICS, name="m", config={"interval.ms": "1000"})),
    ):
        identity = Identity("kafka", kind, key)
        reading = session.read([identity])[identity]
        made = planned(kind, wish, facts=session.facts)
        errors = [sentence for sentence, _ in faults(made, session.facts)]
        coverage = session.sweep(kind, Depth.FULL).coverage
        if not is_before(release, since):
            assert isinstance(reading, Absent) and not errors
            (outcome,) = apply(session, made)
            assert outcome.status is OutcomeStatus.APPLIED
            assert isinstance(session.read([identity])[identity], Observed)
            continue
        assert isinstance(reading, Failed) and coverage.kind is CoverageKind.FAILED
        assert reading.fault.code == "UNSUPPORTED_VERSION"
        assert f"the cluster runs Kafka {release}; " in reading.fault.message
        assert reading.fault.message.endswith(f"exist since Kafka {since}")
        assert errors == [reading.fault.message]
        assert coverage.fault is not None and coverage.fault.code in TYPES[kind].switched_off


@pytest.mark.parametrize("release", RELEASES)
def test_users_exist_since_their_release(release: str) -> None:
    """With KRaft since 3.5; an older cluster is told by the name of the request."""
    session = connect(release)
    identity = Identity("kafka", USER, "ann|SCRAM-SHA-256")
    reading = session.read([identity])[identity]
    if is_before(release, "3.5"):
        assert isinstance(reading, Failed)
        assert "which needs Kafka 3.5 (2.7 with ZooKeeper)" in reading.fault.message
        return
    assert isinstance(reading, Absent)
    password = SecretRef("env", "P")
    wish = declared(USER, username="ann", scram_mechanism="SCRAM-SHA-256", scram_iterations=4096)
    made = planned(USER, wish.with_items({"password": password}), facts=session.facts)
    (batch,) = batches(session, [made])
    (outcome,) = session.apply(batch, {str(password): Secret("x")})
    assert outcome.status is OutcomeStatus.APPLIED


def test_the_newest_release_is_the_default() -> None:
    """Facts name it."""
    assert connect(NEWEST).facts.recorded_values["kafka_version"] == NEWEST
    assert (
        MemoryProvider(SimulatedCluster())
        .open("kafka", FrozenMap(), {})
        .facts.recorded_values["kafka_version"]
        == NEWEST
    )
