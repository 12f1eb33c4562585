"""Modes: schemas that bring their ids, and subjects that refuse writes."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kafkaform.apply.verify import Judgement, judge_step
from kafkaform.core.change import Action, Change, OutcomeStatus, Step
from kafkaform.core.finding import Level
from kafkaform.core.value import FrozenMap, Value
from kafkaform_schema_registry.kinds import schema
from kafkaform_schema_registry.kinds.subject_settings import REGISTRY_CONFIG, SUBJECT_CONFIG
from kafkaform_schema_registry.memory import RegistryMishap
from kafkaform_schema_registry.provider import TYPES

from ...kit.schema_registry.judgement import judge, judge_block, list_rules
from ...kit.schema_registry.schemas import ORDER, ORDER_WITH_AMOUNT, ORDER_WITH_NOTE
from .conftest import Desk, Folder

NAME = "orders-value"
REFUSED = "schema-mode-refuses"


def plan_schema(
    desk: Desk, action: Action, text: str = ORDER, **block: Value
) -> tuple[Change, tuple[Step, ...]]:
    """The change of one subject, and its steps."""
    return desk.plan(schema.KIND, action, subject=NAME, schema=text, **block)


def numbers(id: int, version: int | None = None) -> FrozenMap:
    return FrozenMap(id=id, version=version)


# ── import ──────────────────────────────────────────────────────────────────────────────


def test_a_schema_keeps_its_id_and_version(desk: Desk) -> None:
    """In mode IMPORT; and then it is as declared."""
    desk.registry.modes[NAME] = "IMPORT"
    block = {"import": numbers(17, 3)}
    change, steps = plan_schema(desk, Action.CREATE, **block)
    assert [step.request.name for step in steps] == ["ImportSchema"]
    assert not judge(desk.session, change)
    assert desk.check(steps)[0].fault is None
    assert desk.send(steps)[0].status is OutcomeStatus.APPLIED
    stored = desk.registry.subjects.list_versions(NAME)
    assert [(v.id, v.number) for v in stored] == [(17, 3)]
    assert not plan_schema(desk, Action.UPDATE, **block)[0].paths
    assert desk.send(steps)[0].status is OutcomeStatus.APPLIED, "sent again, it changes nothing"
    assert len(desk.registry.subjects.list_versions(NAME)) == 1


@pytest.mark.parametrize(
    ("live", "planned", "refused"),
    [
        (None, None, True),
        ("READONLY", None, True),
        ("READWRITE", None, True),
        ("IMPORT", None, False),
        (None, "IMPORT", False),
        ("READONLY", "IMPORT", False),
        ("IMPORT", "READWRITE", False),
        ("IMPORT", "INHERITED", False),
        ("IMPORT", "READONLY", False),
        ("READWRITE", "READONLY", True),
    ],
)
def test_an_import_needs_the_mode(
    desk: Desk, live: str | None, planned: str | None, refused: bool
) -> None:
    """Live, or of the same plan, which may also leave it again. What the plan says is what the
    requests do in their order."""
    if live is not None:
        desk.registry.modes[NAME] = live
    change, steps = plan_schema(desk, Action.CREATE, **{"import": numbers(17)})
    others: list[Change] = []
    if planned is not None:
        kind = Action.CREATE if live is None else Action.UPDATE
        mode, more = desk.plan(SUBJECT_CONFIG, kind, subject=NAME, mode=planned)
        others, steps = [mode], (*steps, *more)
    assert (REFUSED in list_rules(judge(desk.session, change, *others))) is refused
    desk.send(steps)
    assert (not desk.registry.subjects.list_versions(NAME)) is refused
    if planned is not None:
        assert desk.registry.modes.get(NAME, "INHERITED") == planned


def test_the_mode_of_the_registry_counts_for_subjects_without_their_own(desk: Desk) -> None:
    """Also if the same plan sets it."""
    change, _ = plan_schema(desk, Action.CREATE, **{"import": numbers(17)})
    registry, _ = desk.plan(REGISTRY_CONFIG, Action.UPDATE, mode="IMPORT")
    assert REFUSED in list_rules(judge(desk.session, change))
    assert REFUSED not in list_rules(judge(desk.session, change, registry))
    desk.registry.mode = "IMPORT"
    assert REFUSED not in list_rules(judge(desk.session, change))
    plain, _ = plan_schema(desk, Action.CREATE)
    (finding,) = (f for f in judge(desk.session, plain) if f.rule == REFUSED)
    assert finding.text.endswith("in which a schema needs an id: declare import")


def test_an_id_of_a_registered_schema_is_not_changed(desk: Desk) -> None:
    """Neither by another number, nor by another schema under the same one."""
    desk.door.register(NAME, ORDER)
    for text, wish, words in (
        (ORDER, numbers(17), "has the id 1, and import says 17"),
        (ORDER, numbers(1, 2), "has the version 1, and import says 2"),
        (ORDER_WITH_NOTE, numbers(1), "the id 1 belongs to the schema that orders-value has"),
    ):
        change, _ = plan_schema(desk, Action.UPDATE, text, **{"import": wish})
        (finding,) = (f for f in judge(desk.session, change) if f.rule == "schema-import-differs")
        assert words in finding.text and finding.level is Level.BLOCK
    assert not plan_schema(desk, Action.UPDATE, **{"import": numbers(1, 1)})[0].paths


@pytest.mark.parametrize(
    ("wish", "code"), [(numbers(99, 1), "VERSION_TAKEN"), (numbers(2, 5), "ID_TAKEN")]
)
def test_an_import_replaces_nothing(desk: Desk, wish: FrozenMap, code: str) -> None:
    """A registry would overwrite the version without a word."""
    desk.door.register(NAME, ORDER)
    desk.door.register("other", ORDER_WITH_AMOUNT)
    desk.registry.modes[NAME] = "IMPORT"
    _, steps = plan_schema(desk, Action.UPDATE, ORDER_WITH_NOTE, **{"import": wish})
    for fault in (desk.check(steps)[0].fault, desk.send(steps)[0].fault):
        assert fault is not None and fault.code == code
    assert len(desk.registry.subjects.list_versions(NAME)) == 1


def test_numbers_begin_at_one(folder: Folder) -> None:
    """While typing."""
    folder.write(
        'resource "schema_registry_schema" "x" {\n  subject = "x"\n  schema = jsonencode("int")\n'
        "  import = { id = 0, version = 1.5 }\n}\n"
    )
    said = folder.run("validate", code=1)
    assert "0 is no id of a schema" in said and "1.5 is no version of a schema" in said


def test_a_mode_is_forced_only_if_the_block_says_so(desk: Desk) -> None:
    """A registry refuses IMPORT where schemas are, and the plan has a caution."""
    desk.door.register(NAME, ORDER)
    _, steps = desk.plan(SUBJECT_CONFIG, Action.CREATE, subject=NAME, mode="IMPORT")
    fault = desk.send(steps)[0].fault
    assert fault is not None and fault.code == "42205"
    block = {"subject": NAME, "mode": "IMPORT", "force": True}
    change, steps = desk.plan(SUBJECT_CONFIG, Action.CREATE, **block)
    assert list_rules(judge_block(change)) == ["schema-import-forced"]
    assert desk.send(steps)[0].status is OutcomeStatus.APPLIED
    assert not desk.plan(SUBJECT_CONFIG, Action.UPDATE, **block)[0].paths


def test_a_forced_mode_whose_answer_was_lost_is_found_by_reading(desk: Desk) -> None:
    """Nobody can read back that it was forced, so the engine does not look for that."""
    desk.door.register(NAME, ORDER)
    block = {"subject": NAME, "mode": "IMPORT", "force": True}
    planned, steps = desk.plan(SUBJECT_CONFIG, Action.CREATE, **block)
    change = replace(planned, theirs=(("force",),), steps=steps)
    kind, facts = TYPES[SUBJECT_CONFIG], desk.session.facts

    def look() -> Judgement:
        return judge_step(change, steps[0], desk.read(SUBJECT_CONFIG, NAME), kind, facts)

    assert look() is Judgement.NOT_YET
    desk.mishaps.append(RegistryMishap.UNANSWERED)
    assert desk.send(steps)[0].status is OutcomeStatus.UNKNOWN
    assert look() is Judgement.DONE


IMPORT = """
resource "schema_registry_subject_config" "order" {
  subject = "orders-value"
  mode    = "%s"
  force   = true
}

