"""What a reviewer's approval covers, and what it must not depend on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from kafkaform.core.canonical import dumps
from kafkaform.core.change import Action, Change, Impact, Ownership, PathChange
from kafkaform.core.finding import AccessRow, Breadth, Harm, Level
from kafkaform.core.resource import Lifecycle
from kafkaform.core.rule import Needs, Rule
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform.plan.model import Plan, PlanInstance, compute_approval, digest_change
from kafkaform.plan.rules import KEPT, PROTECTED

from ...kit.simulated.engine import desired, moved, topic
from .worlds import absent, facts, live, pending, planned, row, state

MS = {"retention.ms": "1000"}
LOSS = Rule("loss", "loss", Level.DANGER, Harm.ACCESS_LOST, (), Needs.PLAN, "why", "example")
UPDATE = planned(desired(topic("a", 2, MS)), [live()], state(row())).changes[0]


def edited(**members: Any) -> Change:
    return replace(UPDATE, **members)


def approved(*changes: Change) -> str:
    """The approval of a plan of these changes."""
    names = ("kafka", "kafka.b")
    return compute_approval(Plan("l", 1, "", {n: PlanInstance(facts()) for n in names}, changes))


COVERED: dict[str, Change] = {
    "identity": edited(identity=replace(UPDATE.identity, key="b")),
    "instance": edited(identity=replace(UPDATE.identity, instance="kafka.b")),
    "action": edited(action=Action.CREATE),
    "adopts": edited(adopts=True),
    "incarnation": edited(incarnation="id-9"),
    "a path more": edited(paths=(*UPDATE.paths, PathChange(("owner",), None, "x"))),
    "a path less": edited(paths=UPDATE.paths[1:]),
    "before": edited(paths=(replace(UPDATE.paths[0], before="9"), *UPDATE.paths[1:])),
    "after": edited(paths=(replace(UPDATE.paths[0], after="9"), *UPDATE.paths[1:])),
    "owners": edited(row_after=replace(UPDATE.row_after, owners=("kafka_topic.z",))),
    "protection": edited(row_after=replace(UPDATE.row_after, protected="no")),
    "protection before": edited(row_before=replace(UPDATE.row_before, protected="no")),
    "secret version": edited(row_after=replace(UPDATE.row_after, secret_version="2")),
    "address": edited(address="kafka_topic.other"),
    "depends_on": edited(depends_on=("kafka_topic.q",)),
    "owner": edited(owner="eve"),
    "labels": edited(labels=FrozenMap(team="eve")),
    "losses": edited(findings=(LOSS.find("User:ann loses Read"),)),
    "kept for others": edited(theirs=(("config", "retention.ms"),)),
    "what is recorded": edited(after=(UPDATE.after or EMPTY).with_items({"replication_factor": 9})),
    "what was there": edited(before=(UPDATE.before or EMPTY).with_items({"partitions": 9})),
    "sensitive": edited(paths=(replace(UPDATE.paths[0], sensitive=True), *UPDATE.paths[1:])),
    "a step less": edited(steps=UPDATE.steps[1:]),
    "payload": edited(
        steps=(replace(UPDATE.steps[0], payload=FrozenMap(count=99)), *UPDATE.steps[1:])
    ),
    "request": edited(
        steps=(
            replace(UPDATE.steps[0], request=replace(UPDATE.steps[0].request, node="2")),
            *UPDATE.steps[1:],
        )
    ),
}
SHOWN: dict[str, Change] = {
    "drift": edited(drift=UPDATE.paths),
    "notes": edited(findings=(KEPT.find("a note"),)),
    "impact": edited(impact=Impact("destroys 7 bytes")),
    "reason": edited(reason="because"),
    "effective value": edited(paths=(replace(UPDATE.paths[0], effective="9"), *UPDATE.paths[1:])),
    "range": edited(range=None),
}


@pytest.mark.parametrize("what", COVERED)
def test_the_approval_covers(what: str) -> None:
    """Whatever changes what is done makes another approval."""
    assert digest_change(COVERED[what], "cluster-1", "l") != digest_change(UPDATE, "cluster-1", "l")


@pytest.mark.parametrize("what", SHOWN)
def test_the_approval_does_not_depend_on(what: str) -> None:
    """What only explains may differ from the plan that was reviewed."""
    assert digest_change(SHOWN[what], "cluster-1", "l") == digest_change(UPDATE, "cluster-1", "l")


@pytest.mark.parametrize(
    "member",
    ["principal", "resource_type", "name", "pattern", "operations", "host", "before", "after"],
)
def test_each_part_of_a_lost_right_is_covered(member: str) -> None:
    """The sentence alone does not say all that a row says."""
    row = AccessRow("User:ann", "Topic", "a", "literal", ("Read",), Breadth.ONE)
    other = ("Write",) if isinstance(getattr(row, member), tuple) else "other"
    rows = (row, replace(row, **{member: other}))
    changes = [edited(findings=(LOSS.find("it loses", access=(one,)),)) for one in rows]
    first, second = (digest_change(change, "cluster-1", "l") for change in changes)
    assert first != second


def test_cluster_and_lineage_are_covered() -> None:
    """The same change elsewhere is another change."""
    first = digest_change(UPDATE, "cluster-1", "lineage")
    assert first != digest_change(UPDATE, "cluster-2", "lineage")
    assert first != digest_change(UPDATE, "cluster-1", "another")


def test_a_digest_that_is_kept_is_of_that_change_alone() -> None:
    """It is no part of the change, and a copy with another value has its own."""
    change = replace(UPDATE)
    first = digest_change(change, "cluster-1", "l")
    assert digest_change(change, "cluster-1", "l") == first
    assert digest_change(replace(change, owner="nobody"), "cluster-1", "l") != first
    assert change == replace(UPDATE) and dumps(change) == dumps(replace(UPDATE))


def test_a_blocked_change_counts_only_when_it_is_not() -> None:
    """What becomes possible after the review was not reviewed."""
    blocked = edited(findings=(PROTECTED.find("because"),))
    nothing = approved()
    assert approved(blocked) == nothing
    assert approved(UPDATE) != nothing
    assert approved(edited(action=Action.NOOP)) == nothing


def test_the_order_of_changes_does_not_matter() -> None:
    """Who sorts a plan otherwise does not undo a review."""
    other = COVERED["identity"]
    assert approved(UPDATE, other) == approved(other, UPDATE)


SAID = desired(topic("a", 2), topic("b"))
BASE: dict[str, Any] = {"recorded": state(row()), "readings": [live(), absent("b")]}
OTHER_PLANS: dict[str, Callable[[], Plan]] = {
    "serial": lambda: planned(SAID, BASE["readings"], state(row(), serial=99)),
    "time": lambda: planned(SAID, BASE["readings"], BASE["recorded"], created="2031-01-01"),
    "unmanaged": lambda: planned(
        SAID, BASE["readings"], BASE["recorded"], unmanaged=[live("x"), live("y")]
    ),
    "pending": lambda: planned(
        SAID, BASE["readings"], BASE["recorded"], pending=[pending("update", FrozenMap(), "q")]
    ),
    "facts": lambda: planned(SAID, BASE["readings"], BASE["recorded"], known=facts(brokers=7)),
    "somebody else's merge": lambda: planned(
        desired(*SAID.declared, topic("c")),
        [*BASE["readings"], live("c", id="id-c")],
        state(row(), row("c", id="id-c")),
    ),
    "drift of others": lambda: planned(
        desired(*SAID.declared, topic("c", config=MS)),
        [*BASE["readings"], live("c", id="id-c", config=MS)],
        state(row(), row("c", id="id-c")),
    ),
}


@pytest.mark.parametrize("what", OTHER_PLANS)
def test_a_plan_keeps_its_approval_when_only_this_differs(what: str) -> None:
    """Serial, time, unmanaged objects and unchanged neighbours are shown, not approved."""
    base = planned(SAID, BASE["readings"], BASE["recorded"])
    other = OTHER_PLANS[what]()
    assert base.effective and other.approval == base.approval


def test_bookkeeping_is_approved_too() -> None:
    """A rename or a lowered protection sends nothing, and still needs its review."""
    same = planned(desired(topic("a")), [live()], state(row()))
    renamed = planned(
        desired(
            topic("a", address="kafka_topic.n"), moved=(moved("kafka_topic.a", "kafka_topic.n"),)
        ),
        [live()],
        state(row()),
    )
    lowered = planned(
        desired(topic("a", lifecycle=Lifecycle(prevent_destroy=False))), [live()], state(row())
    )
    assert len({same.approval, renamed.approval, lowered.approval}) == 3
    assert renamed.changes[0].row_after == Ownership(("kafka_topic.n",), "default")


def test_the_token_joins_approval_and_configuration() -> None:
    """A reviewer's token names what is done and the files that say so."""
    plan = planned(SAID, BASE["readings"], BASE["recorded"])
    assert plan.token == f"{plan.approval}.{SAID.digest}" and len(SAID.digest) == 64
