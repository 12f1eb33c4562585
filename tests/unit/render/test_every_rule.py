"""One plan that breaks every rule: each form of a plan names each finding, its address and its
object, or says how many it leaves out and where the whole is."""

from __future__ import annotations

import html
import json
import re
from functools import cache

import pytest
from msgspec.structs import replace

from kafkaform.core import canonical
from kafkaform.core.change import Action, Change, Evidence, add_findings
from kafkaform.core.finding import (
    AccessRow,
    Block,
    Breadth,
    Finding,
    Harm,
    Level,
)
from kafkaform.core.rule import Needs, Rule
from kafkaform.plan.codec import decode, encode
from kafkaform.plan.model import Plan
from kafkaform.plan.rules import collect_rules
from kafkaform.provider.registry import Registry
from kafkaform.render.plan_text import render_plan_text
from kafkaform.render.review.comment import LIMIT, render_markdown
from kafkaform.render.review.html_page import render_html
from kafkaform.render.stream import list_plan_events
from kafkaform.render.terraform import to_json
from kafkaform.workflow.judgement import check_fail_on
from kafkaform.workflow.planning import refuse_if_blocked

from .plans import WORDS, change, frozen, plan

REGISTRY = Registry()
ROWS = tuple(collect_rules(map(REGISTRY.load, REGISTRY.built_in)).values())
POLICY = Finding(
    "policy/owners", Level.BLOCK, Harm.NONE, "policy owners: it has no owner", block=Block.POLICY
)


def name_of(number: int) -> str:
    return f"object.{number:03}"


def sentence_of(number: int) -> str:
    return f"what rule {number:03} found"


def words_of(number: int) -> str:
    """How people see that the rule found something. A note about access is a row of the section
    about access."""
    is_row = number < len(ROWS) and ROWS[number].level is Level.NOTE and is_access(ROWS[number])
    return f"User:p{number}" if is_row else sentence_of(number)


def is_access(rule: Rule) -> bool:
    return rule.harm in (Harm.ACCESS_GAINED, Harm.ACCESS_LOST)


def find_once(rule: Rule, number: int) -> Finding:
    row = AccessRow(f"User:p{number}", "Topic", "x", "literal", ("Read",), Breadth.ONE)
    return rule.find(sentence_of(number), ("config", "x"), access=(row,) if is_access(rule) else ())


def make_change(number: int, finding: Finding) -> Change:
    """An update that nothing else says anything about. Its address does not contain its name."""
    update = change(
        f'kafka_topic.t["{number}"]',
        name_of(number),
        Action.UPDATE,
        ("IncrementalAlterConfigs", Evidence.REMOTE),
        before=frozen(name=name_of(number), config={"a": str(number)}),
        after=frozen(name=name_of(number), config={"a": str(number + 1)}),
    )
    return add_findings(update, finding)


@cache
def make_plan() -> Plan:
    findings = [find_once(rule, number) for number, rule in enumerate(ROWS)]
    numbered = enumerate(
        [*findings, replace(POLICY, text=f"policy owners: {sentence_of(len(ROWS))}")]
    )
    return plan(*(make_change(number, finding) for number, finding in numbered))


NUMBERS = range(len(ROWS) + 1)


def list_missing(text: str) -> list[str]:
    """What the text does not say: sentences, addresses, names."""
    flat = " ".join(text.split())
    return [
        part
        for number in NUMBERS
        for part in (words_of(number), f't["{number}"]', name_of(number))
        if part not in flat
    ]


@pytest.mark.parametrize("detail", ["full", "grouped", "concise"])
def test_the_terminal_names_everything(detail: str) -> None:
    """The concise form, too: each change is a line with its findings."""
    text = render_plan_text(make_plan(), words=WORDS, width=400, detail=detail)  # type: ignore[arg-type]
    assert not list_missing(text)


def test_rules_are_named_in_the_terminal() -> None:
    """What is more than a note can be looked up: `kafkaform explain rule ID`."""
    text = render_plan_text(make_plan(), words=WORDS, width=400)
    assert not [rule.id for rule in ROWS if rule.level is not Level.NOTE and rule.id not in text]


def test_the_comment_names_everything_or_says_what_it_leaves_out() -> None:
    """Dangers first. Names may be joined where only keys differ."""
    comment = render_markdown(make_plan(), words=WORDS)
    assert len(comment) <= LIMIT
    text = html.unescape(comment)
    missing = [n for n in NUMBERS if words_of(n) not in text or f'["{n}"]' not in text]
    missing += [n for n in NUMBERS if name_of(n) not in text]
    if missing:
        assert comment.startswith("**This comment is shortened.**")
    dangers = [n for n, rule in enumerate(ROWS) if rule.level is Level.DANGER]
    assert dangers and not set(dangers) & set(missing)


def test_the_page_names_everything() -> None:
    page = html.unescape(re.sub(r"<[^>]+>", "", render_html(make_plan(), words=WORDS)))
    assert not list_missing(page)


def test_both_outputs_for_programs_have_every_finding() -> None:
    """With rule, level, harm, address, name, text, path, fix and access."""
    whole = json.loads(canonical.dumps(to_json(make_plan())))
    events = [event for event in list_plan_events(make_plan()) if event["type"] == "planned_change"]
    for changes in (
        [entry["kafkaform"] for entry in whole["resource_changes"]],
        [json.loads(canonical.dumps(event))["change"]["kafkaform"] for event in events],
    ):
        assert len(changes) == len(NUMBERS)
        for number, entry in enumerate(changes):
            (finding,) = entry["findings"]
            rule = ROWS[number] if number < len(ROWS) else None
            assert finding["rule"] == (rule.id if rule else POLICY.rule)
            assert sentence_of(number) in finding["text"]
            assert finding["address"] == f'kafka_topic.t["{number}"]'
            assert finding["name"] == name_of(number)
            if rule is not None:
                assert (finding["level"], finding["harm"]) == (rule.level, rule.harm)
                assert (finding["fix"], finding["path"]) == (rule.fix, ["config", "x"])
                rows = entry["gains"] + entry["losses"]
                assert len(rows) == is_access(rule)


def test_a_saved_plan_keeps_every_finding() -> None:
    assert decode(encode(make_plan()), "") == make_plan()


GRAVE = [
    row
    for row in ROWS
    if row.level in (Level.DANGER, Level.CAUTION) and row.needs is not Needs.LIVE
]


@pytest.mark.parametrize("rule", GRAVE)
def test_fail_on_knows_every_rule_its_harm_and_its_level(rule: Rule) -> None:
    """A plan with this finding alone is refused by each of the three names, and by no other."""
    subject = plan(make_change(0, find_once(rule, 0)))
    names = {rule.id, rule.level.value, *({rule.harm.value} - {"none"})}
    for name in names:
        with pytest.raises(Exception, match="fail-on"):
            refuse_if_blocked(subject, check_fail_on((name,), REGISTRY))
    refuse_if_blocked(subject, check_fail_on(("drift",), REGISTRY))
