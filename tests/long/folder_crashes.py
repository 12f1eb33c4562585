"""SIGKILL at every call that matters of an `apply --all`, and of the recoveries from some of its
deaths: what the next one puts right, in each folder."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from random import Random

from ..kit.kafka.clusters import HELD, own_sandbox
from ..reliability.crash import crashes, lanes
from ..reliability.crash.folder_lanes import make_lanes
from .crashes import SECONDS, SEED, STARTS
from .figures import Figures

LANES = 4


def run(scale: float) -> Figures:
    """scale: the share of all points; which and in what order, KAFKAFORM_CRASH_SEED decides."""
    begun, tally = time.monotonic(), lanes.Tally()
    with (
        own_sandbox(f"folder-crashes-{os.getpid()}", config=HELD) as box,
        tempfile.TemporaryDirectory() as home,
    ):
        scratch = Path(home)
        with lanes.town(box.bootstrap, box.admin_password, scratch) as town:
            over = make_lanes(town, scratch, LANES)
            random, calls = Random(SEED), crashes.counted(over[0])
            found = crashes.strikes(over[0], calls, random, STARTS, tally)
            tasks = crashes.shuffle(found, random, tally)
            tasks = tasks[: max(1, int(len(tasks) * scale))]
            left = lanes.spread(over, tasks, SECONDS)
    print(f"  KAFKAFORM_CRASH_SEED={SEED}")
    return Figures(
        "folder_crashes", tally.count(left), tuple(tally.violations), time.monotonic() - begun
    )
