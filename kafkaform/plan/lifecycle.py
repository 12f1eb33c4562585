"""What happens to one object: the decision table of architecture §4.1–§4.3.

declared  recorded  live               decision
yes       no        absent             create
yes       no        there              import or adopt if asked for, else blocked: not managed
yes       yes       absent             create again (deleted outside)
yes       yes       same incarnation   update or nothing
yes       yes       other incarnation  blocked: recreated outside (adopt to take it)
no        yes       absent             forget
no        yes       there              delete; blocked while protected; forget on request
no        shared    any                forget
any       any       hidden, failed     blocked: unreadable (forgetting needs no read)

A refresh-only plan does not ask what is declared: see `drift.refresh_object`.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from ..core.address import is_closure
from ..core.change import PARK, Action, Change, Ownership, Path, PathChange, add_findings
from ..core.finding import Finding
from ..core.resource import SETTING, TASK, Absent, Declared, Facts, Failed, Hidden, Observed
from ..core.value import EMPTY, FrozenMap
from ..provider.contract import ResourceType
from ..state.model import PROTECTIONS, Row
from .claims import Case, Claim, block_reserved, block_unreadable, start_change
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
from .parking import find_parked
from .rules import (
    KEPT,
    LEFT_ALONE,
    MISSING,
    PROTECTED,
    RECREATED,
    RENAMED,
    SHARED,
    TAKEN,
    UNFINISHED,
    UNMANAGED,
)


def compute_row_after(case: Case, *, adopted: bool) -> Ownership:
    """The ownership that the declarations give the row. adopted: a live object is taken over."""
    declared = case.claim.declared
    return Ownership(
        tuple(sorted({str(item.address) for item in declared})),
        max(
            # Of several blocks that share an object, the strictest one decides.
            (choose_protection(item, case, adopted=adopted) for item in declared),
            key=PROTECTIONS.index,
        ),
        declared[0].secret_version,
    )


def choose_protection(item: Declared, case: Case, *, adopted: bool) -> str:
    """The protection that one declaration asks for."""
    if item.lifecycle.shared:
        return "shared"
    if item.lifecycle.prevent_destroy is not None:
        return "explicit" if item.lifecycle.prevent_destroy else "no"
    # What existed before kafkaform came is protected whatever the provider block says: somebody
    # else made it, and may still need it.
    default = adopted or case.facts.protect
    return "default" if case.kind.protect and default else "no"


def compare_bookkeeping(case: Case, *, taken_over: bool = False) -> tuple[PathChange, ...]:
    """Changes of owner, labels and the time of parking, which exist in the state only.

    taken_over: the object is created or taken over, so that nothing counts as recorded before.
    """
    item, row = case.claim.declared[0], None if taken_over else case.claim.row
    before = {("labels", key): value for key, value in row.labels.items()} if row else {}
    after = {("labels", key): value for key, value in item.labels.items()}
    paths = [
        PathChange(path, before.get(path), after.get(path))
        for path in sorted(before.keys() | after.keys())
        if before.get(path) != after.get(path)
    ]
    owner = row.owner if row else None
    if owner != item.owner:
        paths.append(PathChange(("owner",), owner, item.owner))
    park = row.park if row else None
    if park != item.lifecycle.park:
        paths.append(PathChange((PARK,), park, item.lifecycle.park, unit="ms"))
    return tuple(paths)


def release_object(case: Case) -> Change:
    """The change of a recorded object that nothing declares: delete, forget, or blocked."""
    claim, row, reading = case.claim, case.claim.row, case.reading
    assert row is not None  # a claim that nothing declares comes from a row
    forget = replace(
        start_change(case.claim, Action.FORGET), before=row.attributes, incarnation=row.incarnation
    )
    if claim.removed is not None and not claim.removed.destroy:
        # Before any reading is looked at: an object that nobody can see can still be let go.
        return replace(forget, reason="removed block without destroy")
    # Before the reading, too: whether such an object exists is the business of its other folders.
    if row.protected == "shared":
        note = "it stays, because its block said that it is shared with other folders"
        return add_findings(forget, SHARED.find(note))
    if isinstance(reading, Hidden | Failed):
        return block_unreadable(case, reading)
    if isinstance(reading, Absent):
        if reading.others is not None:
            return replace(forget, reason="what is left of it belongs to others")
        drift = compare_gone(row.attributes, case.kind.schema)
        return replace(forget, reason="it is already gone", drift=drift)
    if row.incarnation is not None and reading.incarnation != row.incarnation:
        # A name does not make it ours: whoever recreated the object may have data in it.
        note = "the live object with this name was recreated outside kafkaform and is left alone"
        gone = replace(forget, reason="the recorded object is gone")
        return add_findings(gone, LEFT_ALONE.find(note))
    return _make_delete(case, row, reading)


def _make_delete(case: Case, row: Row, live: Observed) -> Change:
    claim, kind = case.claim, case.kind
    # A destroy has each system confirmed by its name. That lifts the default protection, and never
    # prevent_destroy.
    lifted = case.mode is Mode.DESTROY
    own_attributes = lay_over(kind.canonical(live.attributes, case.facts), live.foreign, EMPTY)
    before = select_managed(own_attributes, row.attributes)
    after = kind.left(before, row.attributes) if kind.left else None
    change = replace(
        start_change(case.claim, Action.DELETE if after is None else Action.UPDATE),
        before=before,
        after=after,
        paths=compare(
            before,
            after,
            schema=kind.schema,
            fallbacks=live.fallbacks if kind.settings or after is not None else EMPTY,
        ),
        incarnation=live.incarnation,
        reason=_find_reason(case),
    )
    if after is not None:
        change = replace(
            change,
            findings=(KEPT.find("values that others set on it stay"),),
            theirs=tuple(sorted(flatten(after))),
        )
    # Whoever approved the parking has approved the deletion.
    parking = case.parking
    reviewed = lifted or claim.removed is not None or bool(parking and parking.since)
    block = _block_protected(claim, row, reviewed=reviewed)
    if block is not None:
        return add_findings(change, block)
    if parking is None:
        return change
    if parking.due:
        # What takes access away goes last, so that nobody uses the object in between.
        addresses = {str(item.address) for item in parking.closures}
        change = replace(change, depends_on=tuple(sorted({*change.depends_on, *addresses})))
    return add_findings(change, *find_parked(parking, row.park, change.address))


def _find_reason(case: Case) -> str:
    """Why the object is deleted."""
    if is_closure(case.claim.address):
        return "what it parks is declared again, or deleted"
    if case.mode is Mode.DESTROY:
        return "destroy"
    return "removed block" if case.claim.removed else "no longer declared"


def _block_protected(claim: Claim, row: Row, *, reviewed: bool) -> Finding | None:
    """Why the object must not be deleted, None if it may be. reviewed: a `removed` block or
    `destroy` asks for the deletion."""
    # A rename is a deletion with all data, and the creation of an empty object.
    if claim.renamed and row.protected != "no":
        owner = claim.renamed[0]
        return RENAMED.find(
            f"{owner} declares another object now, and kafkaform never renames or replaces an "
            "object",
            fix="To keep both, give the new object its own block. To let the old one go, "
            f"first run `kafkaform state mv '{owner}' {claim.identity.kind}.old`, then add a "
            f"`removed` block with from = {claim.identity.kind}.old.",
        )
    if row.protected == "explicit":
        return PROTECTED.find(
            "it is protected by prevent_destroy",
            fix="Set prevent_destroy = false in its block, apply that, then destroy it."
            if claim.standing
            else "Declare it again with prevent_destroy = false, apply that, then remove it.",
            asked=reviewed,
        )
    if row.protected == "default" and not reviewed:
        return PROTECTED.find(
            "removed from the configuration, but delete protection is on",
            fix=f"To delete it, add a `removed` block with from = {claim.address} and "
            "lifecycle { destroy = true }. Without that lifecycle it is kept, but no longer "
            "managed.",
        )
    return None


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
        if change.effective and case.claim.declared:
            change = replace(change, expectations=_find_expectations(case))
    if case.pending is None and moving is None:
        return change
    return add_findings(change, *map(UNFINISHED.find, _describe_unfinished(settled, change)))


def _find_expectations(case: Case) -> FrozenMap:
    """What the block expects of the object."""
    attributes = case.claim.declared[0].attributes
    return FrozenMap(
        {
            name: attributes[name]
            for name, attribute in case.kind.schema.attributes.items()
            if attribute.expected and attributes.get(name) is not None
        }
    )


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


def _list_unread(case: Case, target: FrozenMap) -> tuple[Path, ...]:
    """What nobody can read back of a new object. In a row, it would differ from every reading."""
    attributes = case.kind.schema.attributes
    unread = {name for name, attribute in attributes.items() if attribute.unread}
    return tuple(sorted(path for path in flatten(target) if path[0] in unread)) if unread else ()


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
        theirs=_list_unread(case, after),
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
    if (row.owner, row.labels, row.park, row.secret_version) != (
        block.owner,
        block.labels,
        block.lifecycle.park,
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
    protection_declared = any(
        item.lifecycle.shared or item.lifecycle.prevent_destroy is not None
        for item in case.claim.declared
    )
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
