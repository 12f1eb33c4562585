"""How live objects differ from what the state recorded, and the change that only records that.

A refresh-only plan sends nothing. Its changes give the state the values that are live, so the next
plan compares with them. What the state does not record of an object that others share stays out of
it: a value that somebody else set must not become ours by being looked at.
"""

from __future__ import annotations

from msgspec.structs import replace

from ..core.change import Action, Change, Ownership, PathChange
from ..core.errors import UsageError
from ..core.resource import Absent, Failed, Hidden, Observed
from ..core.value import EMPTY, FrozenMap
from .claims import Case, block_unreadable, start_change
from .diff import (
    agrees,
    compare,
    compare_gone,
    flatten,
    is_ignored,
    keep_set_values,
    lay_over,
    render_path,
    select_managed,
)
from .model import Options
from .observe import resolve_absence
from .rules import KEPT, RECREATED


def compute_drift(case: Case, live: FrozenMap, target: FrozenMap) -> tuple[PathChange, ...]:
    """Recorded against live, without what is ignored and what the target leaves alone.

    live: the attributes of the object; target: the whole object as it is declared; both canonical.
    """
    row, item = case.claim.row, case.claim.declared[0]
    if row is None or agrees(row.attributes, live):
        return ()
    target_leaves, declared = flatten(target), flatten(item.attributes)

    def is_left_alone(change: PathChange) -> bool:
        """Somebody's addition, which the declaration does not mention and the target keeps. One
        that it does mention has to be recorded, or nobody would ever remove it."""
        added = change.before is None and target_leaves.get(change.path) == change.after
        return added and change.path not in declared

    return tuple(
        change
        for change in _compare_recorded(case, row.attributes, live)
        if not is_ignored(change.path, item.lifecycle) and not is_left_alone(change)
    )


def _compare_recorded(case: Case, recorded: FrozenMap, live: FrozenMap) -> tuple[PathChange, ...]:
    return compare(
        recorded,
        select_managed(live, recorded),
        schema=case.kind.schema,
        # A reader of drift wants to know what was in effect before, also where nothing was set.
        fallbacks=case.reading.fallbacks if isinstance(case.reading, Observed) else EMPTY,
    )


def refresh_object(case: Case) -> Change:
    """The change that records a live object as it is: refresh, forget if it is gone, or blocked."""
    row, reading = case.claim.row, case.reading
    assert row is not None  # a refresh looks at recorded objects only
    if isinstance(reading, Hidden | Failed):
        # A read that failed proves nothing, so the row stays as it is.
        return _keep_books(block_unreadable(case, reading), case)
    if isinstance(reading, Absent):
        reading = resolve_absence(reading, row.attributes)
    if not isinstance(reading, Observed):
        return _forget_gone(case)
    if row.incarnation not in (None, reading.incarnation):
        return _block_recreated(case)
    live = case.kind.canonical(reading.attributes, case.facts)
    drift = _find_drift(case, reading, live)
    refreshed = [item.path for item in drift if not _is_theirs(case, item)]
    now = keep_set_values(lay_over(row.attributes, refreshed, live))
    return replace(
        _keep_books(start_change(case.claim, Action.REFRESH if refreshed else Action.NOOP), case),
        # The object stays as it is, so both sides are what is live of it.
        before=now,
        after=now,
        drift=drift,
        incarnation=row.incarnation,
        findings=tuple(
            KEPT.find(
                f"{render_path(item.path)} was set by others; a refresh does not make it ours",
                item.path,
            )
            for item in drift
            if item.path not in refreshed
        ),
    )


def _find_drift(case: Case, reading: Observed, live: FrozenMap) -> tuple[PathChange, ...]:
    row, kind = case.claim.row, case.kind
    assert row is not None
    if not case.claim.declared:
        # Without a block, nobody says whose an addition is.
        differences = _compare_recorded(case, row.attributes, live)
        return tuple(item for item in differences if item.before is not None)
    item = case.claim.declared[0]
    return compute_drift(case, live, kind.target(item.attributes, reading, case.facts, False))


def _is_theirs(case: Case, item: PathChange) -> bool:
    """True for what only others have set on an object that they share."""
    # A release removes from such an object what the state records, so it must not get there.
    return item.before is None and case.kind.left is not None


def _keep_books(change: Change, case: Case) -> Change:
    """The change with the bookkeeping of the row, which a refresh leaves as it is."""
    row = case.claim.row
    assert row is not None
    return replace(
        change,
        row_after=change.row_before,
        owner=row.owner,
        labels=row.labels,
        park=row.park,
        depends_on=row.depends_on,
    )


def _forget_gone(case: Case) -> Change:
    """The change that takes an object out of the state that provably does not exist any more."""
    row = case.claim.row
    assert row is not None
    return replace(
        _keep_books(start_change(case.claim, Action.FORGET), case),
        row_after=Ownership(),
        before=row.attributes,
        incarnation=row.incarnation,
        drift=compare_gone(row.attributes, case.kind.schema),
        reason="deleted outside kafkaform",
    )


def _block_recreated(case: Case) -> Change:
    row = case.claim.row
    assert row is not None
    block = RECREATED.find(
        "it was deleted and recreated outside kafkaform, so it is another object",
        fix="Check the new object. `kafkaform plan` without --refresh-only says how to manage it.",
    )
    unchanged = _keep_books(start_change(case.claim, Action.NOOP), case)
    drift = compare_gone(row.attributes, case.kind.schema)
    return replace(unchanged, drift=drift, findings=(block,))


_SENDING = (
    ("adopt", "--adopt"),
    ("max_deletes", "--max-deletes"),
    ("max_data_loss", "--max-data-loss"),
    ("accept", "--accept-..."),
    ("impact", "--impact"),
    ("sample", "--sample"),
)
"""Option -> its flag, of options that are about changes to a system."""


def refuse_idle_options(options: Options) -> None:
    """Raises UsageError for options of a refresh-only plan that it has no use for."""
    for name, flag in _SENDING:
        if getattr(options, name) != getattr(Options(), name):
            raise UsageError(
                f"{flag} cannot be combined with --refresh-only",
                "A refresh-only plan changes nothing but the state. Leave one of them out.",
            )
