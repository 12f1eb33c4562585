"""Time, as an interface: simulated systems and tests have their own clock. Alone, because packages
that share nothing else need it."""

from __future__ import annotations

import time
from functools import partial
from typing import Protocol

# Linux stops CLOCK_MONOTONIC while it is suspended. A laptop that wakes up would then still count
# a lease as its own that another run took over long ago. Other systems have no better clock.
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock(Protocol):
    """What a run needs to know about time."""

    def now(self) -> float:
        """Seconds since the epoch, for records that people read. It may jump."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary start, for deadlines and leases. They never jump back, and
        go on while the computer sleeps."""

    def sleep(self, seconds: float) -> None:
        """Wait for so many seconds."""


class SystemClock:
    """The computer's own clock."""

    now = staticmethod(time.time)
    monotonic = staticmethod(partial(time.clock_gettime, _STEADY))

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class SimulatedClock:
    """Moves only when somebody sleeps: both clocks show the same seconds, and no sleep takes
    time."""

    def __init__(self, start: float = 1_750_000_000.0) -> None:
        self._time = start

    def now(self) -> float:
        return self._time

    def monotonic(self) -> float:
        return self._time

    def sleep(self, seconds: float) -> None:
        self._time += max(0.0, seconds)

    advance = sleep
