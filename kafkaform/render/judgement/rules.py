"""Render the table of rules: one row in full, all rows by subject, both also as JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from ...core.finding import Harm, Level
from ...core.rule import Needs, Rule
from ..text import inline, render_table

PROSE_WIDTH = 96
NEEDS: Mapping[Needs, str] = {
    Needs.BLOCK: "the block alone, so `validate` and editors judge by it, too",
    Needs.FACTS: "the block, and what the system is like",
    Needs.OBJECT: "the block and the live object",
    Needs.PLAN: "all changes of a plan together",
    Needs.SYSTEM: "an answer of the system about this change",
}
"""What must be known to judge by a rule."""


def render_rule(rule: Rule) -> Iterator[str]:
    """One row in full, line by line."""
    yield f"{rule.id}: {rule.title}"
    yield ""
    for name, text in _list_parts(rule):
        yield from textwrap.wrap(
            f"{name + ':':<10}{inline(text)}",
            PROSE_WIDTH,
            subsequent_indent=" " * 10,
            break_on_hyphens=False,
            break_long_words=False,
        )
    yield ""
    yield "Example:"
    yield from (f"    {inline(line)}" for line in rule.example.strip("\n").split("\n"))


def _list_parts(rule: Rule) -> Iterator[tuple[str, str]]:
    yield "Level", render_level(rule)
    yield "Judges", ", ".join(rule.types) or "every type of object"
    yield "Needs", NEEDS[rule.needs]
    yield "Why", rule.why
    if rule.fix:
        yield "Fix", rule.fix
    yield "Accept", render_acceptance(rule)
    yield "Fail on", ", ".join(f"--fail-on {name}" for name in list_conditions(rule))
    if rule.proof:
        yield "Proof", rule.proof


def render_level(rule: Rule) -> str:
    """`danger, data loss`; what a block does to the rest of a plan."""
    text = rule.level.value
    if rule.harm is not Harm.NONE:
        text += f", {rule.harm.label}"
    if rule.block is not None:
        consequence = (
            "the whole apply stops" if rule.block.stops else "the rest of the plan is applied"
        )
        text += f" ({rule.block.value}: {consequence})"
    return text


def render_acceptance(rule: Rule) -> str:
    """How a user makes the change all the same."""
    if rule.accept:
        return f"--accept {rule.id}, or --accept {rule.id}=ADDRESS for single objects"
    if rule.level is Level.BLOCK:
        return "cannot be accepted"
    return "nothing to accept: the change is made once its plan is approved"


def list_conditions(rule: Rule) -> tuple[str, ...]:
    """What `--fail-on` can name to stop a plan with a finding of this rule."""
    if rule.level is Level.BLOCK:
        return (rule.id,)
    harms = () if rule.harm is Harm.NONE or rule.level is Level.NOTE else (rule.harm.value,)
    levels = () if rule.level is Level.NOTE else (rule.level.value,)
    return (rule.id, *harms, *levels)


def group_rules(rules: Iterable[Rule]) -> Iterator[tuple[str, tuple[Rule, ...]]]:
    """Subject -> its rules. The subject is the first word of an id: `box` of `box-deleted`."""
    for subject, rows in groupby(sorted(rules, key=_get_id), key=_get_subject):
        yield subject, tuple(rows)


def _get_id(rule: Rule) -> str:
    return rule.id


def _get_subject(rule: Rule) -> str:
    return rule.id.partition("-")[0]


def render_rules(rules: Iterable[Rule]) -> Iterator[str]:
    """All rows, one on a line, by subject."""
    groups = list(group_rules(rules))
    cells = [[f"  {row.id}", row.level.value, row.title] for _, rows in groups for row in rows]
    lines = iter(render_table(cells))
    for number, (subject, rows) in enumerate(groups):
        if number:
            yield ""
        yield f"{subject}:"
        yield from (inline(next(lines)) for _ in rows)


def make_rule_data(rule: Rule) -> dict[str, Any]:
    """One row as JSON."""
    return {
        "id": rule.id,
        "title": rule.title,
        "level": rule.level.value,
        "harm": rule.harm.value,
        "types": list(rule.types),
        "needs": rule.needs.value,
        "why": rule.why,
        "example": rule.example,
        "fix": rule.fix,
        "block": None if rule.block is None else rule.block.value,
        "accept": rule.accept,
        "proof": rule.proof,
    }
