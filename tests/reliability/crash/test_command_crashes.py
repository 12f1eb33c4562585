"""An `alter group` or `alter schema` that is killed at any call that matters: the next run finds
out what became of it, there is what was before or what was asked for, and the command can be typed
again. `python -m tests.long command_crashes` tries all calls."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from random import Random

import pytest

from ...kit.commands.struck import AFTER, BEFORE, HALF
from . import command_lanes, crashes, lanes
from .command_lanes import CommandLane
from .lanes import Tally, Town

pytestmark = [pytest.mark.timeout(600), pytest.mark.slow("starts a hundred commands")]
SEED = int(os.environ.get("KAFKAFORM_CRASH_SEED", "20260101"))
LANES, RECOVERIES = 3, 2


@pytest.fixture(scope="module", params=command_lanes.GROUP_KINDS)
def groups(
    request: pytest.FixtureRequest, town: Town, tmp_path_factory: pytest.TempPathFactory
) -> Sequence[CommandLane]:
    """Lanes with groups that have offsets."""
    scratch = tmp_path_factory.mktemp("groups")
    return [
        command_lanes.make_group_lane(town, scratch, f"g{number}", request.param)
        for number in range(LANES)
    ]


@pytest.fixture(scope="module", params=command_lanes.VERSION_KINDS)
def versions(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Sequence[CommandLane]]:
    """Lanes with a subject that has versions."""
    scratch: Path = tmp_path_factory.mktemp("versions")
    with ExitStack() as stack:
        yield [
            command_lanes.make_version_lane(stack, scratch, f"v{number}", request.param)
            for number in range(LANES)
        ]


def test_a_group_survives_a_crash_at_each_kind_of_call(groups: Sequence[CommandLane]) -> None:
    """SIGKILL before, in the middle of and after writes, syncs and sends, of a reset, of a deletion
    of offsets and of a group, and of an apply that recovers from it."""
    strike_each_kind(groups, "send")


def test_a_subject_survives_a_crash_at_each_kind_of_call(versions: Sequence[CommandLane]) -> None:
    """The same of a version that is deleted, and of one that is restored: it is registered once."""
    strike_each_kind(versions, "sendall")


def strike_each_kind(over: Sequence[CommandLane], send: str) -> None:
    """send: how the client of the system sends."""
    print(f"KAFKAFORM_CRASH_SEED={SEED}")
    random, tally = Random(SEED), Tally()
    calls = crashes.counted(over[0])
    points = list(crashes.every(calls))
    random.shuffle(points)
    by_kind = {(p.last.how, calls[p.last.number - 1]): p for p in points}
    assert {(how, send) for how in (BEFORE, HALF, AFTER)} <= by_kind.keys()
    sends = [p for p in points if calls[p.last.number - 1] == send and p.last.how == AFTER]
    (first,) = crashes.firsts(calls, random, 1)
    recovery = random.sample(list(crashes.every(calls[: len(calls) // 2], first)), RECOVERIES)
    chosen = [*by_kind.values(), *sends[-4:], *recovery]
    lanes.spread(over, [partial(crashes.strike, point=p, tally=tally) for p in chosen])
    print(dict(tally.points), "ended before:", tally.ended)
    assert not tally.violations, "\n".join(tally.violations)
    assert tally.points.total() >= len(chosen) / 2
