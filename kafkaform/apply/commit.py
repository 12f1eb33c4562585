"""What an applied step leaves in the state: only what succeeded, path by path."""

from __future__ import annotations

from dataclasses import replace

from ..core.change import Action, Change, Outcome, Path
from ..core.value import EMPTY, FrozenMap
from ..plan.diff import lay_over, set_only
from ..state.model import Row

GONE = (Action.DELETE, Action.FORGET)


def committed(
    row: Row | None, change: Change, paths: tuple[Path, ...], outcome: Outcome, seq: int
) -> Row | None:
    """The row after one applied step; None if the row goes.

    paths: what the step made true (empty for a change without steps); seq: of the audit record
    that proves it, which becomes the row's origin if this run made, adopted or imported the
    object.
    """
    if change.action in GONE:
        return None
    new = change.action is Action.CREATE or change.adopts or row is None
    incarnation = outcome.incarnation or (row.incarnation if row else None) or change.incarnation
    if new and row is not None and row.origin == seq:
        new = False
    return Row(
        identity=change.identity,
        owners=change.row_after.owners,
        origin=seq if new or row is None else row.origin,
        attributes=_attributes(row, change, paths),
        incarnation=incarnation,
        protected=change.row_after.protected or "no",
        owner=change.owner,
        labels=change.labels,
        depends_on=change.depends_on,
        secret_version=change.row_after.secret_version,
    )


def refreshed(row: Row, change: Change) -> Row:
    """The row of an object that needs nothing, with what is live and declared today."""
    return replace(
        row,
        attributes=set_only(change.after or EMPTY),
        depends_on=change.depends_on,
    )


def _attributes(row: Row | None, change: Change, paths: tuple[Path, ...]) -> FrozenMap:
    after = change.after or EMPTY
    whole = change.action is Action.CREATE or not change.steps
    if whole:
        return set_only(after)
    base = row.attributes if row is not None and not change.adopts else change.before or EMPTY
    return set_only(lay_over(base, paths, after))
