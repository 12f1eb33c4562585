"""Render the table of rules, and what the rules find in live systems: as text, as JSON, and as
SARIF for code scanning."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any
from urllib.parse import quote

from ..core.finding import CheckedSystem, Harm, Level, StandingFinding
from ..core.resource import Identity
from ..core.rule import Needs, Rule
from ..core.words import Words
from ..version import VERSION
from .change_entries import join_names, mask_names
from .findings import render_finding
from .terraform import make_finding
from .text import inline, render_table

PROSE_WIDTH = 96
NEEDS: Mapping[Needs, str] = {
    Needs.BLOCK: "blocks alone, so `validate` and editors judge by it, too",
    Needs.FACTS: "the block, and what the system is like",
    Needs.OBJECT: "the block and the live object",
    Needs.PLAN: "all changes of a plan together",
    Needs.SYSTEM: "an answer of the system about this change",
    Needs.LIVE: "all live objects, so only `check` judges by it",
}
"""What must be known to judge by a rule."""

FORMAT_VERSION = "1.0"
"""Of what `check --json` prints."""
SARIF_LEVELS = {Level.DANGER: "error", Level.CAUTION: "warning"}
_TITLES = {Level.DANGER: "Dangers", Level.CAUTION: "Cautions"}
_WIDTH = 96
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


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
    if rule.needs is Needs.LIVE:
        return "nothing to accept: it is about what is there, not about a change"
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


def render_check(systems: Sequence[CheckedSystem]) -> Iterator[str]:
    """The findings line by line, dangers first. Equal ones of several objects are one row."""
    for number, system in enumerate(systems):
        if number:
            yield ""
        yield from _render_system(system)


def _render_system(system: CheckedSystem) -> Iterator[str]:
    counts = ", ".join(system.words.name_objects(number, kind) for kind, number in system.counts)
    head = f"{system.words.system.capitalize()} {system.instance}: {system.scope_id}"
    yield inline(f"{head} ({counts or 'no objects'})")
    for level, title in _TITLES.items():
        rows = [row for row in system.rows if row.finding.level is level]
        if not rows:
            continue
        yield ""
        yield f"{title} ({len(rows):,}):"
        for group in _group_rows(rows, system.words):
            yield from _render_group(group, system.words)
    if not system.rows:
        yield "No rule found anything."
    if system.gaps:
        yield ""
    for gap in system.gaps:
        yield from textwrap.wrap(inline(gap), _WIDTH)


def _group_rows(
    rows: Iterable[StandingFinding], words: Words
) -> Iterable[Sequence[StandingFinding]]:
    # Texts that differ only in the names of their objects say the same thing.
    groups: dict[tuple[str, str, str], list[StandingFinding]] = {}
    for row in rows:
        kind = "" if row.identity is None else row.identity.kind
        names = frozenset(
            ()
            if row.identity is None
            else (row.identity.key, words.name_object(kind, row.identity.key))
        )
        groups.setdefault((kind, row.finding.rule, mask_names(row.finding.text, names)), []).append(
            row
        )
    return groups.values()


def _render_group(group: Sequence[StandingFinding], words: Words) -> Iterator[str]:
    first = group[0]
    subject = _name_subject(first.identity, words)
    if len(group) > 1 and first.identity is not None:
        names = [
            words.name_object(row.identity.kind, row.identity.key)
            for row in group
            if row.identity is not None
        ]
        objects = words.name_objects(len(group), first.identity.kind)
        subject = f"{objects} ({join_names(names)})"
    text = f"{inline(subject)}: {render_finding(first.finding)}"
    yield from textwrap.wrap(
        text, _WIDTH, initial_indent="  ", subsequent_indent="      ", break_long_words=False
    )
    if first.finding.fix:
        yield from textwrap.wrap(
            f"fix: {inline(first.finding.fix)}",
            _WIDTH,
            initial_indent="      ",
            subsequent_indent="      ",
            break_long_words=False,
        )


def _name_subject(identity: Identity | None, words: Words) -> str:
    if identity is None:
        return f"the {words.system}"
    return f"{identity.kind} {words.name_object(identity.kind, identity.key)}"


def make_check_data(systems: Sequence[CheckedSystem]) -> dict[str, Any]:
    """The findings as one JSON document."""
    return {
        "format_version": FORMAT_VERSION,
        "systems": [
            {
                "instance": system.instance,
                "scope_id": system.scope_id,
                "objects": dict(system.counts),
                "findings": [
                    {
                        "type": None if row.identity is None else row.identity.kind,
                        "name": None if row.identity is None else row.identity.key,
                        **make_finding(row.finding),
                    }
                    for row in system.rows
                ],
                "gaps": list(system.gaps),
            }
            for system in systems
        ],
    }


def make_sarif(systems: Sequence[CheckedSystem], rules: Mapping[str, Rule]) -> dict[str, Any]:
    """The findings in SARIF 2.1.0 (OASIS), as code scanning reads them. rules: by id.

    A live object has no file. Its place is a path of instance, type and name.
    """
    # Only these: the document would otherwise carry every rule of every provider.
    used = sorted({row.finding.rule for system in systems for row in system.rows})
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "kafkaform",
                        "version": VERSION,
                        "rules": [_make_sarif_rule(id, rules) for id in used],
                    }
                },
                "results": [
                    _make_sarif_result(system, row, used.index(row.finding.rule))
                    for system in systems
                    for row in system.rows
                ],
            }
        ],
    }


def _make_sarif_rule(id: str, rules: Mapping[str, Rule]) -> dict[str, Any]:
    rule = rules.get(id)
    if rule is None:
        return {"id": id}
    return {
        "id": id,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.why},
        "help": {"text": rule.fix or rule.why},
        "properties": {"tags": [rule.harm.value]},
    }


def _make_sarif_result(system: CheckedSystem, row: StandingFinding, index: int) -> dict[str, Any]:
    finding, identity = row.finding, row.identity
    segments = (
        (system.instance,) if identity is None else (system.instance, identity.kind, identity.key)
    )
    # Keys of objects can contain slashes, blanks and percent signs.
    path = "/".join(quote(segment, safe="") for segment in segments)
    subject = _name_subject(identity, system.words)
    fix = f" {finding.fix}" if finding.fix else ""
    return {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": SARIF_LEVELS[finding.level],
        "message": {"text": f"{subject}: {finding.text}.{fix}"},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": path},
                    # A viewer of code marks a line, and there is no file whose line it could be.
                    "region": {"startLine": 1},
                },
                "logicalLocations": [
                    {
                        "name": segments[-1],
                        "fullyQualifiedName": path,
                        "kind": "resource",
                    }
                ],
            }
        ],
        "partialFingerprints": {
            "finding/v1": f"{system.scope_id}/{path}/{finding.rule}/{'.'.join(finding.path)}"
        },
    }
