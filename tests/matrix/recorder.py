"""A plugin for pytest: writes what became of each test, one JSON object a line.

`-p tests.matrix.recorder --record FILE`
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ..kit.kafka.versions import get_choice
from .runs import list_left_out

LONGEST = 400
"""Characters of a reason."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record", type=Path, help="the file to write")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = list_left_out(get_choice())
    for item in items:
        name = item.nodeid.partition("[")[0]
        if reason := left_out.get(item.nodeid) or left_out.get(name):
            item.add_marker(pytest.mark.skip(reason=reason))


def pytest_configure(config: pytest.Config) -> None:
    file = config.getoption("--record")
    if file is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Recorder(file))


class _Recorder:
    def __init__(self, file: Path) -> None:
        self._file = file

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test counts when it is called; what fails or skips before or after that, too."""
        if report.when != "call" and report.passed:
            return
        told = {"test": report.nodeid, "outcome": report.outcome, **dict(report.user_properties)}
        if not report.passed:
            told["reason"] = _find_reason(report)
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(told) + "\n")


def _find_reason(report: pytest.TestReport) -> str:
    if isinstance(report.longrepr, tuple):  # file, line and reason of a skip
        return report.longrepr[2].removeprefix("Skipped: ")[:LONGEST]
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(crash.message if crash else report.longreprtext)[:LONGEST]
