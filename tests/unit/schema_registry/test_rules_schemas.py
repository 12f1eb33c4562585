"""Rules of texts, references and deletions: each with a change in which it fires, and one in which
it does not."""

from __future__ import annotations

import pytest

from kafkaform.core.change import Action, Change, add_findings
from kafkaform.core.finding import Block, Level
from kafkaform.core.resource import Depth
from kafkaform.core.value import EMPTY, FrozenMap, Value
from kafkaform.plan.rules import PROTECTED
from kafkaform_schema_registry.kinds import schema
from kafkaform_schema_registry.kinds.registry import NUMBERS, name_listing
from kafkaform_schema_registry.kinds.schema import MAX_BYTES
from kafkaform_schema_registry.rules.book import list_needs
from kafkaform_schema_registry.rules.contracts import MODES

from ...kit.schema_registry.judgement import judge, judge_block, list_rules
from ...kit.schema_registry.schemas import ORDER, ORDER_WITH_NOTE
from .conftest import Desk, open_desk

NAME = "orders-value"
CART = '{"type":"array","items":"Order"}'


def refer(version: int = 1, subject: str = NAME) -> tuple[FrozenMap, ...]:
    return (FrozenMap(name="Order", subject=subject, version=version),)


def create(desk: Desk, subject: str = NAME, **given: Value) -> Change:
    block: dict[str, Value] = {"subject": subject, "schema": ORDER, **given}
    return desk.plan(schema.KIND, Action.CREATE, **block)[0]


def delete(desk: Desk, subject: str = NAME) -> Change:
    return desk.plan(schema.KIND, Action.DELETE, subject=subject, schema=ORDER)[0]


# ── texts ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("given", "rule", "figures", "text"),
    [
        (
            {"schema": '{\n "type": "lng"}'},
            "schema-invalid",
            FrozenMap(line=2, column=10),
            'the text is not an Avro schema: there is no type "lng" (line 2, column 10 of the '
            "schema)",
        ),
        (
            {"schema": '{"type": "strng"}', "format": "json"},
            "schema-invalid",
            FrozenMap(line=1, column=10),
            'the text is not a JSON schema: there is no type "strng" (line 1, column 10 of the '
            "schema)",
        ),
        (
            {"schema": "message M {\n  string a = 1\n}", "format": "protobuf"},
            "schema-invalid",
            FrozenMap(line=2, column=15),
            "the text is not a protobuf file: a semicolon is missing after 'string a = 1' (line 2, "
            "column 15 of the schema)",
        ),
        (
            {"schema": f'{{"type":"int","doc":"{"x" * MAX_BYTES}"}}'},
            "schema-too-large",
            FrozenMap(bytes=MAX_BYTES + 23),
            "the schema has 1,048,599 bytes, and registries take 1,048,576",
        ),
    ],
)
def test_a_fault_of_a_text_needs_no_registry(
    desk: Desk, given: dict[str, Value], rule: str, figures: FrozenMap, text: str
) -> None:
    """It blocks the change, in a plan and in `validate`, with its place in the text."""
    change = create(desk, **given)
    for finding in (*judge(desk.session, change), *judge_block(change)):
        assert (finding.rule, finding.text, finding.figures) == (rule, text, figures)
        assert (finding.level, finding.block) == (Level.BLOCK, Block.IMPOSSIBLE)
        assert finding.path == ("schema",) and finding.fix
    assert len(judge_block(change)) == 1


def test_what_is_no_schema_keeps_its_text(desk: Desk) -> None:
    """So the place of a fault is the place in the file; a sound schema has its normal form."""
    text = '\n{"type":\n "lng"}'
    assert (create(desk, schema=text).after or EMPTY)["schema"] == text
    assert (create(desk, schema='{"type":\n "long"}').after or EMPTY)["schema"] == '"long"'


def test_a_sound_text_has_no_finding(desk: Desk) -> None:
    """Neither a new one, nor one that stays; nor one of which other schemas define the rest."""
    assert not judge_block(create(desk))
    assert not judge_block(create(desk, schema=CART, references=refer()))
    desk.door.register(NAME, ORDER)
    same, _ = desk.plan(schema.KIND, Action.UPDATE, subject=NAME, schema=ORDER)
    assert not judge(desk.session, same)


# ── deletions ───────────────────────────────────────────────────────────────────────────


def test_a_deletion_stops_writers_and_a_permanent_one_loses_data(desk: Desk) -> None:
    """The second is a danger, the first worth a look; a schema that stays has neither."""
    desk.door.register(NAME, ORDER)
    (finding,) = judge(desk.session, delete(desk))
    assert (finding.rule, finding.level) == ("schema-deleted", Level.CAUTION)
    hard = open_desk(desk.registry, hard_delete=True)
    findings = judge(hard.session, delete(hard))
    assert [(item.rule, item.level) for item in findings] == [
        ("schema-purged", Level.DANGER),
        ("schema-deleted", Level.CAUTION),
    ]
    kept = desk.plan(schema.KIND, Action.UPDATE, subject=NAME, schema=ORDER_WITH_NOTE)[0]
    assert "schema-deleted" not in list_rules(judge(desk.session, kept))


