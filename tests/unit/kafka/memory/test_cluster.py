"""The simulated cluster behaves as Kafka's controller and brokers do."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from msgspec.structs import replace

from kafkaform.core.change import Action, Outcome, OutcomeStatus, Step
from kafkaform.core.errors import ConnectError
from kafkaform.core.resource import (
    Absent,
    CoverageKind,
    Depth,
    Failed,
    FaultClass,
    Hidden,
    Identity,
    Observed,
    Reading,
)
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform.provider.testing.workbench import INSTANCE, Bench
from kafkaform_kafka.kinds.simulation import TOPIC_DEFAULTS
from kafkaform_kafka.kinds.topic import configs
from kafkaform_kafka.kinds.topic import resource_type as topics
from kafkaform_kafka.memory import MemoryProvider, SimulatedCluster
from kafkaform_kafka.protocol.config_keys import TOPIC_KEYS

from ....kit.kafka.topic_systems import SimulatedSystem


def topic(name: str, **given: object) -> FrozenMap:
    return SimulatedSystem().fresh(FrozenMap({"name": name, **given}))


def creations(bench: Bench, *wanted: FrozenMap) -> list[Step]:
    return [bench.make_creation(attributes) for attributes in wanted]


def send(bench: Bench, steps: Sequence[Step]) -> Sequence[Outcome]:
    return bench.send(bench.make_batch(steps))


def codes(outcomes: Sequence[Outcome]) -> list[str]:
    return [outcome.fault.code if outcome.fault else "" for outcome in outcomes]


def look(
    cluster: SimulatedCluster, name: str, at: int | None = None, user: str = "admin"
) -> Reading:
    identity = Identity(INSTANCE, topics.KIND, name)
    session = MemoryProvider(cluster, user).open(INSTANCE, EMPTY, {})
    return session.read([identity], at=None if at is None else str(at))[identity]


def sees(cluster: SimulatedCluster, name: str, at: int | None = None) -> bool:
    return isinstance(look(cluster, name, at), Observed)


def edit(bench: Bench, name: str, **wish: object) -> tuple[Step, ...]:
    """The steps that change the live topic to these attributes."""
    attributes = topic(name, **wish)
    before = bench.wait_seen(attributes)
    target = bench.compute_target(attributes, before)
    return bench.list_steps(bench.make_change(Action.UPDATE, attributes, before, target))


def deletion(bench: Bench, name: str) -> tuple[Step, ...]:
    attributes = topic(name)
    before = bench.wait_seen(attributes)
    return bench.list_steps(bench.make_change(Action.DELETE, attributes, before, None))


# ── the controller ──────────────────────────────────────────────────────────────────────


def test_a_topic_is_made_as_asked(bench: Bench, cluster: SimulatedCluster) -> None:
    """Counts, placement, canonical overrides and the id in the answer are the topic's."""
    config = FrozenMap({"retention.ms": "+5", "preallocate": "TRUE"})
    wanted = topic("orders", partitions=4, replication_factor=2, config=config)
    outcome = bench.create(wanted)
    made = cluster.topics["orders"]
    assert outcome.incarnation == made.id and len(made.id) == 22
    assert made.assignment == ((1, 2), (2, 3), (3, 1), (1, 2))
    assert made.config == {"retention.ms": "5", "preallocate": "true"}


def test_omitted_counts_are_the_brokers_defaults(bench: Bench, cluster: SimulatedCluster) -> None:
    """A create that leaves both counts to the broker gets its defaults."""
    cluster.default_partitions, cluster.default_replication_factor = 6, 3
    step = bench.make_creation(topic("orders"))
    payload = step.payload.with_items({"partitions": -1, "replication_factor": -1})
    send(bench, [replace(step, payload=payload)])
    made = cluster.topics["orders"]
    assert (made.partitions, made.replication_factor) == (6, 3)


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        (topic("no/slash"), "INVALID_TOPIC_EXCEPTION"),
        (topic("a_b"), "INVALID_TOPIC_EXCEPTION"),
        (topic("a.b"), "TOPIC_ALREADY_EXISTS"),
        (topic("t", partitions=0), "INVALID_PARTITIONS"),
        (topic("t", replication_factor=4), "INVALID_REPLICATION_FACTOR"),
        (topic("t", replica_assignment=((1, 9),)), "INVALID_REPLICA_ASSIGNMENT"),
        (topic("t", replica_assignment=((1, 2), (3,))), "INVALID_REPLICA_ASSIGNMENT"),
        (topic("t", config=FrozenMap({"no.such": "1"})), "INVALID_CONFIG"),
        (topic("t", config=FrozenMap({"segment.bytes": "1"})), "INVALID_CONFIG"),
    ],
)
def test_a_bad_create_is_refused_with_kafkas_code(
    bench: Bench, cluster: SimulatedCluster, wanted: FrozenMap, code: str
) -> None:
    """Each fault has the code that a broker gives, in the dry run and in the apply, and a good
    topic of the same request is made."""
    cluster.outside.create("a.b")
    steps = creations(bench, wanted, topic("good"))
    verdicts = bench.preflight(bench.make_batch(steps))
    assert [v.fault.code if v.fault else "" for v in verdicts] == [code, ""]
    assert codes(send(bench, steps)) == [code, ""]
    assert set(cluster.topics) == {"a.b", "good"}


