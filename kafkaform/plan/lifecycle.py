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
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from ..core.change import Action, Blocker, BlockerKind, Change, Ownership, Path, PathChange
from ..core.resource import (
    SETTING,
    TASK,
    Absent,
    Declared,
    Facts,
    Failed,
    Hidden,
    Observed,
    Pending,
    Reading,
)
from ..core.value import FrozenMap
from ..core.words import NEUTRAL, Words
from ..provider.contract import ResourceType
from ..state.model import Row
from .diff import agrees, compare, compare_gone, flatten, is_ignored, lay_over
from .drafts import (
    DecisionContext,
    block_unreadable,
    describe_change,
    read_ownership,
    select_managed,
)
from .observe import compute_destination, resolve_absence
from .ownership import Claim
from .release import release_object


def decide(claim: Claim, reading: Reading, context: DecisionContext) -> Change:
    """The change for one object, without steps; a blocked one says why and what to do."""
    if claim.declared:
        reading = resolve_absence(reading, _find_ours(claim, context))
    now = reading
    if isinstance(reading, Observed) and reading.moving is not None:
        reading = replace(reading, attributes=compute_destination(reading))
    if claim.declared:
        change = _decide_declared(claim, reading, context)
    else:
        change = release_object(claim, reading, context)
    change = describe_change(change, claim)
    words = context.words.get(claim.identity.instance, NEUTRAL)
    notes = tuple(_describe_unfinished(now, context.pending.get(claim.identity), change, words))
    return replace(change, notes=(*change.notes, *notes)) if notes else change


def _find_ours(claim: Claim, context: DecisionContext) -> FrozenMap | None:
    """What this state has recorded of an object, was about to make, or is told to take over."""
    if claim.row is not None:
        return claim.row.attributes
    pending = context.pending.get(claim.identity)
    if pending is not None:
        return pending.target
    return claim.declared[0].attributes if claim.imported else None


def _describe_unfinished(
    reading: Reading, pending: Pending | None, change: Change, words: Words
) -> Iterator[str]:
    """What an earlier run, or somebody else, has begun with this object, and how far it is."""
    moving = reading.moving if isinstance(reading, Observed) else None
    far = str(reading.details.get("progress") or "") if isinstance(reading, Observed) else ""
    if pending is not None:
        begun = {SETTING: f"still {words.held} by"}
        if moving is not None:
            begun[TASK] = f"{words.working} since"
        how = begun.get(pending.action, "unresolved from")
        yield f"{how} run {pending.run}{': ' if far else ''}{far}"
    elif moving is not None:
        yield f"a {words.task} of it runs that is not in the audit log{': ' if far else ''}{far}"
    if moving is not None and any(item.path[0] in moving for item in change.paths):
        yield f"this change takes the place of the {words.task} that runs"


# ── declared ────────────────────────────────────────────────────────────────────────────


def _decide_declared(claim: Claim, reading: Reading, context: DecisionContext) -> Change:
    item, kind = claim.declared[0], context.types[claim.identity.kind]
    if isinstance(reading, Hidden | Failed):
        return block_unreadable(claim, reading)
    facts = context.facts[claim.identity.instance]
    pending = context.pending.get(claim.identity)
    if isinstance(reading, Absent):
        after = kind.target(item.attributes, None, facts, False)
        return _make_create(claim, after, kind, facts)
    ours = _is_ours(claim.row, reading, pending)
    after = kind.target(item.attributes, reading, facts, not ours)
    before = kind.canonical(reading.attributes, facts)
    if ours and agrees(after, before):
        same = _make_noop(claim, reading, before, after, kind, facts)
        return same or _make_update(claim, reading, before, after, (), kind, facts)
    lifecycle, differ = item.lifecycle, compare(before, after, schema=kind.schema)
    spared = [change.path for change in differ if is_ignored(change.path, lifecycle)]
    if left := {path[0]: None for path in spared if len(path) == 1}:
        # What is ignored decides nothing else either, so it counts as left out.
        after = kind.target(item.attributes.with_items(left), reading, facts, not ours)
    after = lay_over(after, spared, before)
    paths = compare(before, after, schema=kind.schema, fallbacks=reading.fallbacks)
    if ours:
        change = _make_update(claim, reading, before, after, paths, kind, facts)
        return replace(change, theirs=_find_theirs(after, item, kind))
    change = _take_over(claim, reading, before, after, paths, kind, facts)
    lasting = lay_over(kind.target(item.attributes, reading, facts, False), spared, before)
    return replace(change, theirs=_find_theirs(lasting, item, kind))


