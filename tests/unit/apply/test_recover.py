"""A run that died is closed by reading, before anything new is planned."""

from __future__ import annotations

import pytest

from kafkaform.apply.recovery import MARGIN_SECONDS
from kafkaform.core.errors import OutcomeUnknown, PlanRefused
from kafkaform.core.resource import Desired, Lifecycle
from kafkaform_kafka.memory import (
    Killed,
    Mishap,
    killed_after,
    killed_before,
    lost_request,
    refused_items,
)

from ...kit.findings import list_notes
from ...kit.simulated.engine import (
    TIMEOUT,
    House,
    apply,
    desired,
    house,
    moved,
    plan,
    removed,
    topic,
)
from ...kit.simulated.managed_topics import MS, built, complete, ends, writes
from ...kit.simulated.memory_store import MOMENTS
from ...model.witness import Witness

PATIENCE = TIMEOUT + MARGIN_SECONDS
FIRST = desired(topic("z"), topic("d"))
WISHES: dict[str, tuple[str, Desired]] = {
    "create": ("CreateTopics", desired(topic("z"), topic("d"), topic("a"))),
    "alter": ("IncrementalAlterConfigs", desired(topic("z", 1, MS), topic("d"))),
    "grow": ("CreatePartitions", desired(topic("z", 2), topic("d"))),
    "delete": (
        "DeleteTopics",
        desired(topic("z"), removed=(removed("kafka_topic.d", destroy=True),)),
    ),
}


def died(said: Desired, api: str, mishap: Mishap, open_: int = 1) -> House:
    """A house where the run of this configuration died in its request of this API."""
    where = built(FIRST)
    where.cluster.faults.schedule(mishap, api)
    with pytest.raises(Killed):
        apply(where, said)
    assert len(where.index.open_intents) == open_
    return where


@pytest.mark.parametrize("what", WISHES)
@pytest.mark.parametrize("delay", [0, 2.0, float(TIMEOUT)])
def test_an_effect_of_a_dead_run_is_found_and_not_repeated(what: str, delay: float) -> None:
    """The request had left; whenever it lands, it is recorded once and sent once."""
    api, said = WISHES[what]
    where = died(said, api, killed_after(delay))
    sent = where.cluster.requests[api]
    where.clock.advance(delay)
    assert complete(apply(where, said))
    assert ends(where)[-1] == ("recover", "applied")
    assert where.cluster.requests[api] == sent
    assert plan(where, said).changes == ()


@pytest.mark.parametrize("what", WISHES)
def test_what_a_dead_run_never_sent_is_sent_by_the_next(what: str) -> None:
    """The intent is closed as failed, and the plan that follows asks for it again."""
    api, said = WISHES[what]
    where = died(said, api, killed_before())
    sent = where.cluster.requests[api]
    assert complete(apply(where, said))
    assert ("recover", "failed") in ends(where)
    assert where.cluster.requests[api] == sent + 1
    assert plan(where, said).changes == ()


@pytest.mark.parametrize("what", ["create", "delete"])
def test_an_effect_that_may_still_land_is_waited_for(what: str) -> None:
    """A create or delete of a moment ago: the next run reads until the timeout has passed."""
    api, said = WISHES[what]
    where = died(said, api, killed_after(float(TIMEOUT)))
    sent = where.cluster.requests[api]
    assert complete(apply(where, said))
    assert ends(where)[-1] == ("recover", "applied") and where.cluster.requests[api] == sent


@pytest.mark.parametrize("what", ["alter", "grow"])
def test_a_safe_step_with_the_same_target_does_not_wait(what: str) -> None:
    """The next plan makes it so again, so nobody needs to know what became of it."""
    api, said = WISHES[what]
    where = died(said, api, killed_before())
    start = where.clock.monotonic()
    done = apply(where, said)
    assert complete(done) and where.clock.monotonic() - start < 1
    (result,) = where.screen.recoveries[0].closed
    assert result.outcome.fault is not None and result.outcome.fault.code == "SUPERSEDED"
    [intent] = (r for r in where.records("intent") if r.run in where.screen.recoveries[0].runs)
    assert intent.body["step"] == result.step.id


@pytest.mark.parametrize("what", ["alter", "grow"])
def test_a_safe_step_with_another_target_waits(what: str) -> None:
    """A late effect of the old run would undo the new one, so it must have landed or be over."""
    api, said = WISHES[what]
    where = died(said, api, killed_after(2.0))
    other = {"alter": topic("z", 1, {"retention.ms": "5"}), "grow": topic("z", 3)}[what]
    assert complete(apply(where, desired(other, topic("d"))))
    assert ("recover", "applied") in ends(where)
    where.clock.advance(3600)
    assert plan(where, desired(other, topic("d"))).changes == ()


