"""An `apply --all` that is killed anywhere leaves nothing in any folder that the next one does not
put right: each folder keeps its promises, and the ones that were not begun are applied."""

from __future__ import annotations

import os
import signal
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from ...kit import promises
from . import crashes, lanes
from .folder_lanes import ALL, NAMES, FoldersLane, make_lanes
from .kill_lane import kill
from .lanes import Tally, Town

pytestmark = pytest.mark.timeout(600)
SEED = int(os.environ.get("KAFKAFORM_CRASH_SEED", "20260101"))
LANES, POINTS, RECOVERIES = 2, 14, 2


@pytest.fixture(scope="module")
def over(town: Town, tmp_path_factory: pytest.TempPathFactory) -> list[FoldersLane]:
    return make_lanes(town, tmp_path_factory.mktemp("repositories"), LANES)


def test_an_apply_of_all_folders_is_killed_anywhere(over: list[FoldersLane]) -> None:
    """At moments spread over the whole run, and over a recovery: the folder in which it died
    recovers, those before it have nothing to do, those after it are applied, and the folder that
    reads outputs gets the value of this round."""
    print(f"KAFKAFORM_CRASH_SEED={SEED}")
    random, tally = Random(SEED), Tally()
    calls = crashes.counted(over[0])
    every = list(crashes.every(calls))
    size = len(every) // POINTS
    points = [random.choice(every[start : start + size]) for start in range(0, size * POINTS, size)]
    (first,) = crashes.firsts(calls, random, 1)
    recovery = list(crashes.every(calls[: len(calls) // 2], first))
    points += random.sample(recovery, RECOVERIES)
    lanes.spread(over, [partial(crashes.strike, point=point, tally=tally) for point in points])
    print(len(calls), dict(tally.points), "ended before:", tally.ended)
    assert not tally.violations, "\n".join(tally.violations)
    assert tally.points.total() >= len(points) - 2


def test_what_was_not_begun_stays_untouched(over: list[FoldersLane]) -> None:
    """A kill at the first request leaves the other folders as they were; the folder that reads
    outputs is never begun before the one that provides them has ended."""
    lane = over[1]
    lane.declare()
    calls = lane.run(lane.words, traced=True).calls
    assert not tuple(lane.faults())
    sends = [
        number
        for number, (before, call) in enumerate(pairwise(calls), start=2)
        if before == "fsync" and call in ("send", "sendall")
    ]
    for moment in (sends[0], sends[len(sends) // 2], sends[-1]):
        lane.declare()
        logs = {part.prefix: len(promises.read_lines(part.folder.path)) for part in lane.parts}
        lane.run(lane.words, crashes.Strike(moment, crashes.BEFORE))
        grown = {
            part.folder.path.name
            for part in lane.parts
            if len(promises.read_lines(part.folder.path)) > logs[part.prefix]
        }
        if "app" in grown:
            platform = lane.parts[NAMES.index("platform")]
            assert platform.folder.records()[-1].kind == "run_end"
        assert not tuple(lane.faults())


def test_a_signal_names_the_folders_that_were_not_begun(
    over: list[FoldersLane], tmp_path: Path
) -> None:
    """SIGTERM while a folder is applied: its batch is recorded, the others are named, exit 143."""
    lane = over[0]
    lane.declare()
    platform = lane.parts[NAMES.index("platform")].folder
    size = platform.log.stat().st_size
    process = lane.folder.start(*ALL)
    try:
        while process.poll() is None and platform.log.stat().st_size == size:
            pass
        process.send_signal(signal.SIGTERM)
        ended = process.finish()
    finally:
        kill(process)
    assert ended.code == 143, ended.out
    assert "app was skipped: interrupted before it was begun" in ended.out
    assert "side was skipped: interrupted before it was begun" in ended.out
    intents, ends = promises.pairs(platform.records())
    assert intents == ends
    assert not tuple(lane.faults())
