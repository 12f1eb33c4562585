"""Rules of new versions: what differs, who can read what, and what a level refuses."""

from __future__ import annotations

import pytest

from kafkaform.core.change import Action, Change
from kafkaform.core.finding import Finding, Level
from kafkaform.core.resource import Depth
from kafkaform.core.value import FrozenMap, Value
from kafkaform.provider.http.exchange import Call, HttpAnswer
from kafkaform_schema_registry.formats.faults import EditKind
from kafkaform_schema_registry.kinds import schema
from kafkaform_schema_registry.kinds.registry import name_listing
from kafkaform_schema_registry.kinds.subject_settings import (
    INHERITED,
    REGISTRY_CONFIG,
    SUBJECT_CONFIG,
)
from kafkaform_schema_registry.memory import SimulatedRegistry
from kafkaform_schema_registry.rules.book import list_needs
from kafkaform_schema_registry.rules.compatibility import EDITS, MAX_EDITS
from kafkaform_schema_registry.rules.contracts import MODES

from ...kit.schema_registry.judgement import judge, list_rules
from ...kit.schema_registry.schemas import (
    AMOUNT,
    ID,
    NOTE,
    ORDER,
    ORDER_WITH_AMOUNT,
    ORDER_WITH_NOTE,
    field,
    record,
)
from .conftest import Desk, open_desk

NAME = "orders-value"
PROTO = 'syntax = "proto3";'
INCOMPATIBLE, STOP = "schema-incompatible", "schema-readers-stop"
ORDERED, COMPATIBLE = "schema-update-order", "schema-compatible"
READING = (INCOMPATIBLE, STOP, ORDERED, COMPATIBLE)


def change_schema(desk: Desk, *versions: str, kind: str = "avro", **given: Value) -> Change:
    """The change to the last of these versions; the others are registered."""
    level, desk.registry.level = desk.registry.level, "NONE"
    own = desk.registry.levels.pop(NAME, None)
    for text in versions[:-1]:
        desk.door.register(NAME, text, kind)
    desk.registry.level = level
    if own is not None:
        desk.registry.levels[NAME] = own
    block: dict[str, Value] = {"subject": NAME, "schema": versions[-1], "format": kind, **given}
    return desk.plan(schema.KIND, Action.UPDATE, **block)[0]


def find_reading(desk: Desk, *changes: Change) -> Finding:
    """The one finding about who can read what."""
    (finding,) = (item for item in judge(desk.session, *changes) if item.rule in READING)
    return finding


# ── levels ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("level", "after", "rule", "text"),
    [
        ("BACKWARD", ORDER_WITH_NOTE, COMPATIBLE, "what both schemas write (level BACKWARD)"),
        ("BACKWARD", record(NOTE), ORDERED, "update readers before writers of orders-value"),
        ("BACKWARD", ORDER_WITH_AMOUNT, INCOMPATIBLE, "level BACKWARD refuses the new version"),
        ("FORWARD", ORDER_WITH_AMOUNT, ORDERED, "update writers before readers of orders-value"),
        ("FORWARD", record(NOTE), INCOMPATIBLE, "readers with the latest version cannot read new"),
        ("FULL", ORDER_WITH_AMOUNT, INCOMPATIBLE, "cannot read records of the latest version"),
        ("FULL_TRANSITIVE", ORDER_WITH_AMOUNT, INCOMPATIBLE, "field amount is not written"),
        ("FULL_TRANSITIVE", ORDER_WITH_NOTE, COMPATIBLE, "(level FULL_TRANSITIVE)"),
        ("NONE", ORDER_WITH_NOTE, None, ""),
        ("NONE", ORDER_WITH_AMOUNT, STOP, "with the new schema stop at older records"),
        ("NONE", record(NOTE), STOP, "with the old schema stop at new records"),
    ],
)
def test_each_level_judges_a_new_version(
    desk: Desk, level: str, after: str, rule: str | None, text: str
) -> None:
    """What a level refuses is a block, who has to be updated first a caution, and where nothing is
    checked, what stops readers is a danger."""
    desk.registry.levels[NAME] = level
    change = change_schema(desk, ORDER, after)
    findings = [item for item in judge(desk.session, change) if item.rule in READING]
    assert [item.rule for item in findings] == ([] if rule is None else [rule])
    assert all(text in item.text for item in findings)
    levels = {INCOMPATIBLE: Level.BLOCK, STOP: Level.DANGER, ORDERED: Level.CAUTION}
    assert all(item.level is levels.get(item.rule, Level.NOTE) for item in findings)


