"""The whole engine against everything at once: faults, deaths, forgeries, rivals, new wishes.

The steps and what must hold after each are in `machine`; `tests/long/machine.py` plays a hundred
thousand of them.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from ..kit.quick import examples
from . import replay
from .machine import RULES, START, Machine, Step, numbered
from .mutants import mutated
from .schedule import Failure, drawn, failed, keep, load, play, shortest, told
from .shapes import Either, Pick, record, strategy

STEPS = strategy(
    Either(
        [
            record(rule=Pick((name,)), arguments=arguments)
            for name, (weight, arguments) in RULES.items()
            for _ in range(weight)
        ]
    )
)


class Engine(RuleBasedStateMachine):
    """Hypothesis draws the steps, and makes a failing schedule short."""

    @initialize(start=strategy(START))
    def start(self, start: dict[str, Any]) -> None:
        self.steps: list[Step] = [("start", start)]
        self.numbered = numbered()
        self.numbered.__enter__()
        self.machine = Machine(**start)

    @rule(step=STEPS)
    def step(self, step: dict[str, Any]) -> None:
        self._do(step["rule"], step["arguments"])

    def _do(self, name: str, arguments: dict[str, Any]) -> None:
        self.steps.append((name, arguments))
        try:
            self.machine.do(name, arguments)
        except Exception as error:
            raise AssertionError(told(failed(self.steps, error), "hypothesis")) from error

    def teardown(self) -> None:
        if hasattr(self, "machine"):
            try:
                self._do("calm", {})
            finally:
                self.numbered.__exit__(None, None, None)


EXAMPLES = int(os.environ.get("KAFKAFORM_MODEL_EXAMPLES", "0"))
Engine.TestCase.settings = settings(
    max_examples=EXAMPLES or examples(40),
    stateful_step_count=25,
    deadline=None,
    derandomize=not EXAMPLES,
    database=None,
    suppress_health_check=list(HealthCheck),
)
TestEngine = Engine.TestCase


# ── the machine itself ──────────────────────────────────────────────────────────────────

SEARCHED = 40
"""Schedules in which a deliberate fault must show itself, from seed 5000 on."""
LATER = pytest.mark.slow("searches for a second")
QUICKLY_FOUND = (
    "unknown counts as applied",
    "sent before its intent",
    pytest.param("always superseded", marks=LATER),
    "the state is never saved",
    pytest.param("no patience", marks=LATER),
    "no recovery",
    "what the log knows is not taken in",
    "no protection",
    pytest.param("deletes need no proof", marks=LATER),
    "no lock",
    pytest.param("a log that was cut off is believed", marks=LATER),
)
"""What takes a second at most; `tests/long/mutants.py` looks for all."""


@cache
def found(name: str) -> Failure | None:
    """The first failure of an engine with this fault."""
    with mutated(name):
        return next(filter(None, (play(drawn(5000 + n)) for n in range(SEARCHED))), None)


@pytest.mark.parametrize("name", QUICKLY_FOUND)
def test_the_machine_finds(name: str) -> None:
    """An engine with one deliberate fault breaks a promise within a few schedules."""
    assert found(name) is not None


@pytest.mark.slow("plays dozens of schedules")
def test_a_failing_schedule_is_kept_and_fails_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What failed is made shorter and saved; playing the file fails the same way as long as the
    fault is there, and holds without it."""
    fault = "what the log knows is not taken in"
    failure = found(fault)
    assert failure is not None
    with mutated(fault):
        short = shortest(failure, tries=40)
        path = keep(short, "kept", tmp_path)
        assert len(short.steps) < len(failure.steps)
        assert load(path) == short.steps
        assert play(load(path)) == short
        assert replay.main(path) == 1
    assert short.message in capsys.readouterr().out
    assert replay.main(path) == 0


def test_a_seed_is_a_schedule() -> None:
    """The same seed draws the same steps and does the same, down to the bytes of log and state."""
    assert drawn(7) == drawn(7) != drawn(8)
    assert _bytes(7) == _bytes(7)


def _bytes(seed: int) -> list[Any]:
    start, *steps = drawn(seed, 15)
    with numbered():
        machine = Machine(**start[1])
        for name, arguments in steps:
            machine.do(name, arguments)
    return [(h.house.backend.versions, h.house.sink.whole) for h in machine.homes]
