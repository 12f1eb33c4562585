"""Lanes: folders on one cluster whose applies are killed at chosen points and repeated."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from uuid import uuid4

from kafkaform.audit.records import decode

from ...kit import promises
from ...kit.commands.process_folder import Folder
from ...kit.commands.server import Ended, get_server
from ...kit.commands.struck import Strike
from ...kit.kafka.truth import Observer, looking
from ...kit.lane import APPLY, Lane, find_faults
from ...kit.promises import Before, Reached, World, find_unwanted, read_settled
from . import scenes

TIMEOUT = 2
"""Seconds that an operation may take; a recovery waits for 5 more."""
LIFE = 15
"""Rounds of a lane: every command reads the whole log."""


@dataclass(frozen=True)
class Town:
    """What all lanes share. client: of somebody else, who looks at the cluster."""

    bootstrap: str
    password: str
    client: Observer


@dataclass(frozen=True)
class Point:
    """Where processes die. first: in the apply; second: in the one that recovers from it."""

    first: Strike
    second: Strike | None = None

    @property
    def last(self) -> Strike:
        return self.second or self.first


@dataclass(frozen=True)
class Written:
    """What a folder's runs have written."""

    state: bytes
    log: bytes


def find_rewritten(first: Written, second: Written) -> Iterator[str]:
    """What the second of two recoveries wrote. It may record that work has ended which the first
    one left under way, because such work goes on without a run; and nothing else."""
    if second == first:
        return
    if second.state != first.state:
        yield "the second recovery wrote the state"
    if not second.log.startswith(first.log):
        yield "the second recovery replaced what the log had"
        return
    known = [decode(line) for line in first.log.splitlines()]
    ended = {record.body["discharges"] for record in known if record.kind == "discharged"}
    going = {record.seq for record in known if record.kind == "obligation"} - ended
    for record in map(decode, second.log[len(first.log) :].splitlines()):
        if record.kind == "discharged" and record.body["discharges"] in going:
            going.remove(record.body["discharges"])
        else:
            yield f"the second recovery wrote a record: {record.kind} {dict(record.body)}"


@dataclass
class CrashLane(Lane):
    """Objects of one prefix, of every sort. number: of the round that it is in; words: the apply
    that dies and recovers."""

    town: Town
    prefix: str
    number: int = -1
    words: Sequence[str] = APPLY

    def run(
        self, arguments: Sequence[str], strike: Strike | None = None, *, traced: bool = False
    ) -> Ended:
        """Run a command to its end, or to its strike."""
        if strike is None and not traced:
            return self.folder.run(*arguments)
        trace = self.folder.path.with_name(f"{self.folder.path.name}.trace")
        ended = self.folder.start(*arguments, strike=strike, trace=trace).finish()
        return replace(
            ended, calls=tuple(line.split()[1] for line in trace.read_text().splitlines())
        )

    def declare(self) -> None:
        """Write the configuration of the next round."""
        self.before = Before.of(self.folder.path, self._last_world())
        self.number += 1
        (self.folder.path / "main.kf.hcl").write_text(self.text(), "utf-8")

    def text(self) -> str:
        """The configuration of this round."""
        provider = scenes.provider(self.town.bootstrap, TIMEOUT)
        return provider + scenes.text(self.prefix, self.number)

    def wanted(self) -> World:
        """What there is after this round."""
        return scenes.wanted(self.prefix, self.number)

    def reached(self) -> Sequence[Reached] | None:
        """The writes of this round that reached the system; None if nobody looks."""
        return None

    def world(self) -> World:
        kept = f"{self.prefix}g" if scenes.has_group_configs() else ""
        return self.town.client.world(self.prefix, kept)

    def _last_world(self) -> World:
        """What the last round has left, as soon as it can be seen: one of several brokers may
        still show what was there before."""
        if self.number < 0:
            return self.world()
        return read_settled(self.world, partial(find_unwanted, self.wanted()))

    def faults(self) -> Iterator[str]:
        """Recover, twice, and look at everything that is promised."""
        yield from self.kept()
        first = self.recover()
        if first.code != 0:
            yield f"the recovery ended with {first.code}: {first.out[-2000:]}"
            return
        written = self.written()
        second = self.run(self.words)
        if second.code != 0:
            yield f"the second recovery ended with {second.code}: {second.out[-2000:]}"
        yield from find_rewritten(written, self.written())
        # A parked topic waits: that is no change.
        if "No changes" not in second.out and "Nothing to apply" not in second.out:
            yield f"the second recovery had something to do: {second.out[-2000:]}"
        yield from self.find_broken_promises(self.wanted(), self.reached())
        for ended in (first, second):
            yield from find_faults(ended, self.folder.password)

    def kept(self) -> tuple[str, ...]:
        """See `promises.kept`."""
        return promises.kept(self.folder.path, self.before)

    def written(self) -> Written:
        """What the runs so far have written."""
        lines = promises.read_lines(self.folder.path)
        state = (self.folder.path / promises.STATE).read_bytes()
        return Written(state, b"".join(line + b"\n" for line in lines))

    def settle(self) -> tuple[str, ...]:
        """A round in which nothing dies."""
        self.declare()
        return tuple(self.faults())

    def strike(self, point: Point) -> tuple[Ended, tuple[str, ...]]:
        """A round in which processes die at this point: how the last of them ended, and what of
        the promises did not hold."""
        self.declare()
        struck = self.run(self.words, point.first)
        faults: tuple[str, ...] = ()
        if point.second is not None:
            faults = self.kept()
            struck = self.run(self.words, point.second)
        return struck, (*faults, *self.faults())

    def renewed(self) -> CrashLane:
        """A lane of this town with another folder and other names, as far as this one."""
        path = self.folder.path
        name = path.name.partition("-")[0]
        lives = len(list(path.parent.glob(f"{name}-*/"))) + 1
        fresh = lane(self.town, path.parent, f"{name}-{lives}")
        fresh.begin()
        return fresh

    def begin(self) -> None:
        """The rounds before the first in which everything happens."""
        for _ in range(scenes.STEADY):
            faults = self.settle()
            assert not faults, faults


