"""Conformance checks of rules (their rows are whole, and judges find what they say) and of data
sources."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal

from ...core.change import Action, Change
from ...core.errors import KafkaformError
from ...core.finding import Finding, Level
from ...core.resource import Facts, Identity
from ...core.rule import Judge, Needs, Rule, RuleBook, Scene, Survey
from ...core.schema import Type
from ...core.value import EMPTY, FrozenMap, Value
from .workbench import About, Bench, Fixture, Question, Violation, require

_ID = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)+")
_PROOF = re.compile(r"[\w./-]+\.py::\w+")
NO_FACTS = Facts("")
"""What is known of a system where nobody asks one."""


def rows_of_rules_are_whole(fixture: Fixture) -> None:
    """Each id stands for one row, whose parts say what a reader of `explain rule` needs, and judges
    are for types that the provider has."""
    book = fixture.provider.load_rules()
    require(bool(book.rules), "the provider has no rule")
    groups = (
        *(judge.rules for judge in book.judges),
        *(survey.rules for survey in (*book.surveys, *book.checks)),
        book.others,
    )
    for row in (row for group in groups for row in group):
        require(row in book.rules, f"two rows have the id {row.id}")
    for row in book.rules:
        for fault in _find_faults(row):
            require(False, f"rule {row.id}: {fault}")
        _require_types(row.id, row.types, fixture)
    for judge in book.judges:
        ids = ", ".join(rule.id for rule in judge.rules)
        require(bool(judge.rules and judge.types), f"a judge is for nothing: {ids} {judge.types}")
        _require_types(ids, judge.types, fixture)
        single_change = judge.needs in (Needs.BLOCK, Needs.FACTS, Needs.OBJECT)
        require(single_change, f"a judge of one change cannot know {judge.needs}: {ids}")


def _find_faults(row: Rule) -> Iterator[str]:
    if not _ID.fullmatch(row.id):
        yield "an id is SUBJECT-WHAT in small letters and digits"
    for column in ("title", "why", "example"):
        if not getattr(row, column).strip():
            yield f"it has no {column}"
    if row.title.endswith("."):
        yield "its title ends with a stop"
    if row.level is Level.BLOCK and row.block is None:
        yield "it blocks, and does not say what becomes of the rest of a plan (`block`)"
    if row.accept and row.block is None:
        yield "only a block can be accepted"
    if row.proof and not _PROOF.fullmatch(row.proof):
        yield "its proof is not PATH.py::TEST"


def _require_types(subject: str, types: Iterable[str], fixture: Fixture) -> None:
    provider = fixture.provider
    unknown = set(types) - {*provider.types, *provider.commanded}
    require(not unknown, f"{subject} judges {sorted(unknown)}, which the provider does not have")


def judges_find_what_their_rows_say(fixture: Fixture) -> None:
    """Judges and surveys pass every change of the fixture without raising, find the same twice, and
    report only rules of their own, in sentences, at paths that the type has."""
    book = fixture.provider.load_rules()
    with Bench(fixture) as bench:
        changes = list(_list_all_changes(bench))
        for change in changes:
            for judge in _select_judges(book, change):
                findings = list(judge.find(change, bench.facts))
                repeated = list(judge.find(change, bench.facts))
                require(findings == repeated, f"a judge is not pure: {findings}, then {repeated}")
                _require_sound(fixture, judge.rules, findings)
        scene = _make_scene(bench, changes)
        for survey in book.surveys:
            pairs = list(survey.find(scene))
            require(pairs == list(survey.find(scene)), f"a survey is not pure: {pairs}")
            _require_sound(fixture, survey.rules, [finding for _, finding in pairs])
            _require_subjects(survey, changes, [identity for identity, _ in pairs])


def judges_of_blocks_need_no_system(fixture: Fixture) -> None:
    """What a judge finds in a block alone holds for the system: it blocks nothing that can be
    made."""
    book = fixture.provider.load_rules()
    with Bench(fixture) as bench:
        sound = [edit for edit in fixture.edits if edit.expect is None and not edit.blocked]
        additions = [EMPTY, *(edit.start.with_items(edit.wish) for edit in sound)]
        for addition in additions:
            declared = fixture.type.canonical(fixture.fresh(addition), NO_FACTS)
            change = bench.make_change(Action.CREATE, declared, None, declared)
            for judge in _select_judges(book, change):
                if judge.needs is Needs.BLOCK:
                    findings = list(judge.find(change, NO_FACTS))
                    _require_sound(fixture, judge.rules, findings)
                    blocks = [f.text for f in findings if f.level is Level.BLOCK]
                    require(not blocks, f"a sound block is refused: {blocks}")


def find_block(bench: Bench, change: Change) -> Finding | None:
    """The first block that a judge or a survey finds for this change."""
    book, scene = bench.fixture.provider.load_rules(), _make_scene(bench, [change])
    judged = (f for judge in _select_judges(book, change) for f in judge.find(change, scene.facts))
    surveyed = (finding for survey in book.surveys for _, finding in survey.find(scene))
    return next((f for f in (*judged, *surveyed) if f.level is Level.BLOCK), None)


def _make_scene(bench: Bench, changes: Sequence[Change]) -> Scene:
    """These changes, with the listings that the provider wants for them."""
    needs = bench.fixture.provider.review_needs(changes)
    sweeps = {kind: bench.session.sweep(kind, depth) for kind, depth in needs.items()}
    return Scene(changes, sweeps, bench.facts)


def _select_judges(book: RuleBook, change: Change) -> Iterator[Judge]:
    return (judge for judge in book.judges if change.identity.kind in judge.types)


def _list_all_changes(bench: Bench) -> Iterator[Change]:
    """A create, a delete, a noop, and every edit, also those that are blocked."""
    fixture = bench.fixture
    for edit in fixture.edits:
        attributes = fixture.fresh(edit.start)
        fixture.make(attributes)
        yield bench.plan_edit(edit, attributes)
    attributes = fixture.fresh(EMPTY)
    yield bench.make_change(Action.CREATE, attributes, None, bench.compute_target(attributes, None))
    fixture.make(attributes)
    live = bench.wait_seen(attributes)
    yield bench.make_change(Action.DELETE, attributes, live, None)
    yield bench.make_change(Action.NOOP, attributes, live, live.attributes)


def _require_sound(fixture: Fixture, rules: Sequence[Rule], findings: Sequence[Finding]) -> None:
    rows, schema = {rule.id: rule for rule in rules}, fixture.type.schema
    for finding in findings:
        require(finding.rule in rows, f"it finds {finding.rule} and has {sorted(rows)}")
        text = finding.text
        require(bool(text) and not text.endswith("."), f"{finding.rule}: no sentence: {text!r}")
        blocks = finding.level is Level.BLOCK
        require(blocks is (finding.block is not None), f"{finding.rule}: {finding.level}, no block")
        require(bool(finding.fix) or not blocks, f"{finding.rule}: a block without a fix")
        require(finding.harm is rows[finding.rule].harm, f"{finding.rule}: harm {finding.harm}")
        valid_path = not finding.path or finding.path[0] in schema.attributes
        require(valid_path, f"{finding.rule}: {fixture.type.name} has no attribute {finding.path}")


def _require_subjects(
    survey: Survey, changes: Sequence[Change], identities: Sequence[Identity | None]
) -> None:
    strangers = set(identities) - {change.identity for change in changes} - {None}
    ids = ", ".join(rule.id for rule in survey.rules)
    require(not strangers, f"{ids}: a finding is about {strangers}, of which there is no change")


_UNKNOWN = Question("no_such", About.SYSTEM, lambda _: EMPTY, lambda _, __: False)


def a_query_answers_as_its_schema_says(fixture: Fixture) -> None:
    """Every data source answers with all its computed attributes, in their types."""
    require(bool(fixture.questions), "the fixture asks nothing")
    names = {question.data for question in fixture.questions}
    require(names == fixture.data.keys(), f"questions for {names}, data: {list(fixture.data)}")
    with Bench(fixture) as bench:
        attributes = fixture.fresh(EMPTY)
        fixture.make(attributes)
        for question in fixture.questions:
            answer = bench.wait_answer(question, attributes)
            schema = fixture.data[question.data].attributes
            promised = {name: item.type for name, item in schema.items() if item.computed}
            require(
                answer.keys() == promised.keys(), f"{question.data} answers with {list(answer)}"
            )
            for name, kind in promised.items():
                require(_fits(answer[name], kind), f"{name} = {answer[name]!r} is no {kind}")


def a_query_does_not_guess(fixture: Fixture) -> None:
    """A missing object is refused by name. A hidden one is not shown, and is refused in the same
    way whether it exists or not."""
    require(bool(fixture.questions), "the fixture asks nothing")
    with Bench(fixture) as bench, Bench(fixture, privileged=False) as nobody:
        existing, missing = fixture.fresh(EMPTY), fixture.fresh(EMPTY)
        fixture.make(existing)
        bench.wait_seen(existing)
        for question in fixture.questions:
            if question.about is About.LIST:
                listed = question.shows(nobody.query(question, existing), existing)
                require(not listed, f"{question.data} lists a hidden object")
            if question.about is About.OBJECT:
                absent = _provoke_refusal(bench, question, missing)
                hidden = [_provoke_refusal(nobody, question, item) for item in (existing, missing)]
                require(
                    hidden[0] == hidden[1],
                    f"refusals reveal existence: {hidden}",
                )
                require(hidden[0] != absent, f"hidden counts as missing: {absent}")
        _provoke_refusal(bench, _UNKNOWN, existing)


def _provoke_refusal(bench: Bench, question: Question, attributes: FrozenMap) -> str:
    """The message with which a query is refused, without the name of the object, which it must
    contain."""
    try:
        answer = bench.query(question, attributes)
    except KafkaformError as error:
        require(bool(error.advice), f"no advice: {error.message}")
        key = bench.make_identity(attributes).key
        named = key in error.message or question.about is not About.OBJECT
        require(named, f"{key} is not named: {error.message}")
        return error.message.replace(key, "")
    raise Violation(f"{question.data} answers {answer}")


def _fits(value: Value, kind: Type) -> bool:
    """True if the value has this type, or is None."""
    return value is None or _FITS[kind.kind](value, kind)


def _elements_fit(value: Value, kind: Type) -> bool:
    element = kind.element or kind
    return isinstance(value, tuple) and all(_fits(item, element) for item in value)


def _entries_fit(value: Value, kind: Type) -> bool:
    element = kind.element or kind
    return isinstance(value, FrozenMap) and all(_fits(item, element) for item in value.values())


def _fields_fit(value: Value, kind: Type) -> bool:
    return (
        isinstance(value, FrozenMap)
        and value.keys() == kind.fields.keys()
        and all(_fits(value[name], field) for name, field in kind.fields.items())
    )


_FITS: Mapping[str, Callable[[Value, Type], bool]] = {
    "any": lambda _, __: True,
    "string": lambda value, _: isinstance(value, str),
    "bool": lambda value, _: isinstance(value, bool),
    "number": lambda value, _: isinstance(value, int | Decimal) and not isinstance(value, bool),
    "list": _elements_fit,
    "set": _elements_fit,
    "map": _entries_fit,
    "object": _fields_fit,
}
