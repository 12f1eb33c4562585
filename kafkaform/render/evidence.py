"""Say in words how far a dry run checks, or has checked, one change before anything is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..core.change import Evidence
from ..core.words import NEUTRAL, Words
from .text import inline

# A plan that only read the live objects must not claim what no dry run has shown yet.
WILL_CHECK = {
    Evidence.REMOTE: "the {node} will check",
    Evidence.LOCAL: "will be checked locally",
    Evidence.NONE: "cannot be checked in advance",
}
"""Before the dry run."""
CHECKED = {
    Evidence.REMOTE: "checked by the {node}",
    Evidence.LOCAL: "checked locally",
    Evidence.NONE: "cannot be checked in advance",
}
"""After it."""

STRENGTH = tuple(Evidence)
"""Kinds of evidence, strongest first."""


def render_evidence(
    requests: Sequence[tuple[str, Evidence]],
    words: Words = NEUTRAL,
    phrases: Mapping[Evidence, str] = WILL_CHECK,
) -> str:
    """How far a dry run can check one change: `the server will check`.

    requests: name and evidence of each request, at least one; phrases: `WILL_CHECK` or `CHECKED`.
    """
    # A change is checked only as well as its weakest request, so that one decides.
    weakest = max((evidence for _, evidence in requests), key=STRENGTH.index)
    weak = dict.fromkeys(name for name, evidence in requests if evidence is weakest)
    checked = phrases[weakest].format(node=words.node)
    if all(evidence is weakest for _, evidence in requests):
        return checked
    return f"{checked}: {', '.join(map(inline, weak))} has no dry run"
