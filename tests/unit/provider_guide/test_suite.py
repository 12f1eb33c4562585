"""The conformance suite finds what only a provider that is not Kafka gets wrong."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from itertools import count

import pytest
from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core.change import Change
from kafkaform.core.finding import Finding, Harm, Level
from kafkaform.core.resource import Depth, Facts, Identity
from kafkaform.core.rule import Judge, Needs, Rule, RuleBook, Scene, Survey
from kafkaform.core.schema import STRING, AttributeSchema, make_schema
from kafkaform.core.value import FrozenMap
from kafkaform.provider.contract import ResourceType
from kafkaform.provider.testing import conformance, judgements
from kafkaform.provider.testing.workbench import Violation
from kafkaform_textstore import file, rules
from kafkaform_textstore.server import Server, Store
from kafkaform_textstore.session import StoreFacts

from .conftest import EXAMPLE


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    """The example's own fixture, with a store."""
    monkeypatch.syspath_prepend(EXAMPLE / "tests")
    import textstore_systems

    with Server(Store(textstore_systems.USERS)) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield textstore_systems.FileSystem(server)
        server.shutdown()
        thread.join()


LABELLED = replace(
    file.TYPE, schema=make_schema("A file.", AttributeSchema("labels", STRING, "Its labels."))
)
AS_WRITTEN = replace(
    file.TYPE,
    target=lambda declared, *_: FrozenMap({n: declared[n] for n in ("name", "content", "headers")}),
)


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        (LABELLED, conformance.a_schema_leaves_meta_arguments_alone),
        (AS_WRITTEN, conformance.canonical_is_idempotent),
    ],
    ids=["an attribute called labels", "a target as the block spells it"],
)
def test_a_type_that_breaks_a_promise_is_found(
    system: object, broken: ResourceType, check: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sound type passes the check, the broken one does not."""
    check(system)
    monkeypatch.setattr(system, "type", broken)
    with pytest.raises(Violation):
        check(system)


class Judging(Struct):
    """The example's provider with another book of rules."""

    book: RuleBook
    types = {file.KIND: file.TYPE}
    commanded: Mapping[str, ResourceType] = {}

    def load_rules(self) -> RuleBook:
        return self.book

    def review_needs(self, changes: Sequence[Change]) -> Mapping[str, Depth]:
        return {}


EMPTIED = rules.EMPTIED
COUNTER = count()


def judge(
    *findings: Finding, row: Rule = EMPTIED, needs: Needs = Needs.OBJECT, kind: str = file.KIND
) -> RuleBook:
    """A book with one judge of one row, which finds this in every change."""
    return RuleBook((Judge((row,), (kind,), needs, lambda *_: findings),))


def raise_without_facts(_: Change, facts: Facts) -> Iterator[Finding]:
    yield EMPTIED.find(StoreFacts.of(facts).default_headers["content-type"])


def find_once(_: Change, __: Facts) -> Iterator[Finding]:
    yield EMPTIED.find(f"it was asked {next(COUNTER)} times")


def find_stranger(_: Scene) -> Iterator[tuple[Identity, Finding]]:
    yield Identity("textstore", file.KIND, "stranger"), EMPTIED.find("it is not in the plan")


WHOLE = judgements.rows_of_rules_are_whole
SOUND = judgements.judges_find_what_their_rows_say
OFFLINE = judgements.judges_of_blocks_need_no_system
ROWS = {
    "no rule": (RuleBook(), WHOLE),
    "an id in capitals": (judge(row=replace(EMPTIED, id="File-Emptied")), WHOLE),
    "an id without a subject": (judge(row=replace(EMPTIED, id="emptied")), WHOLE),
    "no reason": (judge(row=replace(EMPTIED, why=" ")), WHOLE),
    "no example": (judge(row=replace(EMPTIED, example="")), WHOLE),
    "a block of no kind": (judge(row=replace(EMPTIED, level=Level.BLOCK)), WHOLE),
    "a block without a fix": (judge(rules.LINKED.find("x", fix=""), row=rules.LINKED), SOUND),
    "an unknown type": (judge(kind="textstore_fiel"), WHOLE),
    "a row for an unknown type": (judge(row=replace(EMPTIED, types=("x_y",))), WHOLE),
    "a proof that is no test": (judge(row=replace(EMPTIED, proof="try it")), WHOLE),
    "a judge that needs the plan": (judge(needs=Needs.PLAN), WHOLE),
    "one id for two rows": (
        RuleBook((*judge().judges, *judge(row=replace(EMPTIED, title="Another")).judges)),
        WHOLE,
    ),
    "a finding of another row": (judge(rules.LINKED.find("it is linked")), SOUND),
    "another harm than the row's": (judge(replace(EMPTIED.find("x"), harm=Harm.ORDERING)), SOUND),
    "no sentence": (judge(EMPTIED.find("It is empty.")), SOUND),
    "a path that no block has": (judge(EMPTIED.find("it is empty", ("contents",))), SOUND),
    "another answer each time": (
        RuleBook((Judge((EMPTIED,), (file.KIND,), Needs.OBJECT, find_once),)),
        SOUND,
    ),
    "an object without a change": (RuleBook((), (Survey((EMPTIED,), find_stranger),)), SOUND),
    "a sound block is refused": (
        judge(rules.LINKED.find("it is linked"), row=rules.LINKED, needs=Needs.BLOCK),
        OFFLINE,
    ),
}


@pytest.mark.parametrize(("book", "check"), ROWS.values(), ids=ROWS)
def test_a_rule_that_breaks_a_promise_is_found(
    system: object, book: RuleBook, check: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The example's rules pass the check, the broken ones do not."""
    check(system)
    monkeypatch.setattr(system, "provider", Judging(book))
    with pytest.raises(Violation):
        check(system)


def test_a_judge_of_blocks_that_asks_for_facts_is_found(
    system: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would raise in `validate`, where nobody knows the system."""
    book = RuleBook((Judge((EMPTIED,), (file.KIND,), Needs.BLOCK, raise_without_facts),))
    monkeypatch.setattr(system, "provider", Judging(book))
    judgements.judges_find_what_their_rows_say(system)
    with pytest.raises(KeyError):
        judgements.judges_of_blocks_need_no_system(system)
