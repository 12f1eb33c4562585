"""Judges changes by the rules of the Kafka provider, for tests of these rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafkaform.core.change import Change
from kafkaform.core.finding import Finding, Level
from kafkaform.core.resource import Facts, Identity, Sweep
from kafkaform.core.rule import Needs, Rule, Scene
from kafkaform_kafka.rules.book import BOOK

from .changes import FACTS


def judge(change: Change, facts: Facts = FACTS, *, only_block: bool = False) -> list[Finding]:
    """What the judges find about a change. only_block: those that `validate` asks.

    Each finding has to be one of the rules that its judge has, and a sentence without a stop.
    """
    findings: list[Finding] = []
    for part in BOOK.judges:
        if change.identity.kind in part.types and (part.needs is Needs.BLOCK or not only_block):
            judged = list(part.find(change, facts))
            assert {finding.rule for finding in judged} <= {rule.id for rule in part.rules}
            findings += judged
    check_sentences(findings)
    return sorted(findings, key=lambda finding: finding.order)


def survey(
    changes: Sequence[Change], sweeps: Mapping[str, Sweep] | None = None, facts: Facts = FACTS
) -> list[tuple[Identity | None, Finding]]:
    """What the surveys find about changes together."""
    scene = Scene(changes, sweeps or {}, facts)
    pairs: list[tuple[Identity | None, Finding]] = []
    for part in BOOK.surveys:
        results = list(part.find(scene))
        assert {finding.rule for _, finding in results} <= {rule.id for rule in part.rules}
        pairs += results
    check_sentences([finding for _, finding in pairs])
    return pairs


def check_sentences(findings: Sequence[Finding]) -> None:
    """Every finding is one sentence without its stop, and one that blocks says what to do."""
    for finding in findings:
        assert finding.text and finding.text[-1] not in ".!", finding.text
        assert (finding.level is Level.BLOCK) == (finding.block is not None), finding
        assert finding.fix or finding.level is not Level.BLOCK, finding


def name_rules(findings: Sequence[Finding]) -> list[str]:
    """The ids of their rules, sorted."""
    return sorted(finding.rule for finding in findings)


def find_rule(id: str) -> Rule:
    """The row with this id."""
    (rule,) = (rule for rule in BOOK.rules if rule.id == id)
    return rule
