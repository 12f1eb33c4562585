"""Lanes on systems that speak HTTP: the same crashes, at the providers for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from ...kit.commands.struck import BEFORE, HALF, LOST, Strike
from ...kit.http.system import HttpSystem
from ...kit.promises import Reached, World
from .lanes import CrashLane, Point

Opener = Callable[[Path], AbstractContextManager[HttpSystem]]
"""Starts a system with a folder at this path."""


@dataclass
class HttpLane(CrashLane):
    """A folder and its own system. stack: ends the systems of all lanes."""

    system: HttpSystem = field(kw_only=True)
    opener: Opener = field(kw_only=True)
    stack: ExitStack = field(kw_only=True)

    def declare(self) -> None:
        self.system.begin(self.number + 1)
        super().declare()

    def _last_world(self) -> World:
        # There is one server, and something may have happened to it since the last round.
        return self.world()

    def text(self) -> str:
        return self.system.write_round(self.system.url, self.number)

    def wanted(self) -> World:
        return self.system.list_wanted(self.number)

    def world(self) -> World:
        return self.system.read_world()

    def reached(self) -> Sequence[Reached] | None:
        return self.system.list_reached()

    def faults(self) -> Iterator[str]:
        yield from super().faults()
        yield from self.system.find_faults()

    def renewed(self) -> HttpLane:
        """A lane with another folder and another system."""
        path = self.folder.path
        name = path.name.partition("-")[0]
        lives = len([one for one in path.parent.glob(f"{name}-*/") if one.suffix != ".site"]) + 1
        fresh = make_lane(self.stack, self.opener, path.with_name(f"{name}-{lives}"))
        fresh.begin()
        return fresh


def list_moments(system: HttpSystem) -> list[Point]:
    """Deaths before a request is sent, in the middle of it, and when it was carried out and its
    answer is lost: of the first request of each name, and of the second one if there is one."""
    return [
        Point(Strike(number, how, fits))
        for fits in system.requests.values()
        for number, how in ((1, BEFORE), (1, HALF), (1, LOST), (2, LOST))
    ]


def make_lane(stack: ExitStack, opener: Opener, path: Path) -> HttpLane:
    system = stack.enter_context(opener(path))
    return HttpLane(system.folder, cast(Any, None), "", system=system, opener=opener, stack=stack)


@contextmanager
def open_lanes(opener: Opener, scratch: Path, count: int) -> Iterator[Sequence[HttpLane]]:
    """Lanes in which an apply comes that has everything to do."""
    with ExitStack() as stack:
        made = [make_lane(stack, opener, scratch / f"l{number}") for number in range(count)]
        with ThreadPoolExecutor(count) as pool:
            list(pool.map(CrashLane.begin, made))
        yield made
