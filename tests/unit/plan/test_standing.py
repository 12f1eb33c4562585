"""Live objects that are judged as they are, and how `check` shows what is found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import pytest
from msgspec.structs import replace

from kafkaform.core.change import Action, Change
from kafkaform.core.errors import Blocked
from kafkaform.core.finding import Block, CheckedSystem, Finding, Harm, Level, StandingFinding
from kafkaform.core.resource import (
    Coverage,
    CoverageKind,
    Depth,
    Facts,
    Fault,
    FaultClass,
    Identity,
    Observed,
    Sweep,
)
from kafkaform.core.rule import Judge, Needs, Rule, RuleBook, Scene, Survey
from kafkaform.core.schema import STRING, AttributeSchema, make_schema
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform.core.words import NEUTRAL
from kafkaform.provider.contract import Provider, ResourceType, Session
from kafkaform.render.judgement import make_check_data, make_sarif, render_check
from kafkaform.workflow.judgement import check_system, refuse_findings

TYPES = ("shelf_box",)


def make_rule(id: str, level: Level, needs: Needs, harm: Harm = Harm.NONE) -> Rule:
    block = Block.IMPOSSIBLE if level is Level.BLOCK else None
    return Rule(id, f"Title of {id}", level, harm, TYPES, needs, "Because.", "x", "Mend it", block)


RED = make_rule("box-red", Level.CAUTION, Needs.BLOCK, Harm.CAPACITY)
HEAVY = make_rule("box-heavy", Level.BLOCK, Needs.FACTS)
NEW = make_rule("box-new", Level.DANGER, Needs.OBJECT, Harm.DATA_LOSS)
IDLE = make_rule("box-idle", Level.DANGER, Needs.OBJECT, Harm.DURABILITY)
QUIET = make_rule("box-quiet", Level.NOTE, Needs.BLOCK)
TWINS = make_rule("box-twins", Level.CAUTION, Needs.PLAN)


def judge_block(change: Change, facts: Facts) -> Iterator[Finding]:
    """A red box is minded however it came to be, and each creation is a danger of another rule."""
    if change.action is not Action.CREATE or change.after is None:
        return
    yield NEW.find("it is made")
    yield QUIET.find("it is there")
    if change.after["colour"] == "red":
        yield RED.find(f"box {change.identity.key} is red", ("colour",))
    if facts.values.get("weighs"):
        yield HEAVY.find(f"box {change.identity.key} is too heavy")


def judge_object(change: Change, facts: Facts) -> Iterator[Finding]:
    exists = change.action is Action.NOOP
    if exists and change.after is not None and change.after["colour"] == "grey":
        yield IDLE.find("it stands idle")


def survey(scene: Scene) -> Iterator[tuple[Identity | None, Finding]]:
    keys = [change.identity for change in scene.changes if change.identity.key.startswith("twin")]
    yield from ((identity, TWINS.find("it has a twin")) for identity in keys)
    if keys:
        yield None, TWINS.find("there are twins")


BOOK = RuleBook(
    (
        Judge((RED, HEAVY, NEW, QUIET), TYPES, Needs.BLOCK, judge_block),
        Judge((IDLE,), TYPES, Needs.OBJECT, judge_object),
    ),
    (Survey((TWINS,), survey),),
)
BOX = ResourceType(
    "shelf_box",
    make_schema(
        AttributeSchema("name", STRING, doc="Name."),
        AttributeSchema("colour", STRING, doc="Colour."),
    ),
    lambda attributes: str(attributes["name"]),
    lambda attributes, facts: attributes,
    lambda declared, observed, facts, keep: declared,
    lambda change, facts: (),
    str,
    reserves=lambda key, details: ("the shelf needs it", "") if key == "own" else None,
)
COMPLETE = Coverage(CoverageKind.COMPLETE)


def make_provider(book: RuleBook = BOOK, kind: ResourceType = BOX) -> Provider:
    class Shelves:
        name = "shelf"
        types: Mapping[str, ResourceType] = {kind.name: kind}
        commanded: Mapping[str, ResourceType] = {}

        def load_rules(self) -> RuleBook:
            return book

        def review_needs(self, changes: Sequence[Change]) -> Mapping[str, Depth]:
            return {}

    return cast(Any, Shelves())


def check(
    boxes: Mapping[str, str],
    coverage: Coverage = COMPLETE,
    values: FrozenMap = EMPTY,
    provider: Provider | None = None,
) -> CheckedSystem:
    """What is found in a shelf with these boxes. boxes: name -> colour."""
    items = tuple(
        Observed(Identity("shelf", "shelf_box", name), FrozenMap(name=name, colour=colour))
        for name, colour in boxes.items()
    )

    class Shelf:
        facts = Facts("s-1", values=values)
        words = NEUTRAL

        def sweep(self, kind: str, depth: Depth) -> Sweep:
            return Sweep(kind, depth, items, coverage)

    return check_system("shelf", provider or make_provider(), cast(Session, cast(Any, Shelf())))


def list_rows(system: CheckedSystem) -> list[tuple[str, str]]:
    return [(row.identity.key if row.identity else "", row.finding.rule) for row in system.rows]


def test_an_object_is_judged_as_if_it_were_new() -> None:
    """By rules of blocks and facts, and not by those about a creation; notes are left out."""
    assert list_rows(check({"a": "red", "b": "blue"})) == [("a", "box-red")]


def test_what_could_not_be_created_is_a_caution() -> None:
    """The object exists, so nothing is blocked."""
    system = check({"a": "blue"}, values=FrozenMap(weighs=1))
    (row,) = system.rows
    assert (row.finding.rule, row.finding.level, row.finding.block) == (
        *("box-heavy", Level.CAUTION, None),
    )


def test_objects_that_need_no_change_are_judged_together() -> None:
    """Dangers first; a finding about the system has no object."""
    assert list_rows(check({"twin1": "grey", "twin2": "blue", "c": "blue"})) == [
        ("twin1", "box-idle"),
        ("", "box-twins"),
        ("twin1", "box-twins"),
        ("twin2", "box-twins"),
    ]


def test_what_the_system_keeps_for_itself_is_left_out() -> None:
    """Its own objects are neither judged nor counted."""
    system = check({"own": "red", "a": "blue"})
    assert list_rows(system) == [] and system.counts == (("shelf_box", 1),)


def test_a_broken_rule_is_told() -> None:
    """A rule that raises names itself, for an object and for the system."""

    def fail(*_: object) -> Iterator[Any]:
        raise RuntimeError("lost")
        yield

    book = RuleBook((Judge((RED,), TYPES, Needs.BLOCK, fail),), (Survey((TWINS,), fail),))
    system = check({"a": "red"}, provider=make_provider(book))
    assert list_rows(system) == [("", "rule-failed"), ("a", "rule-failed")]
    assert "box-twins" in system.rows[0].finding.text
    assert "box-red" in system.rows[1].finding.text


FAULT = Fault("DENIED", "the right List is missing", FaultClass.PERMISSION, advice="Grant List.")


@pytest.mark.parametrize(
    ("coverage", "gap", "failed"),
    [
        (COMPLETE, "", False),
        (Coverage(CoverageKind.VISIBLE_ONLY), "there can be more", False),
        (Coverage(CoverageKind.FAILED, FAULT), "Grant List.", True),
    ],
)
def test_what_was_not_read_is_told(coverage: Coverage, gap: str, failed: bool) -> None:
    """A failed listing is no proof that nothing is there."""
    system = check({"a": "blue"}, coverage)
    assert system.failed is failed and bool(system.gaps) is bool(gap)
    assert gap in " ".join(system.gaps) and gap in " ".join(render_check([system]))


def test_a_feature_that_is_switched_off_is_no_gap() -> None:
    """A system without such objects is read whole."""
    kind = replace(BOX, switched_off=frozenset({"DENIED"}))
    coverage = Coverage(CoverageKind.FAILED, FAULT)
    system = check({}, coverage, provider=make_provider(kind=kind))
    assert (system.gaps, system.failed, system.counts) == ((), False, ())


def test_equal_findings_are_one_row() -> None:
    """With a count and the names; each fix once; dangers before cautions."""
    system = check({"a": "red", "b": "red", "c": "grey"})
    lines = list(render_check([system]))
    assert lines == [
        "System shelf: s-1 (3 shelf_box objects)",
        "",
        "Dangers (1):",
        "  shelf_box c: durability: it stands idle [box-idle]",
        "      fix: Mend it.",
        "",
        "Cautions (2):",
        "  2 shelf_box objects (a, b): capacity: box a is red [box-red]",
        "      fix: Mend it.",
    ]


def test_a_sound_system_says_so() -> None:
    """Nobody takes silence for a check."""
    assert list(render_check([check({"a": "blue"})]))[-1] == "No rule found anything."


def test_programs_get_every_row() -> None:
    """As JSON with type and name, and as SARIF with rules, levels and stable places."""
    system = check({"a/b": "red", "c": "grey"})
    (data,) = make_check_data([system])["systems"]
    assert [(row["name"], row["rule"], row["level"]) for row in data["findings"]] == [
        ("c", "box-idle", "danger"),
        ("a/b", "box-red", "caution"),
    ]
    assert data["objects"] == {"shelf_box": 2} and data["scope_id"] == "s-1"
    (run,) = make_sarif([system], {"box-red": RED})["runs"]
    assert run["tool"]["driver"]["rules"] == [
        {"id": "box-idle"},
        {
            "id": "box-red",
            "shortDescription": {"text": "Title of box-red"},
            "fullDescription": {"text": "Because."},
            "help": {"text": "Mend it."},
            "properties": {"tags": ["capacity"]},
        },
    ]
    first, second = run["results"]
    assert (first["level"], first["ruleIndex"]) == ("error", 0)
    assert (second["level"], second["ruleIndex"]) == ("warning", 1)
    assert second["message"]["text"] == "shelf_box a/b: box a/b is red. Mend it."
    (place,) = second["locations"]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == "shelf/shelf_box/a%2Fb"
    assert second["partialFingerprints"] == {
        "finding/v1": "s-1/shelf/shelf_box/a%2Fb/box-red/colour"
    }


@pytest.mark.parametrize(
    ("boxes", "names", "held"),
    [
        ({"a": "red"}, ["caution"], "caution"),
        ({"a": "red"}, ["capacity", "box-red"], "capacity, box-red"),
        ({"a": "grey"}, ["danger", "data-loss", "durability"], "danger, durability"),
    ],
)
def test_a_condition_that_holds_ends_with_an_error(
    boxes: Mapping[str, str], names: Sequence[str], held: str
) -> None:
    """It names what was found, and exits with the code of other conditions."""
    with pytest.raises(Blocked, match=f"findings of {held}$"):
        refuse_findings([check(boxes)], names)


def test_a_condition_that_does_not_hold() -> None:
    """Other rules, levels and harms, and no condition at all."""
    refuse_findings([check({"a": "red"})], ["danger", "box-idle", "data-loss"])
    refuse_findings([check({"a": "grey"})], [])


def test_a_condition_over_what_was_not_read() -> None:
    """It cannot pass: what is missing may have it. What only may exist does not count."""
    with pytest.raises(Blocked, match="not everything could be read"):
        refuse_findings([check({}, Coverage(CoverageKind.FAILED, FAULT))], ["danger"])
    refuse_findings([check({}, Coverage(CoverageKind.VISIBLE_ONLY))], ["danger"])


def test_each_thing_is_found_once() -> None:
    """A judge that minds an object whether or not it is new reports it once."""

    def judge(change: Change, facts: Facts) -> Iterator[Finding]:
        yield RED.find("it is red")

    book = RuleBook((Judge((RED,), TYPES, Needs.BLOCK, judge),))
    identity = Identity("shelf", "shelf_box", "a")
    rows = check({"a": "red"}, provider=make_provider(book)).rows
    assert rows == (StandingFinding(identity, RED.find("it is red")),)
