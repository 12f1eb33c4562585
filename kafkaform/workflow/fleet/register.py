"""Turn the register into the data that lands, which `fleet.landed.register.read_register` reads."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from ...core.landing import FORMAT
from ...fleet.landed.register import Register


def add_identities(
    register: Register, scopes: Mapping[str, str], lineages: Mapping[str, str]
) -> Register:
    """Add the ids that were found out, as far as they could be read.

    scopes: cluster -> its id; lineages: state -> its lineage.
    """
    return replace(
        register,
        clusters=tuple(replace(c, cluster_id=scopes.get(c.name)) for c in register.clusters),
        states=tuple(replace(s, lineage=lineages.get(s.name)) for s in register.states),
    )


def make_document(register: Register) -> dict[str, Any]:
    """Return the register as JSON's types, without unset members."""
    members: dict[str, Any] = _drop_unset(to_builtins(register))
    return {"format": FORMAT, "rates": None, **members}


def _drop_unset(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _drop_unset(item) for name, item in value.items() if item is not None}
    if isinstance(value, tuple | list):
        return [_drop_unset(item) for item in value]
    return value.isoformat() if isinstance(value, date) else value
