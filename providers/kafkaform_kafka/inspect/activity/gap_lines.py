"""The lines that say what a page lacks."""

from __future__ import annotations

from kafkaform.core.value import FrozenMap
from kafkaform.provider.page import Page


def render_gaps(document: FrozenMap) -> Page:
    """What a document lacks, and what may be hidden."""
    for gap in document["gaps"]:
        yield f"Incomplete: {gap['what']}: {render_problem(gap)}"
    yield f"Others may be hidden: {document['hidden']}."


def render_problem(error: FrozenMap) -> str:
    """Why something could not be read, and what to do."""
    advice = f" Advice: {error['advice']}." if error["advice"] else ""
    return f"{error['message']} ({error['code']}).{advice}"
