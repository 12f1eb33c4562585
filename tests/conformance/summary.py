"""The last lines of a test run say how many cases pass."""

from __future__ import annotations

import pytest

from .cases import cases, left_out

PASSED = "conformance cases passed"
"""The property of a test's report that holds its count."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Adds up what the tests counted, in whichever process they ran; silent if none did."""
    reports = [report for group in terminalreporter.stats.values() for report in group]
    counts = [
        count
        for report in reports
        if getattr(report, "when", "") == "call"
        for name, count in report.user_properties
        if name == PASSED
    ]
    if counts:
        unknown = sum(case.unknown for case in cases())
        terminalreporter.write_line(
            f"conformance: {sum(counts):,} of {len(cases()) - unknown:,} cases pass, "
            f"{len(left_out())} left out, {unknown} involve unknown values"
        )
