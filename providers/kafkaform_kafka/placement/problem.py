"""What a placement is computed from, and where replicas are meanwhile.

The rules hold for every single move: the replicas of a partition are on distinct brokers, and its
spread over racks never gets worse.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
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
    room: Mapping[int, int] = {}
    """Broker -> the most bytes that may be copied to it; a broker that is missing has no limit."""


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


class Layout:
    """Replicas that are being placed. Partitions are known by their index in the problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.brokers = tuple(sorted(problem.racks))
        """The brokers that may have replicas."""
        self.sizes = [partition.size for partition in problem.partitions]
        self.origins = [frozenset(partition.replicas) for partition in problem.partitions]
        """The brokers of each partition before any move."""
        self.rows = [list(partition.replicas) for partition in problem.partitions]
        """The brokers of each partition, in no order."""
        everywhere = {*self.brokers}.union(*self.origins)
        self.racks = {b: problem.racks.get(b) or f"\0{b}" for b in everywhere}
        self.spreads = [[self.racks[b] for b in row] for row in self.rows]
        """The racks of each partition, in the order of its row."""
        self.counts = dict.fromkeys(everywhere, 0)
        self.bytes = dict.fromkeys(everywhere, 0)
        self.held: dict[int, list[tuple[int, int]]] = {b: [] for b in everywhere}
        """Broker -> size and index of each movable replica, sorted."""
        self.exits = {b: Counter[str]() for b in everywhere}
        """Broker -> rack -> how many of its movable replicas could go there."""
        self.topics = [
            Counter[int]() for _ in {partition.topic for partition in problem.partitions}
        ]
        """Topic -> broker -> its replicas."""
        self.topic_of = self._number_topics()
        self._rack_names = tuple(sorted({self.racks[b] for b in self.brokers}))
        self.spares_topics = True
        """No move concentrates a topic on a broker."""
        self.arrived = dict.fromkeys(everywhere, 0)
        """Bytes of the replicas on each broker that were not there before."""
        self.copied = 0
        """Bytes of the replicas that are on brokers where they were not before."""
        for index, row in enumerate(self.rows):
            for broker in row:
                self._enter(index, broker)
            if problem.partitions[index].movable:
                self._count_exits(index, 1)
        for replicas in self.held.values():
            replicas.sort()
        self.topic_shares = [
            -(-sum(counts.values()) // len(self.brokers)) for counts in self.topics
        ]
        """Topic -> replicas that each broker may have of it, whatever the others have."""
        self.count_band, self.size_band = self._make_bands()

    def _number_topics(self) -> list[int]:
        numbers: dict[str, int] = {}
        return [numbers.setdefault(p.topic, len(numbers)) for p in self.problem.partitions]

    def _enter(self, index: int, broker: int) -> None:
        self.counts[broker] += 1
        self.bytes[broker] += self.sizes[index]
        self.topics[self.topic_of[index]][broker] += 1
        if self.problem.partitions[index].movable:
            self.held[broker].append((self.sizes[index], index))

    def _count_exits(self, index: int, by: int) -> None:
        spread = self.spreads[index]
        for broker, rack in zip(self.rows[index], spread, strict=True):
            exits, own = self.exits[broker], spread.count(rack)
            for target_rack in self._rack_names:
                if target_rack == rack or spread.count(target_rack) < own:
                    exits[target_rack] += by

    def _make_bands(self) -> tuple[Band, Band]:
        """What is even once every movable replica is on a broker that may have it."""
        usable = self.problem.racks
        staying = [
            size
            for partition, size in zip(self.problem.partitions, self.sizes, strict=True)
            for broker in partition.replicas
            if partition.movable or broker in usable
        ]
        number = len(self.brokers)
        return make_count_band(len(staying), number), make_size_band(sum(staying), number)

    # ── rules ───────────────────────────────────────────────────────────────────────────

    def can_move(self, index: int, source: int, target: int) -> bool:
        """Whether the replica may move."""
        return self._fits(index, source, target) and self._gathers_less(index, source, target)

    def can_swap(self, index: int, back: int, source: int, target: int) -> bool:
        """Whether the replica may move while one of another partition goes the other way."""
        if not (self._fits(index, source, target) and self._fits(back, target, source)):
            return False
        if self.topic_of[index] == self.topic_of[back]:
            return True
        swap_gathers = self._gathers_less(index, source, target)
        return swap_gathers and self._gathers_less(back, target, source)

    def _fits(self, index: int, source: int, target: int) -> bool:
        """Whether no other replica is there, there is room for it, and the spread over racks gets
        no worse."""
        if target in self.rows[index] or not self.has_room(index, target):
            return False
        source_rack, target_rack = self.racks[source], self.racks[target]
        spread = self.spreads[index]
        return source_rack == target_rack or spread.count(target_rack) < spread.count(source_rack)

    def _gathers_less(self, index: int, source: int, target: int) -> bool:
        """Whether the topic is less concentrated afterwards, or within its share."""
        if not self.spares_topics:
            return True
        topic = self.topic_of[index]
        counts = self.topics[topic]
        return counts[target] < max(counts[source], self.topic_shares[topic])

    def count_in_rack(self, index: int, rack: str) -> int:
        """How many replicas of the partition are in the rack."""
        return self.spreads[index].count(rack)

    def compute_cost(self, index: int, source: int, target: int) -> int:
        """How many more bytes are copied in the end if the replica moves."""
        origin = self.origins[index]
        return self.sizes[index] * ((target not in origin) - (source not in origin))

    def has_room(self, index: int, broker: int) -> bool:
        """Whether the replica fits on the broker beside all that is there before any move."""
        # What leaves makes no room: a replica goes only when its copy is complete.
        room = self.problem.room.get(broker)
        if room is None or broker in self.origins[index]:
            return True
        return self.arrived[broker] + self.sizes[index] <= room

    def can_afford(self, cost: int) -> bool:
        """Whether the limit allows that many more bytes to be copied."""
        limit = self.problem.max_bytes
        return limit is None or cost <= 0 or self.copied + cost <= limit

    def list_stranded(self) -> list[tuple[int, int, int]]:
        """Size, index and broker of each movable replica on a broker that must be left, the
        largest first."""
        usable = self.problem.racks
        stranded = [
            (size, index, broker)
            for broker, replicas in self.held.items()
            if broker not in usable
            for size, index in replicas
        ]
        return sorted(stranded, key=lambda item: (-item[0], item[1], item[2]))

    # ── changes ─────────────────────────────────────────────────────────────────────────

    def move(self, index: int, source: int, target: int) -> None:
        """Move one replica."""
        self.copied += self.compute_cost(index, source, target)
        self._count_exits(index, -1)
        position = self.rows[index].index(source)
        self.rows[index][position] = target
        self.spreads[index][position] = self.racks[target]
        self._count_exits(index, 1)
        size = self.sizes[index]
        self.counts[source] -= 1
        self.counts[target] += 1
        self.bytes[source] -= size
        self.bytes[target] += size
        if source not in self.origins[index]:
            self.arrived[source] -= size
        if target not in self.origins[index]:
            self.arrived[target] += size
        counts = self.topics[self.topic_of[index]]
        counts[source] -= 1
        counts[target] += 1
        replicas = self.held[source]
        del replicas[bisect_left(replicas, (size, index))]
        insort(self.held[target], (size, index))

    # ── evenness ────────────────────────────────────────────────────────────────────────

    def measure(self, broker: int, more_replicas: int = 0, more_bytes: int = 0) -> float:
        """How uneven a broker is, or would be with that many more replicas and bytes; 0 within
        the bands."""
        count = self.count_band.measure_excess(self.counts[broker] + more_replicas)
        size = self.size_band.measure_excess(self.bytes[broker] + more_bytes)
        return count * count + size * size

    def measure_all(self) -> float:
        """The sum over all brokers that may have replicas."""
        return sum(map(self.measure, self.brokers))

    def compute_load(self, broker: int) -> float:
        """Replicas and bytes of a broker as parts of their averages."""
        count = self.counts[broker] / self.count_band.average
        return count + self.bytes[broker] / self.size_band.average
