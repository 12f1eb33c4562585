"""Work that outlives its run: on record before anybody counts on it, asked about until it ends."""

from __future__ import annotations

import signal

import pytest
from msgspec.structs import replace

from kafkaform.apply.recovery import MARGIN_SECONDS
from kafkaform.apply.report import Work
from kafkaform.core.change import OutcomeStatus
from kafkaform.core.errors import PlanRefused, exit_code
from kafkaform.core.resource import Lifecycle
from kafkaform.state.codec import encode
from kafkaform.state.model import drop_row
from kafkaform_kafka.memory import (
    Killed,
    Mishap,
    killed_after,
    killed_before,
    late_effect,
    lost_reply,
    lost_request,
)

from ...kit.simulated.boxes import KIND, Box
from ...kit.simulated.engine import (
    TIMEOUT,
    House,
    apply,
    box,
    desired,
    house,
    identity,
    plan,
    removed,
    topic,
)
from ...kit.simulated.managed_topics import between, built, complete, ends, statuses
from ...kit.simulated.memory_store import MOMENTS
from ...kit.simulated.moving_boxes import (
    ELSEWHERE,
    HERE,
    THERE,
    TICKET,
    arrive,
    discharged,
    moves,
    moving,
    owed,
    place,
    recorded,
)
from ...model.witness import Witness

APPLIED, FAILED, STARTED = OutcomeStatus.APPLIED, OutcomeStatus.FAILED, OutcomeStatus.STARTED


def standing(work: tuple[Work, ...]) -> list[tuple[str, OutcomeStatus]]:
    return [(item.outcome.step, item.outcome.status) for item in work]


# ── a step that starts work ─────────────────────────────────────────────────────────────


def test_a_move_is_started_and_left() -> None:
    """Nobody waits for it; the run is complete, with exit code 0, and the obligation is open."""
    where = built(HERE)
    begin = where.clock.monotonic()
    done = apply(where, THERE)
    assert statuses(done) == {"x#2": STARTED} and complete(done)
    assert done.report is not None and done.report.make_error() is None
    assert where.clock.monotonic() == begin and place(where) == "hall"
    assert owed(where) == [TICKET] and where.index.open_intents == ()
    end = where.records("run_end")[-1].body
    assert end["complete"] and end["counts"] == {"started": 1}


def test_the_obligation_stands_before_the_outcome_that_opens_it() -> None:
    """Both in one append, in the order of which any beginning can be recovered."""
    where, _ = moving()
    [duty] = where.records("obligation")
    outcome = where.records("outcome")[-1]
    assert (outcome.seq, outcome.body["outcome"]) == (duty.seq + 1, "started")
    assert outcome.body["ticket"] == duty.body["ticket"] == TICKET
    assert (duty.body["what"], duty.body["key"]) == ("move", "x")


def test_a_started_move_is_not_called_invisible() -> None:
    """Verification looks at what is applied; where a box arrives later is no fault."""
    _, done = moving()
    assert done.report is not None and done.report.invisible == ()


def test_what_waits_for_a_started_step_goes_on() -> None:
    """A topic that depends on the box is made, and a deletion of the second part is sent."""
    where = built(desired(box("x"), topic("d")))
    gone = (removed("kafka_topic.d", destroy=True),)
    said = desired(box("x", "attic"), topic("a", depends_on=(f"{KIND}.x",)), removed=gone)
    assert statuses(apply(where, said)) == {"x#2": STARTED, "a#1": APPLIED, "d#1": APPLIED}
    assert set(where.cluster.topics) == {"a"}


def test_a_short_move_is_told_as_applied() -> None:
    """It has ended when the run does: opened, discharged, and nothing is left to ask."""
    where = built(HERE)
    where.cluster.depot.pace = 0
    done = apply(where, THERE)
    assert statuses(done) == {"x#2": APPLIED}
    assert discharged(where) == [(TICKET, "applied")] and owed(where) == []
    assert plan(where, THERE).changes == ()


def test_a_move_that_fails_at_once_is_a_failed_step() -> None:
    """The run that started it still asks: exit code 5, and the next run starts it again."""
    where = built(HERE)

    def stopped(records: object) -> None:
        if where.records("obligation"):
            where.cluster.depot.stop("x")

    where.sink.after_append = stopped
    done = apply(where, THERE)
    error = done.report.make_error() if done.report else None
    assert statuses(done) == {"x#2": FAILED} and error is not None and exit_code(error) == 5
    assert discharged(where) == [(TICKET, "failed")]
    where.sink.after_append = lambda records: None
    assert statuses(apply(where, THERE)) == {"x#2": STARTED}


