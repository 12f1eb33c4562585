"""What a placement is computed from."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

Replicas = tuple[int, ...]
"""Broker ids of one partition, the preferred leader first."""


class Partition(Struct, frozen=True):
    """One partition."""

    topic: str
    number: int
    replicas: Replicas
    size: int
    """Bytes of one replica."""
    movable: bool = True
    """False: its replicas count, and stay where they are."""


class Problem(Struct, frozen=True):
    """A cluster whose replicas are to be placed."""

    partitions: tuple[Partition, ...]
    racks: Mapping[int, str]
    """Broker that may have replicas -> its rack. All others are to be left."""
    max_bytes: int | None = None
    """The most that may be copied; None without a limit."""


class Band(Struct, frozen=True):
    """The amounts of one kind that count as even."""

    average: float
    low: float
    high: float

    def measure_excess(self, amount: float) -> float:
        """How far outside the band an amount is, as a share of the average."""
        if self.low <= amount <= self.high:
            return 0.0
        outside = self.low - amount if amount < self.low else amount - self.high
        return outside / self.average


# Cruise Control's default thresholds for replicas, disk and leaders are 1.10, too.
TOLERANCE = 0.10
"""The part of the average by which an amount may differ from it."""
# Retention deletes whole segments, by default of 1 GiB (log.segment.bytes), so that sizes go up and
# down by as much within days.
NOISE_BYTES = 1 << 30
"""A difference in bytes that is never worth a move."""


def make_count_band(total: int, brokers: int) -> Band:
    """The band of a number of things, which always contains the whole numbers next to the
    average."""
    average = total / brokers
    low = min(total // brokers, -int(-average * (1 - TOLERANCE) // 1))
    high = max(-(-total // brokers), int(average * (1 + TOLERANCE)))
    return Band(average or 1.0, low, high)


def make_size_band(total: int, brokers: int) -> Band:
    """The band of bytes."""
    average = total / brokers
    width = max(average * TOLERANCE, NOISE_BYTES)
    return Band(average or 1.0, average - width, average + width)
