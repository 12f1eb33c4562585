"""What the assertions of a test find behind `plan.` (docs/testing.md)."""

from __future__ import annotations

from typing import Any

from ...core.change import Change
from ...plan.model import Plan
from ...render.jsonplan import mask_sides
from ...render.view import make_view

COUNTS = (
    "add",
    "change",
    "destroy",
    "imports",
    "adopt",
    "forget",
    "blocked",
    "drift",
    "unchanged",
)
"""The counts that assertions see, named as in a plan's JSON."""


def describe_plan(plan: Plan) -> dict[str, Any]:
    """The plan as values of the language can express it."""
    counts = make_view(plan).counts
    return {
        "changes": {change.address: describe_change(change) for change in plan.changes},
        "counts": {name: getattr(counts, name) for name in COUNTS},
    }


def describe_change(change: Change) -> dict[str, Any]:
    """One change; names are those of a plan's JSON where it has them."""
    before, after = mask_sides(change)
    blocked = change.blocked
    return {
        "type": change.identity.kind,
        "key": change.identity.key,
        "instance": change.identity.instance,
        "action": change.action.value,
        "adopts": change.adopts,
        "before": before,
        "after": after,
        "paths": tuple(".".join(item.path) for item in change.paths),
        "drift": tuple(".".join(item.path) for item in change.drift),
        "risk_kinds": tuple(dict.fromkeys(risk.kind.value for risk in change.risks)),
        "notes": change.notes,
        "blocked": None
        if blocked is None
        else {"kind": blocked.kind.value, "reason": blocked.reason, "stops": blocked.kind.stops},
    }
