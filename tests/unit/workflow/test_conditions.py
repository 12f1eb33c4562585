"""What `--fail-on` and `--accept` can name, and which plans have it."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from kafkaform.core.address import parse_address
from kafkaform.core.change import Action, Change
from kafkaform.core.diagnostics import Range
from kafkaform.core.errors import UsageError
from kafkaform.core.finding import Block, Finding, Harm, Level, Waiver
from kafkaform.core.resource import Declared, Desired, Facts, Identity
from kafkaform.core.value import EMPTY
from kafkaform.plan.judge import record_findings
from kafkaform.plan.model import Plan, PlanInstance
from kafkaform.plan.rules import LIMIT_DELETIONS, PROTECTED, REMARKED
from kafkaform.state.model import State
from kafkaform.workflow.judgement import (
    CONDITIONS,
    check_accepted,
    check_fail_on,
    describe_conditions,
    refuse_idle_accepted,
)

from ...kit.findings import block, note, risk

TODAY = date(2026, 6, 30)


def change(*findings: Finding, action: Action = Action.UPDATE, key: str = "a") -> Change:
    return Change(Identity("box", "box_item", key), f"box_item.{key}", action, findings=findings)


def plan(*changes: Change, system: tuple[Finding, ...] = ()) -> Plan:
    instances = {"box": PlanInstance(Facts("box-1"), findings=system)}
    fields: Any = {"lineage": "x", "serial": 1, "configuration": "", "instances": instances}
    return Plan(**fields, changes=changes)


HOLDS = [
    ("danger", change(risk(Harm.DATA_LOSS, "x")), "dangers"),
    ("caution", change(risk(Harm.DATA_LOSS, "x")), "cautions or dangers"),
    ("caution", change(risk(Harm.ORDERING, "x")), "cautions or dangers"),
    ("data-loss", change(risk(Harm.DATA_LOSS, "x")), "a risk (data loss)"),
    ("access", change(risk(Harm.ACCESS_LOST, "x")), "a risk (access lost)"),
    ("access-gained", change(risk(Harm.ACCESS_GAINED, "x")), "a risk (access gained)"),
    ("durability", change(risk(Harm.DURABILITY, "x")), "a risk (durability)"),
    ("deletes", change(action=Action.DELETE), "deletions"),
    ("blocked", change(block(Block.PROTECTED, "x")), "blocked changes"),
    ("some-note", change(note("x")), "some-note (box_item.a)"),
    ("some-protected", change(block(Block.PROTECTED, "x")), "some-protected (box_item.a)"),
]
HOLDS_NOT = [
    ("danger", change(risk(Harm.ORDERING, "x"))),
    ("danger", change(risk(Harm.DATA_LOSS, "x"), action=Action.NOOP)),
    ("danger", change(block(Block.PROTECTED, "x"), risk(Harm.DATA_LOSS, "x"))),
    ("caution", change(note("x"))),
    ("data-loss", change(risk(Harm.MOVE, "x"))),
    ("data-loss", change(Finding("x", Level.NOTE, Harm.DATA_LOSS, "x"))),
    ("deletes", change()),
    ("blocked", change()),
    ("drift", change()),
    ("some-note", change(risk(Harm.MOVE, "x"))),
]


@pytest.mark.parametrize(("name", "item", "text"), HOLDS)
def test_a_condition_that_holds(name: str, item: Change, text: str) -> None:
    """It is told in words; a rule with the objects that it found."""
    assert describe_conditions(plan(item), [name]) == [text]


@pytest.mark.parametrize(("name", "item"), HOLDS_NOT)
def test_a_condition_that_does_not_hold(name: str, item: Change) -> None:
    """What an apply does not do counts for no level and no harm."""
    assert describe_conditions(plan(item), [name]) == []


def test_several_conditions_and_many_objects() -> None:
    """Words in the order of the table, then rules with the first objects and a count."""
    changes = [change(risk(Harm.DATA_LOSS, "x"), key=key) for key in "abcde"]
    assert describe_conditions(plan(*changes), ["some-data-loss", "data-loss", "danger"]) == [
        "dangers",
        "a risk (data loss)",
        "some-data-loss (box_item.a, box_item.b, box_item.c and 2 more)",
    ]


def test_findings_about_a_system_count() -> None:
    """A caution of no single object, and its rule, with the name of the instance."""
    finding = REMARKED.find("a limit was left")
    held = describe_conditions(plan(system=(finding,)), ["caution", REMARKED.id])
    assert held == ["cautions or dangers", f"{REMARKED.id} (box)"]


def test_every_word_of_a_condition_is_known() -> None:
    """Each word of the table, every rule of the engine and of providers, and lists of them."""
    names = ["topic-min-insync-above-replicas", "object-protected"]
    assert check_fail_on([*CONDITIONS, *names]) == (*CONDITIONS, *names)
    assert check_fail_on(["danger,deletes", "guard-deletions"]) == (
        *("danger", "deletes", "guard-deletions"),
    )


@pytest.mark.parametrize(
    ("name", "advice"),
    [("data-los", '"data-loss"'), ("object-protcted", '"object-protected"'), ("x", "It is one of")],
)
def test_an_unknown_condition_names_the_nearest(name: str, advice: str) -> None:
    """And says where the rules are listed."""
    with pytest.raises(UsageError, match=name) as caught:
        check_fail_on(["deletes", name])
    (fault,) = caught.value.diagnostics
    assert advice in fault.advice and "explain rule" in fault.advice


def test_rules_about_live_objects_are_conditions_of_a_check_only() -> None:
    """In a plan they would never hold, and so the gate would let everything pass."""
    name = "access-held-widely"
    assert check_fail_on([name], live=True) == (name,)
    with pytest.raises(UsageError, match="no plan") as caught:
        check_fail_on([name])
    assert f"kafkaform check --fail-on {name}" in caught.value.advice


POLICIES = ("policy/few_partitions", "policy/no_data_loss")


def test_policies_are_conditions() -> None:
    """They are listed only if one is named."""
    assert check_fail_on(["danger,policy/no_data_loss"], list_policies=lambda: POLICIES) == (
        *("danger", "policy/no_data_loss"),
    )
    assert check_fail_on(["danger"], list_policies=lambda: pytest.fail("listed")) == ("danger",)


@pytest.mark.parametrize(
    ("policies", "advice"),
    [
        (POLICIES, 'Did you mean "policy/no_data_loss"? The policies are policy/few_partitions, '),
        ((), "No policy judges this plan"),
    ],
)
def test_an_unknown_policy_lists_what_exists(policies: tuple[str, ...], advice: str) -> None:
    """The nearest first. Where policies do not judge, it is no condition at all."""
    with pytest.raises(UsageError, match="'policy/no_loss' is not a policy") as caught:
        check_fail_on(["policy/no_loss"], list_policies=lambda: policies)
    assert advice in caught.value.advice
    with pytest.raises(UsageError, match="is not a condition"):
        check_fail_on(["policy/no_data_loss"])


def test_a_policy_whose_waiver_holds_is_no_condition() -> None:
    """What it covers is allowed; an ended waiver covers nothing."""
    waived = Finding("policy/a", Level.NOTE, Harm.NONE, "x", waiver=Waiver("y", TODAY, True))
    ended = Finding("policy/a", Level.CAUTION, Harm.NONE, "x", waiver=Waiver("y", TODAY, False))
    assert describe_conditions(plan(change(waived)), ["policy/a"]) == []
    assert describe_conditions(plan(change(ended)), ["policy/a"]) == ["policy/a (box_item.a)"]


def test_rules_that_can_be_accepted() -> None:
    """With an address or without, once each, and in the words of older versions."""
    names = ["guard-deletions=box_item.*", "open-access", "access-opened", "guard-data-loss"]
    assert check_accepted(names) == (
        *("guard-deletions=box_item.*", "access-opened", "guard-data-loss"),
    )
    assert check_accepted(["unproven-access=box_item.a"]) == ("access-unproven=box_item.a",)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("guard-deletion", 'Did you mean "guard-deletions"'),
        ("object-protected", "cannot be accepted"),
        ("guard-deletions=", "has no address"),
    ],
)
def test_rules_that_cannot_be_accepted(name: str, text: str) -> None:
    """A misspelt one, one that nothing lifts, and one without its address."""
    with pytest.raises(UsageError) as caught:
        check_accepted([name])
    (fault,) = caught.value.diagnostics
    assert text in f"{fault.summary} {fault.advice}"


def test_an_address_that_no_object_has_is_refused() -> None:
    """Declared objects are known; a glob that fits none is a typing error."""
    identity, place = Identity("box", "box_item", "a"), Range("main.kf.hcl", 1, 1, 1, 1)
    declared = (Declared(identity, parse_address("box_item.a"), EMPTY, place),)
    desired, state = Desired(declared, {}), State("lineage", 1)
    refuse_idle_accepted(["guard-deletions", "guard-deletions=box_item.*"], desired, state)
    with pytest.raises(UsageError, match=r"box_itm\.a matches no object"):
        refuse_idle_accepted(["guard-deletions=box_itm.a"], desired, state)


def test_only_what_can_be_accepted_is_lifted() -> None:
    """A guard's block becomes a danger that stays visible; protection stays a block."""
    guard, protection = LIMIT_DELETIONS.find("too many"), PROTECTED.find("it is protected")
    accepted = ("guard-deletions=box_item.*", "object-protected")
    (first,) = record_findings(change(), [guard], accepted).findings
    assert (first.level, first.accepted, first.block) == (Level.DANGER, True, None)
    (second,) = record_findings(change(), [protection], accepted).findings
    assert (second.level, second.accepted) == (Level.BLOCK, False)
