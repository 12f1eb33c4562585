"""Join equal changes of several objects into entries, so that readers see each change once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable

from msgspec import Struct

from ..core.change import Action, Change, Impact, Ownership, PathChange
from ..core.risk import Risk
from ..core.text.quantity import render_amount
from ..core.value import EMPTY, FrozenMap, Value

LEAST = 3
"""Fewer equal changes are shown one by one: two headlines are as short as one with a list."""

_NUMBER = re.compile(r"\d[\d,.]*")
_SEPARATOR = re.compile(r"[|/,=]")


class Entry(Struct, frozen=True):
    """One change, or equal changes of several objects."""

    changes: tuple[Change, ...]
    """Sorted by address; never empty."""

    @property
    def lead(self) -> Change:
        """The first change, which stands for all."""
        return self.changes[0]

    @property
    def several(self) -> bool:
        """True for more than one object."""
        return len(self.changes) > 1

    @property
    def risks(self) -> tuple[Risk, ...]:
        """The risks of the change; figures that differ between the objects are added up."""
        return _join_risks(change.risks for change in self.changes)

    @property
    def grave_risks(self) -> tuple[Risk, ...]:
        """Those of `risks` that destroy data or stop clients."""
        # Entries of `PlanView.risks` are equal in these only.
        return _join_risks(_select_grave(change) for change in self.changes)

    @property
    def impact(self) -> Impact | None:
        """What all the changes together destroy or move."""
        found = [change.impact for change in self.changes if change.impact is not None]
        if len(set(found)) < 2:
            return found[0] if found else None
        figures = _add_figures(impact.figures for impact in found)
        return Impact(f"together {render_figures(figures)}", figures)


def make_entries(
    changes: Iterable[Change], make_key: Callable[[Change], Hashable] | None = None
) -> tuple[Entry, ...]:
    """The changes as entries, in the order of their first changes.

    make_key: changes with equal keys are equal; by default those that read the same.
    """
    found = sorted(changes, key=_get_place)
    if len(found) < LEAST:
        return tuple(Entry((change,)) for change in found)
    alike: dict[Hashable, list[Change]] = {}
    for change in found:
        alike.setdefault((make_key or _make_key)(change), []).append(change)
    entries = [
        entry
        for same in alike.values()
        for entry in ([Entry(tuple(same))] if len(same) >= LEAST else [Entry((c,)) for c in same])
    ]
    return tuple(sorted(entries, key=lambda entry: _get_place(entry.lead)))


def make_drift_key(change: Change) -> Hashable:
    """Equal for objects of one kind that somebody changed in the same way."""
    return change.identity.instance, change.identity.kind, change.drift


def make_risk_key(change: Change) -> Hashable:
    """Equal for changes of one kind with the same grave risks, whatever else they do."""
    identity, blocked = change.identity, change.blocked is not None
    return identity.instance, identity.kind, blocked, _read_risks(_select_grave(change))


def is_own(value: Value, change: Change) -> bool:
    """True if the value only repeats what the object is called, in whole or in part."""
    parts = {change.identity.key, *_SEPARATOR.split(change.identity.key)}
    if isinstance(value, FrozenMap):
        return bool(value) and all(name in parts and value[name] in parts for name in value)
    return isinstance(value, str) and value in parts


def render_figures(figures: FrozenMap) -> str:
    """`1.2 GiB, 5,000 offsets; groups: a, b`."""
    numbers = [
        render_amount(value, "bytes") if name == "bytes" else f"{value:,} {name}"
        for name, value in figures.items()
        if isinstance(value, int)
    ]
    texts = [f"{name}: {value}" for name, value in figures.items() if isinstance(value, str)]
    return "; ".join(filter(None, (", ".join(numbers), *texts)))


def _get_place(change: Change) -> tuple[str, str]:
    # Two instances can have one address, so the identity decides at last.
    return change.address, str(change.identity)


def _make_key(change: Change) -> Hashable:
    """Equal for changes that read the same apart from their names and figures."""
    update = change.action is Action.UPDATE
    return (
        (change.identity.instance, change.identity.kind, change.action, change.reason),
        (change.blocked, change.adopts, change.released, change.notes),
        tuple(_read_path(item, change) for item in change.paths),
        # An update shows the paths that change, every other action the whole object.
        () if update else (_read_whole(change.before, change), _read_whole(change.after, change)),
        (_read_risks(change.risks), change.impact is None),
        (_read_row(change.row_before, change), _read_row(change.row_after, change)),
        tuple((step.request.name, step.evidence) for step in change.steps),
    )


def _read_path(item: PathChange, change: Change) -> Hashable:
    sides = (item.before, item.after, item.effective)
    # Only attributes name an object. A config that happens to equal a name is a value.
    if len(item.path) == 1:
        sides = tuple(_mask_own(side, change) for side in sides)  # type: ignore[assignment]
    return item.path, sides, item.sensitive, item.unit


def _read_whole(attributes: FrozenMap | None, change: Change) -> Hashable:
    found = attributes or EMPTY
    return tuple((name, _mask_own(found[name], change)) for name in sorted(found))


def _mask_own(value: Value, change: Change) -> Hashable:
    return is_own if is_own(value, change) else value


def _read_risks(risks: Iterable[Risk]) -> Hashable:
    return tuple(
        (risk.kind, risk.path, _NUMBER.sub("0", risk.text) if risk.figures else risk.text)
        for risk in risks
    )


def _read_row(row: Ownership, change: Change) -> Hashable:
    owners = tuple("" if owner == change.address else owner for owner in row.owners)
    return owners, row.protected, row.secret_version


def _select_grave(change: Change) -> tuple[Risk, ...]:
    return tuple(risk for risk in change.risks if risk.kind.grave)


def _join_risks(rows: Iterable[tuple[Risk, ...]]) -> tuple[Risk, ...]:
    """The risks of several changes, whose rows agree up to figures, as those of one."""
    return tuple(_add_risks(column) for column in zip(*rows, strict=True))


def _add_risks(risks: tuple[Risk, ...]) -> Risk:
    first = risks[0]
    if all(risk.text == first.text for risk in risks):
        return first
    figures = _add_figures(risk.figures for risk in risks)
    text = f"together {render_figures(figures)}, such as: {first.text}"
    return Risk(first.kind, text, first.path, figures)


def _add_figures(many: Iterable[FrozenMap]) -> FrozenMap:
    """Numbers are added, texts are listed once each."""
    totals: Counter[str] = Counter()
    texts: dict[str, dict[str, None]] = {}
    for name, value in (item for figures in many for item in figures.items()):
        if isinstance(value, int):
            totals[name] += value
        else:
            texts.setdefault(name, {})[str(value)] = None
    return FrozenMap({**totals, **{name: ", ".join(found) for name, found in texts.items()}})
