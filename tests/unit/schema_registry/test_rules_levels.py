"""Rules of levels and modes: each with a change in which it fires, and one in which it does not."""

from __future__ import annotations

import pytest

from kafkaform.core.change import Action
from kafkaform.core.finding import Level
from kafkaform.core.value import FrozenMap
from kafkaform_schema_registry.kinds import schema
from kafkaform_schema_registry.kinds.subject_settings import (
    INHERITED,
    REGISTRY_CONFIG,
    SUBJECT_CONFIG,
)
from kafkaform_schema_registry.memory import SimulatedRegistry

from ...kit.schema_registry.judgement import judge, judge_block, list_rules
from ...kit.schema_registry.schemas import ORDER
from .conftest import Desk, open_desk

NAME = "orders-value"


def test_a_block_that_sets_nothing_is_blocked(desk: Desk) -> None:
    """Of a subject and of the registry, without a registry; one setting is enough."""
    desk.door.register(NAME, ORDER)
    for kind, block in (
        (SUBJECT_CONFIG, {"subject": NAME, "compatibility": INHERITED}),
        (REGISTRY_CONFIG, {}),
    ):
        change, _ = desk.plan(kind, Action.CREATE, **block)
        (finding,) = judge_block(change)
        assert (finding.rule, finding.level) == ("schema-config-empty", Level.BLOCK)
        sound, _ = desk.plan(kind, Action.CREATE, **{**block, "mode": "READONLY"})
        assert not judge_block(sound)
    gone, _ = desk.plan(SUBJECT_CONFIG, Action.DELETE, subject=NAME)
    assert not judge_block(gone)


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"compatibility": "NONE"}, "schema-level-none-unsupported"),
        ({"mode": "READONLY"}, "schema-mode-unsupported"),
    ],
)
def test_what_apicurio_lacks_is_blocked_by_name(
    desk: Desk, apicurio: SimulatedRegistry, given: dict[str, str], rule: str
) -> None:
    """And not planned as if it would work; other registries have both."""
    for place, expected in ((open_desk(apicurio), True), (desk, False)):
        place.door.register(NAME, ORDER)
        change, _ = place.plan(SUBJECT_CONFIG, Action.CREATE, subject=NAME, **given)
        assert (rule in list_rules(judge(place.session, change))) is expected


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("FULL", "NONE", "FULL → NONE: the registry checks nothing any more"),
        (
            "FULL",
            "BACKWARD",
            "FULL → BACKWARD: readers with an older schema may fail at new records",
        ),
        ("FULL", "FORWARD", "FULL → FORWARD: readers with a new schema may fail at older records"),
        ("BACKWARD", "FORWARD", "readers with a new schema may fail at older records"),
        ("BACKWARD_TRANSITIVE", "BACKWARD", "only the latest version is compared with a new one"),
        ("FULL", INHERITED, "FULL → the registry's own level: that level decides from now on"),
        (
            INHERITED,
            "NONE",
            "the registry's own level → NONE: the registry checks nothing any more",
        ),
        ("BACKWARD", "FULL", None),
        ("BACKWARD", "BACKWARD_TRANSITIVE", None),
        ("NONE", "FULL", None),
        ("NONE", INHERITED, None),
        (INHERITED, "FULL", None),
    ],
)
def test_a_level_that_promises_less_is_told(
    desk: Desk, old: str, new: str, text: str | None
) -> None:
    """With both levels and what is not promised any more; a higher level has no finding."""
    desk.door.register(NAME, ORDER)
    if old != INHERITED:
        desk.registry.levels[NAME] = old
    action = Action.UPDATE if old != INHERITED else Action.CREATE
    if new == INHERITED:
        action = Action.DELETE
    change, _ = desk.plan(SUBJECT_CONFIG, action, subject=NAME, compatibility=new)
    findings = judge(desk.session, change)
    assert list_rules(findings) == ([] if text is None else ["schema-level-lowered"])
    assert text is None or text in findings[0].text


def test_the_level_of_the_registry_counts_its_subjects(desk: Desk) -> None:
    """Those without a level of their own have it."""
    for number in range(3):
        desk.door.register(f"s{number}", ORDER)
    change, _ = desk.plan(REGISTRY_CONFIG, Action.UPDATE, compatibility="NONE")
    (finding,) = judge(desk.session, change)
    assert finding.text == (
        "the level of the registry changes, BACKWARD → NONE for those of 3 subjects that have no "
        "level of their own: the registry checks nothing any more"
    )
    assert finding.figures == FrozenMap(subjects=3)
    same, _ = desk.plan(REGISTRY_CONFIG, Action.UPDATE, compatibility="BACKWARD")
    assert not judge(desk.session, same)


@pytest.mark.parametrize("purges", [False, True])
def test_a_level_that_goes_with_its_subject_is_told(
    registry: SimulatedRegistry, *, purges: bool
) -> None:
    """If its block stays: for certain after a permanent deletion. Nothing is told if both go, or if
    the subject stays."""
    desk = open_desk(registry, hard_delete=purges)
    desk.door.register(NAME, ORDER)
    desk.registry.levels[NAME] = "FULL"
    deletion, _ = desk.plan(schema.KIND, Action.DELETE, subject=NAME, schema=ORDER)
    level = {"subject": NAME, "compatibility": "FULL"}
    stays, _ = desk.plan(SUBJECT_CONFIG, Action.NOOP, **level)
    goes, _ = desk.plan(SUBJECT_CONFIG, Action.DELETE, **level)
    (finding,) = [x for x in judge(desk.session, deletion, stays) if x.rule == "schema-level-lost"]
    assert finding.level is (Level.CAUTION if purges else Level.NOTE)
    assert f"the level of {NAME} {'goes' if purges else 'can go'} with it" in finding.text
    for changes in ((deletion, goes), (deletion,), (stays,)):
        assert "schema-level-lost" not in list_rules(judge(desk.session, *changes))
