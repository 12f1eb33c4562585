"""Claims: declared blocks, recorded rows, and removed, moved and import blocks meet per object.

A live object that nothing declares or records gets no claim. So unmanaged objects need no exception
in the comparison: they never reach it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ..core.address import Address, matches, parse_address, rename_address
from ..core.diagnostics import Diagnostic, Diagnostics, Severity
from ..core.resource import Declared, Desired, Identity, Import, Moved, Removed
from ..provider.contract import ResourceType
from ..state.model import Row, State
from .model import Mode, Options


class Claim(Struct, frozen=True):
    """One identity and everybody who has a say about it."""

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
    lost: tuple[str, ...] = ()
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
    parts: frozenset[Identity] = frozenset()
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
    # What is only declared has nothing to refresh, and an import block asks for more than that.
    refreshes = options.mode is Mode.REFRESH
    importing = desired.imports and not refreshes
    imports = _resolve_imports(desired, types) if importing else _Imports()
    claims = []
    for identity in state.objects.keys() | (set() if refreshes else declared.keys()):
        claim = _make_claim(identity, declared.get(identity, ()), state, desired, options)
        if identity in imports.objects:
            claim = replace(claim, imported=True)
        if identity in imports.parts:
            claim = replace(claim, adopt=True)
        claims.append(claim)
    if any(claim.lost for claim in claims):
        claims = _tell_what_stands(claims, desired, declared)
    return tuple(sorted(claims, key=lambda c: (c.address, c.identity))), imports.faults


def _tell_what_stands(
    claims: Sequence[Claim], desired: Desired, declared: Mapping[Identity, Sequence[Declared]]
) -> list[Claim]:
    """The claims; those with lost owners know what of them is still declared."""
    standing = {item.identity for item in desired.declared}
    blocks = {str(item.address) for items in declared.values() for item in items}
    return [
        replace(
            claim,
            renamed=tuple(owner for owner in claim.lost if owner in blocks),
            standing=claim.identity in standing,
        )
        if claim.lost
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
    parts: set[Identity] = set()
    faults: list[Diagnostic] = []
    for block in desired.imports:
        if block.target in composites:
            fault = _check_import_key(block, str(block.target), block.target.type, types)
            parts.update(composites[block.target])
        else:
            fault = _check_import(block, by_address.get(block.target), types)
            imported.update(i.identity for i in (by_address.get(block.target),) if i)
        if fault:
            faults.append(fault)
    return _Imports(frozenset(imported), frozenset(parts), tuple(faults))


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
