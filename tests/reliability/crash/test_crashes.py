"""An apply that is killed at any call that matters leaves nothing that the next one does not put
right; `python -m tests.long crashes` tries all of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random

import pytest
from msgspec.structs import asdict

from kafkaform.state.model import LockInfo

from ...kit import promises
from ...kit.commands.server import REPOSITORY
from ...kit.commands.struck import AFTER, BEFORE, HALF, Strike
from ...kit.lane import APPLY, KILLED
from . import crashes, lanes, park_lane, traced
from .lanes import CrashLane, Point, Tally, Town

pytestmark = pytest.mark.timeout(600)
SEED = int(os.environ.get("KAFKAFORM_CRASH_SEED", "20260101"))
LANES, RECOVERIES, CUTS, MOMENTS = 3, 3, 2, 8
OUTSIDE = (("fsync", 20), ("sendto", 50))
KINDS = {
    *((BEFORE, call) for call in ("ftruncate", "posix_fallocate", "fsync", "unlink", "link")),
    (BEFORE, "replace"),
    *((how, call) for how in (BEFORE, HALF) for call in ("write", "pwrite")),
    *((how, "send") for how in (BEFORE, HALF, AFTER)),
}
"""All kinds of points that an apply has."""


@pytest.fixture(scope="module")
def over(town: Town, tmp_path_factory: pytest.TempPathFactory) -> list[CrashLane]:
    """Lanes in which an apply comes that has everything to do."""
    return lanes.lanes(town, tmp_path_factory.mktemp("lanes"), LANES)


def sample(calls: Sequence[str], random: Random) -> list[Point]:
    """One point of each kind."""
    points = list(crashes.every(calls))
    random.shuffle(points)
    return list({(p.last.how, calls[p.last.number - 1]): p for p in points}.values())


@pytest.fixture(scope="module")
def calls(over: list[CrashLane]) -> tuple[str, ...]:
    """The calls of such an apply, in order."""
    return crashes.counted(over[0])


def test_a_crash_at_each_kind_of_call(over: list[CrashLane], calls: tuple[str, ...]) -> None:
    """SIGKILL before, in the middle of and after writes, syncs, renames, links and sends, of an
    apply and of a recovery: applied again, the five promises hold; once more, and nothing is
    written."""
    print(f"KAFKAFORM_CRASH_SEED={SEED}")
    random, tally = Random(SEED), Tally()
    points = sample(calls, random)
    assert {(p.last.how, calls[p.last.number - 1]) for p in points} == KINDS
    (first,) = crashes.firsts(calls, random, 1)
    recovery = list(crashes.every(calls[: len(calls) // 2], first))
    points += random.sample(recovery, RECOVERIES)
    lanes.spread(over, [partial(crashes.strike, point=point, tally=tally) for point in points])
    print(dict(tally.points), "ended before:", tally.ended)
    assert not tally.violations, "\n".join(tally.violations)
    assert tally.points.total() >= len(points) - 2


def test_a_crash_while_a_parked_topic_is_deleted(
    town: Town, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Its time is over, and its ACLs go with it: applied again, the topic is gone, and nobody is
    denied a name that somebody may use again."""
    print(f"KAFKAFORM_CRASH_SEED={SEED}")
    over = park_lane.open_lanes(town, tmp_path_factory.mktemp("parked"), LANES)
    random, tally = Random(SEED), Tally()
    calls = crashes.counted(over[0])
    writes = crashes.firsts(calls, random, 3)
    assert writes, "the topic and its ACLs are deleted behind a durable intent"
    points = sample(calls, random)
    points += [Point(Strike(at.number, how)) for at in writes for how in (BEFORE, HALF, AFTER)]
    lanes.spread(over, [partial(crashes.strike, point=point, tally=tally) for point in points])
    print(dict(tally.points), "ended before:", tally.ended)
    assert not tally.violations, "\n".join(tally.violations)
    assert tally.points.total() >= len(points) / 2


@pytest.mark.skipif(not traced.installed(), reason=traced.MISSING)
def test_a_crash_at_a_system_call(over: list[CrashLane]) -> None:
    """The same from outside, where nothing of the product is replaced."""
    tally = Tally()
    lanes.spread(
        over, [partial(crashes.from_outside, call=c, number=n, tally=tally) for c, n in OUTSIDE]
    )
    assert not tally.violations, "\n".join(tally.violations)
    assert tally.points.total() == len(OUTSIDE)


def test_the_owner_of_another_boot(over: list[CrashLane], calls: tuple[str, ...]) -> None:
    """The lock of a run that died with its machine names a process that is somebody else's now:
    the next run takes it, and recovers."""
    lane = over[0]
    moments = crashes.firsts(calls, Random(SEED), MOMENTS)
    crashes.die_where(lane, moments, lambda records: bool(promises.open_intents(records)))
    owner = LockInfo(
        "0123456789ab", "ci", "before-the-reboot", os.getpid(), "2026-01-01T00:00:00Z", "apply"
    )
    (lane.folder.path / ".kafkaform" / "lock").write_text(json.dumps(asdict(owner)), "utf-8")
    assert not tuple(lane.faults())


def test_half_an_outcome(over: list[CrashLane], calls: tuple[str, ...]) -> None:
    """An outcome that a crash cut off at any byte is found out again by reading, and what is left
    of it is kept aside and told of."""
    tally, torn = Tally(), crashes.torn_outcome(over[0], calls)
    cuts = Random(SEED).sample(range(1, torn.length), CUTS)
    lanes.spread(over, [partial(crashes.cut, torn=torn, at=at, tally=tally) for at in cuts])
    assert not tally.violations, "\n".join(tally.violations)


def test_a_point_by_hand(tmp_path: Path) -> None:
    """`python -m tests.kit.commands.struck` replays a point of any command in any folder."""
    folder, trace = tmp_path / "folder", tmp_path / "trace"
    folder.mkdir()
    (folder / "main.kf.hcl").write_text('output "x" { value = 1 }\n', "utf-8")
    struck = (sys.executable, "-m", "tests.kit.commands.struck", str(trace))
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}

    def run(*strike: str) -> int:
        words = (*struck, *strike, "--", *APPLY)
        return subprocess.run(words, cwd=folder, env=environment, capture_output=True).returncode

    assert run("4", BEFORE) == KILLED
    assert trace.read_text().splitlines()[-1] == f"4 fsync {BEFORE}"
    assert list(folder.glob(".*.tmp"))
    assert run() == 0
    assert {path.name for path in folder.iterdir()} <= promises.FILES
