"""Finds the name that a misspelt one was meant to be: topics, groups and users alike.

Names are near if one or two typing mistakes lie between them: a character that is missing, doubled,
wrong, or exchanged with its neighbour. `orders-1` and `orders-2` are siblings and not near.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

SHORT = 6
"""Names with fewer characters are near with one mistake only: two make another word."""
_SEPARATORS = re.compile(r"[._-]")
_NUMBERS = re.compile(r"[._-]?v?\d+", re.ASCII)


class NameIndex(Struct, frozen=True):
    """The names of one kind; `index_names` makes one."""

    lengths: Mapping[int, Sequence[str]]
    """Length -> the names of this length, sorted."""

    def find_near(self, name: str) -> str:
        """The nearest of these names, the first of equally near ones; empty if none is near."""
        most = 1 if len(name) < SHORT else 2
        plain, stem = _simplify(name), _drop_numbers(name)
        # Two mistakes touch four of five parts at most, even if both exchange neighbours of two
        # parts. So a near name has one part as it is, which is quick to find.
        size = max(1, len(name) // 5)
        parts = {name[start : start + size] for start in range(0, len(name) - size + 1, size)}
        best, least = "", most + 1
        for length in range(len(name) - most, len(name) + most + 1):
            for other in self.lengths.get(length, ()):
                if other != name and _simplify(other) == plain:
                    return other
                if other == name or not any(part in other for part in parts):
                    continue
                if _drop_numbers(other) != stem:
                    distance = _count_mistakes(name, other, least - 1)
                    best, least = (other, distance) if distance < least else (best, least)
        return best


def index_names(names: Iterable[str]) -> NameIndex:
    """These names, ready to be searched for near ones."""
    lengths: dict[int, list[str]] = defaultdict(list)
    for name in sorted(names):
        lengths[len(name)].append(name)
    return NameIndex(lengths)


def _simplify(name: str) -> str:
    """Equal for names that differ only in case and separators."""
    return _SEPARATORS.sub("-", name).casefold()


def _drop_numbers(name: str) -> str:
    """Equal for siblings: `orders`, `orders-1` and `orders-v2`."""
    return _NUMBERS.sub("", name)


def _count_mistakes(name: str, other: str, most: int) -> int:
    """The mistakes between two names (optimal string alignment), `most` + 1 for more."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, char in enumerate(name, 1):
        earlier, before, row = before, row, [i]
        for j, wanted in enumerate(other, 1):
            count = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (char != wanted))
            if i > 1 and j > 1 and char == other[j - 2] and name[i - 2] == wanted:
                count = min(count, earlier[j - 2] + 1)
            row.append(count)
        if min(row) > most:
            return most + 1
    return row[-1]
