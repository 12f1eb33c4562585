"""SIGKILL at every call that matters of an undo, and of the undos that follow some that died: what
the next one puts right."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from random import Random

from ..reliability.crash import lanes, undone
from ..reliability.crash.http_lane import open_lanes
from .crashes import SECONDS, SEED, STARTS
from .figures import Figures

LANES = 6


def run(scale: float) -> Figures:
    """scale: the share of all points; which and in what order, KAFKAFORM_CRASH_SEED decides."""
    begun, tally = time.monotonic(), lanes.Tally()
    with (
        tempfile.TemporaryDirectory() as home,
        open_lanes(undone.open_steady_store, Path(home), LANES) as over,
    ):
        tasks = undone.make_tasks(over[0], Random(SEED), STARTS, tally)
        left = lanes.spread(over, tasks[: max(1, int(len(tasks) * scale))], SECONDS)
    print(f"  KAFKAFORM_CRASH_SEED={SEED}")
    counts = {
        "crash points": tally.points.total(),
        **dict(sorted(tally.points.items())),
        "ended before": tally.ended,
        "not reached": left,
    }
    return Figures("undos", counts, tuple(tally.violations), time.monotonic() - begun)
