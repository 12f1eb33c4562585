"""An object that moves counts as what it will be: for plans, their freshness and a resumed run."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafkaform.core.change import Action, OutcomeStatus
from kafkaform.core.errors import PlanRefused
from kafkaform.plan.model import Plan
from kafkaform_kafka.memory import Killed, killed_after

from ...kit.findings import list_notes
from ...kit.simulated.boxes import KIND
from ...kit.simulated.engine import House, apply, box, desired, plan, topic
from ...kit.simulated.managed_topics import built, complete, statuses
from ...kit.simulated.moving_boxes import (
    ELSEWHERE,
    HERE,
    THERE,
    TICKET,
    arrive,
    moves,
    moving,
    owed,
    place,
    recorded,
)

APPLIED, STARTED = OutcomeStatus.APPLIED, OutcomeStatus.STARTED


# ── plans ───────────────────────────────────────────────────────────────────────────────


def test_a_plan_sees_no_change_while_it_moves_nor_when_it_has() -> None:
    """The row and the object both count as what they will be; what is under way is named."""
    where, done = moving()
    during = plan(where, THERE)
    assert during.changes == () and recorded(where) == "attic"
    [item] = during.pending
    assert (item.action, item.step, item.run) == ("move", TICKET, done.run)
    arrive(where)
    assert place(where) == "attic" and plan(where, THERE).changes == ()


def test_a_plan_sees_the_change_again_once_it_was_stopped() -> None:
    """Somebody ended the move: that is drift, and the same change as before."""
    where, _ = moving()
    where.cluster.depot.stop("x")
    [change] = plan(where, THERE).changes
    assert change.action is Action.UPDATE
    assert [(c.path, c.before, c.after) for c in change.paths] == [(("place",), "hall", "attic")]
    assert [(c.before, c.after) for c in change.drift] == [("attic", "hall")]


def test_another_change_of_it_says_that_it_moves() -> None:
    """The note names the run; what is left out of the block stays where it goes."""
    where, done = moving()
    [change] = plan(where, desired(box("x", None, "fragile"))).changes
    assert [item.path for item in change.paths] == [("label",)]
    assert list_notes(change) == (f"it has been moving since run {done.run}",)


def test_another_change_of_it_is_silent_about_a_move_that_has_ended() -> None:
    """Nothing of the object is unresolved: the plan tells once that the move has ended."""
    where, _ = moving()
    arrive(where)
    after = plan(where, desired(box("x", None, "fragile")))
    [change] = after.changes
    assert [item.path for item in change.paths] == [("label",)] and list_notes(change) == ()
    assert [item.note for item in after.pending] == ["it has ended; the next apply records that"]


def test_a_move_that_somebody_else_started_is_compared_with_too() -> None:
    """Where it goes is not what is declared, so the plan turns it round and says what runs."""
    where = built(HERE)
    depot = where.cluster.depot
    depot.put(depot.move("x", "cellar"))
    [change] = plan(where, HERE).changes
    assert [(c.before, c.after) for c in change.paths] == [("cellar", "hall")]
    assert list_notes(change) == (
        "a move is running that is not in the audit log",
        "this change replaces the running move",
    )
    assert statuses(apply(where, HERE)) == {"x#2": APPLIED}
    arrive(where)
    assert place(where) == "hall" and plan(where, HERE).changes == ()


# ── resuming, and the world between plan and apply ──────────────────────────────────────

MORE = desired(box("x", "attic"), topic("a"), topic("b", depends_on=(f"{KIND}.x",)))


def part_done() -> tuple[House, Plan]:
    """The move is started; the run died in the create that waits for it."""
    where = built(HERE)
    saved = plan(where, MORE)
    where.cluster.faults.schedule(killed_after(), "CreateTopics", skip=1)
    with pytest.raises(Killed):
        apply(where, MORE, saved=saved)
    assert owed(where) == [TICKET]
    return where, saved


@pytest.mark.parametrize(
    ("meanwhile", "status"), [(lambda where: None, STARTED), (arrive, APPLIED)]
)
def test_a_resumed_run_does_not_start_its_moves_again(
    meanwhile: Callable[[House], None], status: OutcomeStatus
) -> None:
    """A started step is done while it moves and when it has, and is told as what it is."""
    where, saved = part_done()
    meanwhile(where)
    done = apply(where, MORE, saved=saved)
    assert statuses(done) == {"x#2": status, "a#1": APPLIED, "b#1": APPLIED}
    assert complete(done) and moves(where) == 1


def test_a_resumed_run_starts_a_move_again_that_somebody_stopped() -> None:
    """What the reading does not show is not skipped: the object is as it was planned from."""
    where, saved = part_done()
    where.cluster.depot.stop("x")
    done = apply(where, MORE, saved=saved)
    assert statuses(done)["x#2"] is STARTED and complete(done)
    assert moves(where) == 2 and owed(where) == [TICKET]


def test_an_approval_whose_move_runs_or_has_ended_was_applied() -> None:
    """Said twice, with nothing sent; a move that was stopped meanwhile no longer holds."""
    where = built(HERE)
    saved = plan(where, THERE)
    first = apply(where, THERE, saved=saved)
    assert apply(where, THERE, saved=saved).already == first.run
    arrive(where)
    assert apply(where, THERE, saved=saved).already == first.run
    depot = where.cluster.depot
    depot.put(depot.move("x", "cellar"))
    with pytest.raises(PlanRefused, match="place was"):
        apply(where, THERE, saved=saved)
    assert moves(where) == 1


@pytest.mark.parametrize(
    ("meanwhile", "fresh"),
    [
        (lambda where: None, True),
        (arrive, True),
        (lambda where: where.cluster.depot.stop("x"), False),
    ],
)
def test_a_plan_made_while_it_moves_is_fresh_until_the_move_is_stopped(
    meanwhile: Callable[[House], None], fresh: bool
) -> None:
    """The pre-image is where the object goes, not where it happens to be."""
    where, _ = moving()
    saved = plan(where, ELSEWHERE)
    meanwhile(where)
    if fresh:
        assert complete(apply(where, ELSEWHERE, saved=saved))
        return
    with pytest.raises(PlanRefused, match="place was"):
        apply(where, ELSEWHERE, saved=saved)


def test_a_move_of_somebody_else_makes_a_plan_stale() -> None:
    """Nobody reviewed what it would be turned from."""
    where = built(HERE)
    saved = plan(where, THERE)
    depot = where.cluster.depot
    depot.put(depot.move("x", "cellar"))
    with pytest.raises(PlanRefused, match="place was"):
        apply(where, THERE, saved=saved)
    assert moves(where) == 0
