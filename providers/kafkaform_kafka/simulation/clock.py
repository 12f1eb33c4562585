"""A clock that moves only when somebody sleeps or advances it."""

from __future__ import annotations


class SimulatedClock:
    """Both clocks show the same seconds, and `sleep` moves them at once."""

    def __init__(self, start: float = 1_750_000_000.0) -> None:
        self._time = start

    def now(self) -> float:
        return self._time

    def monotonic(self) -> float:
        return self._time

    def sleep(self, seconds: float) -> None:
        self._time += max(0.0, seconds)

    advance = sleep
