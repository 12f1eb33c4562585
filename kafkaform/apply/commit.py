"""Compute the row that an applied step leaves: only what succeeded, path by path."""

from __future__ import annotations

from msgspec.structs import replace

from ..core.change import Action, Change, Outcome, Path
from ..core.value import EMPTY, FrozenMap
from ..plan.diff import flatten, keep_set_values, lay_over, render_path
from ..state.model import Row

GONE = (Action.DELETE, Action.FORGET)


def commit_step(
    row: Row | None, change: Change, paths: tuple[Path, ...], outcome: Outcome, seq: int
) -> Row | None:
    """The row after one applied step, None if there is none any more.

    paths: what the step made true, empty for a change without steps; seq: the number of its audit
    record, which becomes the origin of the row if the step made, adopted or imported the object.
    """
    if change.action in GONE or not change.row_after.owners:
        return None
    taken_over = change.action is Action.CREATE or change.adopts
    incarnation = outcome.incarnation or change.incarnation
    # A row of an earlier object with the same name says nothing about this one.
    same_row = row if row is not None and row.incarnation == incarnation else None
    return Row(
        identity=change.identity,
        owners=change.row_after.owners,
        origin=seq if taken_over or row is None else row.origin,
        attributes=_compute_attributes(same_row, change, paths),
        incarnation=incarnation,
        protected=change.row_after.protected or "no",
        owner=change.owner,
        labels=change.labels,
        depends_on=change.depends_on,
        secret_version=change.row_after.secret_version,
        reported=_keep_reported(same_row, change),
    )


def _keep_reported(row: Row | None, change: Change) -> FrozenMap:
    """What the system reports although nothing sets it, without what the change sets."""
    if row is None or not row.reported:
        return EMPTY
    paths = {render_path(path) for path in flatten(change.after)}
    return row.reported.without(paths)


def refresh_row(row: Row, change: Change) -> Row:
    """The row of an object that needs nothing, with what is live and declared today."""
    return replace(
        row,
        attributes=keep_set_values(lay_over(change.after or EMPTY, change.theirs, EMPTY)),
        depends_on=change.depends_on,
    )


def _compute_attributes(row: Row | None, change: Change, paths: tuple[Path, ...]) -> FrozenMap:
    """The attributes as planned, but as before where other steps have yet to write. row: that of
    this very object, if there is one already."""
    # If a later step fails, the row must not claim what that step was to write: the next plan would
    # see drift instead of a change that is still to be made.
    after = lay_over(change.after or EMPTY, change.theirs, EMPTY)
    if not change.steps:
        return keep_set_values(after)
    applied_paths, attributes = (
        set(paths),
        row.attributes if row is not None else change.before or EMPTY,
    )
    pending = [path for step in change.steps for path in step.paths if path not in applied_paths]
    # Owner and labels are no attributes: they have members of their own in a row.
    return keep_set_values(
        lay_over(after, [path for path in pending if path[0] in after], attributes)
    )
