"""Render findings: what rules found about a change, in the words of the rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..core.finding import POLICY, Finding, Harm, Level
from .body import Line
from .text import inline

_STYLES = {
    Level.BLOCK: "blocked",
    Level.DANGER: "delete",
    Level.CAUTION: "warning",
    Level.NOTE: "warning",
}


def render_finding(finding: Finding) -> str:
    """`data loss: records older than 1 h are deleted [topic-retention-cut]`, with the id of the
    rule for `kafkaform explain rule`."""
    label = "" if finding.harm is Harm.NONE else f"{finding.harm.label}: "
    if finding.level is Level.BLOCK:
        label = "blocked: "
    return f"{'' if finding.level is Level.NOTE else label}{render_sentence(finding)}"


def render_sentence(finding: Finding) -> str:
    """The sentence of a finding, and the id of its rule. A note stands for itself."""
    accepted = ""
    if finding.accepted:
        reason = finding.waiver.text if finding.waiver else f"accepted: --accept {finding.rule}"
        accepted = f" ({inline(reason)})"
    # The sentence of a policy begins with its name.
    named = finding.level is Level.NOTE or finding.rule.startswith(POLICY)
    return f"{inline(finding.text)}{accepted}{'' if named else f' [{finding.rule}]'}"


def render_findings(findings: Iterable[Finding]) -> Iterator[Line]:
    """The lines under a change, each block with what to do."""
    for finding in findings:
        label = "note: " if finding.level is Level.NOTE else ""
        yield Line(1, "!", f"{label}{render_finding(finding)}", _STYLES[finding.level])
        if finding.level is Level.BLOCK and finding.fix:
            yield Line(1, " ", f"fix: {inline(finding.fix)}")
