"""An apply that seals its log at its end, killed at calls of all of it: the five promises hold as
for a log that is not sealed. `python -m tests.long sealed_applies` tries all calls."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random

import pytest

from ...kit.http.store import StoreSystem, open_store
from ...kit.promises import SEGMENTS
from ...kit.sealing import SEALS_SOON
from . import crashes, lanes
from .http_lane import HttpLane, open_lanes
from .lanes import Tally

SEED = int(os.environ.get("KAFKAFORM_CRASH_SEED", "20260101"))
LANES, POINTS, RECOVERIES = 4, 18, 4


@contextmanager
def open_sealing_store(path: Path) -> Iterator[StoreSystem]:
    """A store with a folder whose applies seal their log."""
    with open_store(path) as system:
        system.folder = replace(system.folder, program=SEALS_SOON)
        yield system


@pytest.fixture(scope="module")
def over(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sequence[HttpLane]]:
    """Lanes in which an apply comes that has everything to do."""
    scratch: Path = tmp_path_factory.mktemp("sealed")
    with open_lanes(open_sealing_store, scratch, LANES) as made:
        yield made


@pytest.mark.timeout(600)
@pytest.mark.slow("starts a hundred commands")
def test_a_crash_while_a_log_is_sealed(over: Sequence[HttpLane]) -> None:
    """SIGKILL before and in the middle of calls, more of them in the last half of a run, in which
    it seals its log; also of a recovery. Applied again, everything holds; once more, and nothing
    is written."""
    print(f"KAFKAFORM_CRASH_SEED={SEED}")
    random, tally = Random(SEED), Tally()
    calls = crashes.counted(over[0])
    assert (over[0].folder.path / SEGMENTS / "manifest.json").exists()
    assert "rename" in calls, "the run did not seal its log"
    points = list(crashes.every(calls))
    late = [point for point in points if point.last.number > len(calls) / 2]
    recovery = crashes.recoveries(over[0], crashes.firsts(calls, random, 4)[-2::-1])
    chosen = [*random.sample(late, POINTS), *random.sample(points, RECOVERIES)]
    chosen += random.sample(recovery, RECOVERIES)
    lanes.spread(over, [partial(crashes.strike, point=point, tally=tally) for point in chosen])
    print(dict(tally.points), "ended before:", tally.ended)
    assert not tally.violations, "\n".join(tally.violations)
    assert tally.points.total() >= len(chosen) / 2
