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

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct, field

from .problem import Band, Layout, Problem, Replicas, make_count_band

_LEAST = 1e-6
"""The least gain of a step: an excess of a thousandth of the average is none."""
_NEAR = 2
"""Replicas of about the right size that are tried for each swap."""


class Step(Struct, frozen=True):
    """A move, or a swap if there is a second replica."""

    gain: float
    cost: int
    """Bytes."""
    index: int
    back: int | None = None
    """The partition whose replica moves the other way."""


Worth = Callable[[float, int], float]
"""Gain and bytes of a move -> how much it is worth."""


def by_gain(gain: float, _: int) -> float:
    """Prefer the moves that help most: few of them are needed."""
    return gain


def by_gain_per_byte(gain: float, size: int) -> float:
    """Prefer the moves that help most for each byte that they copy."""
    return gain / (size + 1)


class Search(Struct):
    """The search, which remembers pairs of brokers that have nothing to exchange."""

    layout: Layout
    worth: Worth
    stamps: dict[int, int] = field(default_factory=dict)
    """Broker -> number of its changes."""
    exhausted: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    """From and to -> the stamps at which nothing was found."""

    def run(self) -> None:
        """Even out; if that does not do, also with moves that concentrate a topic."""
        # A topic on few brokers has a hot spot when it is busy, whatever the sums are.
        for spares_topics in (True, False):
            self.layout.spares_topics = spares_topics
            self.exhausted.clear()
            while self._improve():
                pass
        self.layout.spares_topics = True

    def _improve(self) -> bool:
        """Take the best step for the most uneven broker that can be helped."""
        layout = self.layout
        uneven = [(layout.measure(broker), broker) for broker in layout.brokers]
        for excess, broker in sorted(uneven, key=lambda item: (-item[0], item[1])):
            if excess <= _LEAST:
                return False
            for source, target in self._pair(broker):
                if self._step(source, target):
                    return True
        return False

    def _pair(self, broker: int) -> Iterator[tuple[int, int]]:
        """The broker with each other one, the most different first; it gives or gets."""
        layout = self.layout
        load = layout.compute_load(broker)
        others_by_load = [(layout.compute_load(b), b) for b in layout.brokers if b != broker]
        for partner, partner_load in sorted(
            others_by_load, key=lambda item: (-abs(item[0] - load), item[1])
        ):
            pairs = ((broker, partner_load), (partner_load, broker))
            yield from pairs if load >= partner else reversed(pairs)

    def _step(self, source: int, target: int) -> bool:
        stamps = self.stamps.get(source, 0), self.stamps.get(target, 0)
        if self.exhausted.get((source, target)) == stamps:
            return False
        if not self.layout.exits[source][self.layout.racks[target]]:
            return False
        step = find_move(self.layout, source, target, self.worth)
        step = step or find_swap(self.layout, source, target)
        if step is None:
            self.exhausted[source, target] = stamps
            return False
        self.layout.move(step.index, source, target)
        if step.back is not None:
            self.layout.move(step.back, target, source)
        self.stamps[source], self.stamps[target] = stamps[0] + 1, stamps[1] + 1
        return True


def find_move(layout: Layout, source: int, target: int, worth: Worth) -> Step | None:
    """The move of one replica that is worth most, None if no move helps."""
    for gain, index in _list_by_worth(layout, source, target, worth):
        if gain <= 0:
            return None
        cost = layout.compute_cost(index, source, target)
        if gain > _LEAST and layout.can_move(index, source, target) and layout.can_afford(cost):
            return Step(gain, cost, index)
    return None


def _list_by_worth(
    layout: Layout, source: int, target: int, worth: Worth
) -> Iterator[tuple[float, int]]:
    """The gain of moving each replica of the source, and its index, the worthiest first; of equally
    good ones the smallest."""
    now = layout.measure(source) + layout.measure(target)
    replicas = layout.held[source]

    def judge(index: int) -> tuple[float, float]:
        if not 0 <= index < len(replicas):
            return -math.inf, 0.0
        size = replicas[index][0]
        gain = now - layout.measure(source, -1, -size) - layout.measure(target, 1, size)
        return worth(gain, size), gain

    # The gain is a concave function of the size. So it falls on both sides of the best size, and
    # so does its quotient by the size.
    up = _find_peak(replicas, lambda index: judge(index)[0])
    down = up - 1
    above, below = judge(up), judge(down)
    while up < len(replicas) or down >= 0:
        if above[0] >= below[0] and up < len(replicas):
            yield above[1], replicas[up][1]
            up += 1
            above = judge(up)
        else:
            yield below[1], replicas[down][1]
            down -= 1
            below = judge(down)


