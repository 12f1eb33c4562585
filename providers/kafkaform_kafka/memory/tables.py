"""Everything that the simulated cluster can do: each kind of object adds its rows.

A new kind adds its module to `_MODULES`; a module without a table simply lacks it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .engine.controller import Handler
from .engine.kind import Check, Kind, Made
from .kinds import (
    acls,
    config_kinds,
    configs,
    leaders,
    operations,
    placement,
    quotas,
    scram,
    topics,
)

_MODULES: tuple[Any, ...] = (
    topics,
    configs,
    config_kinds,
    acls,
    quotas,
    scram,
    operations,
    placement,
    leaders,
)


def _table(name: str) -> dict[str, Any]:
    rows: dict[str, Any] = {}
    for module in _MODULES:
        rows.update(getattr(module, name, {}))
    return rows


HANDLERS: Mapping[str, Handler] = _table("HANDLERS")
"""Request -> what the controller does with it."""

KINDS: Mapping[str, Kind] = _table("KINDS")
"""Kind -> how it is listed and read."""

CHECKS: Mapping[str, Check] = _table("CHECKS")
"""Request without a dry run -> what stands in for it."""

MADE: Mapping[str, Made] = _table("MADE")
"""Request -> what its answer tells of the object that it made."""