def test_the_other_steps_of_a_change_are_recorded_beside_the_move() -> None:
    """Label and place go in two requests: the row has both, and only one is still under way."""
    where = built(HERE)
    said = desired(box("x", "attic", "fragile"))
    assert statuses(apply(where, said)) == {"x#1": APPLIED, "x#2": STARTED}
    row = where.row("x", KIND)
    assert row is not None and row.attributes["label"] == "fragile" and recorded(where) == "attic"


# ── later runs ask ──────────────────────────────────────────────────────────────────────


def test_a_later_run_discharges_what_has_ended() -> None:
    """It says so, changes nothing, and asks no more."""
    where, first = moving()
    arrive(where)
    assert complete(apply(where, THERE))
    assert discharged(where) == [(TICKET, "applied")] and owed(where) == []
    [record] = where.records("discharged")
    assert record.body["discharges"] == where.records("obligation")[0].seq
    assert where.screen.notes == [
        f"{KIND}.x: the move of its replicas that run {first.run} started has ended."
    ]
    asked = where.cluster.requests["ListMoves"]
    apply(where, THERE)
    assert where.cluster.requests["ListMoves"] == asked and len(where.records("discharged")) == 1


def test_what_runs_is_left_and_told() -> None:
    """The obligation stays open, nothing is sent and nothing is written."""
    where, _ = moving()
    lines, sent = len(where.sink.whole), moves(where)
    assert complete(apply(where, THERE))
    assert standing(where.screen.recoveries[0].work) == [(TICKET, STARTED)]
    assert "is still running" in where.screen.notes[0]
    assert (len(where.sink.whole), moves(where)) == (lines, sent) and owed(where) == [TICKET]


def test_a_failed_move_is_told_and_started_again() -> None:
    """Discharged as failed, with the reason; the plan of the same run asks for it again."""
    where, _ = moving()
    where.cluster.depot.stop("x")
    assert statuses(apply(where, THERE)) == {"x#2": STARTED}
    assert discharged(where) == [(TICKET, "failed")] and owed(where) == [TICKET]
    assert "ended before it reached its target: it was stopped" in where.screen.notes[0]


def test_a_move_that_cannot_be_asked_about_stays_open() -> None:
    """An unknown answer discharges nothing, and the run goes on."""
    where, _ = moving()
    where.cluster.faults.schedule(lost_reply(), "ListMoves")
    assert complete(apply(where, THERE))
    assert "could not be checked" in where.screen.notes[0] and owed(where) == [TICKET]


def test_a_move_of_an_object_that_the_state_lost_is_asked_about() -> None:
    """The log alone says that this provider instance still owes something."""
    where, _ = moving()
    where.backend.data = encode(drop_row(where.state, identity("x", KIND)))
    arrive(where)
    assert complete(apply(where, desired()))
    assert discharged(where) == [(TICKET, "applied")] and owed(where) == []


def test_another_cluster_is_not_asked_about_it() -> None:
    """The same bootstrap address, another cluster behind it: nothing is discharged."""
    where, _ = moving()
    where.cluster.id = "another"
    with pytest.raises(PlanRefused, match="another"):
        apply(where, THERE)
    assert where.cluster.requests["ListMoves"] == 1 and owed(where) == [TICKET]


def test_another_target_takes_the_place_of_a_running_move() -> None:
    """The step of the later plan turns the move round; the first obligation ends, told as such,
    and the second one is open."""
    where, first = moving()
    done = apply(where, ELSEWHERE)
    assert statuses(done) == {"x#2": STARTED} and complete(done)
    assert discharged(where) == [(TICKET, "failed")] and owed(where) == ["x@cellar"]
    assert where.screen.notes[-1].endswith("another move took its place (MOVE_ENDED).")
    assert done.report is not None and done.report.work[0].obligation.run == first.run
    arrive(where)
    assert complete(apply(where, ELSEWHERE)) and place(where) == "cellar" and owed(where) == []


def test_a_move_back_ends_at_once() -> None:
    """The plan that wants the old place ends the move; no obligation is left."""
    where, _ = moving()
    assert statuses(apply(where, HERE)) == {"x#2": APPLIED}
    assert owed(where) == [] and recorded(where) == "hall"
    arrive(where)
    assert place(where) == "hall" and plan(where, HERE).changes == ()


