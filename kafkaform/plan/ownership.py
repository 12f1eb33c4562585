"""Who owns what: declared blocks, recorded rows, and removed, moved and import blocks meet.

A live object that nobody here declares or recorded never appears: unmanaged things need no
exception in the differ because they never reach it.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from ..core.address import Address, matches, parse_address, rename_address
from ..core.diagnostics import Diagnostic, Diagnostics, Severity
from ..core.resource import Declared, Desired, Identity, Import, Moved, Removed
from ..provider.contract import ResourceType
from ..state.model import Row, State
from .model import Mode, Options


class Claim(Struct, frozen=True):
    """One identity and everybody who has a say. row: as recorded, under its old addresses;
    owners: recorded ones after `moved` blocks; lost: those of them that are no longer declared;
    removed: the block that takes them away, if every one of them is named by one; renamed: the
    lost owners whose block is still there and declares another object now; standing: a block
    declares it, also where that does not count because everything is to be destroyed."""

    identity: Identity
    declared: tuple[Declared, ...]
    row: Row | None
    owners: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    removed: Removed | None = None
    renamed: tuple[str, ...] = ()
    imported: bool = False
    adopt: bool = False
    standing: bool = False

    @property
    def address(self) -> str:
        """What the user calls it: the first declared owner, else the first recorded one."""
        if self.declared:
            return str(self.declared[0].address)
        return self.owners[0] if self.owners else str(self.identity)


def make_claims(
    desired: Desired, state: State, types: Mapping[str, ResourceType], options: Options
) -> tuple[tuple[Claim, ...], Diagnostics]:
    """One claim for each declared or recorded identity, sorted by address."""
    declared: dict[Identity, list[Declared]] = {}
    if options.mode is Mode.NORMAL:
        for item in desired.declared:
            declared.setdefault(item.identity, []).append(item)
    standing = {item.identity for item in desired.declared}
    imports, parts, faults = _resolve_imports(desired, types)
    blocks = {str(item.address) for items in declared.values() for item in items}
    result = (
        _make_claim(identity, tuple(declared.get(identity, ())), state, desired, options)
        for identity in declared.keys() | state.objects.keys()
    )
    marked = (
        replace(
            claim,
            imported=claim.identity in imports,
            adopt=claim.adopt or claim.identity in parts,
            renamed=tuple(owner for owner in claim.lost if owner in blocks),
            standing=claim.identity in standing,
        )
        if claim.lost or imports or parts
        else claim
        for claim in result
    )
    return tuple(sorted(marked, key=lambda c: (c.address, c.identity))), faults


def _make_claim(
    identity: Identity,
    declared: tuple[Declared, ...],
    state: State,
    desired: Desired,
    options: Options,
) -> Claim:
    row = state.objects.get(identity)
    if row and len(declared) == 1 and row.owners == (str(declared[0].address),):
        # Still whose it was, which nothing can change: so it is of almost all of a large plan.
        adopt = _may_adopt(declared, options)
        return Claim(identity, declared, row, row.owners, adopt=adopt)
    owners = tuple(_apply_moves(owner, desired.moved) for owner in row.owners) if row else ()
    addresses = {str(item.address) for item in declared}
    lost = tuple(owner for owner in owners if owner not in addresses)
    blocks = [_find_removed_block(owner, desired) for owner in lost]
    named = [block for block in blocks if block is not None]
    removed = None
    if named and len(named) == len(blocks):
        # Forgetting wins over destroying: the cautious reading of two blocks that differ.
        removed = min(named, key=lambda block: block.destroy)
    adopt = _may_adopt(declared, options)
    return Claim(identity, declared, row, owners, lost, removed, adopt=adopt)


def _may_adopt(declared: tuple[Declared, ...], options: Options) -> bool:
    if not options.adopt and len(declared) == 1:
        return declared[0].lifecycle.adopt
    return any(
        item.lifecycle.adopt or any(matches(glob, str(item.address)) for glob in options.adopt)
        for item in declared
    )


def _find_removed_block(owner: str, desired: Desired) -> Removed | None:
    address = parse_address(owner)
    return next((block for block in desired.removed if block.source.contains(address)), None)


def _apply_moves(owner: str, moves: tuple[Moved, ...]) -> str:
    for move in moves:
        owner = str(rename_address(parse_address(owner), move.source, move.target) or owner)
    return owner


def _resolve_imports(
    desired: Desired, types: Mapping[str, ResourceType]
) -> tuple[frozenset[Identity], frozenset[Identity], Diagnostics]:
    """What import blocks name, and the parts of composites that they name. A composite takes over
    those of its parts that are there; the others are made."""
    if not desired.imports:
        return frozenset(), frozenset(), ()
    by_address = {item.address: item for item in desired.declared}
    composites: dict[Address, list[Identity]] = {}
    for item in desired.declared:
        if item.address.child is not None:
            composites.setdefault(replace(item.address, child=None), []).append(item.identity)
    found: set[Identity] = set()
    parts: set[Identity] = set()
    faults: list[Diagnostic] = []
    for block in desired.imports:
        if block.target in composites:
            fault = _check_import_key(block, str(block.target), block.target.type, types)
            parts.update(composites[block.target])
        else:
            fault = _check_import(block, by_address.get(block.target), types)
            found.update(i.identity for i in (by_address.get(block.target),) if i)
        if fault:
            faults.append(fault)
    return frozenset(found), frozenset(parts), tuple(faults)


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
            "Make the id and the declared name the same.",
        )
    return None


def _make_diagnostic(block: Import, summary: str, advice: str) -> Diagnostic:
    return Diagnostic(Severity.ERROR, summary, range=block.range, advice=advice)
