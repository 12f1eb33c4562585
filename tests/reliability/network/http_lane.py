"""A folder whose store is behind a proxy: each round strikes an apply with faults of HTTP, lets it
go on without, and looks whether anything was lost or done twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kafkaform_textstore.server import Server

from ...kit.commands.server import Ended
from ...kit.http import store
from ...kit.http.faults import Fault
from ...kit.http.proxy import Passed, Proxy, proxying
from ...kit.lane import APPLY, CODES, Lane, find_faults, recover
from ...kit.promises import Before, World

FAILED = CODES - {0}


@dataclass(frozen=True)
class Round:
    """How one round went. first: the apply that was struck; passed: its requests; later: those of
    the applies after it; violations: what did not hold."""

    first: Ended
    passed: list[Passed]
    later: list[Passed]
    violations: tuple[str, ...]

    @property
    def writes(self) -> list[str]:
        """The operations of the first apply that reached the store."""
        return [f"{one.request} {one.name[1]}" for one in store.list_reached(self.passed)]


@dataclass
class HttpLane(Lane):
    """number: of the round that it is in."""

    proxy: Proxy
    server: Server
    number: int = -1

    def world(self) -> World:
        return store.read_world(self.server.store)

    def next(self) -> None:
        """Declare the next round."""
        self.number += 1
        text = store.write_round(self.proxy.url, self.number)
        self.before = Before.of(self.folder.path, self.world())
        (self.folder.path / "main.kf.hcl").write_text(text, "utf-8")

    def round(self, *faults: Fault) -> Round:
        """The next round, applied against these faults and then without."""
        self.next()
        self.proxy.arm(*faults)
        first = self.folder.run(*APPLY)
        struck = self.proxy.all_struck
        passed = self.proxy.disarm()
        told = ", ".join(map(str, faults))
        found = [f"{told}: {text}" for text in self._after(first, passed)]
        later = self.proxy.disarm()
        if not struck:
            found.append(f"{told}: no request was struck")
        return Round(first, passed, later, tuple(found))

    def _after(self, first: Ended, passed: list[Passed]) -> Iterator[str]:
        runs = [first, *(recover(self.folder, first, FAILED) if first.code else ())]
        for ended in runs:
            yield from find_faults(ended, self.folder.password)
        if runs[-1].code:
            yield f"run {len(runs)} still ended with {runs[-1].code}:\n{runs[-1].out}"
        reached = store.list_reached([*passed, *self.proxy.passed])
        yield from self.find_broken_promises(store.list_wanted(self.number), reached)


@contextmanager
def open_lane(path: Path) -> Iterator[HttpLane]:
    """A lane in which an apply comes that has everything to do."""
    with store.storing() as server, proxying(server.server_address[1]) as proxy:
        made = HttpLane(store.make_folder(path), proxy, server)
        for _ in range(store.STEADY):
            made.next()
            ended = made.folder.run(*APPLY)
            assert ended.code == 0, ended.out
        yield made
