"""Find which patterns cover which targets, for one cluster at a time, with arrays.

Names are sorted by code point, so a prefix covers one stretch, which binary search finds. The work
grows with the number of patterns and results, not with their product.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kafkaform_kafka.protocol.acl import EVERYTHING, LITERAL, PREFIXED

Ints = NDArray[np.int64]
Truths = NDArray[np.bool_]
Pattern = tuple[str, str, str]
"""Resource type, name, pattern type. A resource is written as a literal pattern."""


def to_ints(values: Any) -> Ints:
    """Return the values as an array of 64-bit integers."""
    return np.asarray(values, dtype=np.int64)


def spread_stretches(start: Ints, count: Ints) -> tuple[Ints, Ints]:
    """Return every position of every stretch: the number of its stretch, and the position."""
    # The vectorised form of two nested loops: a Python loop over millions of pairs takes minutes.
    owner = np.repeat(np.arange(len(start)), count)
    before = np.cumsum(count) - count
    return owner, np.arange(len(owner)) - before[owner] + start[owner]


class Reach(Struct, frozen=True):
    """The targets that each pattern covers: of pattern n they are target[start[n] : start[n] +
    count[n]]."""

    target: Ints
    start: Ints
    count: Ints


def compute_reach(
    patterns: Sequence[Pattern], targets: list[Pattern], *, pattern_level: bool
) -> Reach:
    """Return the targets that each pattern covers.

    targets: sorted, no two equal; pattern_level: targets are patterns, so the literal `*` means
    everything and is not a name; a pattern is covered by one that covers all that it covers.
    """
    by_type = {
        kind: _Names(first, [name for _, name, _ in targets[first:last]], targets, pattern_level)
        for kind, first, last in _split_runs(targets)
    }
    stretches = [
        (number, first, last)
        for number, (kind, name, pattern_type) in enumerate(patterns)
        if kind in by_type
        for first, last in by_type[kind].find_covered(name, pattern_type)
        if first < last
    ]
    number, first, last = to_ints(stretches).reshape(-1, 3).T
    _, target = spread_stretches(first, last - first)
    count = np.zeros(len(patterns), np.int64)
    np.add.at(count, number, last - first)
    return Reach(target, np.cumsum(count) - count, count)


def _split_runs(targets: list[Pattern]) -> Iterator[tuple[str, int, int]]:
    first = 0
    for kind, run in groupby(targets, key=lambda target: target[0]):
        last = first + sum(1 for _ in run)
        yield kind, first, last
        first = last


class _Names(Struct, frozen=True):
    """The targets of one type."""

    first: int
    """The number of the first target."""
    names: list[str]
    targets: list[Pattern]
    pattern_level: bool

    def find_covered(self, name: str, pattern_type: str) -> Iterator[tuple[int, int]]:
        """Yield the targets that this pattern covers, as stretches that do not overlap."""
        if pattern_type == PREFIXED:
            yield self._find_prefixed(name)
        elif name == EVERYTHING:
            yield from self._find_everything()
        else:
            yield self._find_equal(name)

    def _find_everything(self) -> Iterator[tuple[int, int]]:
        """Kafka's search skips the wildcard for names that begin with `*` themselves; nor does it
        cover the empty prefix, which includes such names."""
        first_star, last_star = self._find_begun(EVERYTHING)
        yield self._find_equal("")
        yield self.first + bisect_right(self.names, ""), first_star
        yield self._find_equal(EVERYTHING)
        yield last_star, self.first + len(self.names)

    def _find_prefixed(self, prefix: str) -> tuple[int, int]:
        first, last = self._find_begun(prefix)
        if self.pattern_level and prefix == EVERYTHING:
            first = self._find_equal(prefix)[1]  # the literal `*` stands for all names
        return first, last

    def _find_begun(self, prefix: str) -> tuple[int, int]:
        names = self.names
        first = bisect_left(names, prefix)
        # A search for the first name without the prefix: there is no greatest text with it to look
        # for.
        last = bisect_left(names, True, first, key=lambda name: not name.startswith(prefix))
        return self.first + first, self.first + last

    def _find_equal(self, name: str) -> tuple[int, int]:
        """Return the literal target of this name; the prefix of the same name follows it."""
        first = self.first + bisect_left(self.names, name)
        kind = self.targets[self.first][0]
        found = self.targets[first : first + 1] == [(kind, name, LITERAL)]
        return first, first + found
