"""Render the results of test files as text, in the form of `terraform test`."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.redaction import clean_diagnostics
from ..diagnostics import render_diagnostics
from ..style import Paint
from ..text import inline, quote
from .results import RunResult, Status, SuiteResult, SuiteStart, count_runs, has_failed

_STYLES = {
    Status.PASS: "applied",
    Status.FAIL: "failed",
    Status.ERROR: "failed",
    Status.SKIP: "skipped",
}
_COUNTED = (
    (Status.PASS, "passed"),
    (Status.FAIL, "failed"),
    (Status.ERROR, "with errors"),
    (Status.SKIP, "skipped"),
)


def render_start(start: SuiteStart) -> str:
    return f"{inline(start.file)}... in progress"


def render_run(run: RunResult, *, colour: bool = False, width: int = 100) -> str:
    """One line, and the diagnostics below it."""
    why = f" ({inline(run.reason)})" if run.reason else ""
    line = f"  run {quote(run.name)}... {_render_status(run.status, colour)}{why}"
    told = clean_diagnostics(run.diagnostics)
    return f"{line}\n{render_diagnostics(told, colour, width)}".rstrip("\n")


def render_suite(result: SuiteResult, *, colour: bool = False, width: int = 100) -> str:
    """The last line of a file, after the faults because of which none of its runs could begin."""
    line = f"{inline(result.file)}... {_render_status(result.status, colour)}"
    told = clean_diagnostics(result.diagnostics)
    return f"{render_diagnostics(told, colour, width)}{line}"


def render_summary(results: Sequence[SuiteResult], *, colour: bool = False) -> str:
    """`Failure! 3 passed, 1 failed.`"""
    paint, counts, failed = Paint(colour), count_runs(results), has_failed(results)
    word = paint("failed", "Failure!") if failed else paint("applied", "Success!")
    told = [f"{counts[status]} {text}" for status, text in _COUNTED if _is_told(status, counts)]
    return f"{word} {', '.join(told)}."


def _is_told(status: Status, counts: dict[Status, int]) -> bool:
    return status in (Status.PASS, Status.FAIL) or counts.get(status, 0) > 0


def _render_status(status: Status, colour: bool) -> str:
    return Paint(colour)(_STYLES[status], status.value)
