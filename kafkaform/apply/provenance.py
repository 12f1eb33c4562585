"""Find the proof that a recorded object is ours, which everything that takes away needs."""

from __future__ import annotations

from ..audit.index import LogIndex
from ..audit.provenance import Origin
from ..state.model import Row


def find_origin(index: LogIndex, row: Row, scope_id: str) -> Origin | None:
    """The valid origin of this very object in this system, None if nothing proves that it is ours.

    index: that of the whole log; scope_id: that of the system that answers.
    """
    # Compared as a whole: a row that was edited by hand could name the origin of another object,
    # and the state could name another system.
    origin = index.origins.get(row.origin)
    return origin if origin == Origin(row.identity, row.incarnation, scope_id) else None
