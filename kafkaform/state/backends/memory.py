"""A state in memory, for runs on simulated systems. It ends with the process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...core.clock import Clock
from ...core.errors import Locked
from ..backend import Held, Lease, Loaded, LockInfo
from ..model import State


class MemoryBackend:
    """One state, which nobody else can reach."""

    location = "the state in memory"
    earlier = "the state in memory"

    def __init__(self) -> None:
        self._loaded = Loaded(None, None)
        self._saves = 0

    @contextmanager
    def lock(self, info: LockInfo, timeout: float, clock: Clock) -> Iterator[Lease]:
        yield Held()

    def holder(self) -> LockInfo | None:
        return None

    def break_lock(self, run: str) -> LockInfo:
        raise Locked(f"run {run} does not have a lock of {self.location}")

    def probe(self) -> None:
        """Memory keeps what is stored there."""

    def load(self) -> Loaded:
        return self._loaded

    def save(self, state: State, version: str | None) -> str:
        if version != self._loaded.version:
            raise Locked(f"{self.location} has changed since it was loaded")
        self._saves += 1
        self._loaded = Loaded(state, str(self._saves))
        return str(self._saves)

    def check_writable(self, size: int = 0) -> None:
        """There is always room."""

    def rescue(self, state: State) -> str:
        return self.location