def test_an_object_that_is_deleted_ends_its_move() -> None:
    """Nothing is left to ask about."""
    where = built(desired(box("x"), box("y")))
    assert complete(apply(where, desired(box("x", "attic"), box("y"))))
    gone = desired(box("y"), removed=(removed(f"{KIND}.x", destroy=True),))
    assert complete(apply(where, gone))
    assert discharged(where) == [(TICKET, "failed")] and owed(where) == []


def test_an_adoption_that_only_moves_proves_ownership() -> None:
    """A started step is enough to delete the object later: it was taken over."""
    where = house()
    where.cluster.depot.put(Box("foreign", "x", "hall", ""))
    wish = replace(box("x", "attic"), lifecycle=Lifecycle(adopt=True))
    assert statuses(apply(where, desired(wish, topic("k")))) == {"x#2": STARTED, "k#1": APPLIED}
    gone = desired(topic("k"), removed=(removed(f"{KIND}.x", destroy=True),))
    assert complete(apply(where, gone)) and "x" not in where.cluster.depot.boxes


# ── answers that do not come, and runs that die ─────────────────────────────────────────


@pytest.mark.parametrize("mishap", [lost_reply(), late_effect(1.0), late_effect(TIMEOUT)], ids=repr)
def test_a_lost_answer_is_found_moving(mishap: Mishap) -> None:
    """The reading names the ticket that the answer would have named; nothing is sent twice."""
    where = built(HERE)
    where.cluster.faults.schedule(mishap, "MoveBox")
    done = apply(where, THERE)
    assert statuses(done) == {"x#2": STARTED} and moves(where) == 1
    assert owed(where) == [TICKET] and where.index.open_intents == ()


def test_a_swallowed_move_is_failed_after_the_deadline() -> None:
    """Neither there nor on its way, when nothing can land any more."""
    where = built(HERE)
    where.cluster.faults.schedule(lost_request(), "MoveBox")
    begin = where.clock.monotonic()
    assert statuses(apply(where, THERE)) == {"x#2": FAILED}
    assert where.clock.monotonic() - begin >= TIMEOUT + MARGIN_SECONDS
    assert owed(where) == [] and recorded(where) == "hall"


def test_the_old_place_of_a_moving_box_is_no_proof_of_a_move_back() -> None:
    """Somebody moves it away; our move to where it stands was swallowed: it still goes away."""
    where = built(HERE)
    depot = where.cluster.depot
    depot.put(depot.move("x", "cellar"))
    where.cluster.faults.schedule(lost_request(), "MoveBox")
    assert statuses(apply(where, HERE)) == {"x#2": FAILED}
    assert depot.boxes["x"].bound == "cellar"


def died(mishap: Mishap) -> House:
    """A house where the run died in its request to move the box."""
    where = built(HERE)
    where.cluster.faults.schedule(mishap, "MoveBox")
    with pytest.raises(Killed):
        apply(where, THERE)
    assert len(where.index.open_intents) == 1 and owed(where) == []
    return where


@pytest.mark.parametrize("delay", [0, 2.0, float(TIMEOUT)])
def test_recovery_finds_a_move_that_runs(delay: float) -> None:
    """Whenever the request of the dead run lands: started, with its obligation, and not again."""
    where = died(killed_after(delay))
    assert complete(apply(where, THERE)) and moves(where) == 1
    assert ends(where)[-1] == ("recover", "started") and owed(where) == [TICKET]
    assert recorded(where) == "attic" and plan(where, THERE).changes == ()


def test_recovery_finds_a_move_that_has_ended() -> None:
    """The target is reached: applied, and there is nothing to ask about."""
    where = died(killed_after())
    arrive(where)
    assert complete(apply(where, THERE)) and moves(where) == 1
    assert ends(where)[-1] == ("recover", "applied") and where.records("obligation") == []


def test_recovery_finds_a_move_that_never_left() -> None:
    """Never at once: only after the wait, because what is not there may still come."""
    where = died(killed_before())
    begin = where.clock.monotonic()
    assert statuses(apply(where, THERE)) == {"x#2": STARTED}
    assert where.clock.monotonic() - begin >= TIMEOUT + MARGIN_SECONDS - 1
    assert ("recover", "failed") in ends(where) and moves(where) == 1