def test_a_block_that_is_gone_waits_too() -> None:
    """Nobody wishes the old target any more, so what became of it matters."""
    where = died(WISHES["alter"][1], "IncrementalAlterConfigs", killed_after(2.0))
    gone = desired(topic("d"), removed=(removed("kafka_topic.z"),))
    assert complete(apply(where, gone))
    assert ("recover", "applied") in ends(where)


def test_the_wait_counts_from_the_intent() -> None:
    """An hour later there is nothing left to wait for."""
    api, said = WISHES["create"]
    where = died(said, api, killed_before())
    where.clock.advance(3600)
    start = where.clock.monotonic()
    assert complete(apply(where, said))
    assert where.clock.monotonic() - start < 1


def test_a_clock_that_went_back_waits_no_longer_than_the_timeout() -> None:
    """An intent of the future is treated as one of this moment."""
    api, said = WISHES["create"]
    where = died(said, api, killed_before())
    where.clock.set_back(10_000)
    start = where.clock.monotonic()
    assert complete(apply(where, said))
    assert PATIENCE <= where.clock.monotonic() - start < 2 * PATIENCE


def test_a_topic_that_somebody_changed_meanwhile_is_a_conflict() -> None:
    """Our create may have happened, but what is there now is not what we made."""
    api, said = WISHES["create"]
    where = died(said, api, killed_after())
    with where.cluster.others() as others:
        others.grow("a", 4)
    apply(where, said)
    assert ends(where)[-1] == ("recover", "failed")
    assert where.row("a") is None
    (blocked,) = plan(where, said).changes
    assert blocked.blocked is not None and "--adopt" in blocked.blocked.fix


def test_what_cannot_be_read_stays_open_and_stops_the_run() -> None:
    """Exit code 6, nothing is sent; when it can be read again, the run goes on."""
    api, said = WISHES["create"]
    where = died(said, api, killed_after())
    before = writes(where)
    where.cluster.faults.schedule(refused_items(29), "DescribeTopics", times=10_000)
    with pytest.raises(OutcomeUnknown, match="kafka_topic.a"):
        apply(where, said)
    assert writes(where) == before and len(where.index.open_intents) == 1
    where.cluster.faults.clear()
    assert complete(apply(where, said)) and where.index.open_intents == ()


def test_another_cluster_closes_nothing() -> None:
    """The address leads elsewhere today: that cluster's silence is no proof of anything."""
    api, said = WISHES["create"]
    where = died(said, api, killed_after())
    ours, where.cluster.id = where.cluster.id, "another"
    with pytest.raises(PlanRefused, match="is cluster another"):
        apply(where, said)
    assert len(where.index.open_intents) == 1 and where.row("a") is None
    where.cluster.id = ours
    assert complete(apply(where, said)) and where.row("a") is not None


@pytest.mark.parametrize(("number", "named"), [(5, "kafka_topic.t4"), (7, " and 2 more")])
def test_of_many_that_cannot_be_read_some_are_named(number: int, named: str) -> None:
    """Five by their addresses, the others by their number."""
    said = desired(*(topic(f"t{n}") for n in range(number)))
    where = died(said, "CreateTopics", killed_after(), open_=number)
    where.cluster.faults.schedule(refused_items(29), "DescribeTopics", times=10_000)
    with pytest.raises(OutcomeUnknown) as left:
        apply(where, said)
    assert str(left.value).endswith(named) and "kafka_topic.t5" not in str(left.value)


def test_a_plan_shows_what_is_unresolved() -> None:
    """Without a lock and without writing, `plan` tells of the open intent and counts it as
    ours."""
    api, said = WISHES["create"]
    where = died(said, api, killed_after())
    lines, data = len(where.sink.whole), where.backend.data
    shown = plan(where, said)
    (change,) = shown.changes
    assert change.blocked is None and "unresolved" in list_notes(change)[0]
    assert shown.pending[0].identity == change.identity
    assert (len(where.sink.whole), where.backend.data) == (lines, data)


@pytest.mark.parametrize("what", WISHES)
@pytest.mark.parametrize("kind", ["recover", "state"])
@pytest.mark.parametrize("moment", MOMENTS)
def test_recovering_twice_is_recovering_once(what: str, kind: str, moment: str) -> None:
    """A recovery that dies is recovered: one outcome, one effect, the same state."""
    api, said = WISHES[what]
    where = died(said, api, killed_after())
    sent = where.cluster.requests[api]
    where.fate.set(kind, 0, moment)
    with pytest.raises(Killed):
        apply(where, said)
    assert complete(apply(where, said))
    assert where.cluster.requests[api] == sent
    assert [end for end in ends(where) if end[0] == "recover"] == [("recover", "applied")]
    Witness(where).storage()
    assert where.index.open_intents == () and plan(where, said).changes == ()


