"""Requests that go wrong on schedule: what the sender hears, and what really happened."""

from __future__ import annotations

import pytest

from kafkaform.core.change import Action, Outcome, OutcomeStatus, Step
from kafkaform.core.resource import CoverageKind, Depth, Failed, FaultClass, Identity
from kafkaform.core.value import FrozenMap
from kafkaform.provider.testing.workbench import INSTANCE, Bench
from kafkaform_kafka.kinds.topic import resource_type as topics
from kafkaform_kafka.memory import (
    Killed,
    Mishap,
    SimulatedCluster,
    killed_after,
    killed_before,
    late_effect,
    lost_reply,
    lost_request,
    not_sent,
    refused_items,
    throttled_items,
)

from ....kit.kafka.topic_systems import SimulatedSystem

NAMES = ("t0", "t1", "t2")


def attributes(name: str) -> FrozenMap:
    return SimulatedSystem().fresh(FrozenMap({"name": name}))


def create(bench: Bench, *names: str) -> list[Outcome]:
    steps = [bench.make_creation(attributes(name)) for name in names or NAMES]
    return list(bench.send(bench.make_batch(steps)))


def deletion(bench: Bench, name: str) -> tuple[Step, ...]:
    before = bench.wait_seen(attributes(name))
    return bench.list_steps(bench.make_change(Action.DELETE, attributes(name), before, None))


@pytest.mark.parametrize(
    ("mishap", "status", "kind", "now", "later"),
    [
        (not_sent(), OutcomeStatus.FAILED, FaultClass.NOT_APPLIED, False, False),
        (lost_request(), OutcomeStatus.UNKNOWN, FaultClass.AMBIGUOUS, False, False),
        (lost_reply(), OutcomeStatus.UNKNOWN, FaultClass.AMBIGUOUS, True, True),
        (late_effect(60), OutcomeStatus.UNKNOWN, FaultClass.AMBIGUOUS, False, True),
    ],
    ids=("not sent", "swallowed", "reply lost", "late"),
)
def test_a_broken_connection(
    bench: Bench,
    cluster: SimulatedCluster,
    mishap: Mishap,
    status: OutcomeStatus,
    kind: FaultClass,
    now: bool,
    later: bool,
) -> None:
    """What the sender is told is true whatever became of the request; a late effect lands only
    once its time has come."""
    cluster.faults.schedule(mishap, api="CreateTopics")
    for outcome in create(bench):
        assert outcome.status is status
        assert outcome.fault and outcome.fault.kind is kind
    assert (set(cluster.topics) == set(NAMES)) is now
    cluster.clock.sleep(59.9)
    assert (set(cluster.topics) == set(NAMES)) is now
    cluster.clock.sleep(0.2)
    assert (set(cluster.topics) == set(NAMES)) is later


@pytest.mark.parametrize(
    ("mishap", "now", "later"),
    [(killed_before(), False, False), (killed_after(), True, True), (killed_after(9), False, True)],
    ids=("before", "after", "before it lands"),
)
def test_a_death_in_the_middle(
    bench: Bench, cluster: SimulatedCluster, mishap: Mishap, now: bool, later: bool
) -> None:
    """The process dies at the chosen point, past every handler of faults, and the cluster goes
    on with what it got."""
    cluster.faults.schedule(mishap, api="CreateTopics")
    with pytest.raises(Killed):
        create(bench)
    assert bool(cluster.topics) is now
    cluster.clock.sleep(10)
    assert bool(cluster.topics) is later
    assert not issubclass(Killed, Exception)


def test_a_request_that_was_not_sent_is_not_counted(
    bench: Bench, cluster: SimulatedCluster
) -> None:
    """The counters say what left the client, dry runs apart."""
    cluster.faults.schedule(not_sent(), api="CreateTopics")
    create(bench)
    assert cluster.requests["CreateTopics"] == 0
    create(bench)
    bench.preflight(bench.make_batch([bench.make_creation(attributes("x"))]))
    assert cluster.requests["CreateTopics"] == 1
    assert cluster.requests["CreateTopics:validate"] == 1


def test_a_late_delete_spares_a_recreated_topic(bench: Bench, cluster: SimulatedCluster) -> None:
    """A delete by id that lands after the topic was recreated takes nothing away."""
    cluster.outside.create("t0")
    steps = deletion(bench, "t0")
    cluster.faults.schedule(late_effect(60), api="DeleteTopics")
    bench.send(bench.make_batch(steps))
    recreated = cluster.outside.recreate("t0")
    cluster.clock.sleep(61)
    assert cluster.topics["t0"] == recreated


