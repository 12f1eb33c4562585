"""An apply to a system that speaks HTTP, killed at any call that matters, leaves nothing that the
next one does not put right."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from random import Random

import pytest

from ...kit.commands.struck import AFTER, BEFORE, HALF
from . import crashes, lanes
from .lanes import Tally
from .store_lane import StoreLane, open_lanes

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.slow("starts a hundred commands, some of which wait for lost requests"),
]
SEED = int(os.environ.get("KAFKAFORM_CRASH_SEED", "20260101"))
LANES, RECOVERIES, SENDS = 3, 3, 6


@pytest.fixture(scope="module")
def over(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sequence[StoreLane]]:
    """Lanes in which an apply comes that has everything to do."""
    with open_lanes(tmp_path_factory.mktemp("stores"), LANES) as made:
        yield made


def test_a_crash_at_each_kind_of_call(over: Sequence[StoreLane]) -> None:
    """SIGKILL before, in the middle of and after writes, syncs and requests, of an apply and of a
    recovery: applied again, the five promises hold; once more, and nothing is written."""
    print(f"KAFKAFORM_CRASH_SEED={SEED}")
    random, tally = Random(SEED), Tally()
    calls = crashes.counted(over[0])
    points = list(crashes.every(calls))
    random.shuffle(points)
    by_kind = {(p.last.how, calls[p.last.number - 1]): p for p in points}
    assert {(how, "sendall") for how in (BEFORE, HALF, AFTER)} <= by_kind.keys()
    chosen = [*by_kind.values()]
    chosen += [p for p in points if calls[p.last.number - 1] == "sendall"][:SENDS]
    (first,) = crashes.firsts(calls, random, 1)
    recovery = list(crashes.every(calls[: len(calls) // 2], first))
    chosen += random.sample(recovery, RECOVERIES)
    lanes.spread(over, [partial(crashes.strike, point=point, tally=tally) for point in chosen])
    print(dict(tally.points), "ended before:", tally.ended)
    assert not tally.violations, "\n".join(tally.violations)
    assert tally.points.total() >= len(chosen) - 2
