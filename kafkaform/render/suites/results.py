"""The results of test files, as all forms of them are rendered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct

from ...core.diagnostics import Diagnostics
from ...plan.model import Plan


class Status(StrEnum):
    """How a run ended, in Terraform's words."""

    PASS = "pass"
    FAIL = "fail"
    """An assertion is not met, or an expected failure is missing."""
    ERROR = "error"
    """It could not be carried out."""
    SKIP = "skip"
    """It was not carried out."""


class SuiteStart(Struct, frozen=True):
    """A test file is about to run."""

    file: str


class RunResult(Struct, frozen=True):
    """How one run ended."""

    file: str
    name: str
    status: Status
    seconds: float = 0.0
    diagnostics: Diagnostics = ()
    """Why it did not pass; and warnings."""
    reason: str = ""
    """Why it was skipped."""
    plan: Plan | None = None
    """What it planned or applied, if it got so far."""


class SuiteResult(Struct, frozen=True):
    """How one test file ended."""

    file: str
    runs: tuple[RunResult, ...] = ()
    diagnostics: Diagnostics = ()
    """Why none of its runs could begin."""

    @property
    def status(self) -> Status:
        """The worst of its runs; a skipped run alone makes no failure."""
        if self.diagnostics:
            return Status.ERROR
        statuses = {run.status for run in self.runs}
        return next((s for s in (Status.ERROR, Status.FAIL) if s in statuses), Status.PASS)


def count_runs(results: Iterable[SuiteResult]) -> Counter[Status]:
    """How many runs ended in each way. A file of which no run could begin counts as one error."""
    counts: Counter[Status] = Counter()
    for result in results:
        counts.update(run.status for run in result.runs)
        counts[Status.ERROR] += bool(result.diagnostics)
    return counts


def has_failed(results: Iterable[SuiteResult]) -> bool:
    """True unless every run passed or was skipped."""
    return any(result.status is not Status.PASS for result in results)
