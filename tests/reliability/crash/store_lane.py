"""Lanes on the example's store: the same crashes, at a provider that speaks HTTP."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from kafkaform_textstore.server import Server

from ...kit.http import store
from ...kit.promises import World
from .lanes import CrashLane


@dataclass
class StoreLane(CrashLane):
    """A folder and its own store. stack: ends the stores of all lanes."""

    server: Server = field(kw_only=True)
    stack: ExitStack = field(kw_only=True)

    def text(self) -> str:
        return store.write_round(self.server.url, self.number)

    def wanted(self) -> World:
        return store.list_wanted(self.number)

    def world(self) -> World:
        return store.read_world(self.server.store)

    def renewed(self) -> StoreLane:
        """A lane with another folder and another store."""
        path = self.folder.path
        name = path.name.partition("-")[0]
        lives = len(list(path.parent.glob(f"{name}-*/"))) + 1
        fresh = make_lane(self.stack, path.with_name(f"{name}-{lives}"))
        fresh.begin()
        return fresh


def make_lane(stack: ExitStack, path: Path) -> StoreLane:
    server = stack.enter_context(store.storing())
    return StoreLane(store.make_folder(path), cast(Any, None), "", server=server, stack=stack)


@contextmanager
def open_lanes(scratch: Path, count: int) -> Iterator[Sequence[StoreLane]]:
    """Lanes in which an apply comes that has everything to do."""
    with ExitStack() as stack:
        made = [make_lane(stack, scratch / f"l{number}") for number in range(count)]
        with ThreadPoolExecutor(count) as pool:
            list(pool.map(CrashLane.begin, made))
        yield made
