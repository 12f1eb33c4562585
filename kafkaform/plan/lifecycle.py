"""What happens to one object: the decision table of architecture §4.1–§4.3.

declared  recorded  live               decision
yes       no        absent             create
yes       no        there              import or adopt if asked for, else blocked: not managed
yes       yes       absent             create again (deleted outside)
yes       yes       same incarnation   update or nothing
yes       yes       other incarnation  blocked: recreated outside (adopt to take it)
no        yes       absent             forget
no        yes       there              delete; blocked while protected; forget if asked for
any       any       hidden, failed     blocked: unreadable (forgetting needs no read)

A refresh-only plan does not ask what is declared: see `drift.refresh_object`.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from ..core.change import Action, Change, Path, PathChange, add_findings
from ..core.finding import Finding
from ..core.resource import SETTING, TASK, Absent, Declared, Facts, Failed, Hidden, Observed
from ..core.value import EMPTY, FrozenMap
from ..provider.contract import ResourceType
from .bookkeeping import choose_protection, compare_bookkeeping, compute_row_after
from .case import Case, block_reserved, block_unreadable, start_change
from .diff import (
    agrees,
    compare,
    compare_gone,
    equals_target,
    flatten,
    is_ignored,
    lay_over,
    select_managed,
)
from .drift import compute_drift, refresh_object
from .model import Mode
from .observe import compute_destination, resolve_absence
from .release import release_object
from .rules import KEPT, MISSING, RECREATED, TAKEN, UNFINISHED, UNMANAGED


def decide(case: Case) -> Change:
    """The change of one object, without steps. A blocked one says why and what to do."""
    claim, reading = case.claim, case.reading
    if claim.declared and isinstance(reading, Absent) and reading.others is not None:
        reading = resolve_absence(reading, _find_ours(case))
    moving = reading.moving if isinstance(reading, Observed) else None
    if isinstance(reading, Observed) and moving is not None:
        # An object on its way counts as having arrived: a plan that wants the same place must not
        # start the same task again, and one that wants another place replaces it (§4.7).
        reading = replace(reading, attributes=compute_destination(reading))
    settled = case if reading is case.reading else replace(case, reading=reading)
    if case.mode is Mode.REFRESH:
        change = refresh_object(settled)
    else:
        change = _decide_declared(settled) if claim.declared else release_object(settled)
        reviewed = case.mode is Mode.DESTROY or claim.removed is not None
        requested = bool(claim.declared) or reviewed
        change = block_reserved(change, case.kind, reading, requested=requested)
    if case.pending is None and moving is None:
        return change
    return add_findings(change, *map(UNFINISHED.find, _describe_unfinished(settled, change)))


def _find_ours(case: Case) -> FrozenMap | None:
    """What this state recorded of an object, was about to make, or is asked to take over."""
    claim = case.claim
    if claim.row is not None:
        return claim.row.attributes
    if case.pending is not None:
        return case.pending.target
    return claim.declared[0].attributes if claim.imported else None


def _describe_unfinished(case: Case, change: Change) -> Iterator[str]:
    """What an earlier run, or somebody else, has begun with this object, and how far it is."""
    live = case.reading if isinstance(case.reading, Observed) else None
    moving = live.moving if live else None
    progress = str(live.details.get("progress") or "") if live else ""
    far = f": {progress}" if progress else ""
    if case.pending is not None:
        verbs = {SETTING: f"it is still {case.words.held} by"}
        if moving is not None:
            verbs[TASK] = f"it has been {case.words.working} since"
        verb = verbs.get(case.pending.action, "its change is unresolved since")
        yield f"{verb} run {case.pending.run}{far}"
    elif moving is not None:
        yield f"a {case.words.task} is running that is not in the audit log{far}"
    if moving is not None and any(item.path[0] in moving for item in change.paths):
        yield f"this change replaces the running {case.words.task}"


class _Meeting(Struct, frozen=True):
    """A declared object that exists: what it is and what it is to become, both canonical."""

    live: Observed
    """The object as it was read."""
    before: FrozenMap
    """Its attributes."""
    after: FrozenMap
    """The whole object as it is declared."""
    paths: tuple[PathChange, ...] = ()
    """Where the two differ."""


def _decide_declared(case: Case) -> Change:
    claim, kind, facts, reading = case.claim, case.kind, case.facts, case.reading
    if isinstance(reading, Hidden | Failed):
        return block_unreadable(case, reading)
    if isinstance(reading, Absent):
        return _block_lacking(case, reading) if reading.lacks else _make_create(case)
    item, owned = claim.declared[0], _is_ours(case, reading)
    after = kind.target(item.attributes, reading, facts, not owned)
    before = kind.canonical(reading.attributes, facts)
    if owned and agrees(after, before):
        meeting = _Meeting(reading, before, after)
        return _make_noop(case, meeting) or _make_update(case, meeting)
    after, spared = _spare_ignored(item, kind, reading, facts, not owned)
    paths = compare(before, after, schema=kind.schema, fallbacks=reading.fallbacks)
    meeting = _Meeting(reading, before, after, paths)
    if owned:
        return replace(_make_update(case, meeting), theirs=_find_theirs(case, after))
    # An adoption keeps what is live beyond the block, but only until the next plan: what lasts,
    # and so is recorded as ours, is the target without these extras.
    lasting = lay_over(kind.target(item.attributes, reading, facts, False), spared, before)
    return replace(_take_over(case, meeting), theirs=_find_theirs(case, lasting))


def _spare_ignored(
    item: Declared, kind: ResourceType, reading: Observed, facts: Facts, keep: bool
) -> tuple[FrozenMap, list[Path]]:
    """What a live object becomes, and the paths that stay because they are ignored."""
    after = kind.target(item.attributes, reading, facts, keep)
    before = kind.canonical(reading.attributes, facts)
    differ = compare(before, after, schema=kind.schema)
    spared = [change.path for change in differ if is_ignored(change.path, item.lifecycle)]
    if remaining := {path[0]: None for path in spared if len(path) == 1}:
        # An ignored attribute must not decide about others either, such as a count about a list,
        # so the target is computed once more as if the block had left it out.
        after = kind.target(item.attributes.with_items(remaining), reading, facts, keep)
    return lay_over(after, spared, before), spared


def predict_attributes(
    item: Declared, kind: ResourceType, reading: Observed | Absent, facts: Facts
) -> FrozenMap:
    """The attributes that an object has after the apply. What only the system can choose is None
    for a new object, and stays as it is for another one."""
    if isinstance(reading, Absent):
        return kind.target(item.attributes, None, facts, False)
    if reading.moving is not None:
        reading = replace(reading, attributes=compute_destination(reading))
    after, _ = _spare_ignored(item, kind, reading, facts, False)
    before = kind.canonical(reading.attributes, facts)
    if agrees(after, before):
        return before
    return before.with_items({name: value for name, value in after.items() if value is not None})


def _find_theirs(case: Case, target: FrozenMap) -> tuple[Path, ...]:
    """What the declaration keeps for others, because somebody else may have set it."""
    if case.kind.ours is None:
        return ()
    own_leaves = flatten(case.kind.ours(target, case.claim.declared[0].attributes))
    return tuple(sorted(path for path in flatten(target) if path not in own_leaves))


def _is_ours(case: Case, live: Observed) -> bool:
    """Recorded with this incarnation, or exactly what our own open create would have made."""
    row, pending = case.claim.row, case.pending
    if row is not None and row.incarnation in (None, live.incarnation):
        return True
    # A create whose answer was lost may have happened. Whoever else made the same object at the
    # same time made it exactly as we wanted it, so taking it over harms nobody.
    return (
        pending is not None
        and pending.action == Action.CREATE
        and equals_target(pending.target, live)
    )


def _block_lacking(case: Case, reading: Absent) -> Change:
    """The blocked change of an object that nothing can create, because what it belongs to does not
    exist."""
    unchanged = start_change(case.claim, Action.NOOP)
    finding = MISSING.find(
        f"{reading.lacks} does not exist",
        fix=f"Correct the name, create {reading.lacks} first, or remove this block; or leave it "
        f"out with --exclude='{case.claim.address}'.",
    )
    return replace(unchanged, row_after=unchanged.row_before, findings=(finding,))


def _make_create(case: Case) -> Change:
    claim, kind = case.claim, case.kind
    item, row = claim.declared[0], claim.row
    below = case.reading.fallbacks if isinstance(case.reading, Absent) else EMPTY
    after = kind.target(item.attributes, None, case.facts, False)
    set_names = {name for name, value in item.attributes.items() if value is not None}
    decided = {name for pair in kind.schema.conflicts if set_names & {*pair} for name in pair}
    # What nothing in the block decides, not even an attribute that excludes it, is the system's
    # default, and is shown as such.
    left_out = {(name,) for name in item.attributes.keys() - set_names - decided}
    change = replace(
        start_change(case.claim, Action.CREATE),
        after=after,
        paths=(
            *(
                replace(path, effective=path.after, effective_before=None)
                if path.path in left_out
                else path
                for path in compare(None, after, schema=kind.schema, fallbacks=below)
            ),
            *compare_bookkeeping(case, taken_over=True),
        ),
        drift=compare_gone(row.attributes, kind.schema) if row else (),
        row_after=compute_row_after(case, adopted=False),
        reason="deleted outside kafkaform" if row else "",
    )
    if claim.imported and row is None:
        return add_findings(
            change,
            MISSING.find(
                "the object to import does not exist",
                fix="Remove the import block to create it, or correct its id.",
            ),
        )
    return change


def _make_noop(case: Case, meeting: _Meeting) -> Change | None:
    """The change of an object that is as declared and as recorded, None if it is not.

    `_make_update` would give the same. Almost every object of a large plan ends here, so this is
    found without making anything that is thrown away.
    """
    row, block = case.claim.row, case.claim.declared[0]
    if row is None or len(case.claim.declared) > 1 or row.owners != (str(block.address),):
        return None
    if (row.owner, row.labels, row.secret_version) != (
        block.owner,
        block.labels,
        block.secret_version,
    ):
        return None
    if row.protected != choose_protection(block, case, adopted=False) or not agrees(
        row.attributes, meeting.before
    ):
        return None
    unchanged = start_change(case.claim, Action.NOOP)
    return replace(
        unchanged,
        before=meeting.after,
        after=meeting.after,
        incarnation=meeting.live.incarnation,
        row_after=unchanged.row_before,
    )


def _make_update(case: Case, meeting: _Meeting) -> Change:
    paths = meeting.paths + compare_bookkeeping(case)
    drift = compute_drift(case, meeting.before, meeting.after)
    change = start_change(case.claim, Action.UPDATE)
    row_before, row_after = change.row_before, compute_row_after(case, adopted=False)
    protection_declared = any(d.lifecycle.prevent_destroy is not None for d in case.claim.declared)
    if not paths and not protection_declared and row_before.protected == "default":
        # A provider setting that turns protection off concerns rows that are created or changed
        # under it. Otherwise it would unprotect everything that exists without one visible change.
        row_after = replace(row_after, protected="default")
    # Where others share an object, a path becomes ours only through a change that was approved,
    # although its value is right already. Otherwise a later release would delete what others set.
    target_leaves = flatten(meeting.after) if case.kind.left else {}
    claimed_paths = [
        ".".join(c.path) for c in drift if c.before is None and target_leaves.get(c.path) == c.after
    ]
    changed = bool(paths or claimed_paths) or row_after != row_before
    return replace(
        change,
        action=Action.UPDATE if changed else Action.NOOP,
        before=select_managed(meeting.before, meeting.after),
        after=meeting.after,
        paths=paths,
        drift=drift,
        incarnation=meeting.live.incarnation,
        row_after=row_after,
        findings=tuple(
            TAKEN.find(f"{name} is already set; from now on it belongs to this block")
            for name in claimed_paths
        ),
    )


def _take_over(case: Case, meeting: _Meeting) -> Change:
    """Adopt or import a live object that is not ours, or say that it is in the way."""
    claim, kind = case.claim, case.kind
    declared = kind.target(claim.declared[0].attributes, meeting.live, case.facts, False)
    differences = compare(meeting.before, declared, schema=kind.schema)
    undeclared = [c.path for c in differences if c.after is None]
    action = Action.IMPORT if claim.imported else Action.ADOPT
    change = replace(
        start_change(case.claim, Action.UPDATE if meeting.paths else action),
        before=select_managed(meeting.before, meeting.after),
        after=meeting.after,
        paths=meeting.paths + compare_bookkeeping(case, taken_over=True),
        adopts=True,
        incarnation=meeting.live.incarnation,
        row_after=compute_row_after(case, adopted=True),
        reason="import" if claim.imported else "adopt",
        findings=tuple(
            KEPT.find(f"{'.'.join(path)} is not declared; it is kept until the next plan", path)
            for path in undeclared
        ),
    )
    if claim.imported or claim.adopt:
        return change
    return add_findings(change, _block_unmanaged(case))


def _block_unmanaged(case: Case) -> Finding:
    address = case.claim.address
    if case.claim.row is None:
        return UNMANAGED.find(
            "it already exists, but kafkaform does not manage it",
            fix=f"Adopt it with --adopt='{address}', lifecycle {{ adopt = true }} or an import "
            "block, or choose another name.",
        )
    return RECREATED.find(
        "it was deleted and recreated outside kafkaform, so it is another object",
        fix=f"Check the new object. To manage it, adopt it with --adopt='{address}'.",
    )
