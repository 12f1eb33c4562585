"""What is added to changes: requests, how much they destroy, units, and what is in effect."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from ..core.change import Action, Change, Impact, Path, PathChange
from ..core.finding import Harm
from ..core.redaction import mask_secrets
from ..core.resource import Facts
from ..provider.contract import Provider, ResourceType
from ..state.model import State
from .observe import Look
from .select import wait_for
from .uses import name_users

MEASURED = (Harm.DATA_LOSS, Harm.MOVE)
"""Harms of which it is worth knowing how much data they are about."""


def complete_paths(
    change: Change, types: Mapping[str, ResourceType], facts: Mapping[str, Facts]
) -> Change:
    """The change with the units of its values, and what is in effect where it sets a value for the
    first time."""
    kind = types[change.identity.kind]
    if not (change.paths or change.drift):
        return change
    if kind.unit is not None:
        change = replace(
            change,
            paths=_add_units(change.paths, kind.unit),
            drift=_add_units(change.drift, kind.unit),
        )
    return change


def _add_units(
    paths: tuple[PathChange, ...], find_unit: Callable[[Path], str]
) -> tuple[PathChange, ...]:
    units = [find_unit(item.path) if item.path else "" for item in paths]
    if not any(units):
        return paths
    return tuple(
        replace(item, unit=unit) if unit else item for item, unit in zip(paths, units, strict=True)
    )


def add_steps(
    change: Change, types: Mapping[str, ResourceType], facts: Mapping[str, Facts]
) -> Change:
    """The change with the requests that make it true, if an apply makes it at all."""
    if not change.effective:
        return change
    steps = types[change.identity.kind].steps(change, facts[change.identity.instance])
    return replace(change, steps=steps)


def add_impacts(
    changes: Sequence[Change], look: Look, providers: Mapping[str, Provider], state: State
) -> Sequence[Change]:
    """The changes, with how much data those would destroy or move that could do so, and with the
    objects that use what they delete."""
    endangered: dict[str, list[Change]] = {}
    deletes = False
    for change in changes:
        deletes = deletes or change.action is Action.DELETE
        if change.action is Action.DELETE or change.has_harm(*MEASURED):
            endangered.setdefault(change.identity.instance, []).append(change)
    if deletes:
        changes = name_users(changes, providers, look, state)
    impacts = {
        identity: impact
        for instance, group in endangered.items()
        for identity, impact in look.assess_impacts(instance, group).items()
    }
    if not impacts:
        return changes
    return [
        _add_impact(change, impacts[change.identity]) if change.identity in impacts else change
        for change in changes
    ]


def _add_impact(change: Change, impact: Impact) -> Change:
    measured = replace(change, impact=impact)
    if not impact.unasked or change.action is not Action.DELETE or not change.effective:
        return measured
    return wait_for(measured, f"who uses it is not known: {mask_secrets(impact.unasked)}")