@contextmanager
def town(bootstrap: str, password: str, scratch: Path) -> Iterator[Town]:
    """A client that looks; and the server has run what all lanes will."""
    with looking(bootstrap, password) as client:
        made = Town(bootstrap, password, client)
        warm = lane(made, scratch, "warm")
        for _ in range(scenes.STEADY + 1):
            warm.declare()
            for words in (APPLY, APPLY):
                ended = get_server().run_inside(warm.folder.make_job(words))
                assert ended.code == 0, ended.out
        yield made


def lane(town: Town, scratch: Path, name: str) -> CrashLane:
    path = scratch / name
    path.mkdir()
    folder = Folder(path, town.bootstrap, town.password)
    # A process has a town for each file of tests, and all of them share a broker.
    return CrashLane(folder, town, f"crash.{uuid4().hex[:8]}.{name}.")


def lanes(town: Town, scratch: Path, count: int) -> list[CrashLane]:
    """Folders in which an apply comes that has everything to do."""
    made = [lane(town, scratch, f"l{number}") for number in range(count)]
    with ThreadPoolExecutor(count) as pool:
        list(pool.map(CrashLane.begin, made))
    return made


@dataclass
class Tally:
    """What was found. points: by kind of call and how; ended: how many ended before their point
    came; violations: each with the point that replays it."""

    points: Counter[str] = field(default_factory=Counter)
    ended: int = 0
    violations: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, kind: str, point: object, faults: Sequence[str], *, died: bool) -> bool:
        """died: the process came to the point; True if everything held."""
        with self.lock:
            if died:
                self.points[kind] += 1
            else:
                self.ended += 1
            self.violations += [f"{point}: {fault}" for fault in faults]
        return not faults

    def count(self, left: int) -> dict[str, int]:
        """The figures of a long test. left: points that were not begun."""
        return {
            "crash points": self.points.total(),
            **dict(sorted(self.points.items())),
            "ended before": self.ended,
            "not reached": left,
        }


Task = Callable[[CrashLane], bool]


def spread(over: Sequence[CrashLane], tasks: Iterable[Task], seconds: float = math.inf) -> int:
    """Every task, by whichever lane is free; how many were not begun, which after so many seconds
    no task is. A task says whether everything held; a lane in which something did not, or whose
    log has become long, is followed by a new one."""
    left: SimpleQueue[Task] = SimpleQueue()
    for task in tasks:
        left.put(task)
    deadline = time.monotonic() + seconds

    def work(lane: CrashLane) -> None:
        while time.monotonic() < deadline:
            if lane.number >= LIFE:
                lane = lane.renewed()
            try:
                task = left.get_nowait()
            except Empty:
                return
            if not task(lane):
                lane = lane.renewed()

    with ThreadPoolExecutor(len(over)) as pool:
        list(pool.map(work, over))
    return left.qsize()
