"""Compute a placement: the goals in their order.

1. No replica is on a broker that must be left (drained, dead, not named).
2. The replicas of each partition are spread over the racks as evenly as possible.
3. Replicas and bytes are even over the brokers, within a band around the average.
4. Preferred leaders are even over the brokers, within a band.
5. As few bytes as possible are copied.

Each goal is reached without giving up an earlier one, and a topic is concentrated on a broker only
if the third goal needs it. The third is a local search, which guarantees nothing; its tests compare
it with the best of all placements of small clusters.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from .problem import Band, Layout, Problem, Replicas, make_count_band
from .search import (
    Search,
    Worth,
    by_gain,
    by_gain_per_byte,
    leave_brokers,
    spread_over_racks,
    take_back,
)


def even_out_leaders(
    rows: Sequence[Replicas], movable: Sequence[bool], usable: Iterable[int]
) -> tuple[Replicas, ...]:
    """The rows with other first replicas where that makes brokers lead more evenly.

    A path from a broker that leads too much to one that leads too little changes one partition for
    each of its steps. A shortest path is taken until there is none: these are the augmenting paths
    of a maximum flow (J. Edmonds and R. Karp, 1972), so that no other order of the same replicas
    leaves less outside of the band. usable: the brokers that should lead.
    """
    brokers = frozenset(usable)
    firsts = [_choose_first(row, brokers, may) for row, may in zip(rows, movable, strict=True)]
    led = sum(first in brokers for first in firsts)
    work = _Leadership(
        [
            [b for b in row if b in brokers] if may else []
            for row, may in zip(rows, movable, strict=True)
        ],
        firsts,
        dict.fromkeys(sorted(brokers), 0),
        {b: {c: set() for c in brokers} for b in brokers},
        make_count_band(led, len(brokers)),
    )
    work.count_all()
    work.shift(lambda led, band: led > band.high, lambda led, band: led < band.high)
    work.shift(lambda led, band: led > band.low, lambda led, band: led < band.low)
    return tuple(_put_first(row, first) for row, first in zip(rows, work.firsts, strict=True))


def _choose_first(row: Replicas, usable: frozenset[int], movable: bool) -> int:
    """The preferred leader, or the next replica on a broker that should lead."""
    if not movable or row[0] in usable:
        return row[0]
    return next((broker for broker in row if broker in usable), row[0])


def _put_first(row: Replicas, first: int) -> Replicas:
    return (first, *(broker for broker in row if broker != first))


Judge = Callable[[int, Band], bool]


class _Leadership(Struct):
    """Who leads which partition."""

    followers: list[list[int]]
    """The brokers that can lead each partition; none if its order must stay."""
    firsts: list[int]
    led: dict[int, int]
    """Broker -> partitions that it leads."""
    links: dict[int, dict[int, set[int]]]
    """Leader -> other broker -> the partitions that the other broker could lead."""
    band: Band

    def count_all(self) -> None:
        for index, first in enumerate(self.firsts):
            if first in self.led:
                self.led[first] += 1
                self._link(index)

    def _link(self, index: int) -> None:
        first = self.firsts[index]
        for broker in self.followers[index]:
            if broker != first:
                self.links[first][broker].add(index)

    def _unlink(self, index: int) -> None:
        first = self.firsts[index]
        for broker in self.followers[index]:
            if broker != first:
                self.links[first][broker].discard(index)

    def shift(self, gives: Judge, takes: Judge) -> None:
        """Shift leadership from brokers that give to brokers that take, while there is a path."""
        for path in iter(lambda: self._find_path(gives, takes), None):
            for giver, taker in zip(path, path[1:], strict=False):
                index = min(self.links[giver][taker])
                self._unlink(index)
                self.firsts[index] = taker
                self._link(index)
            self.led[path[0]] -= 1
            self.led[path[-1]] += 1

    def _find_path(self, gives: Judge, takes: Judge) -> list[int] | None:
        """A shortest path from the broker that leads most to one that leads less."""
        givers = [b for b, led in self.led.items() if gives(led, self.band)]
        for giver in sorted(givers, key=lambda b: (-self.led[b], b)):
            path = self._search(giver, takes)
            if path:
                return path
        return None

    def _search(self, giver: int, takes: Judge) -> list[int] | None:
        came = {giver: giver}
        queue = deque([giver])
        while queue:
            leader = queue.popleft()
            for follower in self.led:
                if follower in came or not self.links[leader][follower]:
                    continue
                came[follower] = leader
                if takes(self.led[follower], self.band):
                    return _walk_back(came, follower)
                queue.append(follower)
        return None


def _walk_back(came: dict[int, int], end: int) -> list[int]:
    path = [end]
    while came[path[-1]] != path[-1]:
        path.append(came[path[-1]])
    return path[::-1]


_ROUNDS = 20
"""Searches, each after moves were taken back. Two or three are usual."""


class Solution(Struct, frozen=True):
    """A placement."""

    rows: tuple[Replicas, ...]
    """The replicas of each partition of the problem, in its order."""
    copied: int
    """Bytes that the moves copy."""
    whole: bool
    """False if the limit on bytes keeps replicas on brokers that must be left."""


def solve(problem: Problem) -> Solution:
    """The placement for a problem. The same problem has the same solution, and the solution of its
    solution is itself, unless a limit on bytes cut it short. Raises ValueError if a partition has
    more replicas than there are brokers for it."""
    attempts = [_place(problem, worth) for worth in (by_gain, by_gain_per_byte)]
    # Evenness first, but not a difference of less than a hundredth of the average.
    layout = min(attempts, key=lambda attempt: (round(attempt.measure_all(), 4), attempt.copied))
    rows = [
        _order_row(partition.replicas, row)
        for partition, row in zip(problem.partitions, layout.rows, strict=True)
    ]
    movable = [partition.movable for partition in problem.partitions]
    return Solution(
        even_out_leaders(rows, movable, layout.brokers),
        layout.copied,
        whole=not layout.list_stranded(),
    )


def _place(problem: Problem, worth: Worth) -> Layout:
    layout = Layout(problem)
    if not leave_brokers(layout):
        return layout
    spread_over_racks(layout)
    for _ in range(_ROUNDS):
        # Each pair of calls makes the brokers more even, or copies less and leaves them as even as
        # they are.
        Search(layout, worth).run()
        if not take_back(layout):
            break
    return layout


def _order_row(replicas: Replicas, after: list[int]) -> Replicas:
    """The replicas that stay keep their places, and new ones take those of the others."""
    added = iter(sorted(set(after).difference(replicas)))
    return tuple(broker if broker in after else next(added) for broker in replicas)