def test_two_new_names_that_collide_pass_in_one_request(
    bench: Bench, cluster: SimulatedCluster
) -> None:
    """The controller compares new names with living topics only, so the review must do more."""
    assert codes(send(bench, creations(bench, topic("x.y"), topic("x_y")))) == ["", ""]
    assert set(cluster.topics) == {"x.y", "x_y"}


@pytest.mark.parametrize("partitions", [10_001, 5_000])
def test_a_request_over_the_record_cap_is_refused_whole(
    bench: Bench, cluster: SimulatedCluster, partitions: int
) -> None:
    """10,000 metadata records are the most: one more, topic records included, and every item
    is refused with POLICY_VIOLATION and nothing is made."""
    steps = creations(bench, topic("a", partitions=partitions), topic("b", partitions=5_000))
    assert codes(send(bench, steps)) == ["POLICY_VIOLATION"] * 2
    assert not cluster.topics


def test_growth_over_the_cap_is_kept_in_part(bench: Bench, cluster: SimulatedCluster) -> None:
    """CreatePartitions fails the item that no longer fits, as an unknown outcome, and what did
    fit stays: the absolute target has to be read again."""
    for name in ("a", "b"):
        cluster.outside.create(name)
    steps = [*edit(bench, "a", partitions=6_001), *edit(bench, "b", partitions=6_001)]
    outcomes = send(bench, steps)
    assert [o.status for o in outcomes] == [OutcomeStatus.APPLIED, OutcomeStatus.UNKNOWN]
    assert [cluster.topics[name].partitions for name in "ab"] == [6_001, 4_001]


def test_configs_are_all_or_nothing_for_each_topic(bench: Bench, cluster: SimulatedCluster) -> None:
    """One bad key of a topic keeps its good keys out, and leaves other topics alone."""
    for name in ("a", "b"):
        cluster.outside.create(name, config={"flush.ms": "7"})
    bad = FrozenMap({"flush.ms": "8", "segment.ms": "never"})
    steps = [*edit(bench, "a", config=bad), *edit(bench, "b", config=FrozenMap({"flush.ms": "9"}))]
    assert codes(send(bench, steps)) == ["INVALID_CONFIG", ""]
    assert [cluster.topics[name].config["flush.ms"] for name in "ab"] == ["7", "9"]


def test_deleting_can_be_forbidden(bench: Bench, cluster: SimulatedCluster) -> None:
    """delete.topic.enable=false refuses every delete and shows in the facts."""
    cluster.outside.create("a")
    steps = deletion(bench, "a")
    cluster.delete_topic_enable = False
    assert codes(send(bench, steps)) == ["TOPIC_DELETION_DISABLED"]
    facts = MemoryProvider(cluster).open(INSTANCE, EMPTY, {}).facts
    assert facts.recorded_values["delete_topic_enable"] is False


def test_what_vanished_cannot_be_changed(bench: Bench, cluster: SimulatedCluster) -> None:
    """Changes of a topic that was deleted since the plan fail for good."""
    cluster.outside.create("a")
    grow = edit(bench, "a", partitions=2)
    alter = edit(bench, "a", config=FrozenMap({"flush.ms": "1"}))
    cluster.outside.delete("a")
    for steps in (grow, alter):
        (outcome,) = send(bench, steps)
        assert outcome.fault and outcome.fault.kind is FaultClass.DEFINITE


