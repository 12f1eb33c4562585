"""Render the results of test files as JUnit's XML, which build systems show.

The form is the one that Jenkins, GitLab and GitHub's actions read: a `testsuite` for each file and
a `testcase` for each run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.etree import ElementTree as ET

from ...core.diagnostics import Diagnostics
from ...core.redaction import clean_diagnostics, mask_secrets
from ..diagnostics import render_diagnostics
from ..text import inline, render_block
from .results import RunResult, Status, SuiteResult, count_runs

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
