"""One entry in few words, for the forms of a plan that fold its details."""

from __future__ import annotations

from ..core.change import Action, Change
from .entries import Entry
from .lines import find_only_path, is_plain, name_path, render_brief

BRIEF_LIMIT = 120
"""Characters of one changed value; of a longer one only the path is named."""
BRIEF_PATHS = 3
"""Changed values that are shown."""

ACTIONS = {
    "blocked": "blocked",
    "kept": "blocked",
    "delete": "destroy",
    "loses": "change",
    "update": "change",
    "create": "create",
    "adopt": "adopt",
    "import": "import",
    "forget": "forget",
    "noted": "nothing to do",
}
"""Group -> what happens to its objects, in the words of the table of kinds."""


def render_values(change: Change) -> str:
    """`keep.ms 7 d → 3 d (…), width 3 → 4, 2 more`."""
    briefs = [(render_brief(item), name_path(item.path)) for item in change.paths]
    shown = [text if len(text) <= BRIEF_LIMIT else name for text, name in briefs[:BRIEF_PATHS]]
    more = [f"{len(briefs) - BRIEF_PATHS} more"] if len(briefs) > BRIEF_PATHS else []
    return ", ".join([*shown, *more])


def is_brief(entry: Entry) -> bool:
    """True if there is nothing to say beyond the name of the object and one short value."""
    only = find_only_path(entry.lead)
    if only is not None:
        return len(render_brief(only)) <= BRIEF_LIMIT
    return is_plain(entry.lead) or entry.lead.action in (Action.NOOP, Action.FORGET)
