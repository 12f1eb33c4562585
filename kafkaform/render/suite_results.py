"""The results of test files as data, and rendered in three forms: as text like that of `terraform
test`, as JSON lines in the shape of Terraform's test messages, and as JUnit's XML.

Jenkins, GitLab and GitHub's actions read that XML: a `testsuite` for each file and a `testcase` for
each run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any
from xml.etree import ElementTree as ET

from msgspec import Struct

from ..core.diagnostics import Diagnostic, Diagnostics, Severity
from ..core.secret import clean_diagnostics, mask_secrets
from ..plan.model import Plan
from .diagnostics import make_diagnostic_data, render_diagnostics
from .terraform import to_json
from .text import Paint, inline, quote, render_block, render_count

Data = dict[str, Any]


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


_ELEMENTS: Mapping[Status, str] = {
    Status.FAIL: "failure",
    Status.ERROR: "error",
    Status.SKIP: "skipped",
}


def render_junit(results: Sequence[SuiteResult]) -> bytes:
    """The whole document, in UTF-8."""
    root = ET.Element("testsuites", _count(results))
    for result in results:
        suite = ET.SubElement(root, "testsuite", {"name": _clean(result.file), **_count([result])})
        if result.diagnostics:
            case = _add_case(suite, result.file, "(the file)", 0.0)
            _add_outcome(case, Status.ERROR, result.diagnostics, "")
        for run in result.runs:
            _add_run(suite, run)
    ET.indent(root)
    text: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _count(results: Sequence[SuiteResult]) -> dict[str, str]:
    counts = count_runs(results)
    seconds = sum(run.seconds for result in results for run in result.runs)
    return {
        "tests": str(counts.total()),
        "failures": str(counts[Status.FAIL]),
        "errors": str(counts[Status.ERROR]),
        "skipped": str(counts[Status.SKIP]),
        "time": f"{seconds:.3f}",
    }


def _add_run(suite: ET.Element, run: RunResult) -> None:
    case = _add_case(suite, run.file, run.name, run.seconds)
    if run.status is not Status.PASS:
        _add_outcome(case, run.status, run.diagnostics, run.reason)


def _add_case(suite: ET.Element, file: str, name: str, seconds: float) -> ET.Element:
    names = {"classname": _clean(file), "name": _clean(name), "file": _clean(file)}
    return ET.SubElement(suite, "testcase", {**names, "time": f"{seconds:.3f}"})


def _add_outcome(case: ET.Element, status: Status, faults: Diagnostics, reason: str) -> None:
    cleaned = clean_diagnostics(faults)
    message = reason or "; ".join(item.summary for item in cleaned)
    element = ET.SubElement(case, _ELEMENTS[status], {"message": _clean(message)})
    if cleaned:
        # Escaped, because XML has no way to write most control characters.
        element.text = render_block(render_diagnostics(cleaned))


def _clean(text: str) -> str:
    """Foreign text for an attribute: one line without the characters that XML forbids."""
    return inline(mask_secrets(text))
