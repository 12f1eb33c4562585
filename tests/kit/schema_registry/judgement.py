"""Changes of a registry, and what the rules of its provider find about them, for tests of both."""

from __future__ import annotations

from collections.abc import Sequence

from kafkaform.core.change import Action, Change
from kafkaform.core.finding import Finding, Level
from kafkaform.core.resource import Identity, Observed
from kafkaform.core.rule import Needs, Rule, Scene
from kafkaform.core.value import FrozenMap, Value
from kafkaform.plan.diff import compare, select_managed
from kafkaform.provider.contract import Session
from kafkaform.provider.testing.judgements import NO_FACTS
from kafkaform_schema_registry.provider import TYPES
from kafkaform_schema_registry.rules.book import BOOK, list_needs

INSTANCE = "schema_registry"


def plan_change(session: Session, kind: str, action: Action, **declared: Value) -> Change:
    """The change that a block asks for, from what the registry has."""
    item, facts = TYPES[kind], session.facts
    block = {name: argument.default for name, argument in item.schema.attributes.items()}
    attributes = FrozenMap({**block, **declared})
    identity = Identity(INSTANCE, kind, item.key(attributes))
    reading = session.read([identity])[identity]
    live = reading if isinstance(reading, Observed) else None
    target = item.target(attributes, live, facts, False)
    before = None if live is None else select_managed(live.attributes, target)
    after = None if action is Action.DELETE else target
    paths = compare(before, after, schema=item.schema)
    return Change(identity, f"{kind}.x", action, before, after, paths)


def judge(session: Session, *changes: Change) -> list[Finding]:
    """What judges and surveys find about the first of these changes, blocks first.

    Each finding has to be one of the rules that its judge or survey has, and a sentence without a
    stop.
    """
    findings: list[Finding] = []
    for part in BOOK.judges:
        if changes[0].identity.kind in part.types:
            findings += _check(part.rules, list(part.find(changes[0], session.facts)))
    sweeps = {kind: session.sweep(kind, depth) for kind, depth in list_needs(changes).items()}
    scene = Scene(changes, sweeps, session.facts)
    for survey in BOOK.surveys:
        pairs = list(survey.find(scene))
        _check(survey.rules, [finding for _, finding in pairs])
        findings += (item for identity, item in pairs if identity == changes[0].identity)
    return sorted(findings, key=lambda finding: finding.order)


def judge_block(change: Change) -> list[Finding]:
    """What those judges find that `validate` asks."""
    judges = (part for part in BOOK.judges if change.identity.kind in part.types)
    return [
        finding
        for part in judges
        if part.needs is Needs.BLOCK
        for finding in _check(part.rules, list(part.find(change, NO_FACTS)))
    ]


def _check(rules: Sequence[Rule], findings: list[Finding]) -> list[Finding]:
    assert {finding.rule for finding in findings} <= {rule.id for rule in rules}
    for finding in findings:
        assert finding.text and finding.text[-1] not in ".!", finding.text
        assert (finding.level is Level.BLOCK) == (finding.block is not None), finding
        assert finding.fix or finding.level is not Level.BLOCK, finding
    return findings


def list_rules(findings: Sequence[Finding]) -> list[str]:
    """The ids of their rules, sorted."""
    return sorted(finding.rule for finding in findings)
