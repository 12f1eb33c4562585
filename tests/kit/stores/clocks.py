"""Clocks for tests of stores and leases."""

from __future__ import annotations

import time

from kafkaform.core.clock import SystemClock


class Hasty(SystemClock):
    """Goes as the computer's, but nobody waits between attempts."""

    def sleep(self, seconds: float) -> None:
        time.sleep(min(seconds, 0.01))


class Set(SystemClock):
    """Stands still but for what a test, or whoever sleeps, lets go by."""

    def __init__(self) -> None:
        self.time = 1000.0

    def monotonic(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds
