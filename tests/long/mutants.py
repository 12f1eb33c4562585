"""Every deliberate fault of the engine is seen by the machine, and how soon."""

from __future__ import annotations

import time

from ..model.mutants import MUTANTS, mutated
from ..model.schedule import drawn, play
from .figures import Figures

SCHEDULES = 150
"""In which a fault must show itself; more at a scale above 1."""


def run(scale: float) -> Figures:
    """A violation is a fault that no schedule showed."""
    begun = time.monotonic()
    counts = {"faults": 0, "found": 0, "steps": 0}
    missed = []
    for name in MUTANTS:
        counts["faults"] += 1
        steps = _found(name, max(SCHEDULES, round(SCHEDULES * scale)))
        counts["found"] += steps is not None
        counts["steps"] += steps or 0
        if steps is None:
            missed.append(f"not seen: {name}")
    return Figures("mutants", counts, tuple(missed), time.monotonic() - begun)


def _found(name: str, schedules: int) -> int | None:
    """How many steps it took until a promise was broken; None if none was."""
    done = 0
    with mutated(name):
        for number in range(schedules):
            steps = drawn(5000 + number)
            failure = play(steps)
            done += len(failure.steps if failure else steps)
            if failure is not None:
                return done
    return None
