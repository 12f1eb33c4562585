"""The seam to the place of a state (its lock, its loads and its saves), and a state in memory
for runs on simulated systems."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from msgspec import Struct

from ..core.clock import Clock
from ..core.errors import Locked
from .model import State, StateOutline, outline_state


class LockInfo(Struct, frozen=True):
    """The run that has a lock."""

    run: str
    """Its id."""
    who: str
    """Who runs it."""
    host: str
    """The computer on which it runs."""
    pid: int
    """Its process there."""
    started: str
    """When it began, RFC 3339, UTC."""
    command: str
    """The command as it was typed."""

    def __str__(self) -> str:
        return (
            f"{self.who} on {self.host} (`{self.command}`, run {self.run}, process {self.pid}, "
            f"since {self.started})"
        )


class Loaded(Struct, frozen=True):
    """A state as it was loaded."""

    state: State | None
    """The state, None if there is none yet."""
    version: str | None
    """Opaque: the version that a save must still find there."""


class Lease(Protocol):
    """The lock, while a run has it."""

    # The last request of a run that lost the lock may still take effect, so nothing is recovered
    # before that is over (architecture §4.7).
    @property
    def taken_over(self) -> float | None:
        """When the lease of a run that never gave it back had ended at the latest, in seconds on
        `Clock.monotonic`; None if the lock was free."""

    # Asked between intent and request. A process may sleep for any time between two lines of code,
    # so a lock that was ours a moment ago proves nothing (decisions/018).
    def ensure(self, seconds: float) -> None:
        """Raises Locked unless the lock is certain to stay ours for that long, whatever others do.
        After that nothing must be sent."""


class Held(Struct, frozen=True):
    """A lock that is ours until the kernel or the process itself frees it."""

    taken_over: float | None = None
    """Nobody had it before."""

    def ensure(self, seconds: float) -> None:
        """Nothing to do: it cannot end while this process runs."""


class Backend(Protocol):
    """The place of one state.

    An implementation must write atomically and durably, only over the version that was loaded, and
    must keep earlier versions. It must not write through links, or over a state that it cannot
    read.
    """

    @property
    def location(self) -> str:
        """The name of the state in messages."""

    @property
    def earlier(self) -> str:
        """The name of the place of earlier versions in messages."""

    def lock(self, info: LockInfo, timeout: float, clock: Clock) -> AbstractContextManager[Lease]:
        """Take the lock for the time of the context. timeout: seconds to wait for it. Raises Locked
        naming the run that has it."""

    def holder(self) -> LockInfo | None:
        """The run that has the lock now, None if nobody has it."""

    def break_lock(self, run: str) -> LockInfo:
        """End the lock of a run that died before it could give it back, and return whose it was.
        Raises Locked if that run does not have it, or if its process has to be ended instead."""

    def probe(self) -> None:
        """Prove that the place keeps the promises above. Raises StorageError."""

    def load(self) -> Loaded:
        """The current state. Raises StorageError if it cannot be read or trusted."""

    def outline(self) -> StateOutline | None:
        """Which objects the current state has, None if there is none yet. Raises as `load` does."""

    def save(self, state: State, version: str | None) -> str:
        """Write a state over `version`, and return the new version. Raises Locked if another
        version is there, StorageError if it cannot be written; the old one is intact then."""

    def check_writable(self, size: int = 0) -> None:
        """Raises StorageError if a save of `size` bytes could not succeed. Called before anything
        is sent."""

    def rescue(self, state: State) -> str:
        """Write the state elsewhere after a failed save, and return where. Raises StorageError."""


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

    def outline(self) -> StateOutline | None:
        state = self._loaded.state
        return None if state is None else outline_state(state)

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
