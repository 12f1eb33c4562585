"""Turn the results of test files into JSON lines, in the shape of Terraform's test messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ...core.diagnostics import Diagnostics
from ...core.redaction import clean_diagnostics
from ..diagnostics import make_diagnostic_data
from ..jsonplan import to_json
from ..text import inline, quote
from .results import RunResult, Status, SuiteResult, SuiteStart, count_runs, has_failed
from .text import render_summary

Data = dict[str, Any]


def make_start(start: SuiteStart) -> Data:
    message = f"{inline(start.file)}... in progress"
    return _make_event("test_file", message, {"path": start.file, "progress": "starting"})


def list_run_events(run: RunResult, verbose: bool = False) -> Iterator[Data]:
    """The result of a run, and one event for each diagnostic. verbose: also its plan."""
    data: Data = {"path": run.file, "run": run.name, "status": run.status.value}
    data |= {"elapsed": round(run.seconds * 1000), "reason": run.reason or None}
    labels = {"@testfile": run.file, "@testrun": run.name}
    yield _make_event("test_run", f"  {quote(run.name)}... {run.status.value}", data)
    yield from _list_diagnostics(run.diagnostics, labels)
    if verbose and run.plan is not None:
        yield _make_event("test_plan", f"  plan of {quote(run.name)}", to_json(run.plan)) | labels


def list_suite_events(result: SuiteResult) -> Iterator[Data]:
    """The result of a file, after the faults because of which none of its runs could begin."""
    yield from _list_diagnostics(result.diagnostics, {"@testfile": result.file})
    message = f"{inline(result.file)}... {result.status.value}"
    data = {"path": result.file, "progress": "complete", "status": result.status.value}
    yield _make_event("test_file", message, data)


def make_summary(results: Sequence[SuiteResult]) -> Data:
    """The last event."""
    counts, names = count_runs(results), {Status.SKIP: "skipped", Status.ERROR: "errored"}
    counted = {names.get(ending, f"{ending.value}ed"): counts[ending] for ending in Status}
    status = Status.FAIL if has_failed(results) else Status.PASS
    return _make_event("test_summary", render_summary(results), {"status": status.value, **counted})


def _list_diagnostics(items: Diagnostics, labels: Data) -> Iterable[Data]:
    for item in clean_diagnostics(items):
        level = "error" if item.severity == "error" else "warn"
        yield {
            "type": "diagnostic",
            "@message": inline(f"{item.severity.value.capitalize()}: {item.summary}"),
            "@level": level,
            **labels,
            "diagnostic": make_diagnostic_data(item),
        }


def _make_event(kind: str, message: str, data: Data) -> Data:
    return {"type": kind, "@message": message, kind: data}
