"""Turn the blocks of fleet.hcl into the register of the fleet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from ...core.value import EMPTY, FrozenMap
from ...fleet.landed import register as model
from ...syntax.nodes import Block
from .register_schema import LABELLED_BLOCKS, parse_seconds

_DURATIONS = (("stale_after", "stale_after_hours", 3_600.0), ("skew", "skew_seconds", 1.0))
"""Argument, the setting that it becomes, and the unit of that setting in seconds."""

Blocks = Mapping[str, list[tuple[Block, FrozenMap]]]
"""Type -> the sound blocks, with their values."""


def make_register(
    blocks: Blocks, waivers: Mapping[Block, tuple[model.Waiver, ...]]
) -> model.Register:
    """What the blocks say. waivers: rule -> its waivers."""
    named: dict[str, list[tuple[str, FrozenMap]]] = defaultdict(list)
    for kind in LABELLED_BLOCKS:
        named[kind] = [(block.labels[0].text, values) for block, values in blocks[kind]]
    fleet = next((values for _, values in blocks["fleet"]), EMPTY)
    rates = next((select_set(values) for _, values in blocks["rates"]), None)
    return model.Register(
        tuple(
            model.RegisteredCluster(name, **select_set(values.without(("provider",))))
            for name, values in named["cluster"]
        ),
        tuple(
            model.RegisteredState(name, folder=arguments["folder"], owner=arguments["owner"])
            for name, arguments in named["state"]
        ),
        tuple(model.Owner(name, **select_set(values)) for name, values in named["owner"]),
        tuple(fleet.get("principals") or ()),
        model.Rates(**rates) if rates else None,
        tuple(
            model.PolicyRule(block.labels[0].text, **select_set(values), waivers=waivers[block])
            for block, values in blocks["rule"]
        ),
        tuple(model.NamingRule(**select_set(values)) for _, values in blocks["naming"]),
        _read_settings(fleet),
    )


def select_set(values: FrozenMap) -> dict[str, Any]:
    """Return the arguments that were written."""
    return {name: _plain_number(value) for name, value in values.items() if value is not None}


def _plain_number(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else value


def _read_settings(fleet: FrozenMap) -> model.FleetSettings:
    """Return durations in the units of the settings: hours and seconds."""
    settings = select_set(fleet.without(["root", "principals"]))
    for name, setting, unit in _DURATIONS:
        if name in settings:
            settings[setting] = parse_seconds(settings.pop(name)) / unit
    return model.FleetSettings(**settings)
