"""Whom dangerous changes hit: which changes are looked at, and what a look must not do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from kafkaform.core.change import Action, Change, add_findings
from kafkaform.core.clock import SimulatedClock
from kafkaform.core.errors import KafkaformError, OtherSystem
from kafkaform.core.finding import Block, Finding, Harm, Level
from kafkaform.core.resource import Identity, InstanceWorld
from kafkaform.plan.consequences import can_harm, tell_consequences
from kafkaform.plan.model import Extent, Options, compute_approval
from kafkaform.plan.observe import BOUNDS, Look, LookBudget
from kafkaform.provider.contract import LookBounds

from ...kit.simulated.engine import KAFKA, desired, identity, topic
from .worlds import facts, live, planned, row, state

READ = Finding("readers", Level.NOTE, Harm.NONE, "billing reads it now")
ASKED: list[tuple[str, LookBounds]] = []
"""What the finder was asked about."""
Finder = Callable[[Sequence[Change]], Sequence[tuple[Identity | None, Finding]]]
answer: Finder


def find(
    session: object, changes: Sequence[Change], bounds: LookBounds
) -> Sequence[tuple[Identity | None, Finding]]:
    """The finder of the provider in these tests."""
    ASKED.extend((change.identity.key, bounds) for change in changes)
    return answer(changes)


@pytest.fixture(autouse=True)
def usual_answer() -> Iterator[None]:
    """The finder knows a reader of each object."""
    answer_with(lambda changes: [(change.identity, READ) for change in changes])
    ASKED.clear()
    yield


def answer_with(finder: Finder) -> None:
    global answer
    answer = finder


def made(name: str, *harms: Harm, action: Action = Action.UPDATE) -> Change:
    change = Change(identity(name), f"kafka_topic.{name}", action)
    return add_findings(change, *(Finding("r", Level.DANGER, harm, "text") for harm in harms))


def told(
    *changes: Change,
    extent: Extent = Extent.FAST,
    budget: LookBudget | None = None,
    sample: bool = False,
) -> tuple[Sequence[Change], tuple[Finding, ...]]:
    """The changes afterwards, and the findings about the system."""
    provider: Any = SimpleNamespace(
        consequences=f"{__name__}:find", needs_look=lambda change, _: change.identity.key == "large"
    )
    session: Any = object()
    look = Look(
        {KAFKA: session},
        {KAFKA: InstanceWorld(facts(), {})},
        budget=LookBudget() if budget is None else budget,
    )
    after, remarks = tell_consequences(
        changes, {}, {KAFKA: provider}, look, Options(impact=extent, sample=sample)
    )
    return after, remarks.get(KAFKA, ())


def test_only_changes_that_can_do_harm_are_looked_at() -> None:
    """A plan without a dangerous change asks nothing."""
    blocked = add_findings(
        made("blocked", Harm.DATA_LOSS),
        Finding("b", Level.BLOCK, Harm.NONE, "text", block=Block.PROTECTED),
    )
    remark = replace(
        made("noted"), findings=(Finding("n", Level.NOTE, Harm.DATA_LOSS, "less is kept"),)
    )
    changes = (made("plain"), made("open", Harm.ACCESS_GAINED), blocked, remark)
    assert told(*changes) == (changes, ())
    assert ASKED == []
    told(made("plain"), made("large"))
    assert [key for key, _ in ASKED] == ["large"], "only the system knows whether it fits"
    ASKED.clear()
    cut, gone = made("cut", Harm.DATA_LOSS), made("gone", action=Action.DELETE)
    after, _ = told(*changes, cut, gone)
    assert [name for name, _ in ASKED] == ["cut", "gone"]
    assert after[-2:] == [add_findings(cut, READ), add_findings(gone, READ)]
    assert after[:-2] == list(changes)


@pytest.mark.parametrize("extent", [Extent.FAST, Extent.FULL])
def test_the_extent_decides_how_much_is_asked(extent: Extent) -> None:
    """fast has five seconds and 500 objects, full has no limit, and off asks nothing."""
    told(made("cut", Harm.DATA_LOSS), extent=extent)
    assert [("cut", BOUNDS[extent])] == ASKED
    limits = {Extent.FAST: LookBounds(5.0, 500), Extent.FULL: LookBounds(None, None)}
    assert BOUNDS[extent] == limits[extent]
    ASKED.clear()
    told(made("cut", Harm.DATA_LOSS), extent=extent, sample=True)
    assert [("cut", replace(limits[extent], sample=True))] == ASKED
    ASKED.clear()
    assert told(made("cut", Harm.DATA_LOSS), extent=Extent.OFF)[1] == ()
    assert ASKED == []


def test_plans_of_one_run_share_what_it_may_ask() -> None:
    """The second plan has the time and the objects that the first one has left, and a plan for
    which nothing is left asks nothing and says so. `full` has no limit and takes nothing away."""
    clock = SimulatedClock()
    budget = LookBudget(clock=clock)

    def answer_slowly(changes: Sequence[Change]) -> Sequence[tuple[Identity | None, Finding]]:
        clock.sleep(2.0)
        return [(change.identity, READ) for change in changes]

    answer_with(answer_slowly)
    cuts = [made(f"cut{number}", Harm.DATA_LOSS) for number in range(100)]
    told(cuts[0], extent=Extent.FULL, budget=budget)
    for seconds, objects in ((5.0, 500), (3.0, 400), (1.0, 300)):
        ASKED.clear()
        told(*cuts, budget=budget)
        assert {bounds for _, bounds in ASKED} == {LookBounds(seconds, objects)}
    ASKED.clear()
    after, remarks = told(*cuts, budget=budget)
    assert (ASKED, list(after)) == ([], cuts)
    (unknown,) = remarks
    assert unknown.rule == "consequences-unknown" and unknown.level is Level.NOTE
    assert "have used up what a run has for that (5 s and 500 objects)" in unknown.text
    assert told(made("plain"), budget=budget)[1] == (), "it has nothing that could be looked at"
    told(cuts[0], extent=Extent.FULL, budget=budget)
    assert [key for key, _ in ASKED] == ["cut0"]
    objects = LookBudget(clock=clock)
    told(*(made(f"cut{number}", Harm.DATA_LOSS) for number in range(600)), budget=objects)
    assert objects.bounds == LookBounds(3.0, 0)


@pytest.mark.parametrize(
    ("error", "text"), [(KafkaformError("no broker answers"), "no broker"), (KeyError("x"), "bug")]
)
def test_a_look_that_fails_is_said_and_changes_nothing_else(error: Exception, text: str) -> None:
    """Neither a fault of the system nor one of the look passes or blocks a change."""

    def fail(_: object) -> Any:
        raise error

    answer_with(fail)
    changes = (made("cut", Harm.DATA_LOSS),)
    after, remarks = told(*changes)
    assert tuple(after) == changes
    assert [finding.rule for finding in remarks] == ["consequences-unknown"]
    assert remarks[0].level is Level.NOTE and text in remarks[0].text


def test_another_system_stops_the_plan() -> None:
    """What another system says about its readers must not be shown as if it were this one."""

    def fail(_: object) -> Any:
        raise OtherSystem("another cluster answers", "check the address")

    answer_with(fail)
    with pytest.raises(OtherSystem):
        told(made("cut", Harm.DATA_LOSS))


def test_figures_make_no_approval_stale() -> None:
    """A plan that was approved while a group was far behind is still approved when it catches
    up."""
    plan = planned(
        desired(topic("a", config={"retention.ms": "1000"})),
        [live(config={"retention.ms": "9000000"})],
        state(row(config={"retention.ms": "9000000"})),
    )
    (change,) = plan.changes
    assert can_harm(change)
    figures = (Finding("readers", Level.DANGER, Harm.DATA_LOSS, f"{n} unread") for n in (5, 6))
    approvals = {
        compute_approval(replace(plan, changes=(add_findings(change, finding),)))
        for finding in figures
    }
    assert approvals == {plan.approval}
    assert compute_approval(replace(plan, options=Options(impact=Extent.OFF))) == plan.approval
