"""A run of the store that is undone, where the undo dies at chosen points and is typed again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random

from ...kit import promises
from ...kit.commands.server import Ended
from ...kit.commands.struck import Strike
from ...kit.http.store import StoreSystem, open_store
from ...kit.lane import AGAIN, APPLY, KILLED, LEFT, find_faults
from ...kit.promises import Before, Thing, World
from . import crashes
from .http_lane import HttpLane
from .lanes import Point, Tally, Task, find_rewritten

IDLE = "There is nothing to change."


class SteadyStore(StoreSystem):
    """A store in whose rounds no link moves: its dry run refuses to delete what a link leads to,
    also if the same plan moves the link away first."""

    def write_round(self, url: str, number: int) -> str:
        moving = f"target = textstore_file.t{number}.name"
        return super().write_round(url, number).replace(moving, "target = textstore_file.stay.name")

    def list_wanted(self, number: int) -> World:
        steady = Thing({"name": "latest", "target": "stay"})
        return {**super().list_wanted(number), ("textstore_link", "latest"): steady}


@contextmanager
def open_steady_store(path: Path) -> Iterator[StoreSystem]:
    """Such a store with a folder at this path."""
    with open_store(path) as system:
        yield SteadyStore(system.folder, system.port, system.store)


def apply_round(lane: HttpLane) -> tuple[tuple[str, ...], World]:
    """Apply the next round. Returns the words that undo it, and what there was before it."""
    lane.declare()
    world = lane.world()
    ended = lane.run(APPLY)
    assert ended.code == 0, ended.out
    run = next(r.run for r in reversed(lane.folder.records()) if r.kind == "run_begin")
    lane.before = Before.of(lane.folder.path, lane.world())
    lane.system.begin(lane.number)
    return ("undo", run, "--auto-approve", "--concise", "--no-color"), world


def undo(lane: HttpLane, words: Sequence[str]) -> Ended:
    """Undo to the end, as a user does who is told to type it again."""
    for _ in range(AGAIN):
        ended = lane.run(words)
        if ended.code not in LEFT:
            break
    return ended


def list_faults(lane: HttpLane, words: Sequence[str], world: World) -> Iterator[str]:
    """Undo, twice, and look at everything that is promised; then make the round anew."""
    yield from promises.kept(lane.folder.path, lane.before)
    first = undo(lane, words)
    if first.code != 0:
        yield f"the undo ended with {first.code}: {first.out[-2000:]}"
        return
    written = lane.written()
    second = lane.run(words)
    if second.code != 0 or IDLE not in second.out:
        yield f"the second undo ended with {second.code}: {second.out[-2000:]}"
    yield from find_rewritten(written, lane.written())
    yield from lane.find_broken_promises(world, lane.reached())
    yield from lane.system.find_faults()
    for ended in (first, second):
        yield from find_faults(ended, lane.folder.password)
    again = lane.run(APPLY)
    if again.code != 0:
        yield f"the apply after it ended with {again.code}: {again.out[-2000:]}"


def count_calls(lane: HttpLane) -> tuple[str, ...]:
    """The calls of an undo that nothing ends."""
    words, world = apply_round(lane)
    ended = lane.run(words, traced=True)
    faults = tuple(list_faults(lane, words, world))
    assert ended.code == 0 and not faults, (ended.out, faults)
    return ended.calls


def strike(lane: HttpLane, point: Point, tally: Tally) -> bool:
    """Die there, undo again, and note what came of it."""
    words, world = apply_round(lane)
    struck = lane.run(words, point.first)
    faults: tuple[str, ...] = ()
    if point.second is not None:
        faults = promises.kept(lane.folder.path, lane.before)
        struck = lane.run(words, point.second)
    faults = (*faults, *list_faults(lane, words, world))
    call = struck.calls[-1] if struck.calls else "nothing"
    kind = f"{'recovery ' if point.second else ''}{point.last.how} {call}"
    return tally.note(kind, point, faults, died=struck.code == KILLED)


def list_recoveries(lane: HttpLane, first: Strike) -> list[Point]:
    """The moments of an undo that follows one which died in this moment."""
    words, world = apply_round(lane)
    lane.run(words, first)
    ended = lane.run(words, traced=True)
    faults = tuple(list_faults(lane, words, world))
    assert not faults, faults
    return list(crashes.every(ended.calls, first))


def make_tasks(lane: HttpLane, random: Random, starts: int, tally: Tally) -> list[Task]:
    """Every point of an undo, and of those that follow some that died."""
    calls = count_calls(lane)
    points = list(crashes.every(calls))
    for first in crashes.firsts(calls, random, starts):
        points += list_recoveries(lane, first)
    random.shuffle(points)
    return [partial(strike, point=point, tally=tally) for point in points]  # type: ignore[arg-type]
