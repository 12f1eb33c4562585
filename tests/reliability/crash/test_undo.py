"""An `undo` that is killed at any call that matters: typed again, it ends what it began, what the
run had changed is as before, and the five promises hold. `python -m tests.long undos` tries all."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from random import Random

import pytest

from ...kit.commands.struck import AFTER, BEFORE, HALF
from . import crashes, lanes, undone
from .http_lane import HttpLane, list_moments, open_lanes
from .lanes import Tally

pytestmark = [pytest.mark.timeout(600), pytest.mark.slow("starts a hundred commands")]
SEED = int(os.environ.get("KAFKAFORM_CRASH_SEED", "20260101"))
LANES, RECOVERIES = 3, 4


@pytest.fixture(scope="module")
def over(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sequence[HttpLane]]:
    """Lanes in which an apply comes that has everything to do."""
    scratch: Path = tmp_path_factory.mktemp("undone")
    with open_lanes(undone.open_steady_store, scratch, LANES) as made:
        yield made


def test_a_crash_at_each_kind_of_call(over: Sequence[HttpLane]) -> None:
    """SIGKILL before, in the middle of and after writes, syncs and requests, of an undo and of one
    that follows a dead one."""
    print(f"KAFKAFORM_CRASH_SEED={SEED}")
    random, tally = Random(SEED), Tally()
    calls = undone.count_calls(over[0])
    points = list(crashes.every(calls))
    random.shuffle(points)
    by_kind = {(p.last.how, calls[p.last.number - 1]): p for p in points}
    assert {(how, "sendall") for how in (BEFORE, HALF, AFTER)} <= by_kind.keys()
    recovery = undone.list_recoveries(over[0], crashes.firsts(calls, random, 3)[-1])
    chosen = [*by_kind.values(), *random.sample(recovery, RECOVERIES)]
    lanes.spread(over, [partial(undone.strike, point=p, tally=tally) for p in chosen])  # type: ignore[arg-type]
    print(dict(tally.points), "ended before:", tally.ended)
    assert not tally.violations, "\n".join(tally.violations)
    assert tally.points.total() >= len(chosen) / 2


def test_a_crash_around_each_request(over: Sequence[HttpLane]) -> None:
    """SIGKILL before each request that changes something is sent, in the middle of it, and before
    its answer comes."""
    tally, points = Tally(), list_moments(over[0].system)
    lanes.spread(over, [partial(undone.strike, point=p, tally=tally) for p in points])  # type: ignore[arg-type]
    print(dict(tally.points), "ended before:", tally.ended)
    assert not tally.violations, "\n".join(tally.violations)
    assert tally.points.total() >= 3 * len(over[0].system.requests)
