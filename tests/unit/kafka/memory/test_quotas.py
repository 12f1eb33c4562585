"""Quotas of the simulated cluster: what is declared is what throttles."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from kafkaform.core.change import Action
from kafkaform.core.resource import Absent, CoverageKind, Depth, Hidden, Identity, Observed
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform_kafka.kinds.quota import resource_type as quotas
from kafkaform_kafka.memory import MemoryProvider, SimulatedCluster, lost_reply

from ....kit.kafka.changes import change, topic
from ....kit.kafka.sessions import apply
from ..kinds.test_quotas import MUTATE, PRODUCE, changed, declared, read

USER = "user=admin"


def opened(cluster: SimulatedCluster, user: str = "admin") -> Any:
    """A session of this user, which the helpers for real ones take too."""
    return MemoryProvider(cluster, user).open("kafka", EMPTY, {})


def test_a_declared_mutation_rate_throttles() -> None:
    """11 partitions at once by Kafka's default window, and error 89 after that."""
    cluster = SimulatedCluster()
    session = opened(cluster)
    (made,) = apply(session, changed(declared({MUTATE: 1}, user="admin"), None))
    assert made.fault is None

    def create(name: str, partitions: int) -> str:
        new = topic(name, partitions=partitions, replication_factor=1)
        (done,) = apply(session, change(Action.CREATE, None, new, incarnation=None))
        return done.fault.code if done.fault else ""

    assert create("a", 12) == "" and create("b", 1) == "THROTTLING_QUOTA_EXCEEDED"
    live = read(session, USER)
    assert isinstance(live, Observed)
    (gone,) = apply(session, changed(declared({PRODUCE: 1}, user="admin"), live))
    assert gone.fault is None and create("b", 1) == ""


def test_what_a_test_limits_is_what_is_read() -> None:
    """`limit` sets the same quota that a block declares, and leaves its other keys alone."""
    cluster = SimulatedCluster()
    session = opened(cluster)
    apply(session, changed(declared({PRODUCE: 5}, user="admin"), None))
    cluster.mutations.limit({"user": "admin"}, Decimal("0.5"))
    live = read(session, USER)
    assert isinstance(live, Observed)
    assert live.attributes["config"] == FrozenMap({PRODUCE: 5, MUTATE: Decimal("0.5")})
    cluster.mutations.limit({"user": "admin"}, None)
    again = read(session, USER)
    assert isinstance(again, Observed) and again.attributes["config"] == FrozenMap({PRODUCE: 5})


def test_a_broker_that_lags_shows_quotas_of_before() -> None:
    """Like everything else that the log holds."""
    cluster = SimulatedCluster(brokers=2)
    session = opened(cluster)
    cluster.lag(reads=2, broker=2)
    apply(session, changed(declared({PRODUCE: 5}, user="admin"), None))
    assert isinstance(read(session, USER, "1"), Observed)
    assert isinstance(read(session, USER, "2"), Absent)


def test_without_the_right_quotas_are_hidden() -> None:
    """By name with the right, in a listing as a failure; nobody takes that for none."""
    cluster = SimulatedCluster()
    cluster.grant("viewer", ("DescribeConfigs", "cluster"))
    cluster.grant("nobody")
    viewer, nobody = opened(cluster, "viewer"), opened(cluster, "nobody")
    identity = Identity("kafka", quotas.KIND, USER)
    assert isinstance(read(viewer, USER), Absent)
    assert read(nobody, USER) == Hidden(identity, "DescribeConfigs on Cluster")
    assert nobody.sweep(quotas.KIND, Depth.NAMES).coverage.kind is CoverageKind.FAILED
    (refused,) = apply(viewer, changed(declared({PRODUCE: 5}, user="x"), None))
    assert refused.fault is not None and refused.fault.code == "CLUSTER_AUTHORIZATION_FAILED"


def test_what_sets_no_limit_shows_the_one_in_effect() -> None:
    """That of the weaker entities, and Kafka's own for no limit."""
    cluster = SimulatedCluster()
    session = opened(cluster)
    apply(session, changed(declared({PRODUCE: 5}, user="default"), None))
    reading = read(session, USER)
    assert isinstance(reading, Absent)
    below = {path: reading.fallbacks[f"config.{path}"] for path in (PRODUCE, MUTATE)}
    assert below == {PRODUCE: 5, MUTATE: 2**31 - 1}
    apply(session, changed(declared({PRODUCE: 7}, user="admin"), None))
    live = read(session, USER)
    assert isinstance(live, Observed) and live.fallbacks == reading.fallbacks


def test_a_lost_answer_leaves_the_quota() -> None:
    """Mishaps are scheduled by the request's name, as for every other kind."""
    cluster = SimulatedCluster()
    session = opened(cluster)
    cluster.faults.schedule(lost_reply(), "AlterClientQuotas")
    (outcome,) = apply(session, changed(declared({PRODUCE: 5}, user="x"), None))
    assert outcome.status == "unknown" and isinstance(read(session, "user=x"), Observed)
