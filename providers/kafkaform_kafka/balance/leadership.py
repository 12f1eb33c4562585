"""Even out preferred leaders by reordering replicas, which copies nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from .problem import Band, Replicas, make_count_band


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