resource "schema_registry_schema" "order" {
  subject = "orders-value"
  schema  = jsonencode({ type = "record", name = "Order", fields = [%s] })
  %s
}
"""
FIELD = '{ name = "id", type = "long" }'
NOTE = '{ name = "note", type = "string", default = "" }'


def test_a_subject_is_imported_and_goes_on(folder: Folder) -> None:
    """With its id, by one command, and by another one with its next version. What a block says
    about the way is no drift afterwards."""
    folder.write(IMPORT % ("IMPORT", FIELD, "import = { id = 17, version = 3 }"))
    folder.run("apply", "--auto-approve")
    (stored,) = folder.registry.subjects.list_versions(NAME)
    assert (stored.id, stored.number, folder.registry.modes) == (17, 3, {NAME: "IMPORT"})
    assert "No changes" in folder.run("plan", "--detailed-exitcode")
    folder.write(IMPORT % ("READWRITE", f"{FIELD}, {NOTE}", ""))
    said = folder.run("apply", "--auto-approve")
    assert "Changed outside" not in said
    assert [v.number for v in folder.registry.subjects.list_versions(NAME)] == [3, 4]
    assert "No changes" in folder.run("plan", "--detailed-exitcode")


# ── modes that refuse writes ────────────────────────────────────────────────────────────


def test_a_read_only_subject_is_not_written(desk: Desk) -> None:
    """The plan says so, before anything is sent, and what can be done."""
    desk.door.register(NAME, ORDER)
    desk.registry.modes[NAME] = "READONLY"
    changes = (
        plan_schema(desk, Action.UPDATE, ORDER_WITH_NOTE),
        plan_schema(desk, Action.DELETE),
        desk.plan(
            SUBJECT_CONFIG, Action.UPDATE, subject=NAME, compatibility="FULL", mode="READONLY"
        ),
    )
    for change, steps in changes:
        (finding,) = (f for f in judge(desk.session, change) if f.rule == REFUSED)
        assert finding.text == (
            "orders-value is in mode READONLY, in which nothing of it can be written"
        )
        assert finding.fix.startswith('Set mode = "READWRITE" and apply')
        fault = desk.send(steps)[0].fault
        assert fault is not None and fault.code == "42205"


@pytest.mark.parametrize("mode", ["READWRITE", "INHERITED"])
def test_a_plan_that_opens_a_subject_can_write_it(desk: Desk, mode: str) -> None:
    """Its mode is changed first, also before its level."""
    desk.door.register(NAME, ORDER)
    desk.registry.modes[NAME] = "READONLY"
    change, steps = plan_schema(desk, Action.UPDATE, ORDER_WITH_NOTE)
    block = {"subject": NAME, "compatibility": "FULL", "mode": mode}
    opened, more = desk.plan(SUBJECT_CONFIG, Action.UPDATE, **block)
    for one, other in ((change, opened), (opened, change)):
        assert REFUSED not in list_rules(judge(desk.session, one, other))
    outcomes = desk.send((*steps, *more))
    assert {out.status for out in outcomes} == {OutcomeStatus.APPLIED}


def test_a_plan_that_closes_a_subject_can_write_it(desk: Desk) -> None:
    """Its mode is changed last."""
    desk.door.register(NAME, ORDER)
    change, steps = plan_schema(desk, Action.UPDATE, ORDER_WITH_NOTE)
    block = {"subject": NAME, "compatibility": "FULL", "mode": "READONLY"}
    closed, more = desk.plan(SUBJECT_CONFIG, Action.CREATE, **block)
    assert REFUSED not in list_rules(judge(desk.session, change, closed))
    outcomes = desk.send((*more, *steps))
    assert {out.status for out in outcomes} == {OutcomeStatus.APPLIED}
    assert desk.registry.modes == {NAME: "READONLY"}