def test_an_older_schema_again_is_told_in_the_plan(desk: Desk) -> None:
    """With its number; once the newer versions are gone, it is the latest, and nothing changes."""
    change = change_schema(desk, ORDER, ORDER_WITH_NOTE, ORDER)
    first = judge(desk.session, change)[0]
    assert (first.rule, first.level) == ("schema-older-again", Level.BLOCK)
    assert first.text == f"this schema is version 1 of {NAME}, which has newer ones"
    assert first.figures == FrozenMap(version=1)
    newer = change_schema(desk, ORDER_WITH_NOTE, record(ID, NOTE, field("x", default="")))
    assert "schema-older-again" not in list_rules(judge(desk.session, newer))


@pytest.mark.parametrize("level", ["BACKWARD", "BACKWARD_TRANSITIVE"])
def test_a_transitive_level_is_about_all_versions(desk: Desk, level: str) -> None:
    """A field without a default can be read in the latest version, and not in the first."""
    desk.registry.levels[NAME] = level
    versions = record(NOTE), record(NOTE, field("a", default="")), record(NOTE, field("a"))
    finding = find_reading(desk, change_schema(desk, *versions))
    if level == "BACKWARD":
        assert finding.rule == COMPATIBLE
    else:
        assert finding.text == (
            "level BACKWARD_TRANSITIVE refuses the new version of orders-value: readers with the "
            "new schema cannot read records of version 1: field a is not written, and the reader "
            "has no default for it"
        )


@pytest.mark.parametrize(
    ("own", "planned", "whole", "rule"),
    [
        (None, None, None, INCOMPATIBLE),
        (None, "NONE", None, STOP),
        ("FULL", "NONE", None, STOP),
        ("NONE", INHERITED, None, INCOMPATIBLE),
        ("NONE", INHERITED, "FORWARD", ORDERED),
        (None, None, "FORWARD", ORDERED),
        ("FULL", None, "FORWARD", INCOMPATIBLE),
    ],
)
def test_levels_of_the_same_plan_count(
    desk: Desk, own: str | None, planned: str | None, whole: str | None, rule: str
) -> None:
    """They are set before schemas are registered; the registry's own is for subjects without one.
    own: of the subject, before the plan; planned, whole: what the plan sets."""
    if own is not None:
        desk.registry.levels[NAME] = own
    changes = [change_schema(desk, ORDER, ORDER_WITH_AMOUNT)]
    if planned is not None:
        action = Action.UPDATE if own else Action.CREATE
        block = {"subject": NAME, "compatibility": planned}
        changes.append(desk.plan(SUBJECT_CONFIG, action, **block)[0])
    if whole is not None:
        changes.append(desk.plan(REGISTRY_CONFIG, Action.UPDATE, compatibility=whole)[0])
    assert find_reading(desk, *changes).rule == rule


def test_a_level_that_cannot_be_read_refuses_nothing(desk: Desk) -> None:
    """Who can read what is known all the same."""
    change = change_schema(desk, ORDER, ORDER_WITH_AMOUNT)
    desk.registry.users["admin"] = False
    finding = find_reading(desk, change)
    assert finding.rule == ORDERED and "level" not in finding.text


