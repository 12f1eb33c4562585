"""One entry in few words, for the forms of a plan that fold its details."""

from __future__ import annotations

from ...core.change import Action, Change
from ...core.finding import Level
from ...core.words import Words
from ..entries import Entry
from ..findings import render_finding
from ..lines import BRIEF_LIMIT, find_only_path, is_line, is_plain, render_brief

ACTIONS = {
    "blocked": "blocked",
    "kept": "blocked",
    "delete": "destroy",
    "loses": "change",
    "update": "change",
    "create": "create",
    "move": "move",
    "adopt": "adopt",
    "import": "import",
    "forget": "forget",
    "refresh": "record",
    "noted": "nothing to do",
}
"""Group -> what happens to its objects, in the words of the table of kinds."""


def says_differently(entry: Entry) -> bool:
    """True if the findings of its objects differ, so that an entry has just an example: who gets
    access to what, and who loses it."""
    return len({_read_texts(change) for change in entry.changes}) > 1


def list_texts(entry: Entry) -> tuple[tuple[Change, str], ...]:
    """Each object, with its own findings."""
    return tuple((change, "; ".join(_read_texts(change))) for change in entry.changes)


def _read_texts(change: Change) -> tuple[str, ...]:
    # Texts with figures are added up for all objects together.
    return tuple(
        render_finding(item)
        for item in change.findings
        if item.level is not Level.BLOCK and not item.figures
    )


def is_brief(entry: Entry, words: Words) -> bool:
    """True if a row says everything: the name of the object and one short value, if any."""
    lead = entry.lead
    # Its row is the sentence, with what is to be known about it.
    if is_line(lead, words):
        return True
    # A row about several objects or a block says why, and not from what to what.
    if lead.blocked is not None or (lead.grave and len(entry.changes) > 1):
        return False
    only = find_only_path(lead)
    if only is not None:
        return len(render_brief(only)) <= BRIEF_LIMIT
    return is_plain(lead, words) or lead.action in (Action.NOOP, Action.FORGET)