@pytest.mark.parametrize("kind", ["obligation", "state"])
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("arrives", [False, True])
def test_a_death_while_a_start_is_recorded_loses_nothing(
    kind: str, moment: str, arrives: bool
) -> None:
    """Whatever is durable of obligation, outcome and state: one move, one obligation, and it
    ends as soon as the move does."""
    where = built(HERE)
    where.fate.set(kind, 0, moment)
    with pytest.raises(Killed):
        apply(where, THERE)
    if arrives:
        arrive(where)
    assert complete(apply(where, THERE)) and moves(where) == 1
    assert owed(where) == ([] if arrives else [TICKET])
    assert len(where.records("obligation")) <= 1 and recorded(where) == "attic"
    assert plan(where, THERE).changes == () and where.index.open_intents == ()
    Witness(where).storage()


@pytest.mark.parametrize("kind", ["obligation", "state", "discharged"])
@pytest.mark.parametrize("moment", MOMENTS)
def test_recovering_a_start_twice_is_recovering_it_once(kind: str, moment: str) -> None:
    """A recovery that dies is recovered: the same obligation, discharged once."""
    where = died(killed_after())
    if kind == "discharged":
        assert complete(apply(where, THERE))
        arrive(where)
    where.fate.set(kind, 0, moment)
    with pytest.raises(Killed):
        apply(where, THERE)
    arrive(where)
    assert complete(apply(where, THERE)) and complete(apply(where, THERE))
    assert moves(where) == 1 and owed(where) == []
    assert [end for end in ends(where) if end[0] == "recover"] in (
        [("recover", "started")],
        [("recover", "applied")],
    )
    assert discharged(where) in ([(TICKET, "applied")], [])
    assert recorded(where) == "attic" and plan(where, THERE).changes == ()


BEFORE = desired(box("x"), box("y"), topic("z"))
AFTER = desired(box("x", "attic", "new"), box("y", "cellar"), topic("z", 2), box("n", "attic"))
LATER = pytest.mark.slow("dies at each of dozens of places")
WAYS_TO_DIE = [
    killed_after(),
    *(pytest.param(mishap, marks=LATER) for mishap in (killed_before(), killed_after(3.0))),
]
MOMENTS_TO_DIE = ["torn", *(pytest.param(moment, marks=LATER) for moment in ("before", "after"))]


@pytest.mark.parametrize("moment", MOMENTS_TO_DIE)
def test_death_at_any_durable_write_of_a_run_with_moves(moment: str) -> None:
    """For each write: die there, apply again, and the moves are made and owed once."""
    for skip in range(100):
        where = built(BEFORE)
        witness = Witness(where)
        where.fate.set("*", skip, moment)
        try:
            apply(where, AFTER)
        except Killed:
            pass
        else:
            assert skip > 10
            return
        assert complete(apply(where, AFTER))
        witness.storage()
        assert sorted(owed(where)) == [TICKET, "y@cellar"]
        assert plan(where, AFTER).changes == ()
        arrive(where)
        assert complete(apply(where, AFTER)) and owed(where) == []
        after = plan(where, AFTER)
        assert after.changes == ()
        witness.settled(after, AFTER)
    pytest.fail("the run never ended")


@pytest.mark.parametrize("mishap", WAYS_TO_DIE, ids=repr)
def test_death_at_any_request_of_a_run_with_moves(mishap: Mishap) -> None:
    """For each request, reads and questions about moves included."""
    for skip in range(100):
        where = built(BEFORE)
        witness = Witness(where)
        where.cluster.faults.schedule(mishap, "*", skip=skip)
        try:
            apply(where, AFTER)
        except Killed:
            pass
        else:
            assert skip > 10
            return
        assert complete(apply(where, AFTER))
        assert sorted(owed(where)) == [TICKET, "y@cellar"]
        arrive(where)
        assert complete(apply(where, AFTER)) and owed(where) == []
        after = plan(where, AFTER)
        assert after.changes == ()
        witness.settled(after, AFTER)
    pytest.fail("the run never ended")


def test_the_first_signal_leaves_the_move_running() -> None:
    """The batch in flight is finished and saved; exit code 130, and the run says how to go on."""
    where = built(desired(box("x"), topic("d")))
    said = desired(box("x", "attic"), removed=(removed("kafka_topic.d", destroy=True),))
    between(where, "MoveBox", lambda: signal.raise_signal(signal.SIGINT))
    done = apply(where, said)
    assert done.report is not None and done.report.stopped is not None
    assert exit_code(done.report.stopped) == 130 and "again" in done.report.stopped.advice
    assert statuses(done)["x#2"] is STARTED and "d" in where.cluster.topics
    assert owed(where) == [TICKET] and recorded(where) == "attic"
    arrive(where)
    assert complete(apply(where, said)) and place(where) == "attic" and moves(where) == 1