def test_overrides_are_an_object_of_their_own(bench: Bench, cluster: SimulatedCluster) -> None:
    """kafka_topic_config is there while the topic has overrides, and gone without them."""
    cluster.outside.create("a")
    identity = Identity(INSTANCE, configs.KIND, "a")
    absent = bench.read([identity])[identity]
    assert isinstance(absent, Absent)
    assert absent.fallbacks["config.flush.ms"] == TOPIC_DEFAULTS["flush.ms"]
    cluster.outside.alter("a", {"flush.ms": "5"})
    reading = bench.read([identity])[identity]
    assert isinstance(reading, Observed)
    assert reading.attributes == {"topic": "a", "config": {"flush.ms": "5"}}
    assert reading.fallbacks["config.flush.ms"] == TOPIC_DEFAULTS["flush.ms"]


def test_fallbacks_follow_the_brokers_defaults(bench: Bench, cluster: SimulatedCluster) -> None:
    """A default that was changed for the brokers is what an override falls back to."""
    cluster.defaults["retention.ms"] = "1000"
    cluster.outside.create("a", config={"retention.ms": "5"})
    assert bench.wait_seen(topic("a")).fallbacks["config.retention.ms"] == "1000"


def test_every_known_config_has_a_default() -> None:
    """The simulated broker has a fallback for each topic config that the types accept."""
    assert set(TOPIC_DEFAULTS) == set(TOPIC_KEYS)


# ── brokers ─────────────────────────────────────────────────────────────────────────────


def test_reads_can_miss_a_write(cluster: SimulatedCluster) -> None:
    """A broker that lags by two reads shows the write to the third, and the truth is there at
    once."""
    cluster.lag(reads=2)
    cluster.outside.create("a")
    assert "a" in cluster.topics
    assert [sees(cluster, "a") for _ in range(4)] == [False, False, True, True]


def test_a_broker_can_lag_by_time_and_alone(cluster: SimulatedCluster) -> None:
    """Only the lagging broker is behind, and until its time has passed."""
    cluster.lag(seconds=5, broker=2)
    cluster.outside.create("a")
    assert [sees(cluster, "a", at) for at in (1, 2, 3)] == [True, False, True]
    cluster.clock.sleep(5)
    assert sees(cluster, "a", 2)


def test_lagging_brokers_keep_the_order_of_writes(cluster: SimulatedCluster) -> None:
    """A later write that would be visible at once waits for the earlier one."""
    cluster.lag(seconds=5)
    old = cluster.outside.create("a")
    cluster.lag()
    new = cluster.outside.recreate("a")
    assert not sees(cluster, "a")
    cluster.clock.sleep(5)
    reading = look(cluster, "a")
    assert isinstance(reading, Observed) and reading.incarnation == new.id != old.id


def test_a_batch_becomes_visible_whole(bench: Bench, cluster: SimulatedCluster) -> None:
    """The topics of one request are seen together or not at all."""
    cluster.lag(reads=1)
    send(bench, creations(bench, *(topic(f"t{n}") for n in range(5))))
    seen = [len(bench.session.sweep(topics.KIND, Depth.NAMES).items) for _ in range(3)]
    assert seen == [0, 5, 5]


def test_a_broker_that_is_down_does_not_answer(bench: Bench, cluster: SimulatedCluster) -> None:
    """Its reads fail, no replica goes to it, and it has caught up when it is back."""
    cluster.stop(2)
    cluster.outside.create("a")
    assert isinstance(look(cluster, "a", 2), Failed)
    assert codes(send(bench, creations(bench, topic("b", replication_factor=3)))) == [
        "INVALID_REPLICATION_FACTOR"
    ]
    bench.create(topic("c", replication_factor=2, partitions=2))
    assert cluster.topics["c"].assignment == ((1, 3), (3, 1))
    cluster.start(2)
    assert sees(cluster, "a", 2)


def test_a_cluster_that_is_down_is_a_clean_fault(bench: Bench, cluster: SimulatedCluster) -> None:
    """With no broker up nothing is sent, nothing is read as absent, and nobody can connect."""
    for number in cluster.live:
        cluster.stop(number)
    outcome = bench.create(topic("a"))
    assert outcome.fault and outcome.fault.kind is FaultClass.NOT_APPLIED
    identity = Identity(INSTANCE, topics.KIND, "a")
    assert isinstance(bench.read([identity])[identity], Failed)
    assert bench.session.sweep(topics.KIND, Depth.NAMES).coverage.kind is CoverageKind.FAILED
    with pytest.raises(ConnectError):
        MemoryProvider(cluster).open(INSTANCE, EMPTY, {})


