"""The seam to where a state lives."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from msgspec import Struct

from ..core.clock import Clock
from .model import State


class LockInfo(Struct, frozen=True):
    """Who holds a lock, and for what. started: RFC 3339, UTC; command: as it was typed."""

    run: str
    who: str
    host: str
    pid: int
    started: str
    command: str

    def __str__(self) -> str:
        return (
            f"{self.who} on {self.host} (`{self.command}`, run {self.run}, process {self.pid}, "
            f"since {self.started})"
        )


class Loaded(Struct, frozen=True):
    """state: None if there is none yet; version: opaque, what a save must still find there."""

    state: State | None
    version: str | None


class Lease(Protocol):
    """The lock while it is held."""

    @property
    def taken_over(self) -> float | None:
        """When the lease of a holder that never gave it back had ended, at the latest: seconds
        on `Clock.monotonic`; None if the lock was free. What that holder sent just before may
        still take effect, so nothing is recovered until that is over (architecture §4.7)."""

    def ensure(self, seconds: float) -> None:
        """Asked between an intent and its request: the lock stays ours for that long, whatever
        others do. Raises Locked if that is not certain; then nothing may be sent any more."""


class Held(Struct, frozen=True):
    """A lock that the kernel or the process itself frees: it is ours until then."""

    taken_over: float | None = None

    def ensure(self, seconds: float) -> None:
        """It cannot end while this process runs."""


class Backend(Protocol):
    """Where one state lives.

    Must: write wholly or not at all, durably, and only over the version that was loaded; keep
    earlier versions. Must not: write through links, or over a state that it cannot read.
    """

    @property
    def location(self) -> str:
        """How messages name the state."""

    @property
    def earlier(self) -> str:
        """How messages name the place of earlier versions."""

    def lock(self, info: LockInfo, timeout: float, clock: Clock) -> AbstractContextManager[Lease]:
        """Hold the lock. timeout: seconds. Raises Locked naming who holds it."""

    def holder(self) -> LockInfo | None:
        """Who holds the lock now, None if nobody does."""

    def break_lock(self, run: str) -> LockInfo:
        """End the lock of a run that died before it could give it back; who held it. Raises
        Locked if that run does not hold it, or must be ended instead."""

    def probe(self) -> None:
        """Prove that this place does what the above relies on. Raises StorageError."""

    def load(self) -> Loaded:
        """The state as it stands. Raises StorageError if it cannot be read or trusted."""

    def save(self, state: State, version: str | None) -> str:
        """Write a state over `version`; the new version. Raises Locked if another version is
        there, StorageError if it cannot be written (the old one is then intact)."""

    def check_writable(self, size: int = 0) -> None:
        """Refuse before anything is sent if a save of `size` bytes could not succeed.
        Raises StorageError."""

    def rescue(self, state: State) -> str:
        """After a failed save: write the state elsewhere and say where. Raises StorageError."""
