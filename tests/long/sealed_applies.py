"""SIGKILL at every call that matters of an apply that seals its log, and of the recoveries from
some of its deaths: what the next apply puts right."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from random import Random

from ..reliability.crash import crashes, lanes
from ..reliability.crash.http_lane import open_lanes
from ..reliability.crash.test_sealed_applies import open_sealing_store
from .crashes import SECONDS, SEED, STARTS
from .figures import Figures

LANES = 6


def run(scale: float) -> Figures:
    """scale: the share of all points; which and in what order, KAFKAFORM_CRASH_SEED decides."""
    begun, tally = time.monotonic(), lanes.Tally()
    with (
        tempfile.TemporaryDirectory() as home,
        open_lanes(open_sealing_store, Path(home), LANES) as over,
    ):
        random, calls = Random(SEED), crashes.counted(over[0])
        found = crashes.strikes(over[0], calls, random, STARTS, tally)
        tasks = crashes.shuffle(found, random, tally)
        left = lanes.spread(over, tasks[: max(1, int(len(tasks) * scale))], SECONDS)
    print(f"  KAFKAFORM_CRASH_SEED={SEED}")
    counts = {
        "crash points": tally.points.total(),
        **dict(sorted(tally.points.items())),
        "ended before": tally.ended,
        "not reached": left,
    }
    return Figures("sealed_applies", counts, tuple(tally.violations), time.monotonic() - begun)
