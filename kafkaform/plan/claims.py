"""One object with everything that decides what happens to it: its claim, its reading, the options.

In a claim, declared blocks, recorded rows, and removed, moved and import blocks meet per object. A
live object that nothing declares or records gets no claim. So unmanaged objects need no exception
in the comparison: they never reach it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ..core.address import Address, is_closure, matches, parse_address, rename_address
from ..core.change import BOOKKEEPING, Action, Change, Ownership, add_findings
from ..core.diagnostics import Diagnostic, Diagnostics, Range, Severity
from ..core.finding import Block, Finding
from ..core.resource import (
    Absent,
    Declared,
    Desired,
    Facts,
    Failed,
    Fault,
    FaultClass,
    Hidden,
    Identity,
    Import,
    Moved,
    Observed,
    Parking,
    Pending,
    Reading,
    Removed,
    World,
)
from ..core.secret import mask_secrets
from ..core.value import EMPTY
from ..core.words import NEUTRAL, Words
from ..provider.contract import Provider, ResourceType
from ..state.model import Row, State
from .diff import flatten
from .model import Mode, Options
from .observe import has_ended
from .parking import settle_parking
from .rules import REMARKED, RESERVED, UNREADABLE

NAMED = 10
"""How many objects with the same remark a plan names; of further ones it says the number."""
_SENDS_NOTHING = (Action.NOOP, Action.FORGET, Action.REFRESH)


class Claim(Struct, frozen=True):
    """One identity with the blocks and the row that decide about it."""

    identity: Identity
    """Which object."""
    address: str
    """What the user calls it: the first declared owner, or the first recorded one."""
    declared: tuple[Declared, ...]
    """The blocks that declare it; none in a plan that destroys everything."""
    row: Row | None
    """Its row, under the addresses that were recorded."""
    owners: tuple[str, ...] = ()
    """The recorded owners under the names that `moved` blocks give them."""
    lost_owners: tuple[str, ...] = ()
    """Those of `owners` that no longer declare it."""
    removed: Removed | None = None
    """The `removed` block that ends the claim, if each lost owner is named by one."""
    renamed: tuple[str, ...] = ()
    """The lost owners whose block still exists and declares another object now."""
    imported: bool = False
    """An `import` block names it."""
    adopt: bool = False
    """It is to be taken over if it exists unmanaged."""
    unread: str = ""
    """Why nobody knows whether a block still declares it; empty if that is known."""
    standing: bool = False
    """A block declares it, even where blocks do not count because everything is destroyed."""


class _Imports(Struct, frozen=True):
    """What the import blocks of a configuration name."""

    objects: frozenset[Identity] = frozenset()
    """Objects that are imported as such."""
    members: frozenset[Identity] = frozenset()
    """Parts of composites. Those that exist are taken over, the others are created."""
    faults: Diagnostics = ()
    """Blocks that cannot be followed."""


def make_claims(
    desired: Desired, state: State, types: Mapping[str, ResourceType], options: Options
) -> tuple[tuple[Claim, ...], Diagnostics]:
    """One claim for each declared or recorded identity, sorted by address; and faults of import
    blocks."""
    declared: dict[Identity, tuple[Declared, ...]] = {}
    if options.mode is not Mode.DESTROY:
        for item in desired.declared:
            declared[item.identity] = (*declared.get(item.identity, ()), item)
    for item in desired.list_closures():
        declared[item.identity] = (*declared.get(item.identity, ()), item)
    # What is only declared has nothing to refresh, and an import block asks for more than that.
    refreshes = options.mode is Mode.REFRESH
    importing = desired.imports and not refreshes
    imports = _resolve_imports(desired, types) if importing else _Imports()
    claims = []
    for identity in state.objects.keys() | (set() if refreshes else declared.keys()):
        claim = _make_claim(identity, declared.get(identity, ()), state, desired, options)
        if identity in imports.objects:
            claim = replace(claim, imported=True)
        if identity in imports.members:
            claim = replace(claim, adopt=True)
        claims.append(claim)
    if any(claim.lost_owners for claim in claims):
        claims = _complete_blocks(claims, desired, declared)
    return tuple(sorted(claims, key=lambda c: (c.address, c.identity))), imports.faults


def _complete_blocks(
    claims: Sequence[Claim], desired: Desired, declared: Mapping[Identity, Sequence[Declared]]
) -> list[Claim]:
    """The claims. Those with lost owners get the blocks that are still declared."""
    standing = {item.identity for item in desired.declared}
    blocks = {str(item.address) for items in declared.values() for item in items}
    return [
        replace(
            claim,
            renamed=tuple(owner for owner in claim.lost_owners if owner in blocks),
            standing=claim.identity in standing,
        )
        if claim.lost_owners
        else claim
        for claim in claims
    ]


def _make_claim(
    identity: Identity,
    declared: tuple[Declared, ...],
    state: State,
    desired: Desired,
    options: Options,
) -> Claim:
    row = state.objects.get(identity)
    adopt = any(
        item.lifecycle.adopt or any(matches(glob, str(item.address)) for glob in options.adopt)
        for item in declared
    )
    if row and len(declared) == 1 and row.owners == (str(declared[0].address),):
        # The owner of almost every object of a large plan is unchanged, which no block can alter.
        return Claim(identity, row.owners[0], declared, row, row.owners, adopt=adopt)
    owners = tuple(_apply_moves(owner, desired.moved) for owner in row.owners) if row else ()
    addresses = {str(item.address) for item in declared}
    missing_owners = tuple(owner for owner in owners if owner not in addresses)
    blocks = [_find_removed_block(owner, desired) for owner in missing_owners]
    named = [block for block in blocks if block is not None]
    removed = None
    if named and len(named) == len(blocks):
        # Two blocks may disagree. Forgetting the object is the cautious reading of them.
        removed = min(named, key=lambda block: block.destroy)
    address = str(declared[0].address) if declared else owners[0]
    reasons = (_find_unread_block(owner, desired) for owner in missing_owners)
    unread = next(filter(None, reasons), "") if options.mode is Mode.NORMAL else ""
    return Claim(
        identity,
        address,
        declared,
        row,
        owners,
        missing_owners,
        removed,
        adopt=adopt,
        unread=unread,
    )


def _find_unread_block(owner: str, desired: Desired) -> str:
    """Why the block of this owner could not be evaluated, "" if it could."""
    address = parse_address(owner) if desired.unread else None
    if address is None:
        return ""
    return next((block.reason for block in desired.unread if block.source.contains(address)), "")


def _find_removed_block(owner: str, desired: Desired) -> Removed | None:
    # A block that lets a parked object go must give the access to it back.
    if is_closure(owner):
        return None
    address = parse_address(owner)
    return next((block for block in desired.removed if block.source.contains(address)), None)


def _apply_moves(owner: str, moves: tuple[Moved, ...]) -> str:
    for move in moves:
        owner = str(rename_address(parse_address(owner), move.source, move.target) or owner)
    return owner


def _resolve_imports(desired: Desired, types: Mapping[str, ResourceType]) -> _Imports:
    by_address = {item.address: item for item in desired.declared}
    composites: dict[Address, list[Identity]] = {}
    for item in desired.declared:
        if item.address.child is not None:
            composites.setdefault(replace(item.address, child=None), []).append(item.identity)
    imported: set[Identity] = set()
    members: set[Identity] = set()
    faults: list[Diagnostic] = []
    for block in desired.imports:
        if block.target in composites:
            fault = _check_import_key(block, str(block.target), block.target.type, types)
            members.update(composites[block.target])
        else:
            fault = _check_import(block, by_address.get(block.target), types)
            imported.update(i.identity for i in (by_address.get(block.target),) if i)
        if fault:
            faults.append(fault)
    return _Imports(frozenset(imported), frozenset(members), tuple(faults))


def _check_import(
    block: Import, item: Declared | None, types: Mapping[str, ResourceType]
) -> Diagnostic | None:
    if item is None:
        return _make_diagnostic(
            block,
            f"Import target {block.target} is not declared",
            f'Add a block resource "{block.target.type}" "{block.target.name}".',
        )
    return _check_import_key(block, item.identity.key, item.identity.kind, types)


def _check_import_key(
    block: Import, expected: str, kind: str, types: Mapping[str, ResourceType]
) -> Diagnostic | None:
    try:
        key = types[kind].import_key(block.id)
    except ValueError as error:
        return _make_diagnostic(
            block, f"Import id {block.id!r} cannot be used: {error}", "Correct the id."
        )
    if key != expected:
        return _make_diagnostic(
            block,
            f"Import id names {key!r}, but {block.target} declares {expected!r}",
            "Make the import id match the declared name.",
        )
    return None


def _make_diagnostic(block: Import, summary: str, advice: str) -> Diagnostic:
    return Diagnostic(Severity.ERROR, summary, range=block.range, advice=advice)


class Case(Struct, frozen=True):
    """One object with everything that decides what happens to it."""

    claim: Claim
    """Who declares and who owns the object."""
    reading: Reading
    """How it was read."""
    kind: ResourceType
    """Its resource type."""
    facts: Facts
    """What its system is like."""
    mode: Mode = Mode.NORMAL
    """Whether the whole configuration is to be destroyed."""
    pending: Pending | None = None
    """What an earlier run left open for it."""
    words: Words = NEUTRAL
    """What its users call its parts."""
    parking: Parking | None = None
    """Of an object that is parked before it is deleted."""


def open_cases(
    claims: Sequence[Claim],
    world: World,
    types: Mapping[str, ResourceType],
    pending: Sequence[Pending],
    providers: Mapping[str, Provider],
    options: Options,
    parked: Mapping[Identity, Parking],
) -> Iterator[Case]:
    """The case of each claim, in the order of the claims. parked: as in `Desired`."""
    # A task whose end the reading shows decides nothing more, although the log has it open still.
    unfinished = {item.identity: item for item in pending if not has_ended(item, world)}
    declared = {claim.identity for claim in claims if claim.declared}
    for claim in claims:
        identity, kind = claim.identity, types[claim.identity.kind]
        observation, provider = world[identity.instance], providers.get(identity.instance)
        reading = observation.readings[identity]
        whole = replace(identity, kind=kind.part_of) if kind.part_of else None
        if isinstance(reading, Absent) and reading.lacks and whole in declared:
            # What is missing is created by the same plan.
            reading = replace(reading, lacks="")
        if claim.unread:
            # What is declared of it is not known, so what was read decides nothing.
            fault = Fault("NO_DATA", claim.unread, FaultClass.NOT_APPLIED)
            reading = Failed(identity, fault)
        parking = parked.get(identity)
        if parking is not None:
            parking = settle_parking(parking, observation.readings, types, claim.address, options)
        yield Case(
            claim,
            reading,
            kind,
            observation.facts,
            options.mode,
            unfinished.get(identity),
            provider.words if provider else NEUTRAL,
            parking,
        )


def collect_remarks(cases: Iterable[Case]) -> dict[str, tuple[Finding, ...]]:
    """Provider instance -> the remarks on its objects (`Observed.remarks`), each with the addresses
    of all objects that it is about."""
    addresses: dict[str, dict[str, list[str]]] = {}
    for case in cases:
        reading = case.reading
        if not isinstance(reading, Observed) or not reading.remarks:
            continue
        # What an earlier run of ours set for the time of a move is removed by a later one.
        if case.pending is not None:
            continue
        declared = [flatten(item.attributes) for item in case.claim.declared]
        for remark in reading.remarks:
            if not any(attributes.get(remark.path) is not None for attributes in declared):
                texts = addresses.setdefault(case.claim.identity.instance, {})
                texts.setdefault(remark.text, []).append(case.claim.address)
    return {
        instance: tuple(
            REMARKED.find(f"{_join_names(names)}: {text}") for text, names in texts.items()
        )
        for instance, texts in addresses.items()
    }


def _join_names(names: Sequence[str]) -> str:
    hidden_count = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {hidden_count:,} more" if hidden_count > 0 else "")


def start_change(claim: Claim, action: Action) -> Change:
    """A change that says whose object it is and where that is declared, and nothing else yet."""
    row = claim.row
    if claim.declared:
        item = claim.declared[0]
        owner, labels, park = item.owner, item.labels, item.lifecycle.park
        needs = tuple(sorted({str(a) for block in claim.declared for a in block.depends_on}))
        source: Range | None = item.range
    else:
        assert row is not None  # a claim that nothing declares comes from a row
        owner, labels, park, needs = row.owner, row.labels, row.park, row.depends_on
        source = claim.removed.range if claim.removed else None
    return Change(
        claim.identity,
        claim.address,
        action,
        row_before=row.ownership if row else Ownership(),
        owner=owner,
        labels=labels,
        park=park,
        depends_on=needs,
        range=source,
    )


def outline_change(claim: Claim, kind: ResourceType, facts: Facts) -> Change:
    """The change of an object as far as it is known without reading it: from what the state records
    to what is declared. It is never shown; it says what the object uses."""
    row, declared = claim.row, claim.declared
    action = Action.UPDATE if declared else Action.DELETE
    before = after = None
    if kind.uses is not None:
        before = kind.canonical(row.attributes, facts) if row else None
        after = kind.target(declared[0].attributes, None, facts, False) if declared else None
    outlined = start_change(claim, action)
    owners = tuple(str(item.address) for item in declared)
    return replace(outlined, before=before, after=after, row_after=Ownership(owners))


def outline_unread(
    changes: Sequence[Change],
    claims: Sequence[Claim],
    types: Mapping[str, ResourceType],
    facts: Mapping[str, Facts],
) -> Mapping[Identity, Change]:
    """What is known of each object that could not be read. claims: of the changes, in their
    order."""
    return {
        change.identity: outline_change(
            claim, types[change.identity.kind], facts[change.identity.instance]
        )
        for change, claim in zip(changes, claims, strict=True)
        if change.block is Block.UNREADABLE
    }


def block_unreadable(case: Case, reading: Hidden | Failed) -> Change:
    """The blocked change of an object that could not be read: nothing is decided about it."""
    around = f"or leave it out with --exclude='{case.claim.address}'."
    if isinstance(reading, Hidden):
        reason = f"it cannot be seen: the right {reading.right} is missing"
        advice = f"Grant {reading.right}, {around}"
    else:
        fault = reading.fault
        # A server may repeat what it was sent. A plan is saved and hashed as it is, so a secret
        # has to be masked here and not only where the plan is shown.
        cause, fix = mask_secrets(fault.message), mask_secrets(fault.advice).rstrip(".")
        location = f", {fault.where}" if fault.where else ""
        reason = f"it could not be read: {cause} ({fault.code}{location})"
        advice = f"{fix or 'Try again'}; {around}"
    unchanged = start_change(case.claim, Action.NOOP)
    block = UNREADABLE.find(reason, fix=advice)
    return replace(unchanged, row_after=unchanged.row_before, findings=(block,))


def block_reserved(
    change: Change, kind: ResourceType, reading: Reading, *, requested: bool
) -> Change:
    """The change, left out of the apply if the system keeps its object for itself.

    asked: see `Finding`.
    """
    if kind.reserves is None or change.action in _SENDS_NOTHING:
        return change
    # The state may say of such an object what it likes, as long as nothing is sent.
    if not change.adopts and change.paths and all(c.path[0] in BOOKKEEPING for c in change.paths):
        return change
    details = reading.details if isinstance(reading, Observed) else EMPTY
    verdict = kind.reserves(change.identity.key, details)
    if verdict is None:
        return change
    reason, advice = verdict
    return add_findings(change, RESERVED.find(reason, fix=advice, asked=requested))
