"""Gathers the diagnostics of a run, so that one mistake shows up once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from ..core.diagnostics import Diagnostic, Diagnostics, Range

SAME_PLACE = 3
"""How many faults of one place are shown, such as those of the instances of one block."""


class Collector:
    """Add faults, then take `diagnostics`."""

    def __init__(self) -> None:
        self._found: dict[tuple[object, ...], Diagnostic] = {}
        self._places: Counter[Range] = Counter()
        self._static: set[Range] = set()

    def add(self, fault: Diagnostic) -> None:
        """A fault of evaluation; left out if the text alone showed one at the same place."""
        if fault.range is not None and fault.range in self._static:
            return
        key = (fault.range, fault.summary, fault.detail, fault.severity)
        if key in self._found:
            return
        if fault.range is not None:
            self._places[fault.range] += 1
            if self._places[fault.range] > SAME_PLACE:
                return
        self._found[key] = fault

    def add_static(self, faults: Iterable[Diagnostic]) -> None:
        """Faults that the text alone shows."""
        for fault in faults:
            self.add(fault)
            if fault.range is not None:
                self._static.add(fault.range)

    @property
    def diagnostics(self) -> Diagnostics:
        """All faults by place; the last one of a crowded place says how many more there are."""
        last: dict[Range, tuple[object, ...]] = {}
        for key, fault in self._found.items():
            if fault.range is not None:
                last[fault.range] = key
        for place, key in last.items():
            hidden = self._places[place] - SAME_PLACE
            if hidden > 0:
                fault = self._found[key]
                more = f"{hidden} more faults of this kind are not shown."
                self._found[key] = replace(fault, detail=f"{fault.detail} {more}".strip())
                self._places[place] = SAME_PLACE
        order = sorted(self._found.values(), key=_place)
        return tuple(order)


def _place(fault: Diagnostic) -> tuple[str, int, int]:
    if fault.range is None:
        return ("", 0, 0)
    return (fault.range.file, fault.range.line, fault.range.column)
