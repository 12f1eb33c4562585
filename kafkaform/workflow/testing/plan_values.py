"""What the assertions of a test find behind `plan.` (docs/testing.md)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...core.change import Change, Path, PathChange
from ...core.value import FrozenMap
from ...language.values.conversion import lift_value
from ...language.values.value import SENSITIVE, Marked
from ...plan.model import Plan
from ...render.plan_view import make_view
from ..configuration.policies import describe_findings

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
    """The plan as values that expressions can use."""
    counts = make_view(plan).counts
    return {
        "changes": {change.address: describe_change(change) for change in plan.changes},
        "counts": {name: getattr(counts, name) for name in COUNTS},
    }


def describe_change(change: Change) -> dict[str, Any]:
    """One change; sensitive values can be compared and not shown."""
    hidden = frozenset(item.path for item in (*change.paths, *change.drift) if item.sensitive)
    blocked = change.blocked
    return {
        "type": change.identity.kind,
        "key": change.identity.key,
        "instance": change.identity.instance,
        "action": change.action.value,
        "adopts": change.adopts,
        "before": _mark_tree(change.before, hidden, ()),
        "after": _mark_tree(change.after, hidden, ()),
        "paths": _describe_paths(change.paths),
        "drift": _describe_paths(change.drift),
        **describe_findings(change.findings),
        "blocked": None
        if blocked is None or blocked.block is None
        else {"kind": blocked.block.value, "reason": blocked.text, "stops": blocked.stops},
    }


def _describe_paths(items: Iterable[PathChange]) -> tuple[dict[str, Any], ...]:
    return tuple(
        {
            "path": ".".join(item.path),
            "before": _mark(item.before, item.sensitive),
            "after": _mark(item.after, item.sensitive),
        }
        for item in items
    )


def _mark_tree(item: Any, hidden: frozenset[Path], path: Path) -> Any:
    if path in hidden:
        return _mark(item, sensitive=True)
    if not isinstance(item, FrozenMap):
        return item
    return {name: _mark_tree(inner, hidden, (*path, name)) for name, inner in item.items()}


def _mark(item: Any, sensitive: bool) -> Any:
    return Marked(lift_value(item), frozenset((SENSITIVE,))) if sensitive else item
