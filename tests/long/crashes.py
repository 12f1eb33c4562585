"""SIGKILL at every call that matters of an apply, and of the recoveries from some of its deaths:
what the next apply puts right."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from random import Random

from ..kit.kafka.clusters import HELD, own_sandbox
from ..reliability.crash import crashes, lanes
from .figures import Figures

SEED = int(os.environ.get("KAFKAFORM_CRASH_SEED", "20260101"))
SECONDS = float(os.environ.get("KAFKAFORM_CRASH_SECONDS", "inf"))
"""After which no further point is begun: for machines that others use too."""
LANES, STARTS = 10, 2


def run(scale: float) -> Figures:
    """scale: the share of all points; which and in what order, KAFKAFORM_CRASH_SEED decides."""
    begun, tally = time.monotonic(), lanes.Tally()
    with (
        own_sandbox(f"crashes-{os.getpid()}", config=HELD) as box,
        tempfile.TemporaryDirectory() as home,
    ):
        scratch = Path(home)
        with lanes.town(box.bootstrap, box.admin_password, scratch) as town:
            over = lanes.lanes(town, scratch, LANES)
            tasks = crashes.tasks(over[0], Random(SEED), STARTS, tally)
            tasks = tasks[: max(1, int(len(tasks) * scale))]
            left = lanes.spread(over, tasks, SECONDS)
    print(f"  KAFKAFORM_CRASH_SEED={SEED}")
    return Figures("crashes", tally.count(left), tuple(tally.violations), time.monotonic() - begun)