def test_only_changed_subjects_are_asked_about(desk: Desk) -> None:
    """Requests for each one's level, contract and mode, and two about the registry."""
    desk.door.register("other", ORDER)
    change = change_schema(desk, ORDER, ORDER_WITH_NOTE)
    desk.registry.calls.clear()
    judge(desk.session, change)
    assert [call.path for call in desk.registry.calls] == [
        f"/subjects/{NAME}",
        f"/config/{NAME}",
        "/config",
        f"/subjects/{NAME}/versions/latest",
        f"/config/{NAME}",
        "/mode",
        f"/mode/{NAME}",
    ]
    created, _ = desk.plan(schema.KIND, Action.CREATE, subject="new", schema=ORDER)
    assert list(list_needs([created])) == [name_listing(MODES, [])], "no request for each"
    assert set(list_needs([change]).values()) == {Depth.FULL}


def test_apicurio_has_no_level_none_of_a_subject(apicurio: SimulatedRegistry) -> None:
    """What it calls NONE is the registry's own."""
    desk = open_desk(apicurio)
    finding = find_reading(desk, change_schema(desk, ORDER, ORDER_WITH_AMOUNT))
    assert finding.text.startswith("level BACKWARD refuses")


# ── other formats ───────────────────────────────────────────────────────────────────────


def answer_verdict(desk: Desk, monkeypatch: pytest.MonkeyPatch, body: object) -> list[Call]:
    """Let the registry answer questions about compatibility so; the questions."""
    answer, asked = desk.registry.answer, []

    def answer_call(call: Call, user: str = "admin") -> HttpAnswer:
        if not call.path.startswith("/compatibility"):
            return answer(call, user)
        asked.append(call)
        return HttpAnswer(200, body)

    monkeypatch.setattr(desk.registry, "answer", answer_call)
    return asked


@pytest.mark.parametrize(
    ("kind", "versions"),
    [
        ("json", ('{"type":"object"}', '{"type":"array"}')),
        (
            "protobuf",
            (f"{PROTO} message A {{ string a = 1; }}", f"{PROTO} message A {{ bool a = 1; }}"),
        ),
    ],
)
def test_the_registry_judges_other_formats(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, kind: str, versions: tuple[str, str]
) -> None:
    """One question for each changed schema; its refusal is a block with its reasons."""
    asked = answer_verdict(desk, monkeypatch, {"is_compatible": False, "messages": ["no way."]})
    change = change_schema(desk, *versions, kind=kind)
    first = judge(desk.session, change)[0]
    assert (first.rule, first.level) == (INCOMPATIBLE, Level.BLOCK)
    assert first.text == f"level BACKWARD refuses the new version of {NAME}: no way"
    assert len(asked) == 1


