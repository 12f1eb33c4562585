"""What policies do to a plan: findings, blocks, and the approval that covers them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import pytest
from msgspec.structs import replace

from kafkaform.core.change import Change
from kafkaform.core.diagnostics import Range
from kafkaform.core.finding import Block, Finding, Harm, Level, Waiver
from kafkaform.core.resource import Facts
from kafkaform.plan.codec import decode, encode
from kafkaform.plan.judge import judge_plan, list_new_breaches
from kafkaform.plan.model import Options, Plan, PolicyFolders, seal_plan

from ...kit.simulated.engine import desired, topic
from .worlds import absent, live, planned, row, state

PLACE = Range("p.kfpolicy.hcl", 3, 1, 3, 9)
ERROR = Finding(
    "policy/p",
    Level.BLOCK,
    Harm.NONE,
    "policy p: it is wrong",
    fix="Change the block. If this object needs an exception, add a waiver at p.kfpolicy.hcl:3:1.",
    block=Block.POLICY,
    range=PLACE,
)
WARNING = replace(ERROR, level=Level.CAUTION, block=None)
WAIVED = replace(
    ERROR, level=Level.NOTE, block=None, waiver=Waiver("agreed", date(2027, 1, 31), True)
)
NOWHERE = PolicyFolders()


def created(*names: str) -> Plan:
    """A plan that creates these topics."""
    return planned(desired(*map(topic, names)), [absent(name) for name in names], state())


def judged(plan: Plan, *findings: Finding, folders: PolicyFolders = NOWHERE) -> Plan:
    """The plan, each change of which breaks these policies."""
    return judge_plan(plan, lambda change, facts: findings, folders)


def test_an_error_blocks_the_change() -> None:
    """It has no requests then, and its reason has the policy and the message."""
    (change,) = judged(created("a"), ERROR, WARNING).changes
    assert change.blocked is not None and change.blocked.block is Block.POLICY
    assert change.blocked.text == "policy p: it is wrong"
    assert "add a waiver at p.kfpolicy.hcl:3:1" in change.blocked.fix
    assert change.steps == () and change.findings == (ERROR, WARNING)
    assert change.blocked.block.stops


@pytest.mark.parametrize("finding", [WARNING, WAIVED])
def test_a_warning_and_a_waived_finding_are_shown_only(finding: Finding) -> None:
    """The approval is that of the plan without policies."""
    bare = created("a")
    plan = judged(bare, finding)
    (change,) = plan.changes
    assert change.effective and change.findings == (finding,)
    assert plan.approval == bare.approval


def test_a_blocked_change_is_in_no_approval() -> None:
    """As any other block."""
    forbidden = judged(created("a"), ERROR)
    assert forbidden.approval == seal_plan(replace(forbidden, changes=())).approval


def test_a_block_of_another_kind_stays() -> None:
    """The findings stand beside it, so that lifting the block is no surprise."""
    plan = planned(
        desired(), [live("a", id="id-1")], state(row("a", id="id-1", protected="no"))
    )  # the configuration declares nothing: a guard blocks the deletion
    (change,) = judged(plan, ERROR).changes
    assert change.blocked is not None and change.blocked.block is Block.GUARD
    assert ERROR in change.findings


def test_what_stays_as_it_is_is_not_judged() -> None:
    """A protected object, an unmanaged one, and one that only drifted."""
    asked: list[str] = []

    def judge(change: Change, facts: Facts) -> Sequence[Finding]:
        asked.append(change.address)
        return (ERROR,)

    drifted = live("c", config={"retention.ms": "5"}, id="id-c")
    plan = planned(
        desired(topic("b"), topic("c", config={"retention.ms": "5"}), topic("d")),
        [live("a", id="id-a"), live("b", id="id-b"), drifted, absent("d")],
        state(row("a", id="id-a"), row("c", id="id-c")),
    )
    assert {change.address for change in plan.changes} == {f"kafka_topic.{n}" for n in "abcd"}
    assert judge_plan(plan, judge, NOWHERE).changes[:3] == plan.changes[:3]
    assert asked == ["kafka_topic.d"]


def test_the_approval_covers_policies_from_outside() -> None:
    """Their contents, and not the path of the folder."""
    bare = created("a")
    one = judged(bare, folders=PolicyFolders(("here",), "1" * 64))
    assert one.approval == judged(bare, folders=PolicyFolders(("there",), "1" * 64)).approval
    assert (
        len(
            {
                bare.approval,
                one.approval,
                judged(bare, folders=PolicyFolders(("here",), "2" * 64)).approval,
            }
        )
        == 3
    )


def test_new_breaches_are_those_that_block_now() -> None:
    """A change that was blocked before is none."""
    plan = created("a", "b")
    first = judge_plan(plan, lambda c, f: (ERROR,) if c.address.endswith("a") else (), NOWHERE)
    assert [c.address for c in list_new_breaches(first, judged(first, ERROR))] == ["kafka_topic.b"]


def test_findings_are_saved_with_the_plan() -> None:
    """With the date of a waiver."""
    plan = judged(created("a"), WAIVED, folders=PolicyFolders(("here",), "1" * 64))
    assert decode(encode(plan), "") == plan


def test_excluded_objects_are_not_judged() -> None:
    """They are not part of the plan."""
    plan = planned(desired(topic("a")), [absent("a")], state(), options=Options(exclude=("*",)))
    assert judged(plan, ERROR).changes == ()
