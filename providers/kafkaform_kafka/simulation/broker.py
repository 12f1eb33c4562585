"""One simulated broker: what it already shows of the controller's log."""

from __future__ import annotations

from collections import deque

from msgspec import Struct

from .world import Changes, SimulatedWorld


class _Unseen(Struct):
    """A committed batch that is not shown before `reads` more reads and the time `due`."""

    changes: Changes
    reads: int
    due: float


class SimulatedBroker:
    """Shows batches whole and in the order of the log. lag: (reads, seconds) for which later
    writes stay unseen; up: whether the cluster lists it; hangs: whether it answers nobody."""

    def __init__(self) -> None:
        self.up = True
        self.hangs = False
        self.lag: tuple[int, float] = (0, 0.0)
        self._world = SimulatedWorld()
        self._unseen: deque[_Unseen] = deque()

    def commit(self, changes: Changes, now: float) -> None:
        """Follow the log by one batch."""
        reads, seconds = self.lag
        if self._unseen or reads or seconds:
            self._unseen.append(_Unseen(changes, reads, now + seconds))
        else:
            self._world.apply(changes)

    def look(self, now: float) -> SimulatedWorld:
        """What one read at this time shows."""
        while self._unseen and not self._unseen[0].reads and self._unseen[0].due <= now:
            self._world.apply(self._unseen.popleft().changes)
        for unseen in self._unseen:
            unseen.reads = max(0, unseen.reads - 1)
        return self._world
