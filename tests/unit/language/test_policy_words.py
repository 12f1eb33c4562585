"""Policies that name a rule, a harm, a level or a breadth that does not exist."""

from __future__ import annotations

import pytest

from .policies import attempt, faults_of

POLICY = 'policy "a" {{\n  condition = {}\n  message = "no"\n}}\n'

SOUND = [
    'contains(change.rules, "topic-retention-cut")',
    'contains((change.rules), "topic-deleted")',
    'contains(change.harms, "data-loss")',
    'contains(change.findings[*].rule, "topic-deleted")',
    'contains(change.findings[*].level, "danger")',
    'anytrue([for f in change.findings : f.rule == "topic-deleted" && f.level != "note"])',
    'anytrue([for f in change.findings : contains(["block", "danger"], f.level)])',
    'anytrue([for row in change.gains : row.breadth == "everybody"])',
    'alltrue([for row in change.losses : "cluster-wide" != row.principal])',
    # What the text does not decide, or what other things are called so.
    "contains(change.rules, setting.rule)",
    'anytrue([for f in change.after.things : f.level == "gold"])',
    'change.after.rule == "topic-retantion-cut"',
    'contains(change.labels, "data-los")',
    'anytrue([for f in change.findings : f.text == "gone" && f.path == "config.x"])',
]
WRONG = [
    ('contains(change.rules, "topic-deletd")', "2:", 'no rule "topic-deletd"', "topic-deleted"),
    ('!contains(change.rules, "policy/x")', "2:", 'no rule "policy/x"', "explain rule"),
    ('contains(change.harms, "data-los")', "2:", '"data-los" is no kind of harm', "data-loss"),
    ('contains(change.findings[*].rule, "x")', "2:", 'no rule "x"', "explain rule"),
    ('contains(change.findings[*].level, "dangr")', "2:", "no level", "danger"),
    (
        'anytrue([for f in change.findings : f.rule == ("topic-gone")])',
        "2:",
        'no rule "topic-gone"',
        "",
    ),
    ('anytrue([for f in change.findings : "high" == f.level])', "2:", "no level", "caution"),
    (
        'anytrue([for f in change.findings : contains(["block", "hot"], f.level)])',
        "2:",
        '"hot" is no level',
        "",
    ),
    ('alltrue([for row in change.gains : row.breadth != "all"])', "2:", "no breadth", "everybody"),
]


@pytest.mark.parametrize("condition", SOUND)
def test_words_that_findings_have(condition: str) -> None:
    """Rules, harms, levels and breadths that exist, and what is not compared with findings."""
    text = POLICY.format(condition).replace("{\n", '{\n  settings = { rule = "x" }\n', 1)
    assert faults_of(text) == []


@pytest.mark.parametrize(("condition", "place", "summary", "advice"), WRONG)
def test_words_that_no_finding_has(condition: str, place: str, summary: str, advice: str) -> None:
    """An error at the word, before any change is judged, with the nearest or all words."""
    (fault,) = attempt(POLICY.format(condition))[1]
    assert str(fault.range).startswith(f"p.kfpolicy.hcl:{place}")
    assert summary in fault.summary
    assert advice in f"{fault.detail} {fault.advice}"
