"""Edits of a state as pure functions: each takes a state and returns another."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec.structs import replace

from ..core.address import Address, parse_address, rename_address
from ..core.diagnostics import suggest
from ..core.errors import UsageError
from ..core.head import Head
from ..core.resource import Identity
from ..core.value import FrozenMap
from .model import Row, State


def put_row(state: State, row: Row) -> State:
    """The state with this row instead of the one that its object had."""
    return put_rows(state, (row,))


def drop_row(state: State, identity: Identity) -> State:
    """The state without this object."""
    return put_rows(state, (), (identity,))


def put_rows(state: State, rows: Iterable[Row] = (), drops: Iterable[Identity] = ()) -> State:
    """The state without `drops`, and then with `rows`."""
    objects = dict(state.objects)
    for identity in drops:
        objects.pop(identity, None)
    objects.update((row.identity, row) for row in rows)
    return replace(state, objects=objects)


def set_scope(state: State, instance: str, scope_id: str) -> State:
    """The state whose provider instance is bound to this system."""
    return replace(state, providers=state.providers.with_items({instance: scope_id}))


def drop_instance(state: State, instance: str) -> State:
    """The state without the objects of a provider instance and without the system behind it."""
    removed = [identity for identity in state.objects if identity.instance == instance]
    return replace(put_rows(state, (), removed), providers=state.providers.without([instance]))


def set_outputs(state: State, outputs: FrozenMap) -> State:
    """The state with these outputs: name -> {value, sensitive, deferred}."""
    return replace(state, outputs=outputs)


def set_head(state: State, head: Head) -> State:
    """The state anchored at this end of the audit log."""
    return replace(state, audit_head=head)


def count_change(before: State, after: State) -> State:
    """`after` as it is to be saved: with the next serial if anything but the anchor differs."""
    # Every run moves the anchor, but the serial counts changes of what is recorded.
    unchanged = replace(after, audit_head=before.audit_head, serial=before.serial) == before
    return replace(after, serial=before.serial if unchanged else before.serial + 1)


def drop_address(state: State, address: str) -> State:
    """The state in which the address, its instances and its children own nothing.

    An object without an owner leaves the state and stays live. Raises UsageError if the text is
    not an address, or owns nothing.
    """
    parsed = _parse_address(address)
    owners_by_identity = {
        row.identity: tuple(o for o in row.owners if not parsed.contains(parse_address(o)))
        for row in _find_owned(state, address)
    }
    return put_rows(
        state,
        (
            replace(state.objects[i], owners=owners)
            for i, owners in owners_by_identity.items()
            if owners
        ),
        (i for i, owners in owners_by_identity.items() if not owners),
    )


def move_address(state: State, source: str, target: str) -> State:
    """The state in which `target` owns what `source`, its instances and its children owned; rows
    that depend on them follow.

    Raises UsageError if source owns nothing, or if target owns something already or has another
    type.
    """
    old, new = _parse_address(source), _parse_address(target)
    _find_owned(state, source)
    if old.type != new.type:
        raise UsageError(
            f"{source} cannot become {target}: the types differ",
            "An object keeps its type. To manage it as another type, remove and import it.",
        )
    conflicts = [
        o for row in state.objects.values() for o in row.owners if _is_in_the_way(new, o, old)
    ]
    if conflicts:
        raise UsageError(f"{conflicts[0]} is already in the state", "Move or remove that first.")

    def rename(text: str) -> str:
        return str(rename_address(parse_address(text), old, new) or text)

    return put_rows(state, _rename_owners(state.objects.values(), rename))


def _rename_owners(rows: Iterable[Row], rename: Callable[[str], str]) -> Iterable[Row]:
    """The rows that change."""
    for row in rows:
        owners = tuple(sorted({rename(owner) for owner in row.owners}))
        depends_on = tuple(rename(dependency) for dependency in row.depends_on)
        if set(owners) != set(row.owners) or depends_on != row.depends_on:
            yield replace(row, owners=owners, depends_on=depends_on)


def _is_in_the_way(target: Address, owner: str, source: Address) -> bool:
    """True if this owner is where the move would put something, and does not move itself."""
    address = parse_address(owner)
    return target.contains(address) and not source.contains(address)


def _find_owned(state: State, address: str) -> tuple[Row, ...]:
    rows = state.find_owned(address)
    if not rows:
        addresses = {owner for row in state.objects.values() for owner in row.owners}
        hint = suggest(address, addresses) or "`kafkaform state list` shows every address."
        raise UsageError(f"{address} owns nothing in this state", hint)
    return rows


def _parse_address(text: str) -> Address:
    try:
        return parse_address(text)
    except ValueError as error:
        raise UsageError(str(error), "`kafkaform state list` shows every address.") from None
