"""An apply to a system that speaks HTTP, killed at any call that matters, leaves nothing that the
next one does not put right: the example's store, a schema registry (also with schemas that refer to
the newest version of others), workers of Kafka Connect.
`python -m tests.long http_crashes` tries all calls."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from random import Random

import pytest

from ...kit.commands.struck import AFTER, BEFORE, HALF
from ...kit.connect.rounds import open_workers
from ...kit.http.store import StoreSystem, open_store
from ...kit.schema_registry.rounds import open_family, open_registry
from . import crashes, lanes
from .http_lane import HttpLane, list_moments, open_lanes
from .lanes import Tally

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.slow("starts a hundred commands, some of which wait for lost requests"),
]
SEED = int(os.environ.get("KAFKAFORM_CRASH_SEED", "20260101"))
LANES, RECOVERIES, MOMENTS = 4, 3, 4
BETWEEN = {(BEFORE, "fsync"), (HALF, "write"), (BEFORE, "replace"), (BEFORE, "sendall")}
"""Kinds of points of which every system has one: before a record is durable, with half of it, when
the outcome is durable and the state is not, before a request that only asks."""
SYSTEMS = {
    "store": open_store,
    "schema registry": open_registry,
    "schemas that follow others": open_family,
    "workers": open_workers,
}


@pytest.fixture(scope="module", params=SYSTEMS.values(), ids=SYSTEMS)
def over(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Sequence[HttpLane]]:
    """Lanes in which an apply comes that has everything to do."""
    scratch: Path = tmp_path_factory.mktemp("systems")
    with open_lanes(request.param, scratch, LANES) as made:
        yield made


def test_a_crash_at_each_kind_of_call(over: Sequence[HttpLane]) -> None:
    """SIGKILL before, in the middle of and after writes, syncs and requests, of an apply and of a
    recovery: applied again, the five promises hold; once more, and nothing is written. What does
    not depend on the system is tried with the store."""
    print(f"KAFKAFORM_CRASH_SEED={SEED}")
    random, tally = Random(SEED), Tally()
    calls = crashes.counted(over[0])
    points = list(crashes.every(calls))
    random.shuffle(points)
    by_kind = {(p.last.how, calls[p.last.number - 1]): p for p in points}
    assert {(how, "sendall") for how in (BEFORE, HALF, AFTER)} <= by_kind.keys()
    # How often a run asks differs, so a late call may not come again: then an earlier one is taken.
    recovery = crashes.recoveries(over[0], crashes.firsts(calls, random, MOMENTS)[-2::-1])
    whole = isinstance(over[0].system, StoreSystem)
    chosen = [point for kind, point in by_kind.items() if whole or kind in BETWEEN]
    assert len(chosen) >= len(BETWEEN)
    chosen += random.sample(recovery, RECOVERIES)
    lanes.spread(over, [partial(crashes.strike, point=point, tally=tally) for point in chosen])
    print(dict(tally.points), "ended before:", tally.ended)
    assert not tally.violations, "\n".join(tally.violations)
    # How often an apply asks, and so which call is the nth one, differs a little.
    assert tally.points.total() >= len(chosen) / 2


def test_a_crash_around_each_request(over: Sequence[HttpLane]) -> None:
    """SIGKILL before each request that changes something is sent, in the middle of it, and before
    its answer comes: none was sent without a durable intent, none more often than it was
    intended, and nothing was deleted that the state did not have."""
    tally, points = Tally(), list_moments(over[0].system)
    lanes.spread(over, [partial(crashes.strike, point=point, tally=tally) for point in points])
    print(dict(tally.points), "ended before:", tally.ended)
    assert not tally.violations, "\n".join(tally.violations)
    assert tally.points.total() >= 3 * len(over[0].system.requests)
