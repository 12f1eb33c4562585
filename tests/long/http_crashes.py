"""SIGKILL at every call that matters of an apply to systems that speak HTTP, and of the recoveries
from some of its deaths: what the next apply puts right."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from random import Random

from ..kit.connect.rounds import open_workers
from ..kit.schema_registry.rounds import open_family, open_registry
from ..reliability.crash import crashes, lanes
from ..reliability.crash.http_lane import open_lanes
from .crashes import SECONDS, SEED, STARTS
from .figures import Figures

LANES = 6
OPENERS = (open_registry, open_family, open_workers)


def run(scale: float) -> Figures:
    """scale: the share of all points; which and in what order, KAFKAFORM_CRASH_SEED decides."""
    begun, tally, left = time.monotonic(), lanes.Tally(), 0
    for opener in OPENERS:
        with tempfile.TemporaryDirectory() as home, open_lanes(opener, Path(home), LANES) as over:
            random, calls = Random(SEED), crashes.counted(over[0])
            found = crashes.strikes(over[0], calls, random, STARTS, tally)
            tasks = crashes.shuffle(found, random, tally)
            tasks = tasks[: max(1, int(len(tasks) * scale))]
            left += lanes.spread(over, tasks, SECONDS)
    print(f"  KAFKAFORM_CRASH_SEED={SEED}")
    return Figures(
        "http_crashes", tally.count(left), tuple(tally.violations), time.monotonic() - begun
    )
