"""Render the policies that a change breaks."""

from __future__ import annotations

from collections.abc import Iterator

from ..core.change import Change
from ..core.diagnostics import Severity
from ..core.legacy import BlockerKind
from .entries import Entry
from .text import inline


def render_findings(one: Change | Entry) -> Iterator[tuple[str, str]]:
    """The text and the style of each finding, without those that the block has as its reason.

    one: an entry shows the findings of all its changes.
    """
    named = one.blocked is not None and one.blocked.kind is BlockerKind.POLICY
    for finding in one.findings:
        if finding.blocks and named:
            continue
        kind = "policy" if finding.severity is Severity.ERROR else "policy (warning)"
        waiver = f" ({inline(finding.waiver_text)})" if finding.waiver_text else ""
        style = "blocked" if finding.blocks else "warning"
        yield f"{kind} {inline(finding.policy)}: {inline(finding.message)}{waiver}", style
