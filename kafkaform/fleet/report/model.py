"""The report as frozen data, in the order in which its pages show it."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from ..tables.definitions import SCHEMA_VERSION
from ..tables.reader import Build
from .access import PERMISSIONS, QUOTAS
from .coverage import FleetCoverage, compute_coverage
from .drift import CHANGES, DRIFT
from .grids import sum_column
from .load import CAPACITY, UNUSED
from .questions import DAYS, Answers
from .sections import ReportSection, make_section
from .trust import APPLIES, TRUST

_READ = frozenset({"read", "partial"})


class Number(Struct, frozen=True):
    """One of the numbers at the top."""

    title: str
    value: int | None
    """None: nobody knows."""
    before: int | None
    """In the build before."""
    least: bool
    """Clusters that could not be read may add to it."""
    place: str
    """The section with the details."""

    @property
    def change(self) -> int | None:
        """Since the build before. None: one of the two is not known."""
        if self.value is None or self.before is None:
            return None
        return self.value - self.before


class FleetReport(Struct, frozen=True):
    """Everything that a report shows."""

    build: str
    as_of: datetime
    ended: datetime
    previous: datetime | None
    """When the build before was. None: there is none that can be read."""
    redacted: bool
    """Principals are masked."""
    csv: str | None
    """How the names of the CSV files begin. None: there are none."""
    coverage: FleetCoverage
    numbers: tuple[Number, ...]
    sections: tuple[ReportSection, ...]
    schema_version: int = SCHEMA_VERSION


class _Count(Struct, frozen=True):
    """How a number is computed."""

    answer: str
    title: str
    place: str
    live: bool
    """It counts what clusters show, so it needs clusters that were read."""


_COUNTS = (
    _Count("differing", "objects differ from what is declared", "drift", True),
    _Count("outside", f"changes out of band in {DAYS} days", "changes", True),
    _Count("policy_high", "rules broken, severity high", "permissions", True),
    _Count("grants_high", "access findings, severity high", "permissions", True),
    _Count("failed", f"steps of applies failed in {DAYS} days", "applies", False),
)

_OUTLINES = (DRIFT, CHANGES, PERMISSIONS, UNUSED, QUOTAS, CAPACITY, APPLIES, TRUST)


def build_report(
    build: Build,
    answers: Answers,
    before: Answers | None = None,
    previous: Build | None = None,
    *,
    redacted: bool = False,
    csv: str | None = None,
) -> FleetReport:
    """Build the report. answers: to all questions; before: to NUMBERS, of the build `previous`."""
    coverage = compute_coverage(answers)
    return FleetReport(
        build=build.name,
        as_of=build.as_of,
        ended=build.ended,
        previous=previous.as_of if previous else None,
        redacted=redacted,
        csv=csv,
        coverage=coverage,
        numbers=tuple(_make_number(count, answers, before or {}, coverage) for count in _COUNTS),
        sections=tuple(make_section(outline, answers, build.as_of) for outline in _OUTLINES),
    )


def _make_number(
    count: _Count, answers: Answers, before: Answers, coverage: FleetCoverage
) -> Number:
    value = _read_value(answers, count)
    least = count.live and coverage.unknown > 0 and value is not None
    return Number(count.title, value, _read_value(before, count), least, count.place)


def _read_value(answers: Answers, count: _Count) -> int | None:
    """None: no table has it, or no cluster was read that could show it."""
    rows, clusters = answers.get(count.answer), answers.get("clusters")
    if not rows or clusters is None:
        return None
    read = [row for row in clusters if row["status"] in _READ]
    return None if count.live and not sum_column(read, "clusters") else int(rows[0]["n"])
