"""Every request of an apply that stores a checkpoint is struck in every way, and that of the next
apply, which recovers, too."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from random import Random

from ..reliability.crash.struck_checkpoints import WAYS, Blow, strike_apply
from .figures import Figures

PAIRS = 400


def run(scale: float) -> Figures:
    """Every single blow, and so many pairs of them."""
    start, violations, blows = time.monotonic(), list[str](), 0
    random = Random(20260101)
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("local", "remote"):
            calm = strike_apply(Path(folder, "calm"), kind, [Blow(10_000, "before")])
            single = [[Blow(n + 1, way)] for n in range(len(calm.requests)) for way in WAYS]
            pairs = [
                [Blow(random.randint(1, len(calm.requests)), random.choice(WAYS)) for _ in "12"]
                for _ in range(round(PAIRS * scale))
            ]
            for case in (*single, *pairs):
                blows += len(case)
                struck = strike_apply(Path(folder, "struck"), kind, case)
                violations += [f"{kind} {case}: {fault}" for fault in struck.faults]
    counts = {"blows": blows}
    return Figures("checkpoints", counts, tuple(violations), time.monotonic() - start)
