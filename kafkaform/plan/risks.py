"""Add to each change what it could harm, and the units of its values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from ..core.change import Change, Path, PathChange
from ..core.legacy import Risk
from ..core.resource import Facts
from ..provider.contract import ResourceType


def add_risks(
    change: Change, types: Mapping[str, ResourceType], facts: Mapping[str, Facts]
) -> Change:
    """The change with the risks that its type finds, and with the units of its values."""
    kind = types[change.identity.kind]
    if kind.unit is not None and (change.paths or change.drift):
        change = replace(
            change,
            paths=_add_units(change.paths, kind.unit),
            drift=_add_units(change.drift, kind.unit),
        )
    # A blocked change keeps its risks: whoever lifts the block has to know them.
    if kind.risks is None or not change.paths:
        return change
    found = kind.risks(change, facts[change.identity.instance])
    return join_risks(change, found) if found else change


def join_risks(change: Change, found: Sequence[Risk]) -> Change:
    """The change with these risks in addition, the worst first."""
    risks = sorted((*change.risks, *found), key=lambda risk: (risk.kind.rank, risk.path))
    return replace(change, risks=tuple(risks))


def _add_units(
    paths: tuple[PathChange, ...], find_unit: Callable[[Path], str]
) -> tuple[PathChange, ...]:
    units = [find_unit(item.path) if item.path else "" for item in paths]
    if not any(units):
        return paths
    return tuple(
        replace(item, unit=unit) if unit else item for item, unit in zip(paths, units, strict=True)
    )
