"""Lanes: folders on one cluster whose applies are killed at chosen points and repeated."""

from __future__ import annotations

import math
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import Empty, SimpleQueue

from ...kit import promises
from ...kit.commands.process_folder import Folder
from ...kit.commands.server import Ended, get_server
from ...kit.commands.struck import Strike
from ...kit.kafka.truth import Observer, looking
from ...kit.promises import Before, World
from . import scenes

TIMEOUT = 2
"""Seconds that an operation may take; a recovery waits for 5 more."""
APPLY = ("apply", "-auto-approve", "--concise", "--no-color")
LIFE = 15
"""Rounds of a lane: every command reads the whole log."""
KILLED = -9
PARTIAL, UNKNOWN = 5, 6
REPEATED = 3
"""How often a user does what a run that ended so advises."""
_FOLD = r"[\s│]"
"""Long lines are folded behind a rule."""
_TOKEN = re.compile(rf"--expect{_FOLD}+([\w.]+(?:{_FOLD}+[\w.]+)*)`")


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


@dataclass
class Lane:
    """One folder with objects of its own prefix. number: of the round that it is in."""

    town: Town
    folder: Path
    prefix: str
    number: int = -1

    @property
    def home(self) -> Folder:
        """Where its commands are typed."""
        return Folder(self.folder, self.town.bootstrap, self.town.password)

    def run(
        self, arguments: Sequence[str], strike: Strike | None = None, *, traced: bool = False
    ) -> Ended:
        """Run a command to its end, or to its strike."""
        if strike is None and not traced:
            return self.home.run(*arguments)
        trace = self.folder.with_name(f"{self.folder.name}.trace")
        ended = self.home.start(*arguments, strike=strike, trace=trace).finish()
        return replace(
            ended, calls=tuple(line.split()[1] for line in trace.read_text().splitlines())
        )

    def declare(self) -> Before:
        """Write the configuration of the next round; what was there before it."""
        before = Before.of(self.folder, self.world())
        self.number += 1
        written = scenes.provider(self.town.bootstrap, TIMEOUT)
        written += scenes.text(self.prefix, self.number)
        (self.folder / "main.kf.hcl").write_text(written, "utf-8")
        return before

    def world(self) -> World:
        return self.town.client.world(self.prefix, f"{self.prefix}g")

    def recovered(self) -> Ended:
        """Apply to the end, as a user does who is told that something failed or is unknown, or
        that a secret must be sent once more."""
        ended = self.run(APPLY)
        for _ in range(REPEATED):
            if ended.code not in (PARTIAL, UNKNOWN):
                break
            token = _TOKEN.search(ended.out)
            expected = (f"--expect={re.sub(_FOLD, '', token[1])}",) if token else ()
            ended = self.run(("apply", *(expected or APPLY[1:2]), *APPLY[2:]))
        return ended

    def faults(self, before: Before) -> Iterator[str]:
        """Recover, twice, and look at everything that is promised."""
        yield from promises.kept(self.folder, before)
        first = self.recovered()
        if first.code != 0:
            yield f"the recovery ended with {first.code}: {first.out[-2000:]}"
            return
        written = self._written()
        second = self.run(APPLY)
        if second.code != 0:
            yield f"the second recovery ended with {second.code}: {second.out[-2000:]}"
        if self._written() != written:
            yield "the second recovery wrote something"
        if "No changes" not in second.out:
            yield f"the second recovery had something to do: {second.out[-2000:]}"
        yield from promises.broken(
            self.folder, self.world, before, wanted=scenes.wanted(self.prefix, self.number)
        )
        for ended in (first, second):
            if "Traceback" in ended.out:
                yield f"a traceback: {ended.out[-2000:]}"

    def _written(self) -> tuple[bytes, bytes]:
        state, log = self.folder / promises.STATE, self.folder / promises.LOG
        return state.read_bytes(), log.read_bytes()

    def settle(self) -> tuple[str, ...]:
        """A round in which nothing dies."""
        return tuple(self.faults(self.declare()))

    def strike(self, point: Point) -> tuple[Ended, tuple[str, ...]]:
        """A round in which processes die at this point: how the last of them ended, and what of
        the promises did not hold."""
        before = self.declare()
        struck = self.run(APPLY, point.first)
        faults: tuple[str, ...] = ()
        if point.second is not None:
            faults = promises.kept(self.folder, before)
            struck = self.run(APPLY, point.second)
        return struck, (*faults, *self.faults(before))

    def renewed(self) -> Lane:
        """A lane of this town with another folder and other names, as far as this one."""
        name = self.folder.name.partition("-")[0]
        lives = len(list(self.folder.parent.glob(f"{name}-*/"))) + 1
        fresh = lane(self.town, self.folder.parent, f"{name}-{lives}")
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
                ended = get_server().run_inside(warm.home.make_job(words))
                assert ended.code == 0, ended.out
        yield made


def lane(town: Town, scratch: Path, name: str) -> Lane:
    folder = scratch / name
    folder.mkdir()
    return Lane(town, folder, f"crash.{os.getpid()}.{name}.")


def lanes(town: Town, scratch: Path, count: int) -> list[Lane]:
    """Folders in which an apply comes that has everything to do."""
    made = [lane(town, scratch, f"l{number}") for number in range(count)]
    with ThreadPoolExecutor(count) as pool:
        list(pool.map(Lane.begin, made))
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


def spread(
    over: Sequence[Lane], tasks: Iterable[Callable[[Lane], bool]], seconds: float = math.inf
) -> int:
    """Every task, by whichever lane is free; how many were not begun, which after so many seconds
    no task is. A task says whether everything held; a lane in which something did not, or whose
    log has become long, is followed by a new one."""
    left: SimpleQueue[Callable[[Lane], bool]] = SimpleQueue()
    for task in tasks:
        left.put(task)
    deadline = time.monotonic() + seconds

    def work(lane: Lane) -> None:
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
