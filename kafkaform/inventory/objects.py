"""List what a state records and what its configuration declares, as rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from ..core.landing import LandedRow, flatten_attributes
from ..core.resource import Declared
from ..core.value import FrozenMap
from ..state.model import State


class WantedObject(Struct, frozen=True):
    """A declared object with its target attributes, canonical as far as possible."""

    declared: Declared
    attributes: FrozenMap


def list_recorded_rows(state: State) -> Iterator[LandedRow]:
    """Yield one row per object, with the first of the addresses that own it."""
    for identity, row in sorted(state.objects.items()):
        yield LandedRow(
            identity.kind,
            identity.key,
            flatten_attributes(row.attributes),
            identity.instance,
            state.providers.get(identity.instance),
            row.owners[0] if row.owners else None,
            row.owner,
            row.incarnation,
        )


def list_declared_rows(
    objects: Iterable[WantedObject], scopes: Mapping[str, str]
) -> Iterator[LandedRow]:
    """Yield one row per object. If two blocks declare it, the first one names it.

    scopes: instance -> scope id, as far as it is known.
    """
    rows: dict[object, LandedRow] = {}
    for declared_object in objects:
        identity, item = declared_object.declared.identity, declared_object.declared
        row = LandedRow(
            identity.kind,
            identity.key,
            flatten_attributes(declared_object.attributes),
            identity.instance,
            scopes.get(identity.instance),
            str(item.address),
            item.owner,
        )
        rows.setdefault(identity, row)
    return (rows[identity] for identity in sorted(rows, key=str))
