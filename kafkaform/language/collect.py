"""Gathers the diagnostics of a run, so that one mistake shows up once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ..core.dataclass import replace
from ..core.diagnostics import Diagnostic, Diagnostics, Range

SAME_PLACE = 3
"""How many faults of one place are shown, such as those of the instances of one block."""


class Collector:
    """Add faults, then take `diagnostics`."""

    def __init__(self) -> None:
        self._found: dict[tuple[object, ...], Diagnostic] = {}
        self._shown: Counter[tuple[object, ...]] = Counter()
        self._hidden: Counter[tuple[object, ...]] = Counter()
        self._static: set[Range] = set()

    def add(self, fault: Diagnostic) -> None:
        """A fault of evaluation; left out if the text alone showed one at the same place."""
        if fault.range is not None and fault.range in self._static:
            return
        place = (fault.range, fault.severity)
        key = (*place, fault.summary, fault.detail)
        if key in self._found or (fault.range is not None and self._shown[place] >= SAME_PLACE):
            self._hidden[place] += 1
            return
        self._shown[place] += 1
        self._found[key] = fault

    def add_static(self, faults: Iterable[Diagnostic]) -> None:
        """Faults that the text alone shows."""
        for fault in faults:
            self.add(fault)
            if fault.range is not None:
                self._static.add(fault.range)

    @property
    def diagnostics(self) -> Diagnostics:
        """All faults by place; the first one of a crowded place says how many more there are."""
        hidden = dict(self._hidden)
        shown = []
        for fault in self._found.values():
            more = hidden.pop((fault.range, fault.severity), 0)
            if more:
                words = "It happens once more" if more == 1 else f"It happens {more} times more"
                fault = replace(fault, detail=f"{fault.detail} {words} here.".strip())
            shown.append(fault)
        return tuple(sorted(shown, key=_place))


def _place(fault: Diagnostic) -> tuple[str, int, int]:
    if fault.range is None:
        return ("", 0, 0)
    return (fault.range.file, fault.range.line, fault.range.column)
