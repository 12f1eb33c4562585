"""The clock is a seam: tests bring their own."""

from __future__ import annotations

import time
from typing import Protocol

# Linux stops CLOCK_MONOTONIC while it is suspended; elsewhere there is no other one.
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since the epoch; for records that people read."""

    def monotonic(self) -> float:
        """Seconds from an arbitrary start that never jump back and go on while the computer
        sleeps; for deadlines and leases."""

    def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The computer's own clock."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.clock_gettime(_STEADY)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
