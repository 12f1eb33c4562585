"""Time, as a seam: tests bring a clock of their own."""

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
