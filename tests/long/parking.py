"""SIGKILL at every call that matters of an apply that deletes a parked topic whose time is over,
and of the recoveries from some of its deaths: what the next apply puts right."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from random import Random

from ..kit.kafka.clusters import HELD, own_sandbox
from ..reliability.crash import crashes, lanes, park_lane
from .crashes import LANES, SECONDS, SEED, STARTS
from .figures import Figures


def run(scale: float) -> Figures:
    """scale: the share of all points; which and in what order, KAFKAFORM_CRASH_SEED decides."""
    begun, random, tally = time.monotonic(), Random(SEED), lanes.Tally()
    with (
        own_sandbox(f"parking-{os.getpid()}", config=HELD) as box,
        tempfile.TemporaryDirectory() as home,
        lanes.town(box.bootstrap, box.admin_password, Path(home)) as town,
    ):
        over = park_lane.open_lanes(town, Path(home), LANES)
        calls = crashes.counted(over[0])
        found = crashes.strikes(over[0], calls, random, STARTS, tally)
        tasks = crashes.shuffle(found, random, tally)[: max(1, int(len(found) * scale))]
        left = lanes.spread(over, tasks, SECONDS)
    print(f"  KAFKAFORM_CRASH_SEED={SEED}")
    return Figures("parking", tally.count(left), tuple(tally.violations), time.monotonic() - begun)
