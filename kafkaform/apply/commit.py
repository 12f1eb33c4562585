"""What an applied step leaves in the state: only what succeeded, path by path."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from ..core.change import Action, Change, Outcome, Path
from ..core.value import EMPTY, FrozenMap
from ..plan.diff import keep_set_values, lay_over
from ..state.model import Row

GONE = (Action.DELETE, Action.FORGET)


def commit_step(
    row: Row | None, change: Change, paths: tuple[Path, ...], outcome: Outcome, seq: int
) -> Row | None:
    """The row after one applied step; None if the row goes: what nobody owns has none.

    paths: what the step made true (empty for a change without steps); seq: of the audit record
    that proves it, which becomes the row's origin if this run made, adopted or imported the
    object.
    """
    if change.action in GONE or not change.row_after.owners:
        return None
    taken = change.action is Action.CREATE or change.adopts
    incarnation = outcome.incarnation or change.incarnation
    same = row if row is not None and row.incarnation == incarnation else None
    return Row(
        identity=change.identity,
        owners=change.row_after.owners,
        origin=seq if taken or row is None else row.origin,
        attributes=_compute_attributes(same, change, paths),
        incarnation=incarnation,
        protected=change.row_after.protected or "no",
        owner=change.owner,
        labels=change.labels,
        depends_on=change.depends_on,
        secret_version=change.row_after.secret_version,
    )


def refresh_row(row: Row, change: Change) -> Row:
    """The row of an object that needs nothing, with what is live and declared today."""
    return replace(
        row,
        attributes=keep_set_values(lay_over(change.after or EMPTY, change.theirs, EMPTY)),
        depends_on=change.depends_on,
    )


def _compute_attributes(row: Row | None, change: Change, paths: tuple[Path, ...]) -> FrozenMap:
    """As planned, but what other steps of the change have still to write is as it was.

    row: of this very object, if there is one already; of the others nothing is kept.
    """
    after = lay_over(change.after or EMPTY, change.theirs, EMPTY)
    if not change.steps:
        return keep_set_values(after)
    done, was = set(paths), row.attributes if row is not None else change.before or EMPTY
    rest = [path for step in change.steps for path in step.paths if path not in done]
    return keep_set_values(lay_over(after, _select_attribute_paths(rest, after), was))


def _select_attribute_paths(paths: Iterable[Path], attributes: FrozenMap) -> list[Path]:
    """The paths that are attributes; owner and labels have members of their own in a row."""
    return [path for path in paths if path[0] in attributes]
