"""A folder whose system is behind a proxy: each round strikes an apply with faults of HTTP, lets it
go on without, and looks whether anything was lost or done twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from ...kit.commands.server import Ended
from ...kit.http.faults import Fault
from ...kit.http.proxy import Passed, Proxy, proxying
from ...kit.http.system import STEADY, HttpSystem
from ...kit.lane import APPLY, CODES, Lane, find_faults, recover
from ...kit.promises import Before, Reached, World

FAILED = CODES - {0}


@dataclass(frozen=True)
class Round:
    """How one round went. first: the apply that was struck; later: the requests of the applies
    after it; reached: the writes of the first one that reached the system; violations: what did not
    hold."""

    first: Ended
    later: list[Passed]
    reached: Sequence[Reached]
    violations: tuple[str, ...]

    @property
    def writes(self) -> list[str]:
        """The writes of the first apply that reached the system."""
        return [f"{one.request} {one.name[1]}" for one in self.reached]


@dataclass
class HttpLane(Lane):
    """number: of the round that it is in."""

    proxy: Proxy
    system: HttpSystem
    number: int = -1

    def world(self) -> World:
        return self.system.read_world()

    def next(self) -> None:
        """Declare the next round."""
        self.number += 1
        self.system.begin(self.number)
        text = self.system.write_round(self.proxy.url, self.number)
        self.before = Before.of(self.folder.path, self.world())
        (self.folder.path / "main.kf.hcl").write_text(text, "utf-8")

    def round(self, *faults: Fault) -> Round:
        """The next round, applied against these faults and then without."""
        self.next()
        self.proxy.arm(*faults)
        first = self.folder.run(*APPLY)
        struck = self.proxy.all_struck
        passed = self.proxy.disarm()
        reached = tuple(self.system.read_passed(passed) or ())
        told = ", ".join(map(str, faults))
        found = [f"{told}: {text}" for text in self._after(first, passed)]
        later = self.proxy.disarm()
        if not struck:
            found.append(f"{told}: no request was struck")
        return Round(first, later, reached, tuple(found))

    def _after(self, first: Ended, passed: list[Passed]) -> Iterator[str]:
        runs = [first, *(recover(self.folder, first, FAILED) if first.code else ())]
        for ended in runs:
            yield from find_faults(ended, self.folder.password)
        if runs[-1].code:
            yield f"run {len(runs)} still ended with {runs[-1].code}:\n{runs[-1].out}"
        reached = self.system.read_passed([*passed, *self.proxy.passed])
        yield from self.find_broken_promises(self.system.list_wanted(self.number), reached)
        yield from self.system.find_faults()


@contextmanager
def open_lane(
    opener: Callable[[Path], AbstractContextManager[HttpSystem]], path: Path
) -> Iterator[HttpLane]:
    """A lane in which an apply comes that has everything to do. opener: starts a system with a
    folder at this path."""
    with opener(path) as system, proxying(system.port) as proxy:
        made = HttpLane(system.folder, proxy, system)
        for _ in range(STEADY):
            made.next()
            ended = made.folder.run(*APPLY)
            assert ended.code == 0, ended.out
        yield made
