"""Collect the diagnostics of a run, so that one mistake is shown once, and a flood stays short."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable
from typing import TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from ...core.diagnostics import Diagnostic, Diagnostics, Range, Severity
from ..values.limits import Budget

FAULTS_PER_PLACE = 3
"""How many faults of one place are shown; the instances of a block all have the same ones."""
SHOWN_FAULTS = 1_000
"""How many errors are shown, and how many warnings."""
COUNTED_FAULTS = 20_000
"""How many errors are looked for."""
FAULT_STEPS = 100
"""Steps for a fault, because reporting many faults takes longer than finding them."""
_SENTENCE, _TEXT, _END = 500, 2_000, 100
"""Characters of a sentence, of the message of a rule, and of the end of a text that is cut. Names
and keys can have a megabyte."""


_Crowd: TypeAlias = tuple[Range | None, Severity]


class Collector(Struct, eq=False):
    """Add faults, then take `diagnostics`."""

    budget: Budget
    """Pays for the faults of evaluation."""
    diagnostics_by_key: dict[tuple[object, ...], Diagnostic] = field(default_factory=dict)
    """What will be shown; the key makes two faults one."""
    shown_counts: Counter[_Crowd] = field(default_factory=Counter)
    """How many faults of each place will be shown."""
    repeat_counts: Counter[tuple[object, ...]] = field(default_factory=Counter)
    """How often each fault that will be shown occurs again."""
    hidden_counts: Counter[_Crowd] = field(default_factory=Counter)
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
        if self.budget.charge_fault(FAULT_STEPS):
            self.diagnostics_by_key[()] = Diagnostic(
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
            if self.counts[Severity.ERROR] > COUNTED_FAULTS:
                break
        if self.counts[Severity.ERROR] > SHOWN_FAULTS:
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
        crowd = (fault.range, fault.severity)
        key = (*crowd, fault.summary, fault.detail)
        if key in self.diagnostics_by_key:
            self.repeat_counts[key] += 1
            return
        if fault.range is not None and self.shown_counts[crowd] >= FAULTS_PER_PLACE:
            self.hidden_counts[crowd] += 1
            return
        self.counts[fault.severity] += 1
        if self.counts[fault.severity] <= SHOWN_FAULTS:
            self.shown_counts[crowd] += 1
            self.diagnostics_by_key[key] = fault if located is None else clip_fault(located(fault))

    @property
    def diagnostics(self) -> Diagnostics:
        """All faults, sorted by place. One that occurs again says how often, and the first one of
        a crowded place how many others are left out there."""
        hidden = dict(self.hidden_counts)
        faults = []
        for key, fault in self.diagnostics_by_key.items():
            detail = fault.detail
            if repeat_count := self.repeat_counts[key]:
                detail += " It happens " + (
                    "once more" if repeat_count == 1 else f"{repeat_count} times more"
                )
                detail += " here."
            if hidden_count := hidden.pop((fault.range, fault.severity), 0):
                noun = f"{fault.severity.value}{'' if hidden_count == 1 else 's'}"
                verb = "is" if hidden_count == 1 else "are"
                detail += f" {hidden_count} more {noun} at this place {verb} not shown."
            faults.append(
                fault if detail == fault.detail else replace(fault, detail=detail.strip())
            )
        summaries = [
            _summarize_rest(severity, count - SHOWN_FAULTS)
            for severity, count in self.counts.items()
        ]
        return (
            *sorted(faults, key=_get_position),
            *(summary for summary in summaries if summary is not None),
        )


def _summarize_rest(severity: Severity, count: int) -> Diagnostic | None:
    if count <= 0:
        return None
    subject = f"{severity.value} is" if count == 1 else f"{severity.value}s are"
    least = "More than " if count > COUNTED_FAULTS - SHOWN_FAULTS else ""
    return Diagnostic(severity, f"{least}{count:,} more {subject} not shown")


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


def _get_position(fault: Diagnostic) -> tuple[str, int, int]:
    if fault.range is None:
        return ("", 0, 0)
    return (fault.range.file, fault.range.line, fault.range.column)
