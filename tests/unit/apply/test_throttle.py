"""A throttle outlives no move: on record before it is set, removed after it, whoever dies when."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafkaform.core.change import OutcomeStatus
from kafkaform.core.resource import Desired, Lifecycle
from kafkaform_kafka.kinds.topic.placement import RATES, REPLICAS
from kafkaform_kafka.memory import Killed, Mishap, killed_after, killed_before, lost_reply

from ...kit.simulated.engine import House, apply, desired, house, plan, removed, topic
from ...kit.simulated.managed_topics import complete, statuses

APPLIED, STARTED = OutcomeStatus.APPLIED, OutcomeStatus.STARTED
RATE = "50MiB"
BYTES = str(50 * 1024**2)


def wanted(factor: int, *, throttle: str | None = RATE, partitions: int = 3) -> Desired:
    """One topic with so many replicas, under a provider block that throttles."""
    said = topic("t", partitions, replication_factor=factor)
    return desired(said, reassignment_throttle=throttle)


def ready(*, throttle: str | None = RATE) -> House:
    """Three brokers, and the topic with one replica."""
    where = house(brokers=3)
    assert complete(apply(where, wanted(1, throttle=throttle)))
    return where


def set_there(where: House) -> list[str]:
    """Every throttle value in the cluster."""
    configs = [found.config for found in where.cluster.world.of("kafka_broker_config").values()]
    configs += [found.config for found in where.cluster.topics.values()]
    return sorted(c[key] for c in configs for key in (*RATES, *REPLICAS) if key in c)


def owed(where: House) -> list[str]:
    return sorted(record.body["what"] for record in where.index.obligations)


def arrive(where: House) -> None:
    where.clock.advance(where.cluster.move_seconds)


def test_a_throttle_is_set_before_the_move_and_removed_after_it() -> None:
    """Rates on all three brokers and the topic's part; nothing of it is left at the end."""
    where = ready()
    done = apply(where, wanted(3))
    assert statuses(done) == {"t#3": STARTED}
    assert set_there(where) == ["*"] * 2 + [BYTES] * 6 and owed(where) == ["move", "throttle"]
    arrive(where)
    assert complete(apply(where, wanted(3)))
    assert set_there(where) == [] and owed(where) == []
    assert plan(where, wanted(3)).changes == ()


def test_the_obligation_is_durable_before_its_intent() -> None:
    """Both in one append, the obligation first: whatever a crash leaves is known."""
    where = ready()
    apply(where, wanted(3))
    throttle, move = where.records("obligation")
    intent = where.records("intent")[-1]
    assert (throttle.body["what"], move.body["what"]) == ("throttle", "move")
    assert intent.seq == throttle.seq + 1 < move.seq


def test_it_stays_while_the_move_runs() -> None:
    """A later run asks, removes nothing and says so."""
    where = ready()
    apply(where, wanted(3))
    assert complete(apply(where, wanted(3)))
    assert set_there(where) == ["*"] * 2 + [BYTES] * 6
    assert any("stays until the move has ended" in note for note in where.screen.notes)


@pytest.mark.parametrize("skip", range(4))
@pytest.mark.parametrize("death", [killed_before, killed_after])
def test_a_run_that_dies_while_it_sets_the_throttle_leaves_none(
    death: Callable[[], Mishap], skip: int
) -> None:
    """At each of its four requests; the next run cleans up, starts over and ends clean."""
    where = ready()
    where.cluster.faults.schedule(death(), "IncrementalAlterConfigs", skip=skip)
    with pytest.raises(Killed):
        apply(where, wanted(3))
    assert "throttle" in owed(where)
    assert complete(apply(where, wanted(3)))
    arrive(where)
    assert complete(apply(where, wanted(3)))
    assert set_there(where) == [] and owed(where) == []