def test_what_others_refer_to_is_not_deleted(desk: Desk) -> None:
    """The subjects are named, unless all of them go as well; a deletion that does not happen asks
    for nothing."""
    desk.door.register(NAME, ORDER)
    desk.door.register("carts", CART, "avro", dict(refer()[0]))
    first = judge(desk.session, delete(desk))[0]
    assert (first.rule, first.text) == ("schema-referred", f"carts refers to {NAME}")
    assert first.figures == FrozenMap(subjects=("carts",)) and first.block is Block.IMPOSSIBLE
    both = judge(desk.session, delete(desk), delete(desk, "carts"))
    assert list_rules(both) == ["schema-deleted"]
    assert list_rules(judge(desk.session, delete(desk, "carts"))) == ["schema-deleted"]
    assert not list_needs([add_findings(delete(desk), PROTECTED.find("it is protected"))])


def test_schemas_without_a_name_are_counted(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """An older registry does not say whose schemas refer to a subject."""
    routes = desk.registry._routes()
    routes = {key: serve for key, serve in routes.items() if "schemas/ids" not in key[1]}
    desk.door.register(NAME, ORDER)
    desk.door.register("carts", CART, "avro", dict(refer()[0]))
    desk.door.register("other", '"int"')
    monkeypatch.setattr(desk.registry, "_routes", lambda: routes)
    first = judge(desk.session, delete(desk))[0]
    assert first.text == f"1 schema of other subjects refers to {NAME}"
    assert (first.figures, first.level) == (FrozenMap(schemas=1), Level.BLOCK)
    both = judge(desk.session, delete(desk), delete(desk, "other"))
    assert [(item.rule, item.level) for item in both if item.rule == "schema-referred"] == [
        ("schema-referred", Level.CAUTION)
    ]


# ── references ──────────────────────────────────────────────────────────────────────────


def test_a_reference_leads_to_a_version_that_exists(desk: Desk) -> None:
    """Live, or made by the same plan: the first of a new subject, the next of one that changes."""
    cart = create(desk, "carts", schema=CART, references=refer())
    assert "schema-reference-missing" not in list_rules(judge(desk.session, cart, create(desk)))
    desk.door.register(NAME, ORDER)
    assert "schema-reference-missing" not in list_rules(judge(desk.session, cart))
    second = create(desk, "carts", schema=CART, references=refer(2))
    newer, _ = desk.plan(schema.KIND, Action.UPDATE, subject=NAME, schema=ORDER_WITH_NOTE)
    assert "schema-reference-missing" not in list_rules(judge(desk.session, second, newer))


def test_a_reference_to_nothing_is_blocked(desk: Desk) -> None:
    """With what there is instead."""
    cart = create(desk, "carts", schema=CART, references=refer(2))
    (finding,) = judge(desk.session, cart)
    assert finding.rule == "schema-reference-missing" and finding.block is Block.IMPOSSIBLE
    assert finding.text == f"carts refers to version 2 of {NAME}, and there is no such subject"
    (finding,) = judge(desk.session, cart, create(desk, "orders-values"))
    assert finding.fix == 'Did you mean "orders-values"?'
    desk.door.register("order-value", ORDER)
    (finding,) = judge(desk.session, cart)
    assert finding.fix == 'Did you mean "order-value"?'
    (finding,) = judge(desk.session, cart, create(desk))
    assert finding.text.endswith("and this plan registers version 1")
    assert finding.level is Level.BLOCK
    desk.door.register(NAME, ORDER)
    (finding,) = judge(desk.session, cart)
    assert finding.text.endswith("and it has 1 version, of which 1 is the latest")
    (finding,) = judge(desk.session, cart, delete(desk))
    assert finding.text.endswith(f"and this plan deletes {NAME}")


def test_a_plan_asks_only_what_it_needs(desk: Desk) -> None:
    """A new schema without references asks for the mode of the registry alone; what cannot be read
    is not judged."""
    assert list(list_needs([create(desk)])) == [name_listing(MODES, [])]
    cart = create(desk, "carts", schema=CART, references=refer())
    numbers = name_listing(NUMBERS, [NAME])
    mode = {name_listing(MODES, []): Depth.FULL}
    assert list_needs([cart]) == {schema.KIND: Depth.NAMES, numbers: Depth.FULL, **mode}
    assert list_needs([cart, create(desk)]) == {numbers: Depth.FULL, **mode}
    desk.registry.users["admin"] = False
    assert not judge(desk.session, cart)
