"""Say in words how far a dry run can check a change before anything is sent."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.change import Evidence
from ..core.words import NEUTRAL, Words
from .text import inline

CHECKED = {
    Evidence.REMOTE: "checked by the {node}",
    Evidence.LOCAL: "checked locally",
    Evidence.NONE: "cannot be checked in advance",
}

STRENGTH = tuple(Evidence)
"""Kinds of evidence, strongest first."""


def render_evidence(requests: Sequence[tuple[str, Evidence]], words: Words = NEUTRAL) -> str:
    """How far a dry run can check one change: `checked by the server`.

    requests: name and evidence of each request, at least one.
    """
    # A change is checked only as well as its weakest request, so that one decides.
    weakest = max((evidence for _, evidence in requests), key=STRENGTH.index)
    weak = dict.fromkeys(name for name, evidence in requests if evidence is weakest)
    checked = CHECKED[weakest].format(node=words.node)
    if all(evidence is weakest for _, evidence in requests):
        return checked
    return f"{checked}: {', '.join(map(inline, weak))} has no dry run"
