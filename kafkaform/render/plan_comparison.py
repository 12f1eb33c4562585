"""Compare two plans path by path, to show why one is not the plan that was reviewed.

Both sides are documents of `to_json`, so a saved plan, a plan's JSON and a new plan can be compared
with each other. Values that no approval covers (times, notes, measured figures) are left out: they
are no reason to review again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from ..core.text import render_with_exact
from ..core.value import FrozenMap, freeze
from .text import ARROW, NOT_SET, inline, render_path, render_value

Data = Mapping[str, Any]

SHOWN_ONLY = frozenset(
    ("action", "blocked", "drift", "evidence", "findings", "impact", "paths") + ("steps",)
)
"""Details of a change that no approval covers, or that `before`, `after` or `requests` repeat."""


ONLY = ": only in "
"""What follows the name in the title of a change or output that only one plan has."""


class PlanDifference(Struct, frozen=True):
    """One value that differs."""

    symbol: str
    """`+`: only the second plan has it, `-`: only the first, `~`: both, with other values."""
    path: tuple[str, ...]
    before: Any = None
    after: Any = None
    unit: str = ""


class PlanPart(Struct, frozen=True):
    """What differs in one change, one output, or in the plan as a whole."""

    symbol: str
    title: str
    differences: tuple[PlanDifference, ...] = ()


def compare_plans(first: Data, second: Data) -> tuple[PlanPart, ...]:
    """The parts in which two plans differ, the whole plan first; empty if both do the same."""
    return (
        *_compare_heads(first, second),
        *_compare_sources(first, second),
        *_compare_named("", _index_changes(first), _index_changes(second)),
        *_compare_named("output ", _index_outputs(first), _index_outputs(second)),
    )


def render_comparison(sections: tuple[PlanPart, ...]) -> Iterator[str]:
    """The parts as lines, one for each value that differs."""
    for section in sections:
        yield f"{section.symbol} {section.title}"
        for difference in section.differences:
            sides = _render_sides(difference)
            yield f"    {difference.symbol} {render_path(difference.path)} {sides}"


def _render_sides(difference: PlanDifference) -> str:
    before, after = (
        _render_side(side, difference.unit) for side in (difference.before, difference.after)
    )
    if difference.symbol == "+":
        return f"= {after}"
    if difference.symbol == "-":
        return f"= {before} {ARROW} {NOT_SET}"
    return f"= {before} {ARROW} {after}"


def _render_side(value: Any, unit: str) -> str:
    if unit and isinstance(value, str | int):
        return render_with_exact(value, unit)
    return render_value(freeze(value))


# ── the whole plan ──────────────────────────────────────────────────────────────────────


def _compare_heads(first: Data, second: Data) -> Iterator[PlanPart]:
    before, after = _read_head(first), _read_head(second)
    if _read_sources(first) and _read_sources(second):
        # The digest says only that something differs, and the sources say what.
        del before["configuration"], after["configuration"]
    differences = tuple(_compare_values(before, after, {}))
    if differences:
        yield PlanPart("~", "the plan as a whole", differences)


def _read_sources(plan: Data) -> Mapping[str, str]:
    sources: Mapping[str, str] = plan.get("kafkaform", {}).get("sources", {})
    return sources


def _read_head(plan: Data) -> dict[str, Any]:
    """The values that an approval covers besides the changes."""
    head = plan.get("kafkaform", {})
    scopes = {name: entry.get("scope_id") for name, entry in head.get("instances", {}).items()}
    removals = {entry["ticket"]: entry["address"] for entry in head.get("removals", ())}
    return {
        "configuration": head.get("configuration"),
        "lineage": head.get("lineage"),
        "mode": head.get("mode"),
        "partial": list(head.get("partial", ())),
        "policies": head.get("policies"),
        "scope_id": scopes,
        "removals": removals,
    }


def _compare_sources(first: Data, second: Data) -> Iterator[PlanPart]:
    """The files and variables that only one plan was made of, or that both were, with other
    contents."""
    before, after = _read_sources(first), _read_sources(second)
    if not (before and after):
        return
    for name in sorted({*before, *after}):
        if name not in before:
            yield PlanPart("+", f"{inline(name)}: new in the configuration")
        elif name not in after:
            yield PlanPart("-", f"{inline(name)}: no longer in the configuration")
        elif before[name] != after[name]:
            yield PlanPart("~", f"{inline(name)}: has another content")


# ── changes and outputs ─────────────────────────────────────────────────────────────────


class _Entry(Struct, frozen=True):
    """One change or output of a plan."""

    data: Data
    """The part of it that an approval covers."""
    units: Mapping[tuple[str, ...], str] = {}
    action: str = ""


def _index_changes(plan: Data) -> dict[str, _Entry]:
    """The changes by address."""
    # Only those that an apply makes: a change that is blocked in one plan is missing there.
    return {
        inline(change["address"]): _read_change(change)
        for change in plan.get("resource_changes", ())
        if change["kafkaform"].get("blocked") is None and change["kafkaform"]["action"] != "noop"
    }


def _read_change(entry: Data) -> _Entry:
    change, details = entry["change"], entry["kafkaform"]
    data = {
        "action": details["action"],
        "before": change.get("before"),
        "after": change.get("after"),
        **{name: item for name, item in details.items() if name not in SHOWN_ONLY},
        "requests": [step["request"] for step in details.get("steps", ())],
    }
    units = {tuple(item["path"]): item.get("unit", "") for item in details.get("paths", ())}
    return _Entry(data, units, details["action"])


def _index_outputs(plan: Data) -> dict[str, _Entry]:
    return {
        inline(name): _Entry(
            {side: output.get(side) for side in ("before", "after", "after_unknown")}
        )
        for name, output in plan.get("output_changes", {}).items()
    }


def _compare_named(
    noun: str, first: Mapping[str, _Entry], second: Mapping[str, _Entry]
) -> Iterator[PlanPart]:
    for name in sorted({*first, *second}):
        title = f"{noun}{name}"
        if name not in second:
            yield PlanPart("-", f"{title}{ONLY}the first plan{_name_action(first[name])}")
        elif name not in first:
            yield PlanPart("+", f"{title}{ONLY}the second plan{_name_action(second[name])}")
        else:
            before, after = first[name], second[name]
            differences = tuple(
                _compare_values(before.data, after.data, {**before.units, **after.units})
            )
            if differences:
                yield PlanPart("~", title, differences)


def _name_action(entry: _Entry) -> str:
    return f" ({entry.action})" if entry.action else ""


def _compare_values(
    first: Data, second: Data, units: Mapping[tuple[str, ...], str]
) -> Iterator[PlanDifference]:
    plain = _thaw(first), _thaw(second)
    if plain[0] == plain[1]:
        return
    # Importing deepdiff takes a third of a second, and only plans that differ need it.
    from deepdiff import DeepDiff  # noqa: PLC0415  # for startup

    deltas = DeepDiff(*plain, verbose_level=2, view="tree")
    entries = [
        (tuple(map(str, level.path(output_format="list"))), kind, level)
        for kind, levels in deltas.items()
        for level in levels
    ]
    for path, kind, level in sorted(entries, key=lambda entry: entry[0]):
        symbol = "+" if kind.endswith("_added") else "-" if kind.endswith("_removed") else "~"
        before = None if symbol == "+" else level.t1
        after = None if symbol == "-" else level.t2
        # The first name of a path is the side of the change, `before` or `after`.
        yield PlanDifference(symbol, path, before, after, units.get(path[1:], ""))


def _thaw(value: Any) -> Any:
    """The value as plain dicts and lists, which deepdiff compares entry by entry."""
    if isinstance(value, Mapping | FrozenMap):
        return {key: _thaw(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_thaw(item) for item in value]
    return value
