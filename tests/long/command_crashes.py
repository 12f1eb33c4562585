"""SIGKILL at every call that matters of an `alter group` and an `alter schema`, and of the
recoveries from some of their deaths: what the next run and the same command put right."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from random import Random

from ..kit.kafka.clusters import HELD, own_sandbox
from ..reliability.crash import command_lanes, crashes, lanes
from ..reliability.crash.command_lanes import CommandLane
from .crashes import SECONDS, SEED, STARTS
from .figures import Figures

LANES = 4


def run(scale: float) -> Figures:
    """scale: the share of all points; which and in what order, KAFKAFORM_CRASH_SEED decides."""
    begun, tally, left = time.monotonic(), lanes.Tally(), 0
    with tempfile.TemporaryDirectory() as home, _open_makers(Path(home)) as makers:
        for make in makers:
            over = [make(number) for number in range(LANES)]
            random, calls = Random(SEED), crashes.counted(over[0])
            tasks = crashes.shuffle(
                crashes.strikes(over[0], calls, random, STARTS, tally), random, tally
            )
            left += lanes.spread(over, tasks[: max(1, int(len(tasks) * scale))], SECONDS)
    print(f"  KAFKAFORM_CRASH_SEED={SEED}")
    return Figures(
        "command_crashes", tally.count(left), tuple(tally.violations), time.monotonic() - begun
    )


@contextmanager
def _open_makers(home: Path) -> Iterator[list[Callable[[int], CommandLane]]]:
    """For each kind of command what makes its lane of this number."""

    def make_group_lane(kind: str, number: int) -> CommandLane:
        name = f"{kind.replace(' ', '_')}{number}"
        return command_lanes.make_group_lane(town, home, name, kind)

    def make_version_lane(kind: str, number: int) -> CommandLane:
        return command_lanes.make_version_lane(stack, home, f"{kind}_version{number}", kind)

    with (
        own_sandbox(f"commands-{os.getpid()}", config=HELD) as box,
        lanes.town(box.bootstrap, box.admin_password, home) as town,
        ExitStack() as stack,
    ):
        yield [
            *(partial(make_group_lane, kind) for kind in command_lanes.GROUP_KINDS),
            *(partial(make_version_lane, kind) for kind in command_lanes.VERSION_KINDS),
        ]
