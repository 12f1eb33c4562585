"""Render the policies that a change breaks."""

from __future__ import annotations

from collections.abc import Iterator

from ..core.change import BlockerKind, Change
from ..core.diagnostics import Severity
from .text import inline


def render_findings(change: Change) -> Iterator[tuple[str, str]]:
    """The text and the style of each finding, without those that the block has as its reason."""
    named = change.blocked is not None and change.blocked.kind is BlockerKind.POLICY
    for one in change.findings:
        if one.blocks and named:
            continue
        kind = "policy" if one.severity is Severity.ERROR else "policy (warning)"
        waiver = f" ({inline(one.waiver_text)})" if one.waiver_text else ""
        style = "blocked" if one.blocks else "warning"
        yield f"{kind} {inline(one.policy)}: {inline(one.message)}{waiver}", style
