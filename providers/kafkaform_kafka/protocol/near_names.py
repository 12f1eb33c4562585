"""Finds the name that a misspelt one was meant to be: topics, groups and users alike.

Names are near if one or two typing mistakes lie between them: a character that is missing, doubled,
wrong, or exchanged with its neighbour. `orders-1` and `orders-2` are siblings and not near.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

SHORT = 6
"""Names with fewer characters are near with one mistake only: two make another word."""
_SEPARATORS = re.compile(r"[._-]")
_NUMBERS = re.compile(r"[._-]?v?\d+", re.ASCII)


class NameIndex(Struct, frozen=True):
    """The names of one kind; `index_names` makes one."""

    lengths: Mapping[int, Sequence[str]]
    """Length -> the names of this length, sorted."""
    plain: Mapping[str, str]
    """Name without its case and separators -> the first such name."""

    def find_near(self, name: str) -> str:
        """The nearest of these names, the first of equally near ones; empty if none is near."""
        respelled = self.plain.get(_simplify(name), name)
        if respelled != name:
            return respelled
        most, stem = 1 if len(name) < SHORT else 2, _drop_numbers(name)
        best, least = "", most + 1
        for candidate in self._list_candidates(name, most):
            if candidate != name and _drop_numbers(candidate) != stem:
                distance = _count_mistakes(name, candidate, least - 1)
                best, least = (candidate, distance) if distance < least else (best, least)
        return best

    def _list_candidates(self, name: str, most: int) -> Iterator[str]:
        # Two mistakes touch four of five parts at most, even if both exchange neighbours of two
        # parts. So a near name has one part as it is, which is quick to find.
        size = max(1, len(name) // 5)
        chunks = {name[start : start + size] for start in range(0, len(name) - size + 1, size)}
        has_part = re.compile("|".join(map(re.escape, sorted(chunks)))).search
        for length in range(len(name) - most, len(name) + most + 1):
            yield from filter(has_part, self.lengths.get(length, ()))


def index_names(names: Iterable[str]) -> NameIndex:
    """These names, ready to be searched for near ones."""
    lengths: dict[int, list[str]] = defaultdict(list)
    plain: dict[str, str] = {}
    for name in sorted(names):
        lengths[len(name)].append(name)
        plain.setdefault(_simplify(name), name)
    return NameIndex(lengths, plain)


def _simplify(name: str) -> str:
    """Equal for names that differ only in case and separators."""
    return _SEPARATORS.sub("-", name).casefold()


def _drop_numbers(name: str) -> str:
    """Equal for siblings: `orders`, `orders-1` and `orders-v2`."""
    return _NUMBERS.sub("", name)


def _count_mistakes(name: str, candidate: str, most: int) -> int:
    """The mistakes between two names, or a number over `most`. Few mistakes are quicker tried than
    counted by a table."""
    if name == candidate:
        return 0
    if most == 0 or abs(len(name) - len(candidate)) > most:
        return most + 1
    start = 0
    for char, candidate_char in zip(name, candidate, strict=False):
        if char != candidate_char:
            break
        start += 1
    name, candidate = name[start:], candidate[start:]
    rests = [(name[1:], candidate[1:]), (name[1:], candidate), (name, candidate[1:])]
    if name[:2] == candidate[1::-1]:
        rests.append((name[2:], candidate[2:]))
    return 1 + min(_count_mistakes(*suffixes, most - 1) for suffixes in rests)