# ── rights ──────────────────────────────────────────────────────────────────────────────


def test_rights_decide_what_is_seen(cluster: SimulatedCluster) -> None:
    """Listings leave hidden topics out, reads name the missing right, AlterConfigs implies
    DescribeConfigs and Alter implies Describe."""
    cluster.outside.create("app-a")
    cluster.outside.create("other")
    cluster.grant("ci", ("Alter", "topic:app-*"))
    session = MemoryProvider(cluster, "ci").open(INSTANCE, EMPTY, {})
    listing = session.sweep(topics.KIND, Depth.NAMES)
    assert [item.identity.key for item in listing.items] == ["app-a"]
    assert look(cluster, "app-a", user="ci") == Hidden(
        Identity(INSTANCE, topics.KIND, "app-a"), "DescribeConfigs on Topic app-a"
    )
    cluster.grant("ci", ("AlterConfigs", "topic:*"))
    assert isinstance(look(cluster, "app-a", user="ci"), Observed)
    assert isinstance(look(cluster, "app-missing", user="ci"), Absent)
    assert isinstance(look(cluster, "other", user="ci"), Hidden)


@pytest.mark.parametrize(
    ("right", "steps"),
    [
        (("Create", "cluster"), lambda bench: creations(bench, topic("app-new"))),
        (("Create", "topic:app-*"), lambda bench: creations(bench, topic("app-new"))),
        (("Alter", "topic:app-a"), lambda bench: edit(bench, "app-a", partitions=2)),
        (
            ("AlterConfigs", "topic:app-a"),
            lambda bench: edit(bench, "app-a", config=FrozenMap({"flush.ms": "1"})),
        ),
        (("Delete", "topic:app-a"), lambda bench: deletion(bench, "app-a")),
    ],
)
def test_each_write_needs_its_right(
    bench: Bench,
    cluster: SimulatedCluster,
    right: tuple[str, str],
    steps: Callable[[Bench], Sequence[Step]],
) -> None:
    """The same request is forbidden without the one right and applied with it."""
    cluster.outside.create("app-a")
    batch = bench.make_batch(list(steps(bench)))
    for rights, expected in (((), FaultClass.PERMISSION), ((right,), None)):
        cluster.grant("ci", *rights)
        session = MemoryProvider(cluster, "ci").open(INSTANCE, EMPTY, {})
        (outcome,) = session.apply(batch, {})
        assert (outcome.fault.kind if outcome.fault else None) is expected


def test_a_stranger_cannot_log_in(cluster: SimulatedCluster) -> None:
    """A user who was never made is refused when the session opens."""
    with pytest.raises(ConnectError, match="the login of mallory was refused"):
        MemoryProvider(cluster, "mallory").open(INSTANCE, EMPTY, {})


def test_an_acknowledged_create_can_stay_without_its_counts(cluster: SimulatedCluster) -> None:
    """Who may create but not see configs still learns the new topic's id."""
    cluster.grant("ci", ("Create", "cluster"))
    system = SimulatedSystem()
    system.cluster = cluster
    step = Bench(system).make_creation(topic("a"))
    session = MemoryProvider(cluster, "ci").open(INSTANCE, EMPTY, {})
    (outcome,) = session.apply(Bench(system).make_batch([step]), {})
    assert outcome.incarnation == cluster.topics["a"].id
    assert outcome.attributes == {"name": "a"}


def test_topic_ids_are_the_same_in_every_run() -> None:
    """Two clusters that live through the same events have the same ids, others have not."""
    one, same, other = (SimulatedCluster(cluster_id=c) for c in ("x", "x", "y"))
    ids = [cluster.outside.create("a").id for cluster in (one, same, other)]
    assert ids[0] == ids[1] != ids[2]
    assert one.outside.recreate("a").id != ids[0]


def test_the_cluster_keeps_its_topics_to_itself(cluster: SimulatedCluster) -> None:
    """The mapping of topics cannot be changed but through requests and outside edits."""
    cluster.outside.create("a")
    with pytest.raises(TypeError):
        cluster.topics["b"] = cluster.topics["a"]  # type: ignore[index]
