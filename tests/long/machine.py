"""The model in its long form: schedules of every fault, death, forgery and rival, one seed after
the other, and random worlds in which nothing may be deleted that is not ours."""

from __future__ import annotations

import os
import time
from collections import Counter

from ..model import triples
from ..model.schedule import drawn, play, shortest, told
from .figures import Figures

STEPS, TRIPLES = 100_000, 10_000
SEED = int(os.environ.get("KAFKAFORM_SEED", "20261122"))
"""Of the first schedule; each next one has the next number."""
ENOUGH = 5
"""Failures after which it is known that something is wrong."""


def run(scale: float) -> Figures:
    """At scale 1: 100,000 steps and 10,000 triples. A schedule that fails is made shorter and
    kept; the message names its file."""
    begun = time.monotonic()
    counts: Counter[str] = Counter()
    violations: list[str] = []
    seed = SEED
    while counts["steps"] < STEPS * scale and len(violations) < ENOUGH:
        steps = drawn(seed)
        failure = play(steps)
        counts.update(schedules=1, steps=len(failure.steps if failure else steps))
        counts["applies"] += sum(rule in ("apply", "apply_saved", "resume") for rule, _ in steps)
        if failure is not None:
            violations.append(f"seed {seed}: {told(shortest(failure), f'seed-{seed}')}")
        seed += 1
    for number in range(SEED, SEED + round(TRIPLES * scale)):
        verdict = triples.judged(number)
        counts["triples"] += 1
        counts["deletes planned there"] += verdict.planned
        counts["deletes done there"] += verdict.gone
        violations += [f"triple {number}: {text}" for text in verdict.wrong]
    name = f"machine (seed {SEED} to {seed - 1})"
    return Figures(name, counts, tuple(violations), time.monotonic() - begun)