def _find_theirs(target: FrozenMap, item: Declared, kind: ResourceType) -> tuple[Path, ...]:
    """What the declaration keeps for others, because somebody else may have set it."""
    if kind.ours is None:
        return ()
    mine = flatten(kind.ours(target, item.attributes))
    return tuple(sorted(path for path in flatten(target) if path not in mine))


def _is_ours(row: Row | None, live: Observed, pending: Pending | None) -> bool:
    """Recorded with this incarnation, or exactly what our own open create would have made."""
    if row is not None and row.incarnation in (None, live.incarnation):
        return True
    return (
        pending is not None
        and pending.action == Action.CREATE
        and equals_target(pending.target, live)
    )


def equals_target(target: FrozenMap, live: Observed) -> bool:
    """True if the live object is exactly what `target` asks for, apart from what others own."""
    wanted, have = flatten(target), flatten(live.attributes)
    names = {path[0] for path in wanted} | {n for n, v in target.items() if v is not None}
    compared = {p for p in have if p[0] in names and p not in live.foreign} | wanted.keys()
    return {p: have[p] for p in compared if p in have} == wanted


def _make_create(claim: Claim, after: FrozenMap, kind: ResourceType, facts: Facts) -> Change:
    change = Change(
        claim.identity,
        claim.address,
        Action.CREATE,
        after=after,
        paths=(
            *_list_created_paths(after, claim.declared[0], kind),
            *_compare_bookkeeping(None, claim.declared[0]),
        ),
        drift=compare_gone(claim.row.attributes, kind.schema) if claim.row else (),
        row_before=read_ownership(claim.row),
        row_after=_compute_row_after(claim, kind, facts, adopted=False),
        reason="deleted outside kafkaform" if claim.row else "",
    )
    if claim.imported and claim.row is None:
        return replace(
            change,
            blocked=Blocker(
                BlockerKind.IMPOSSIBLE,
                "the object to import does not exist",
                "Remove the import block to create it, or correct its id.",
            ),
        )
    return change


def _list_created_paths(
    after: FrozenMap, item: Declared, kind: ResourceType
) -> tuple[PathChange, ...]:
    """Every path of a new object; what the block leaves out is marked as the system's default."""
    left_out = {(name,) for name in _list_left_out(item.attributes, kind)}
    return tuple(
        replace(path, effective=path.after) if path.path in left_out else path
        for path in compare(None, after, schema=kind.schema)
    )


def _list_left_out(attributes: FrozenMap, kind: ResourceType) -> list[str]:
    """The attributes that nothing in the block decides, not even one that excludes them."""
    given = {name for name, value in attributes.items() if value is not None}
    decided = {name for pair in kind.schema.conflicts if given & {*pair} for name in pair}
    return sorted(attributes.keys() - given - decided)


def _make_noop(
    claim: Claim,
    live: Observed,
    before: FrozenMap,
    after: FrozenMap,
    kind: ResourceType,
    facts: Facts,
) -> Change | None:
    """The change of an object that is as declared and as recorded, None if it may not be.

    It is what `_make_update` would say too: almost every object of a large plan is of this sort,
    and this is found without making anything that is thrown away.
    """
    row, item = claim.row, claim.declared[0]
    if row is None or len(claim.declared) > 1 or row.owners != (str(item.address),):
        return None
    said = (row.owner, row.labels, row.secret_version)
    if said != (item.owner, item.labels, item.secret_version):
        return None
    kept = row.protected == _choose_protection(item, kind, facts, adopted=False)
    if not kept or not agrees(row.attributes, before):
        return None
    books = read_ownership(row)
    return Change(
        claim.identity,
        claim.address,
        Action.NOOP,
        before=after,
        after=after,
        incarnation=live.incarnation,
        row_before=books,
        row_after=books,
        owner=item.owner,
        labels=item.labels,
        depends_on=tuple(sorted({str(address) for address in item.depends_on})),
        range=item.range,
    )


def _make_update(
    claim: Claim,
    live: Observed,
    before: FrozenMap,
    after: FrozenMap,
    paths: tuple[PathChange, ...],
    kind: ResourceType,
    facts: Facts,
) -> Change:
    row, item = claim.row, claim.declared[0]
    paths += _compare_bookkeeping(row, item)
    drift = _compute_drift(row, before, after, kind, item)
    row_before = read_ownership(row)
    row_after = _compute_row_after(claim, kind, facts, adopted=False)
    said = any(d.lifecycle.prevent_destroy is not None for d in claim.declared)
    if not paths and not said and row_before.protected == "default":
        # The provider's protection setting concerns rows that are made or changed under it.
        row_after = replace(row_after, protected="default")
    # What others share is ours only as far as an approved change says so.
    wanted = flatten(after) if kind.left else {}
    taken = [".".join(c.path) for c in drift if c.before is None and wanted.get(c.path) == c.after]
    changed = bool(paths or taken) or row_after != row_before
    return Change(
        claim.identity,
        claim.address,
        Action.UPDATE if changed else Action.NOOP,
        before=select_managed(before, after),
        after=after,
        paths=paths,
        drift=drift,
        incarnation=live.incarnation,
        row_before=row_before,
        row_after=row_after,
        notes=tuple(
            f"{name} is set already; from now on it belongs to this block" for name in taken
        ),
    )