@pytest.mark.parametrize("death", [killed_before, killed_after])
def test_a_run_that_dies_at_the_move_leaves_none(death: Callable[[], Mishap]) -> None:
    """Whether the move was started or not, in the end it has ended and nothing is set."""
    where = ready()
    where.cluster.faults.schedule(death(), "AlterPartitionReassignments")
    with pytest.raises(Killed):
        apply(where, wanted(3))
    assert complete(apply(where, wanted(3)))
    arrive(where)
    assert complete(apply(where, wanted(3)))
    assert set_there(where) == [] and owed(where) == []
    assert plan(where, wanted(3)).changes == ()


def test_a_run_that_dies_while_it_removes_is_finished_by_the_next() -> None:
    """Half removed is still owed."""
    where = ready()
    apply(where, wanted(3))
    arrive(where)
    where.cluster.faults.schedule(killed_after(), "IncrementalAlterConfigs", skip=1)
    with pytest.raises(Killed):
        apply(where, wanted(3))
    assert owed(where) == ["throttle"] or owed(where) == ["move", "throttle"]
    assert complete(apply(where, wanted(3)))
    assert set_there(where) == [] and owed(where) == []


def test_a_throttle_that_cannot_be_set_starts_no_move() -> None:
    """The step fails, what was set meanwhile is removed, and the next run does it all."""
    where = ready()
    where.cluster.faults.schedule(lost_reply(), "IncrementalAlterConfigs", skip=1)
    done = apply(where, wanted(3))
    assert statuses(done) == {"t#3": OutcomeStatus.FAILED}
    assert where.cluster.requests["AlterPartitionReassignments"] == 0
    assert set_there(where) == [] and owed(where) == []
    assert statuses(apply(where, wanted(3))) == {"t#3": STARTED}


def test_a_replaced_move_is_throttled_to_its_own_end() -> None:
    """The first throttle is discharged only with the second move: both name the same places."""
    where = ready()
    apply(where, wanted(3))
    assert statuses(apply(where, wanted(2)))["t#3"] in (STARTED, APPLIED)
    arrive(where)
    assert complete(apply(where, wanted(2)))
    assert set_there(where) == [] and owed(where) == []
    assert plan(where, wanted(2)).changes == ()


def test_without_the_setting_nothing_is_throttled() -> None:
    """Nor is a move that copies nothing: lowering needs no throttle."""
    where = ready(throttle=None)
    apply(where, wanted(3, throttle=None))
    assert set_there(where) == [] and owed(where) == ["move"]
    arrive(where)
    assert statuses(apply(where, wanted(2))) == {"t#3": APPLIED}
    assert [r for r in where.records("obligation") if r.body["what"] == "throttle"] == []


def test_growth_and_a_move_are_one_change_in_order() -> None:
    """Partitions first; the wave of the move sees what the first step left, and goes on."""
    where = ready()
    done = apply(where, wanted(2, partitions=5))
    assert statuses(done) == {"t#1": APPLIED, "t#3": STARTED} and complete(done)
    assert where.cluster.topics["t"].partitions == 5
    arrive(where)
    assert complete(apply(where, wanted(2, partitions=5)))
    assert where.cluster.topics["t"].replication_factor == 2
    assert plan(where, wanted(2, partitions=5)).changes == ()


def test_a_topic_that_moves_can_be_deleted() -> None:
    """Its move has ended before it reached its target then, and its throttle leaves the brokers."""
    where = ready()
    apply(where, wanted(3))
    gone = (removed("kafka_topic.t", destroy=True),)
    said = desired(topic("other"), removed=gone, reassignment_throttle=RATE)
    assert complete(apply(where, said))
    assert set_there(where) == [] and owed(where) == [] and set(where.cluster.topics) == {"other"}


def test_ignoring_the_replication_factor_moves_nothing() -> None:
    """What follows from an ignored attribute is ignored with it."""
    where = ready()
    spared = topic(
        "t", 3, replication_factor=3, lifecycle=Lifecycle(ignore_changes=("replication_factor",))
    )
    assert plan(where, desired(spared)).changes == ()


def test_a_topic_without_the_number_is_never_moved() -> None:
    """Neither after another number was set by somebody else nor with a broker gone."""
    where = ready()
    where.cluster.stop(2)
    assert plan(where, desired(topic("t", 3))).changes == ()
