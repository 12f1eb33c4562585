"""One simulated broker, which shows the controller's log with a delay."""

from __future__ import annotations

from collections import deque

from msgspec import Struct

from .world import Changes, SimulatedWorld


class _Unseen(Struct):
    """A committed batch that the broker does not show yet."""

    changes: Changes
    reads: int
    """How many more reads do not show it."""
    due: float
    """Until when it is not shown."""


# Real brokers apply the metadata log asynchronously: right after 1,000 successful creates, a
# listing showed 200 of the topics.
class SimulatedBroker:
    """Shows committed batches whole and in the order of the log."""

    def __init__(self) -> None:
        self.up = True
        """Whether the cluster lists it."""
        self.hangs = False
        """Whether it leaves all requests without an answer."""
        self.lag: tuple[int, float] = (0, 0.0)
        """Reads and seconds during which later writes are not shown."""
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
        """The world as one read at this time shows it."""
        # Only from the front: a later batch never shows before an earlier one.
        while self._unseen and not self._unseen[0].reads and self._unseen[0].due <= now:
            self._world.apply(self._unseen.popleft().changes)
        for unseen in self._unseen:
            unseen.reads = max(0, unseen.reads - 1)
        return self._world
