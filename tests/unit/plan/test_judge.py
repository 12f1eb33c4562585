"""What the judge makes of the rules of providers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import pytest

from kafkaform.core.change import Action, Change, PathChange, add_findings
from kafkaform.core.finding import Block, Finding, Harm, Level
from kafkaform.core.resource import NO_OBJECTS, Depth, Facts, Identity, Sweep
from kafkaform.core.rule import Judge, Needs, Rule, RuleBook, Scene, Survey
from kafkaform.core.value import FrozenMap
from kafkaform.plan.judge import (
    is_accepted,
    judge_changes,
    judge_refreshes,
    record_findings,
    survey_changes,
)
from kafkaform.plan.observe import Look
from kafkaform.plan.rules import KEPT, PROTECTED, UNMANAGED
from kafkaform.state.model import Row, State

HERE = Identity("shelf", "shelf_box", "a")
BOX = Change(HERE, "shelf_box.a", Action.UPDATE)
FACTS = {"shelf": Facts("s")}


def make_rule(id: str, level: Level, *, accept: bool = False, block: Block | None = None) -> Rule:
    return Rule(
        id, id, level, Harm.NONE, ("shelf_box",), Needs.PLAN, "why", "example", "fix", block, accept
    )


WIDE = make_rule("box-wide", Level.BLOCK, accept=True, block=Block.GUARD)
DEEP = make_rule("box-deep", Level.BLOCK, accept=True, block=Block.GUARD)
BROKEN = make_rule("box-broken", Level.BLOCK, block=Block.IMPOSSIBLE)
ODD = make_rule("box-odd", Level.NOTE)


class Shelves:
    """A provider whose survey always finds the same."""

    name = "shelf"

    def review_needs(self, changes: Sequence[Change]) -> Mapping[str, Depth]:
        return {}


class Nowhere:
    elsewhere = NO_OBJECTS

    def collect_sweeps(self, instance: str, needs: Mapping[str, Depth]) -> Mapping[str, Sweep]:
        return {}


def survey(
    *findings: Finding, change: Change = BOX, accepted: Sequence[str] = (), system: bool = False
) -> tuple[Change, tuple[Finding, ...]]:
    """The change after a survey that finds this about it, or about its system, and what was found
    about the system."""
    identity = None if system else HERE
    book = RuleBook(surveys=(Survey((), lambda _: ((identity, item) for item in findings)),))
    changes, remarks = survey_changes(
        [change],
        cast(Any, {"shelf": Shelves()}),
        {"shelf": book},
        cast(Look, Nowhere()),
        FACTS,
        accepted,
    )
    return changes[0], remarks["shelf"]


@pytest.mark.parametrize(
    ("accepted", "rule"),
    [
        ((), WIDE),
        (("box-deep",), WIDE),
        (("box-wide",), DEEP),
        (("box-wide=shelf_box.*",), DEEP),
        (("box-wide=shelf_box.b", "box-deep"), WIDE),
        (("box-wide", "box-deep"), None),
    ],
)
def test_each_rule_is_accepted_by_itself(accepted: tuple[str, ...], rule: Rule | None) -> None:
    """A change stays blocked until every rule that blocks it is accepted, for its address."""
    change, _ = survey(WIDE.find("it is wide"), DEEP.find("it is deep"), accepted=accepted)
    assert (change.blocked and change.blocked.rule) == (rule and rule.id)


def test_what_was_accepted_stays_in_sight() -> None:
    """As a danger that says that somebody accepted it."""
    change, _ = survey(WIDE.find("it is wide"), accepted=("box-wide",))
    (finding,) = change.findings
    assert (finding.level, finding.accepted, finding.text) == (Level.DANGER, True, "it is wide")


def test_no_acceptance_lifts_other_blocks() -> None:
    """A rule that nobody can accept blocks all the same."""
    change, _ = survey(BROKEN.find("no"), accepted=("box-broken",))
    assert change.block is Block.IMPOSSIBLE


def test_the_first_block_that_stops_comes_first() -> None:
    """What blocks a change before others is its reason; notes come after dangers."""
    change, _ = survey(ODD.find("odd"), DEEP.find("deep"), BROKEN.find("broken"))
    assert [item.rule for item in change.findings] == ["box-deep", "box-broken", "box-odd"]
    assert change.blocked == change.findings[0]


def test_a_further_fault_of_what_stays_does_not_stop_the_plan() -> None:
    """A protected object stays as it is, so what is wrong with it is a caution."""
    kept = add_findings(BOX, PROTECTED.find("it is protected"))
    change, _ = survey(BROKEN.find("no"), change=kept)
    assert change.block is Block.PROTECTED
    assert [item.level for item in change.findings] == [Level.BLOCK, Level.CAUTION]


def test_an_unmanaged_object_tells_what_an_adoption_would_meet() -> None:
    """Its advice is to adopt it, so whoever follows it learns first that this would fail."""
    there = add_findings(BOX, UNMANAGED.find("it exists"))
    change = record_findings(there, [BROKEN.find("it is too big")])
    assert change.findings[1].text == "it could not be adopted as declared: it is too big"


def test_remarks_on_the_system_are_of_no_change() -> None:
    """They are shown once."""
    change, remarks = survey(ODD.find("it is odd"), system=True)
    assert change == BOX and remarks == (ODD.find("it is odd"),)


def test_a_rule_that_raises_blocks_the_change_and_is_named() -> None:
    """What was not judged must not pass."""

    def fail(change: Change, facts: Facts) -> Iterator[Finding]:
        raise KeyError("size")

    judge = Judge((ODD, WIDE), ("shelf_box",), Needs.FACTS, fail)
    (change,) = judge_changes([BOX], {"shelf": RuleBook((judge,))}, FACTS)
    assert change.blocked is not None and change.blocked.stops
    assert "box-odd, box-wide could not judge it: KeyError: 'size'" in change.blocked.text


def test_a_survey_that_raises_blocks_every_change_it_would_judge() -> None:
    """What was not judged must not pass."""

    def fail(scene: Scene) -> Iterator[tuple[Identity | None, Finding]]:
        raise ValueError("no listing")

    book = RuleBook(surveys=(Survey((WIDE,), fail),))
    changes, _ = survey_changes(
        [BOX],
        cast(Any, {"shelf": Shelves()}),
        {"shelf": book},
        cast(Look, Nowhere()),
        FACTS,
    )
    assert changes[0].block is Block.IMPOSSIBLE


def test_a_refresh_is_judged_as_what_somebody_has_changed() -> None:
    """From what the state has to what is live. What would block is left out, a fault is told, and
    nothing blocks."""
    identity, other = Identity("shelf", "shelf_box", "a"), Identity("shelf", "shelf_box", "b")
    drift = (PathChange(("size",), 1, 2),)
    live, gone = FrozenMap(size=2), Change(other, "shelf_box.b", Action.FORGET)
    note = KEPT.find("it is kept")
    change = Change(identity, "shelf_box.a", Action.REFRESH, live, live, drift=drift)
    seen: list[Change] = []

    def find(change: Change, _: Facts) -> Iterator[Finding]:
        seen.append(change)
        yield from (ODD.find("odd"), BROKEN.find("broken"))

    def fail(change: Change, _: Facts) -> Iterator[Finding]:
        raise ZeroDivisionError

    judges = tuple(Judge((ODD,), ("shelf_box",), Needs.OBJECT, judge) for judge in (find, fail))
    made, same = judge_refreshes(
        [add_findings(change, note), gone],
        State("x", objects={identity: Row(identity, ("shelf_box.a",), 1, FrozenMap(size=1))}),
        {"shelf": RuleBook(judges=judges)},
        FACTS,
    )
    (judged,) = seen
    assert (judged.action, judged.before, judged.after) == (Action.UPDATE, FrozenMap(size=1), live)
    assert judged.paths == drift and same is gone
    assert (made.action, made.before, made.paths) == (Action.REFRESH, live, ())
    assert {(item.rule, item.level) for item in made.findings} == {
        ("box-odd", ODD.level),
        ("rule-failed", Level.CAUTION),
        (note.rule, note.level),
    }
    assert made.blocked is None


def test_judges_get_the_changes_of_their_types_only() -> None:
    """The table of types decides, and not the judge."""
    judge = Judge((ODD,), ("shelf_lid",), Needs.BLOCK, lambda *_: [ODD.find("odd")])
    assert judge_changes([BOX], {"shelf": RuleBook((judge,))}, FACTS) == [BOX]


@pytest.mark.parametrize(
    ("name", "accepted"),
    [
        ("box-wide", True),
        ("box-wide=shelf_box.a", True),
        ("box-wide=*", True),
        ("box-wide=shelf_box.b", False),
        ("box", False),
    ],
)
def test_an_acceptance_names_a_rule_and_addresses(name: str, accepted: bool) -> None:
    assert is_accepted(name, "box-wide", BOX) is accepted
