"""What a plan says about a new version, for readers and writers, at the level of its subject."""

from __future__ import annotations

import pytest

from kafkaform.core.change import Action, Change
from kafkaform.core.legacy import RiskKind
from kafkaform.core.resource import Depth
from kafkaform.core.value import Value
from kafkaform_schema_registry.kinds import global_config, schema, subject_config
from kafkaform_schema_registry.reads import LEVEL
from kafkaform_schema_registry.review import MAX_NOTES, review, review_needs

from ...kit.schema_registry.schemas import (
    ID,
    NOTE,
    ORDER,
    ORDER_WITH_AMOUNT,
    ORDER_WITH_NOTE,
    field,
    record,
)
from .conftest import Desk

NAME = "orders-value"


def judge(desk: Desk, *changes: Change) -> tuple[tuple[str, ...], list[RiskKind]]:
    """The notes of the first change and the kinds of its risks."""
    assert review_needs(changes) == {LEVEL: Depth.FULL}
    sweeps = {LEVEL: desk.session.sweep(LEVEL, Depth.FULL)}
    found = review(changes, sweeps, desk.session.facts)
    identity = changes[0].identity
    return found.notes[identity], [risk.kind for risk in found.risks.get(identity, ())]


def change_schema(desk: Desk, before: str, after: str, kind: str = "avro") -> Change:
    desk.door.register(NAME, before, kind)
    given: dict[str, Value] = {"subject": NAME, "schema": after, "format": kind}
    return desk.plan(schema.KIND, Action.UPDATE, **given)[0]


@pytest.mark.parametrize(
    ("level", "after", "last", "risky"),
    [
        ("BACKWARD", ORDER_WITH_NOTE, "level BACKWARD: update readers before writers", False),
        ("BACKWARD", record(NOTE), "level BACKWARD: update readers before writers", False),
        ("BACKWARD", ORDER_WITH_AMOUNT, "level BACKWARD does not allow that", False),
        ("FORWARD", ORDER_WITH_AMOUNT, "level FORWARD: update writers before readers", False),
        ("FORWARD", record(NOTE), "level FORWARD does not allow that", False),
        ("FULL_TRANSITIVE", ORDER_WITH_AMOUNT, "level FULL_TRANSITIVE does not allow", False),
        ("NONE", ORDER_WITH_NOTE, "level NONE: the registry checks nothing", False),
        ("NONE", ORDER_WITH_AMOUNT, "level NONE: the registry checks nothing", True),
    ],
)
def test_each_level_says_who_is_updated_first(
    desk: Desk, level: str, after: str, last: str, risky: bool
) -> None:
    """Where nothing is checked, what stops readers is a grave risk."""
    desk.registry.levels[NAME] = level
    notes, risks = judge(desk, change_schema(desk, ORDER, after))
    assert notes[-1].startswith(last)
    assert risks == ([RiskKind.AVAILABILITY] if risky else [])


def test_the_registrys_own_level_counts_for_other_subjects(desk: Desk) -> None:
    """It is read for the subjects of the plan, and for no other."""
    notes, _ = judge(desk, change_schema(desk, ORDER, ORDER_WITH_NOTE))
    assert notes == (
        "field note is added: null or string, default null",
        "old and new readers can read what both schemas write",
        "level BACKWARD: update readers before writers",
    )
    asked = [call.path for call in desk.registry.calls if call.path.startswith("/config/")]
    assert asked == [f"/config/{NAME}"]


def test_a_level_of_the_same_plan_counts(desk: Desk) -> None:
    """Levels are set before schemas are registered."""
    change = change_schema(desk, ORDER, ORDER_WITH_AMOUNT)
    given = {"subject": NAME, "compatibility": "NONE"}
    level, _ = desk.plan(subject_config.KIND, Action.CREATE, **given)
    notes, risks = judge(desk, change, level)
    assert notes[-1] == "level NONE: the registry checks nothing"
    assert risks == [RiskKind.AVAILABILITY]


def test_nothing_is_said_about_a_level_that_nobody_knows(desk: Desk) -> None:
    """If the registry's own level changes in the plan, who inherits it is not known."""
    change = change_schema(desk, ORDER, ORDER_WITH_AMOUNT)
    whole, _ = desk.plan(global_config.KIND, Action.UPDATE, compatibility="NONE")
    notes, risks = judge(desk, change, whole)
    assert not any("level" in note for note in notes) and not risks


def test_other_formats_are_left_to_the_registry(desk: Desk) -> None:
    """Only a registry knows the rules of JSON schemas and of protobuf."""
    change = change_schema(desk, '{"type": "object"}', '{"type": "array"}', "json")
    sweeps = {LEVEL: desk.session.sweep(LEVEL, Depth.FULL)}
    assert not review([change], sweeps, desk.session.facts).notes


def test_many_differences_are_counted(desk: Desk) -> None:
    """A note for each of a hundred fields would hide the others."""
    wide = record(ID, *(field(f"f{number}", default="") for number in range(100)))
    notes, _ = judge(desk, change_schema(desk, ORDER, wide))
    assert len(notes) == MAX_NOTES + 3
    assert notes[MAX_NOTES] == f"and {100 - MAX_NOTES} more differences"


def test_a_plan_without_new_versions_asks_for_no_levels(desk: Desk) -> None:
    """Creations and deletions have nothing to be compared with."""
    created, _ = desk.plan(schema.KIND, Action.CREATE, subject=NAME, schema=ORDER)
    assert review_needs([created]) == {}