# ── deaths around each durable write ────────────────────────────────────────────────────

BIG = desired(
    topic("z", 2, MS),
    topic("a"),
    topic("b", depends_on=("kafka_topic.a",)),
    topic("m2", address="kafka_topic.moved"),
    removed=(removed("kafka_topic.d", destroy=True), removed("kafka_topic.f")),
    moved=(moved("kafka_topic.m2", "kafka_topic.moved"),),
)
BEFORE = desired(topic("z"), topic("d"), topic("f"), topic("m2"))
LATER = pytest.mark.slow("dies at each of dozens of places")
WAYS_TO_DIE = [
    killed_after(),
    *(pytest.param(mishap, marks=LATER) for mishap in (killed_before(), killed_after(3.0))),
]
MOMENTS_TO_DIE = ["torn", *(pytest.param(moment, marks=LATER) for moment in ("before", "after"))]


@pytest.mark.parametrize("moment", MOMENTS_TO_DIE)
@pytest.mark.parametrize("fresh", [True, False])
def test_death_at_any_durable_write_loses_nothing(moment: str, fresh: bool) -> None:
    """For every write of a whole run, the first run of a state included: die there, apply again,
    and everything is as if nothing had happened."""
    for skip in range(100):
        where = house() if fresh else built(BEFORE)
        witness = Witness(where)
        said = BEFORE if fresh else BIG
        where.fate.set("*", skip, moment)
        try:
            apply(where, said)
        except Killed:
            pass
        else:
            assert skip > (5 if fresh else 15)
            return
        witness.storage()
        assert complete(apply(where, said))
        after = plan(where, said)
        assert after.changes == ()
        witness.storage()
        witness.settled(after, said)
        assert where.row("f") is None or fresh
    pytest.fail("the run never ended")


@pytest.mark.parametrize("mishap", WAYS_TO_DIE, ids=repr)
def test_death_at_any_request_loses_nothing(mishap: Mishap) -> None:
    """For every request of a whole run, reads and dry runs included."""
    for skip in range(100):
        where = built(BEFORE)
        witness = Witness(where)
        where.cluster.faults.schedule(mishap, "*", skip=skip)
        try:
            apply(where, BIG)
        except Killed:
            pass
        else:
            assert skip > 10
            return
        assert complete(apply(where, BIG))
        after = plan(where, BIG)
        assert after.changes == ()
        witness.storage()
        witness.settled(after, BIG)
    pytest.fail("the run never ended")


def test_two_objects_of_one_dead_request_are_judged_each_for_itself() -> None:
    """One of them may have been refused: what is there is recorded, what is not is made."""
    where = built(FIRST)
    said = desired(topic("z"), topic("d"), topic("a"), topic("b"))
    where.cluster.faults.schedule(refused_items(44, names="b"), "CreateTopics")
    where.fate.set("outcome")
    with pytest.raises(Killed):
        apply(where, said)
    assert complete(apply(where, said))
    recovered = [(r.body["key"], r.body["outcome"]) for r in where.records("recover")]
    assert recovered == [("a", "applied"), ("b", "failed")]


def test_an_adoption_of_a_dead_run_is_finished() -> None:
    """An adoption that was announced is bookkeeping: the intent alone is enough to close it."""
    where = built(FIRST)
    with where.cluster.others() as others:
        made = others.create("a")
    said = desired(topic("z"), topic("d"), topic("a", lifecycle=Lifecycle(adopt=True)))
    where.fate.set("intent", 0, "after")
    with pytest.raises(Killed):
        apply(where, said)
    assert complete(apply(where, said))
    row = where.row("a")
    assert row is not None and row.incarnation == made.id
    gone = desired(topic("z"), topic("d"), removed=(removed("kafka_topic.a", destroy=True),))
    assert complete(apply(where, gone)) and "a" not in where.cluster.topics


def test_a_swallowed_create_of_a_dead_run_does_not_become_ours_later() -> None:
    """After the recovery found nothing, a topic that somebody makes is somebody's."""
    where = died(WISHES["create"][1], "CreateTopics", killed_before())
    where.cluster.faults.schedule(lost_request(), "CreateTopics")
    apply(where, WISHES["create"][1])
    with where.cluster.others() as others:
        others.create("a")
    (blocked,) = plan(where, WISHES["create"][1]).changes
    assert blocked.blocked is not None and blocked.blocked.block == "unmanaged"
