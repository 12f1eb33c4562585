"""Whether the log proves that a recorded object is ours: asked of all that takes something away."""

from __future__ import annotations

from ..audit.index import LogIndex
from ..audit.provenance import Origin
from ..state.model import Row


def find_origin(index: LogIndex, row: Row, scope_id: str) -> Origin | None:
    """The record of this log that made, adopted or imported this very object in this system, and
    that nothing has ended since; None if nothing proves it.

    index: of the whole log; scope_id: of the system that answers, not what the state says.
    """
    origin = index.origins.get(row.origin)
    return origin if origin == Origin(row.identity, row.incarnation, scope_id) else None
