"""Render the policies that a change breaks."""

from __future__ import annotations

from collections.abc import Iterator

from ..core.change import Change
from ..core.finding import Level
from .entries import Entry
from .text import inline


def render_findings(one: Change | Entry) -> Iterator[tuple[str, str]]:
    """The text and the style of each finding, without those that the block has as its reason.

    one: an entry shows the findings of all its changes.
    """
    for finding in one.breaches:
        if finding == one.blocked:
            continue
        style = "blocked" if finding.level is Level.BLOCK else "warning"
        yield inline(finding.text), style