def _take_over(
    claim: Claim,
    live: Observed,
    before: FrozenMap,
    after: FrozenMap,
    paths: tuple[PathChange, ...],
    kind: ResourceType,
    facts: Facts,
) -> Change:
    """Adopt or import a live object that is not ours, or say that it is in the way."""
    action = Action.IMPORT if claim.imported else Action.ADOPT
    kept = compare(
        before, kind.target(claim.declared[0].attributes, live, facts, False), schema=kind.schema
    )
    undeclared = [c.path for c in kept if c.after is None]
    change = Change(
        claim.identity,
        claim.address,
        Action.UPDATE if paths else action,
        before=select_managed(before, after),
        after=after,
        paths=paths + _compare_bookkeeping(None, claim.declared[0]),
        adopts=True,
        incarnation=live.incarnation,
        row_before=read_ownership(claim.row),
        row_after=_compute_row_after(claim, kind, facts, adopted=True),
        reason="import" if claim.imported else "adopt",
        notes=tuple(
            f"{'.'.join(path)} is not declared; kept until the next plan" for path in undeclared
        ),
    )
    if claim.imported or claim.adopt:
        return change
    return replace(change, blocked=_block_unmanaged(claim))


def _block_unmanaged(claim: Claim) -> Blocker:
    if claim.row is None:
        return Blocker(
            BlockerKind.UNMANAGED,
            "it exists, and kafkaform does not manage it",
            f"Take it over with --adopt='{claim.address}', lifecycle {{ adopt = true }} or an "
            "import block; or choose another name.",
        )
    return Blocker(
        BlockerKind.UNMANAGED,
        "it was deleted and recreated outside kafkaform, so it is another object",
        f"Look at it; take the new one over with --adopt='{claim.address}'.",
    )


def _compute_row_after(
    claim: Claim, kind: ResourceType, facts: Facts, *, adopted: bool
) -> Ownership:
    return Ownership(
        tuple(sorted({str(item.address) for item in claim.declared})),
        max(
            (_choose_protection(item, kind, facts, adopted=adopted) for item in claim.declared),
            key=PROTECTION.index,
        ),
        claim.declared[0].secret_version,
    )


PROTECTION = ("no", "default", "explicit")


def _choose_protection(item: Declared, kind: ResourceType, facts: Facts, *, adopted: bool) -> str:
    if item.lifecycle.prevent_destroy is not None:
        return "explicit" if item.lifecycle.prevent_destroy else "no"
    wanted = adopted or facts.protect
    return "default" if kind.protect and wanted else "no"


def _compare_bookkeeping(row: Row | None, item: Declared) -> tuple[PathChange, ...]:
    """Changes of owner and labels, which live in the state only."""
    before = _flatten_labels(row.owner, row.labels) if row else {}
    after = _flatten_labels(item.owner, item.labels)
    if before == after:
        return ()
    return tuple(
        PathChange(path, before.get(path), after.get(path))
        for path in sorted(before.keys() | after.keys())
        if before.get(path) != after.get(path)
    )


def _flatten_labels(owner: str | None, labels: FrozenMap) -> dict[tuple[str, ...], str]:
    flat: dict[tuple[str, ...], str] = {("labels", key): value for key, value in labels.items()}
    if owner is not None:
        flat[("owner",)] = owner
    return flat


def _compute_drift(
    row: Row | None,
    before: FrozenMap,
    after: FrozenMap,
    kind: ResourceType,
    item: Declared,
) -> tuple[PathChange, ...]:
    """Recorded against live, without what is ignored and what the target leaves alone."""
    if row is None or agrees(row.attributes, before):
        return ()
    wanted, said = flatten(after), flatten(item.attributes)

    def is_left_alone(change: PathChange) -> bool:
        """Somebody's addition, which the declaration does not speak of and the target keeps. One
        that it does speak of has to be recorded, or nobody would ever remove it."""
        added = change.before is None and wanted.get(change.path) == change.after
        return added and change.path not in said

    return tuple(
        change
        for change in compare(
            row.attributes, select_managed(before, row.attributes), schema=kind.schema
        )
        if not is_ignored(change.path, item.lifecycle) and not is_left_alone(change)
    )
