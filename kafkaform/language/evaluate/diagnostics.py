"""Collect the diagnostics of a run, so that one mistake is shown once, and a flood stays short."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable
from typing import TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from ...core.diagnostics import Diagnostic, Diagnostics, Range, Severity
from ..values.limits import Budget

SAME_PLACE = 3
"""How many faults of one place are shown; the instances of a block all have the same ones."""
SHOWN = 1_000
"""How many errors are shown, and how many warnings."""
COUNTED = 20_000
"""How many errors are looked for."""
FAULT = 100
"""Steps for a fault, because reporting many faults takes longer than finding them."""
_SENTENCE, _TEXT, _END = 500, 2_000, 100
"""Characters of a sentence, of the message of a rule, and of the end of a text that is cut. Names
and keys can have a megabyte."""


_Place: TypeAlias = tuple[Range | None, Severity]


class Collector(Struct, eq=False):
    """Add faults, then take `diagnostics`."""

    budget: Budget
    """Pays for the faults of evaluation."""
    found: dict[tuple[object, ...], Diagnostic] = field(default_factory=dict)
    """What will be shown; the key makes two faults one."""
    shown: Counter[_Place] = field(default_factory=Counter)
    """How many faults of each place will be shown."""
    repeated: Counter[tuple[object, ...]] = field(default_factory=Counter)
    """How often each fault that will be shown occurs again."""
    hidden: Counter[_Place] = field(default_factory=Counter)
    """How many other faults of each place will not be shown."""
    counts: Counter[Severity] = field(default_factory=Counter)
    static: set[Range] = field(default_factory=set)
    """The places of the faults that the text alone shows."""
    unused: Container[Range] = ()
    """The places of values that only skipped blocks use. An error there becomes a warning."""

    def add(
        self, fault: Diagnostic, located: Callable[[Diagnostic], Diagnostic] | None = None
    ) -> None:
        """Add a fault of evaluation, unless a fault of the text has the same place.

        located: adds to the fault where its values come from; called only if the fault is shown.
        """
        if fault.range is None or fault.range not in self.static:
            self._add(fault, located)
        # The last fault says that there may be more. Without it, what was not evaluated would
        # seem not to be declared, and a plan could delete it.
        if self.budget.charge_fault(FAULT):
            self.found[()] = Diagnostic(
                Severity.ERROR,
                "The configuration has too many faults",
                "The evaluation stopped here.",
                fault.range,
                fault.excerpt,
            )

    def add_static(self, faults: Iterable[Diagnostic]) -> None:
        """Add faults that the text alone shows. If there are very many, nothing is evaluated."""
        for fault in faults:
            if fault.range is None or fault.range not in self.static:
                self._add(fault, None)
            if fault.range is not None and fault.severity is Severity.ERROR:
                self.static.add(fault.range)
            if self.counts[Severity.ERROR] > COUNTED:
                break
        if self.counts[Severity.ERROR] > SHOWN:
            self.budget.end_budget()

    def _add(self, fault: Diagnostic, located: Callable[[Diagnostic], Diagnostic] | None) -> None:
        fault = clip_fault(fault)
        # At the end of the budget, the evaluation stops, which concerns everything.
        if (
            fault.severity is Severity.ERROR
            and fault.range in self.unused
            and not self.budget.spent
        ):
            detail = f"{fault.detail} Only skipped blocks use this value.".strip()
            fault = replace(fault, severity=Severity.WARNING, detail=detail)
        # Instances of a block and calls of a module repeat each fault, with other keys in it. The
        # same text is shown once, and other texts of one place a few times.
        place = (fault.range, fault.severity)
        key = (*place, fault.summary, fault.detail)
        if key in self.found:
            self.repeated[key] += 1
            return
        if fault.range is not None and self.shown[place] >= SAME_PLACE:
            self.hidden[place] += 1
            return
        self.counts[fault.severity] += 1
        if self.counts[fault.severity] <= SHOWN:
            self.shown[place] += 1
            self.found[key] = fault if located is None else clip_fault(located(fault))

    @property
    def diagnostics(self) -> Diagnostics:
        """All faults, sorted by place. One that occurs again says how often, and the first one of
        a crowded place how many others are left out there."""
        hidden = dict(self.hidden)
        shown = []
        for key, fault in self.found.items():
            detail = fault.detail
            if again := self.repeated[key]:
                detail += " It happens " + ("once more" if again == 1 else f"{again} times more")
                detail += " here."
            if more := hidden.pop((fault.range, fault.severity), 0):
                what = f"{fault.severity.value}{'' if more == 1 else 's'}"
                detail += (
                    f" {more} more {what} at this place {'is' if more == 1 else 'are'} not shown."
                )
            shown.append(fault if detail == fault.detail else replace(fault, detail=detail.strip()))
        rest = [_summarize_rest(severity, count - SHOWN) for severity, count in self.counts.items()]
        return (*sorted(shown, key=_get_place), *(one for one in rest if one is not None))


def _summarize_rest(severity: Severity, count: int) -> Diagnostic | None:
    if count <= 0:
        return None
    what = f"{severity.value} is" if count == 1 else f"{severity.value}s are"
    least = "More than " if count > COUNTED - SHOWN else ""
    return Diagnostic(severity, f"{least}{count:,} more {what} not shown")


def clip_fault(fault: Diagnostic) -> Diagnostic:
    """The fault with long texts cut, because names and keys can be very long."""
    if max(map(len, (fault.summary, fault.detail, fault.advice, fault.address or ""))) > _SENTENCE:
        fault = replace(
            fault,
            summary=_cut_text(fault.summary, _SENTENCE),
            detail=_cut_text(fault.detail, _TEXT),
            advice=_cut_text(fault.advice, _SENTENCE),
            address=None if fault.address is None else _cut_text(fault.address, _SENTENCE),
        )
    if any(len(line) > _SENTENCE for line in fault.context):
        fault = replace(fault, context=tuple(_cut_text(line, _SENTENCE) for line in fault.context))
    return fault


def _cut_text(text: str, length: int) -> str:
    """The beginning and the end of a long text."""
    return text if len(text) <= length else f"{text[: length - _END]}…{text[-_END:]}"


def _get_place(fault: Diagnostic) -> tuple[str, int, int]:
    if fault.range is None:
        return ("", 0, 0)
    return (fault.range.file, fault.range.line, fault.range.column)
