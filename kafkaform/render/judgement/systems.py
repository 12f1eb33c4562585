"""Render what the rules find in live systems: as text, as JSON, and as SARIF for code scanning."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from ...core.finding import CheckedSystem, Level, StandingFinding
from ...core.resource import Identity
from ...core.rule import Rule
from ...core.words import Words
from ...version import VERSION
from ..entries import join_names, mask_names
from ..findings import render_finding
from ..jsonplan import make_finding
from ..text import inline

SARIF_LEVELS = {Level.DANGER: "error", Level.CAUTION: "warning"}
_TITLES = {Level.DANGER: "Dangers", Level.CAUTION: "Cautions"}
_WIDTH = 96
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


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
        "format_version": "1.0",
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