def _find_peak(replicas: list[tuple[int, int]], judge: Callable[[int], float]) -> int:
    """The first place of the greatest value. Values rise with the size, and then fall."""
    first, last = 0, len(replicas)
    while first < last:
        size = replicas[(first + last) // 2][0]
        begin, end = bisect_left(replicas, (size, -1)), bisect_left(replicas, (size + 1, -1))
        if end < len(replicas) and judge(end) > judge(begin):
            first = end
        else:
            last = begin
    return first


def find_wanted(layout: Layout, source: int, target: int) -> int:
    """The fewest bytes that leave both brokers as even as possible if they go from one to the
    other."""
    band = layout.size_band
    needed = max(layout.bytes[source] - band.high, band.low - layout.bytes[target])
    bearable = find_bearable(layout, source, target)
    # If one needs more than the other can bear, half way between is the least sum of squares.
    return max(0, int(needed if needed <= bearable else (needed + bearable) / 2))


def find_bearable(layout: Layout, source: int, target: int) -> float:
    """The most bytes that can go from one to the other and leave both within the band; negative if
    one of them is outside already."""
    band = layout.size_band
    return min(layout.bytes[source] - band.low, band.high - layout.bytes[target])


def find_swap(layout: Layout, source: int, target: int) -> Step | None:
    """The best swap of two replicas, after which the source has fewer bytes; None if none helps."""
    now = layout.measure(source) + layout.measure(target)

    def compute_gain(decrease: int) -> float:
        return now - layout.measure(source, 0, -decrease) - layout.measure(target, 0, decrease)

    wanted_bytes = find_wanted(layout, source, target)
    if wanted_bytes <= 0 or compute_gain(wanted_bytes) <= _LEAST:
        return None
    target_replicas = layout.held[target]
    best: Step | None = None
    for size, index in layout.held[source]:
        near = bisect_left(target_replicas, (size - wanted_bytes, -1))
        for target_size, back in target_replicas[max(0, near - _NEAR) : near + _NEAR]:
            decrease = size - target_size
            if decrease <= 0 or index == back:
                continue
            gain = compute_gain(decrease)
            if gain <= _LEAST or (best is not None and gain < best.gain):
                continue
            cost = layout.compute_cost(index, source, target)
            cost += layout.compute_cost(back, target, source)
            if best is not None and (-gain, cost) >= (-best.gain, best.cost):
                continue
            if layout.can_swap(index, back, source, target) and layout.can_afford(cost):
                best = Step(gain, cost, index, back)
    return best


_EQUAL = 1e-9
"""A difference in evenness that is none. Rounding errors are smaller."""
_TRIED = 40
"""Smaller replicas that are tried in place of each one that goes back."""


def take_back(layout: Layout) -> bool:
    """Put replicas back where they were, the largest first, as long as the brokers stay as even;
    if a smaller one can go in its place, in exchange. True if any went back."""
    moved = [
        (layout.sizes[index], index)
        for index, row in enumerate(layout.rows)
        if layout.origins[index].difference(row)
    ]
    reversals = [_take_back_one(layout, index) for _, index in sorted(moved, reverse=True)]
    return any(reversals)


def _take_back_one(layout: Layout, index: int) -> bool:
    for source, target in _list_ways(layout, index):
        if _is_free(layout, source, target, 1, layout.sizes[index]) and layout.can_move(
            index, source, target
        ):
            layout.move(index, source, target)
            return True
    for source, target in _list_ways(layout, index):
        replica = _find_smaller(layout, index, source, target)
        if replica is not None:
            layout.move(index, source, target)
            layout.move(replica, target, source)
            return True
    return False


def _list_ways(layout: Layout, index: int) -> Iterator[tuple[int, int]]:
    """From each broker that is new to the partition to each one that it has left and may have."""
    origin, row = layout.origins[index], layout.rows[index]
    origins = sorted(origin.difference(row).intersection(layout.problem.racks))
    for source in sorted(set(row) - origin):
        yield from ((source, target) for target in origins)


def _is_free(layout: Layout, source: int, target: int, number: int, size: int) -> bool:
    """Whether both brokers stay as even if so many replicas and bytes go from one to the other."""
    now = layout.measure(source) + layout.measure(target)
    then = layout.measure(source, -number, -size) + layout.measure(target, number, size)
    return then <= now + _EQUAL


def _find_smaller(layout: Layout, index: int, source: int, target: int) -> int | None:
    """The smallest replica that can go the other way when this one goes back; None if all leave
    brokers less even, or save nothing."""
    size = layout.sizes[index]
    target_replicas = layout.held[target]
    first = bisect_left(target_replicas, (size - max(0, find_bearable(layout, source, target)), -1))
    for target_size, back in target_replicas[first : first + _TRIED]:
        if target_size >= size:
            return None
        cost = layout.compute_cost(index, source, target)
        cost += layout.compute_cost(back, target, source)
        if (
            cost < 0
            and back != index
            and layout.can_swap(index, back, source, target)
            and _is_free(layout, source, target, 0, size - target_size)
        ):
            return back
    return None


def leave_brokers(layout: Layout) -> bool:
    """Move all movable replicas off brokers that must be left; False if the limit on bytes or the
    room on the other brokers keeps some of them there.

    The largest replicas are placed first, each on the least loaded broker (LPT rule: R. Graham,
    "Bounds on multiprocessing timing anomalies", 1969). Raises ValueError if a partition has more
    replicas than there are brokers.
    """
    whole = True
    for _, index, source in layout.list_stranded():
        row = layout.rows[index]
        choices = [b for b in layout.brokers if b not in row]
        if not choices:
            partition = layout.problem.partitions[index]
            raise ValueError(
                f"partition {partition.number} of {partition.topic} has {len(row)} replicas, and "
                f"only {len(layout.brokers)} brokers may have them"
            )
        choices = [b for b in choices if layout.has_room(index, b)]
        if not choices:
            whole = False
            continue
        topic = layout.topics[layout.topic_of[index]]
        share = layout.topic_shares[layout.topic_of[index]]
        target = min(
            choices,
            key=lambda b: (
                layout.count_in_rack(index, layout.racks[b]),
                topic[b] >= share,
                layout.compute_load(b),
                b,
            ),
        )
        if layout.can_afford(layout.compute_cost(index, source, target)):
            layout.move(index, source, target)
        else:
            whole = False
    return whole


def spread_over_racks(layout: Layout) -> None:
    """Make the spread of each movable partition over the racks as even as possible."""
    # The sum of the squares of the racks' shares falls with each exchange. It is convex, so that
    # single exchanges reach its minimum (M-convexity: K. Murota, "Discrete Convex Analysis", 2003).
    for index, partition in enumerate(layout.problem.partitions):
        while partition.movable and _improve_spread(layout, index):
            pass


def _improve_spread(layout: Layout, index: int) -> bool:
    row, spread = layout.rows[index], layout.spreads[index]
    fullest = max(map(spread.count, spread))
    if fullest == 1:
        return False
    choices = [
        (spread.count(layout.racks[target]), layout.compute_load(target), target)
        for target in layout.brokers
        if target not in row and layout.has_room(index, target)
    ]
    if not choices or min(choices)[0] + 1 >= fullest:
        return False
    target = min(choices)[2]
    full = [b for b in row if spread.count(layout.racks[b]) == fullest]
    source = max(
        full, key=lambda b: (-layout.compute_cost(index, b, target), layout.compute_load(b), b)
    )
    if not layout.can_afford(layout.compute_cost(index, source, target)):
        return False
    layout.move(index, source, target)
    return True


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
    return tuple(
        (first, *(broker for broker in row if broker != first))
        for row, first in zip(rows, work.firsts, strict=True)
    )


def _choose_first(row: Replicas, usable: frozenset[int], movable: bool) -> int:
    """The preferred leader, or the next replica on a broker that should lead."""
    if not movable or row[0] in usable:
        return row[0]
    return next((broker for broker in row if broker in usable), row[0])


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


# ── the goals in their order ────────────────────────────────────────────────────────────


class Solution(Struct, frozen=True):
    """A placement."""

    rows: tuple[Replicas, ...]
    """The replicas of each partition of the problem, in its order."""
    copied: int
    """Bytes that the moves copy."""
    whole: bool
    """False if the limit on bytes or a lack of room keeps replicas on brokers that must be left."""


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
