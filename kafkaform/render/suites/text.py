"""Render the results of test files as text, in the form of `terraform test`."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.diagnostics import Diagnostic, Severity
from ...core.redaction import clean_diagnostics
from ..diagnostics import render_diagnostics
from ..style import Paint
from ..text import inline, quote, render_count
from .results import RunResult, Status, SuiteResult, SuiteStart, count_runs, has_failed

_STYLES = {
    Status.PASS: "applied",
    Status.FAIL: "failed",
    Status.ERROR: "failed",
    Status.SKIP: "skipped",
}


def render_start(start: SuiteStart) -> str:
    return f"{inline(start.file)}... in progress"


def render_run(
    run: RunResult, reported: set[Diagnostic], *, colour: bool = False, width: int = 100
) -> str:
    """One line, and the diagnostics below it.

    shown: the diagnostics of earlier runs, to which those of this run are added. A
    fault of the configuration can be the same in all of them, and is rendered in full once.
    """
    reason = f" ({inline(run.reason)})" if run.reason else ""
    line = f"  run {quote(run.name)}... {_render_status(run.status, colour)}{reason}"
    fresh = tuple(diagnostic for diagnostic in run.diagnostics if diagnostic not in reported)
    repeated = sum(
        diagnostic in reported and diagnostic.severity is Severity.ERROR
        for diagnostic in run.diagnostics
    )
    reported.update(fresh)
    text = render_diagnostics(clean_diagnostics(fresh), colour, width).rstrip("\n")
    remainder = f"  {render_count(repeated, 'error')} as above" if repeated else ""
    return "\n".join(filter(None, (line, text, remainder)))


def render_suite(result: SuiteResult, *, colour: bool = False, width: int = 100) -> str:
    """The last line of a file, after the faults because of which none of its runs could begin."""
    line = f"{inline(result.file)}... {_render_status(result.status, colour)}"
    cleaned = clean_diagnostics(result.diagnostics)
    return f"{render_diagnostics(cleaned, colour, width)}{line}"


def render_summary(results: Sequence[SuiteResult], *, colour: bool = False) -> str:
    """`Failure! 3 passed, 1 failed, 2 skipped.`"""
    paint, counts, failed = Paint(colour), count_runs(results), has_failed(results)
    word = paint("failed", "Failure!") if failed else paint("applied", "Success!")
    counted = f"{counts[Status.PASS]} passed, {counts[Status.FAIL] + counts[Status.ERROR]} failed"
    skipped = f", {counts[Status.SKIP]} skipped" if counts[Status.SKIP] else ""
    return f"{word} {counted}{skipped}."


def _render_status(status: Status, colour: bool) -> str:
    return Paint(colour)(_STYLES[status], status.value)