def test_late_effects_land_in_the_order_of_their_times(
    bench: Bench, cluster: SimulatedCluster
) -> None:
    """The later of two late creates of one name finds the earlier one's topic."""
    cluster.faults.schedule(late_effect(60))
    cluster.faults.schedule(late_effect(30))
    for partitions in (1, 2):
        wanted = attributes("t0").with_items({"partitions": partitions})
        bench.send(bench.make_batch([bench.make_creation(wanted)]))
    cluster.clock.sleep(100)
    assert cluster.topics["t0"].partitions == 2


def test_throttling_says_how_long_to_wait(bench: Bench, cluster: SimulatedCluster) -> None:
    """What fits into the mutation quota is applied; the rest may be sent again after a wait."""
    cluster.faults.schedule(throttled_items(7.5, first=1), api="CreateTopics")
    first, *rest = create(bench)
    assert first.status is OutcomeStatus.APPLIED
    for outcome in rest:
        assert outcome.fault and outcome.fault.code == "THROTTLING_QUOTA_EXCEEDED"
        assert outcome.fault.kind is FaultClass.NOT_APPLIED
        assert outcome.fault.retry_after == 7.5
    assert set(cluster.topics) == {"t0"}
    assert all(outcome.status is OutcomeStatus.APPLIED for outcome in create(bench, "t1", "t2"))


def test_a_policy_can_refuse_some_items(bench: Bench, cluster: SimulatedCluster) -> None:
    """An injected code hits the items of its name; the others commit."""
    cluster.faults.schedule(refused_items(44, "t1"), api="CreateTopics")
    outcomes = create(bench)
    assert [o.fault.code if o.fault else "" for o in outcomes] == ["", "POLICY_VIOLATION", ""]
    assert set(cluster.topics) == {"t0", "t2"}


def test_a_change_of_controller_is_an_unknown_outcome(
    bench: Bench, cluster: SimulatedCluster
) -> None:
    """NOT_CONTROLLER may come after the effect, so it is never reported as a failure."""
    cluster.faults.schedule(refused_items(41), api="CreateTopics")
    assert {outcome.status for outcome in create(bench)} == {OutcomeStatus.UNKNOWN}


@pytest.mark.parametrize("mishap", [not_sent(), lost_request(), lost_reply(), refused_items(-1)])
def test_a_read_that_fails_proves_nothing(
    bench: Bench, cluster: SimulatedCluster, mishap: Mishap
) -> None:
    """No mishap of a read ever looks like an absence or like a complete, empty listing."""
    cluster.outside.create("t0")
    cluster.faults.schedule(mishap, api="*Topics", times=2)
    identity = Identity(INSTANCE, topics.KIND, "t0")
    assert isinstance(bench.read([identity])[identity], Failed)
    assert bench.session.sweep(topics.KIND, Depth.FULL).coverage.kind is CoverageKind.FAILED
    assert cluster.faults.pending == 0


def test_a_schedule_picks_its_requests(bench: Bench, cluster: SimulatedCluster) -> None:
    """A mishap meets the API it names, after as many as it skips and as often as it says."""
    cluster.faults.schedule(lost_request(), api="CreateTopics", skip=1, times=2)
    cluster.faults.schedule(not_sent(), api="DeleteTopics")
    statuses = [create(bench, name)[0].status for name in ("a", "b", "c", "d")]
    applied, unknown = OutcomeStatus.APPLIED, OutcomeStatus.UNKNOWN
    assert statuses == [applied, unknown, unknown, applied]
    assert cluster.faults.pending == 1
    cluster.faults.clear()
    assert bench.send(bench.make_batch(deletion(bench, "a")))[0].status is applied


def test_a_dry_run_has_mishaps_of_its_own(bench: Bench, cluster: SimulatedCluster) -> None:
    """A mishap of the apply spares the dry run, and the other way round."""
    cluster.faults.schedule(lost_request(), api="CreateTopics:validate")
    batch = bench.make_batch([bench.make_creation(attributes("a"))])
    assert bench.preflight(batch)[0].fault is not None
    assert bench.send(batch)[0].status is OutcomeStatus.APPLIED
