"""Whoever presses Ctrl-C at a terminal, once or twice, or ends a pipeline's job, is told in a
sentence what happened, and the next apply goes on."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from ...kit.commands.process_folder import Folder
from ...kit.proxy.proxy import proxying
from .interrupted import STAGES, Case, faults, matrix

SHORT = (
    ("reading", signal.SIGTERM, 1),
    ("the question", signal.SIGINT, 2),
    ("sending", signal.SIGINT, 1),
    ("a lock", signal.SIGINT, 1),
    ("recovery", signal.SIGINT, 1),
    ("sending", signal.SIGTERM, 2),
)
"""The whole matrix: `python -m tests.long interrupts`."""
LANES = 3


@pytest.fixture(scope="module")
def found(broker: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Any, list[str]]]:
    """What was wrong with each of them, some at a time."""
    host, _, port = broker.bootstrap.partition(":")
    assert host
    home = tmp_path_factory.mktemp("interrupts")

    def lane(number: int) -> dict[Any, list[str]]:
        path = home / f"i{number}"
        path.mkdir()
        with proxying(int(port)) as proxy:
            folder = Folder(path, proxy.bootstrap, broker.admin_password, "3s")
            case = Case(folder, proxy, f"{os.getpid()}-{path.name}-")
            case.more()
            case.settle()
            return {
                (name, signal_, times): list(faults(case, STAGES[name], signal_, times))
                for name, signal_, times in SHORT[number::LANES]
            }

    with ThreadPoolExecutor(LANES) as pool:
        each = list(pool.map(lane, range(LANES)))
    yield {key: value for one in each for key, value in one.items()}


@pytest.mark.timeout(200)
@pytest.mark.parametrize(("stage", "number", "times"), SHORT)
def test_interrupts(found: Any, stage: str, number: signal.Signals, times: int) -> None:
    """The exit code is the signal's, the terminal is as it was, one sentence says what happened
    and how to go on, nothing is half-written, and the next apply ends with nothing left to do."""
    assert not found[stage, number, times]


def test_matrix() -> None:
    """The long form covers every stage with both signals, once and twice."""
    assert len(matrix()) == 4 * len(STAGES) and set(SHORT) <= set(matrix())
