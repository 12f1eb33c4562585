"""Every crash point of an apply and of a recovery, and what each of them broke."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random

from kafkaform.audit.records import Record

from ...kit import promises
from ...kit.commands.struck import AFTER, BEFORE, HALF, NETWORK, PAYLOADS, Strike
from ...kit.lane import APPLY, KILLED
from . import traced
from .lanes import CrashLane, Point, Tally, Task

SHIFTS = (0, -1, 1, -2, 2, -3, 3, -4, 4)
CUT_STEP = 10
"""Bytes between two places where a record is torn."""


def every(calls: Sequence[str], first: Strike | None = None) -> Iterator[Point]:
    """All moments around these calls that can be told apart: before each, with half of its bytes
    written, and (of an apply), where an answer may come before the next one, after it. first:
    where the apply died that these calls recover from."""
    for number, name in enumerate(calls, start=1):
        hows = (BEFORE, HALF) if name in PAYLOADS else (BEFORE,)
        for how in (*hows, AFTER) if name in NETWORK and first is None else hows:
            strike = Strike(number, how)
            yield Point(first, strike) if first else Point(strike)


def counted(lane: CrashLane) -> tuple[str, ...]:
    """The calls of an apply that nothing ends."""
    lane.declare()
    return _count_calls(lane)


def recoveries(lane: CrashLane, moments: Iterable[Strike]) -> list[Point]:
    """The moments of a recovery from an apply that died in one of these moments."""
    first = die_where(lane, moments, lambda records: True)
    return list(every(_count_calls(lane), first))


def _count_calls(lane: CrashLane) -> tuple[str, ...]:
    ended = lane.run(lane.words, traced=True)
    faults = tuple(lane.faults())
    assert not faults, faults
    return ended.calls


def firsts(calls: Sequence[str], random: Random, count: int) -> list[Strike]:
    """Moments in which an apply may die that leave something to recover: after requests that
    follow a durable intent, spread over the run."""
    sends = [
        number
        for number in range(2, len(calls) + 1)
        if calls[number - 1] in NETWORK and "fsync" in calls[max(0, number - 4) : number - 1]
    ]
    size = max(1, len(sends) // count)
    parts = [sends[start : start + size] for start in range(0, len(sends), size)][:count]
    return [Strike(random.choice(part), AFTER) for part in parts]


def die_where(
    lane: CrashLane, moments: Iterable[Strike], holds: Callable[[Sequence[Record]], bool]
) -> Strike:
    """An apply that dies and leaves a log of which this holds; returns the moment. How many
    requests come before a moment differs from run to run, so one is tried after the other."""
    ends = []
    for moment in moments:
        lane.declare()
        ended = lane.run(lane.words, moment)
        if ended.code == KILLED and holds(lane.folder.records()):
            return moment
        faults = tuple(lane.faults())
        assert not faults, faults
        ends.append(f"{moment}: code {ended.code}: {ended.out[-2000:]}")
    raise AssertionError("\n".join(("no run died where it was meant to", *ends)))


def strike(lane: CrashLane, point: Point, tally: Tally) -> bool:
    """Die there, recover, and note what came of it."""
    struck, faults = lane.strike(point)
    call = struck.calls[-1] if struck.calls else "nothing"
    kind = f"{'recovery ' if point.second else ''}{point.last.how} {call}"
    return tally.note(kind, point, faults, died=struck.code == KILLED)


def from_outside(lane: CrashLane, call: str, number: int, tally: Tally) -> bool:
    """The same at a system call, by strace."""
    lane.declare()
    struck = traced.run(lane, APPLY, call, number)
    faults = tuple(lane.faults())
    return tally.note(f"strace {call}", (call, number), faults, died=struck.code == KILLED)


def outside(lane: CrashLane) -> list[tuple[str, int]]:
    """Every system call of an apply that strace can end it at."""
    lane.declare()
    found = traced.counts(traced.run(lane, APPLY).calls)
    faults = tuple(lane.faults())
    assert not faults, faults
    return [(call, number) for call, most in found.items() for number in range(1, most + 1)]


@dataclass(frozen=True)
class Torn:
    """A folder whose last record is an outcome that the state lacks, of a plan of which nothing
    else is left to do. length: of that record in bytes, without its newline."""

    folder: Path
    length: int


def torn_outcome(lane: CrashLane, calls: Sequence[str]) -> Torn:
    """An apply that died when its last outcome was durable."""
    appends = [
        number
        for number, pair in enumerate(pairwise(calls), start=1)
        if pair == ("write", "fsync") and calls[number + 1] not in ("unlink", "link")
    ]
    outcome = appends[-3]  # then come the record of the last look and that of the run's end
    moments = [Strike(outcome + 2 + shift, BEFORE) for shift in SHIFTS]
    die_where(lane, moments, lambda records: records[-1].kind == "outcome")
    kept = lane.folder.path.with_name(f"{lane.folder.path.name}-kept")
    shutil.copytree(lane.folder.path, kept)
    faults = tuple(lane.faults())
    assert not faults, faults
    return Torn(kept, len((kept / promises.LOG).read_bytes().splitlines()[-1]))


def cut(lane: CrashLane, torn: Torn, at: int, tally: Tally) -> bool:
    """Cut that outcome behind so many of its bytes, and recover in a folder of its own; the lane
    lends its town only."""
    folder = torn.folder.with_name(f"{torn.folder.name}-{at}")
    shutil.copytree(torn.folder, folder)
    log = folder / promises.LOG
    os.truncate(log, log.stat().st_size - 1 - torn.length + at)
    copy = CrashLane(replace(lane.folder, path=folder), lane.town, lane.prefix)
    ended = copy.recover()
    records = promises.records_of(folder)
    told = [piece for record in records[-9:] for piece in record.body.get("torn", ())]
    faults = []
    if ended.code != 0:
        faults.append(f"the recovery ended with {ended.code}: {ended.out[-2000:]}")
    if [piece["length"] for piece in told] != [at]:
        faults.append(f"{at} bytes were torn off, told of: {told}")
    if promises.open_intents(records):
        faults.append("an intent is still open")
    shutil.rmtree(folder)
    return tally.note("torn record", f"cut at {at}", faults, died=True)


def tasks(lane: CrashLane, random: Random, starts: int, tally: Tally) -> list[Task]:
    """Every point, as what one lane does, in an order drawn at random. starts: how many deaths of
    an apply its recoveries are killed after."""
    calls = counted(lane)
    found = strikes(lane, calls, random, starts, tally)
    torn = torn_outcome(lane.renewed(), calls)  # whose objects nobody touches afterwards
    found += [partial(cut, torn=torn, at=at, tally=tally) for at in range(1, torn.length, CUT_STEP)]
    if traced.installed():
        system = outside(lane)
        found += [partial(from_outside, call=c, number=n, tally=tally) for c, n in system]
    else:
        print(traced.MISSING)
    return shuffle(found, random, tally)


def strikes(
    lane: CrashLane, calls: Sequence[str], random: Random, starts: int, tally: Tally
) -> list[Task]:
    """A death at every one of these calls of an apply, and of the recoveries from some of them."""
    points = list(every(calls))
    moments = firsts(calls, random, starts)
    for number in range(len(moments)):
        points += recoveries(lane, moments[number::-1])
    return [partial(strike, point=point, tally=tally) for point in points]


def shuffle(found: list[Task], random: Random, tally: Tally) -> list[Task]:
    """The tasks in an order drawn at random, none of which ends the test."""
    random.shuffle(found)
    return [partial(tried, task=task, tally=tally) for task in found]


def tried(lane: CrashLane, task: Task, tally: Tally) -> bool:
    """A command that hangs is a violation, and not the end of the test."""
    try:
        return task(lane)
    except (AssertionError, OSError) as error:
        return tally.note("", task, (f"{type(error).__name__}: {error}",), died=False)
