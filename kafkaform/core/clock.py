"""The clock is a seam: tests bring their own."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since the epoch; for records that people read."""

    def monotonic(self) -> float:
        """Seconds from an arbitrary start that never jump back; for deadlines."""

    def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The computer's own clock."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
