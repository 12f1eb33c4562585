"""An `alter group` that is killed at any call that matters: the next run finds out what became of
it, the offsets are those before or those that were asked for, and the command can be typed again.
"""

from __future__ import annotations

import os
from functools import partial
from random import Random

import pytest

from ...kit.commands.struck import AFTER, BEFORE, HALF
from . import crashes, group_lane, lanes
from .group_lane import GroupLane
from .lanes import Tally, Town

pytestmark = [pytest.mark.timeout(600), pytest.mark.slow("starts a hundred commands")]
SEED = int(os.environ.get("KAFKAFORM_CRASH_SEED", "20260101"))
LANES, RECOVERIES = 2, 3


@pytest.fixture(scope="module")
def over(town: Town, tmp_path_factory: pytest.TempPathFactory) -> list[GroupLane]:
    """Lanes with groups whose offsets have been set."""
    scratch = tmp_path_factory.mktemp("groups")
    return [group_lane.make_lane(town, scratch, f"g{number}") for number in range(LANES)]


def test_a_crash_at_each_kind_of_call(over: list[GroupLane]) -> None:
    """SIGKILL before, in the middle of and after writes, syncs and sends, of the command and of an
    apply that recovers from it."""
    print(f"KAFKAFORM_CRASH_SEED={SEED}")
    random, tally = Random(SEED), Tally()
    calls = crashes.counted(over[0])
    points = list(crashes.every(calls))
    random.shuffle(points)
    by_kind = {(p.last.how, calls[p.last.number - 1]): p for p in points}
    assert {(how, "send") for how in (BEFORE, HALF, AFTER)} <= by_kind.keys()
    sends = [p for p in points if calls[p.last.number - 1] == "send" and p.last.how == AFTER]
    (first,) = crashes.firsts(calls, random, 1)
    recovery = random.sample(list(crashes.every(calls[: len(calls) // 2], first)), RECOVERIES)
    chosen = [*by_kind.values(), *sends[-4:], *recovery]
    lanes.spread(over, [partial(crashes.strike, point=p, tally=tally) for p in chosen])
    print(dict(tally.points), "ended before:", tally.ended)
    assert not tally.violations, "\n".join(tally.violations)
    assert tally.points.total() >= len(chosen) / 2
