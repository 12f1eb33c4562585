"""Findings for tests that are about something else than rules."""

from __future__ import annotations

from typing import Any

from kafkaform.core.change import Change
from kafkaform.core.finding import AccessRow, Block, Finding, Harm, Level, Path
from kafkaform.core.value import EMPTY, FrozenMap

GRAVE = (
    Harm.DATA_LOSS,
    Harm.DURABILITY,
    Harm.ACCESS_LOST,
    Harm.ACCESS_GAINED,
    Harm.AVAILABILITY,
)


def risk(
    harm: Harm,
    text: str,
    path: Path = (),
    figures: FrozenMap = EMPTY,
    access: tuple[AccessRow, ...] = (),
) -> Finding:
    """A danger if the harm is grave, else a caution."""
    level = Level.DANGER if harm in GRAVE else Level.CAUTION
    return Finding(f"some-{harm.value}", level, harm, text, path, figures, access=access)


def note(text: str) -> Finding:
    """Something worth knowing."""
    return Finding("some-note", Level.NOTE, Harm.NONE, text)


def block(block: Block, text: str, fix: str = "", *, accept: bool = False) -> Finding:
    """Why a change is not made."""
    rule = f"some-{block.value}"
    return Finding(rule, Level.BLOCK, Harm.NONE, text, fix=fix, block=block, accept=accept)


def join_findings(
    *,
    blocked: Finding | None = None,
    risks: tuple[Finding, ...] = (),
    notes: tuple[str, ...] = (),
    **fields: Any,
) -> dict[str, Any]:
    """The fields of a change, with its findings in their order."""
    findings = (*((blocked,) if blocked else ()), *risks, *map(note, notes))
    if not findings:
        return fields
    return {**fields, "findings": tuple(sorted(findings, key=lambda finding: finding.order))}


def list_notes(change: Change) -> tuple[str, ...]:
    """The texts of what harms nothing and blocks nothing."""
    return tuple(
        finding.text
        for finding in change.findings
        if finding.level is not Level.BLOCK and finding.harm is Harm.NONE
    )


def list_risks(change: Change) -> list[Finding]:
    """What could do harm, and blocks nothing."""
    return [
        finding
        for finding in change.findings
        if finding.level in (Level.DANGER, Level.CAUTION) and finding.harm is not Harm.NONE
    ]
