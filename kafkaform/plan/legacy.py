"""Rules from what providers still judge without rules: `check`, `risks` and `review`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..core.change import Change
from ..core.diagnostics import Severity
from ..core.finding import Block, Finding, Harm, Level
from ..core.legacy import Blocker, Risk, RiskKind
from ..core.resource import Facts, Identity
from ..core.rule import Judge, Needs, Rule, RuleBook, Scene, Survey
from ..provider.contract import Provider

_GRAVE = (RiskKind.DATA_LOSS, RiskKind.ACCESS, RiskKind.AVAILABILITY)
_HARMS: Mapping[RiskKind, Harm] = {
    kind: Harm.ACCESS_LOST if kind is RiskKind.ACCESS else Harm(kind.value) for kind in RiskKind
}
_WAIVERS = {"open-access": "access-opened", "unproven-access": "access-unproven"}


def _make_rule(id: str, level: Level, harm: Harm = Harm.NONE, block: Block | None = None) -> Rule:
    return Rule(id, id, level, harm, (), Needs.OBJECT, "", "", block=block)


def _make_risk(risk: Risk) -> Finding:
    level = Level.DANGER if risk.kind in _GRAVE else Level.CAUTION
    rule = _make_rule(f"legacy-{risk.kind.value}", level, _HARMS[risk.kind])
    return rule.find(risk.text, risk.path, figures=risk.figures)


def _make_block(block: Blocker) -> Finding:
    id = _WAIVERS.get(block.waiver, f"legacy-{block.kind.value}")
    rule = _make_rule(id, Level.BLOCK, block=block.kind)
    finding = rule.find(block.reason, fix=block.advice, asked=block.asked)
    return Finding(
        *(finding.rule, finding.level, finding.harm, finding.text),
        fix=finding.fix,
        block=finding.block,
        accept=bool(block.waiver),
        asked=block.asked,
    )


_NOTE = _make_rule("legacy-note", Level.NOTE)
_WARNING = _make_rule("legacy-warning", Level.CAUTION)
_FAULT = _make_rule("legacy-check", Level.BLOCK, block=Block.IMPOSSIBLE)
_LOSS = _make_rule("legacy-loss", Level.NOTE, Harm.ACCESS_LOST)


def make_book(provider: Provider) -> RuleBook:
    types = {**provider.types, **provider.commanded}

    def judge(change: Change, facts: Facts) -> Iterator[Finding]:
        kind = types[change.identity.kind]
        blocked = change.blocked is not None and change.block is not Block.UNMANAGED
        for fault in () if blocked or kind.check is None else kind.check(change, facts):
            rule = _FAULT if fault.severity is Severity.ERROR else _WARNING
            text = f"{fault.summary}: {fault.detail}" if fault.detail else fault.summary
            yield rule.find(text, fix=fault.advice)
        if kind.risks is not None and change.paths:
            yield from map(_make_risk, kind.risks(change, facts))

    def survey(scene: Scene) -> Iterator[tuple[Identity | None, Finding]]:
        review = provider.review(  # type: ignore[attr-defined]  # of providers without rules
            scene.changes, scene.sweeps, scene.facts
        )
        for identity, block in review.blocks.items():
            yield identity, _make_block(block)
        for identity, blocks in review.unless.items():
            yield from ((identity, _make_block(block)) for block in blocks)
        for identity, risks in review.risks.items():
            yield from ((identity, _make_risk(risk)) for risk in risks)
        for identity, notes in review.notes.items():
            yield from ((identity, _NOTE.find(note)) for note in notes)
        for identity, losses in review.losses.items():
            yield from ((identity, _LOSS.find(loss)) for loss in losses)
        yield from ((None, _WARNING.find(warning)) for warning in review.warnings)

    book = provider.load_rules() if hasattr(provider, "load_rules") else RuleBook()
    surveys = (Survey((), survey),) if hasattr(provider, "review") else ()
    return RuleBook(
        (Judge((), tuple(types), Needs.OBJECT, judge), *book.judges), (*surveys, *book.surveys)
    )