def test_a_compatible_schema_of_another_format_passes(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its differences are notes where the level is about readers of both sides."""
    answer_verdict(desk, monkeypatch, {"is_compatible": True})
    for level, expected in (("FULL", Level.NOTE), ("BACKWARD", Level.CAUTION)):
        desk.registry.levels[NAME] = level
        versions = '{"properties":{"a":{}}}', "{}"
        (finding,) = judge(desk.session, change_schema(desk, *versions, kind="json"))
        assert (finding.rule, finding.level) == ("schema-field-removed", expected)


@pytest.mark.parametrize("body", [{"is_compatible": "maybe"}, None])
def test_a_verdict_that_nobody_can_read_refuses_nothing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, body: object
) -> None:
    """The dry run asks again and fails by name."""
    answer_verdict(desk, monkeypatch, body)
    change = change_schema(desk, "{}", '{"title":"A"}', kind="json")
    assert list_rules(judge(desk.session, change)) == ["schema-remark"]


def test_avro_with_references_is_judged_by_the_registry(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another subject defines is not here to be compared."""
    asked = answer_verdict(desk, monkeypatch, {"is_compatible": False, "messages": ["Money"]})
    desk.door.register("money", record(ID, name="Money"))
    references = (FrozenMap(name="Money", subject="money", version=1),)
    after = record(ID, field("price", ["null", "Money"], default=None))
    change = change_schema(desk, ORDER, after, references=references)
    assert find_reading(desk, change).text.endswith(": Money")
    assert len(asked) == 1


def test_nothing_is_asked_at_a_level_that_is_not_set_yet(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The registry would answer at the level of today; at NONE it checks nothing."""
    asked = answer_verdict(desk, monkeypatch, {"is_compatible": False})
    change = change_schema(desk, "{}", '{"title":"A"}', kind="json")
    level, _ = desk.plan(SUBJECT_CONFIG, Action.CREATE, subject=NAME, compatibility="FULL")
    assert list_rules(judge(desk.session, change, level)) == ["schema-remark"]
    desk.registry.levels[NAME] = "NONE"
    assert list_rules(judge(desk.session, change)) == ["schema-remark"]
    assert not asked


# ── differences ─────────────────────────────────────────────────────────────────────────

_ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
_FEWER = {"type": "enum", "name": "E", "symbols": ["A"]}
CASES = {
    EditKind.FIELD_ADDED: ("avro", ORDER, ORDER_WITH_NOTE),
    EditKind.FIELD_DEMANDED: ("avro", ORDER, ORDER_WITH_AMOUNT),
    EditKind.FIELD_REMOVED: ("avro", ORDER_WITH_NOTE, ORDER),
    EditKind.FIELD_RENAMED: (
        "protobuf",
        f"{PROTO} message A {{ string a = 1; }}",
        f"{PROTO} message A {{ string b = 1; }}",
    ),
    EditKind.TYPE_CHANGED: ("avro", ORDER, record(field("id", "double"))),
    EditKind.SYMBOL_ADDED: ("avro", record(field("e", _FEWER)), record(field("e", _ENUM))),
    EditKind.SYMBOL_REMOVED: ("avro", record(field("e", _ENUM)), record(field("e", _FEWER))),
    EditKind.NAME_CHANGED: ("avro", ORDER, record(ID, name="Purchase")),
    EditKind.VALUES_LIMITED: ("json", "{}", '{"maxLength":3}'),
    EditKind.REMARK: ("json", "{}", '{"description":"x"}'),
}


@pytest.mark.parametrize("kind", EditKind)
def test_each_difference_has_its_rule(desk: Desk, kind: EditKind) -> None:
    """With the path of the field as a figure, and at its own level where nothing is checked."""
    desk.registry.levels[NAME] = "NONE"
    format, *versions = CASES[kind]
    rules = {row.id for row in EDITS.values()}
    change = change_schema(desk, *versions, kind=format)
    (finding,) = (item for item in judge(desk.session, change) if item.rule in rules)
    assert (finding.rule, finding.level) == (EDITS[kind].id, EDITS[kind].level)
    assert finding.path == ("schema",)
    other = change_schema(desk, *versions[:1], versions[0], kind=format)
    assert not judge(desk.session, other)


def test_what_a_level_makes_sure_for_both_sides_is_a_note(desk: Desk) -> None:
    """At FULL, nothing that it takes can stop a reader."""
    for level, expected in (("FULL", Level.NOTE), ("BACKWARD", Level.CAUTION)):
        desk.registry.levels[NAME] = level
        change = change_schema(desk, ORDER_WITH_NOTE, ORDER)
        findings = {item.rule: item.level for item in judge(desk.session, change)}
        assert findings["schema-field-removed"] is expected


def test_another_format_is_one_finding(desk: Desk) -> None:
    """There is nothing to compare field by field; the registry is asked."""
    desk.door.register(NAME, ORDER)
    block = {"subject": NAME, "schema": "{}", "format": "json"}
    change, _ = desk.plan(schema.KIND, Action.UPDATE, **block)
    assert list_rules(judge(desk.session, change)) == ["schema-format-changed", INCOMPATIBLE]


def test_many_differences_are_counted(desk: Desk) -> None:
    """A finding for each of a hundred fields would hide the others; important ones come first."""
    wide = record(*(field(f"f{number}", default="") for number in range(100)), AMOUNT)
    desk.registry.levels[NAME] = "NONE"
    findings = judge(desk.session, change_schema(desk, record(), wide))
    rules = list_rules(findings)
    assert rules.count("schema-field-added") == MAX_EDITS - 1
    assert rules.count("schema-field-demanded") == 1
    (more,) = (item for item in findings if item.rule == "schema-more-differences")
    assert more.text == f"{NAME} has 81 more differences"
    assert more.figures == FrozenMap(differences=101)
