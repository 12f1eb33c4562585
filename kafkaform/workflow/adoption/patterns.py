"""Choose few patterns for many folders, so that each folder is matched by what it is meant for, and
nothing else is. Pure: paths in, patterns out.

A pattern can be a little too wide: the folders that it does not mean get patterns of their own, and
the most specific one counts.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping
from itertools import product
from typing import TypeVar

_MOST_PARTS = 6
"""Only the last so many parts of a path become wildcards: each doubles the patterns to look at."""
_FIRST_WORD, _LAST_WORD = re.compile(r"[^-_.]+[-_.]"), re.compile(r"[-_.][^-_.]+$")
"""What folders in one place can have in common: `prod-` of prod-shop, `-prod` of shop-prod."""

Meaning = TypeVar("Meaning", bound=Hashable)


def choose_patterns(folders: Mapping[str, Meaning], avoided: Collection[str]) -> dict[str, Meaning]:
    """Pattern -> what its folders are meant for.

    folders: by path; avoided: paths of folders that no pattern may match. A pattern with wildcards
    means more of its folders than it does not mean, or at least as many as of any other kind; and
    the more wildcards it has, the more folders it means.
    """
    matches: dict[str, set[str]] = defaultdict(set)
    for path in folders:
        for pattern in _generalise(path):
            matches[pattern].add(path)
    for path in avoided:
        for pattern in _generalise(path):
            matches.pop(pattern, None)
    chosen: dict[str, Meaning] = {}
    for meaning in dict.fromkeys(folders.values()):
        meant = {path for path in folders if folders[path] == meaning}
        chosen |= dict.fromkeys(_cover(meant, matches), meaning)
    alone = {path for path in chosen if path in folders}
    for pattern in sorted(matches, key=lambda p: (-len(matches[p]), p.count("*"), p)):
        # Folders that stand alone, of several kinds: the pattern is for the most frequent kind.
        if matches[pattern] <= alone:
            kinds = Counter(folders[path] for path in sorted(matches[pattern]))
            meaning, count = kinds.most_common(1)[0]
            if _is_frequent(pattern, count):
                meant = {path for path in matches[pattern] if folders[path] == meaning}
                alone -= meant
                chosen = {p: m for p, m in chosen.items() if p not in meant} | {pattern: meaning}
    return dict(sorted(chosen.items()))


def _cover(meant: Collection[str], matches: Mapping[str, set[str]]) -> Iterator[str]:
    """Patterns that match these folders together, the widest first."""
    remaining = set(meant)
    counts = Counter(pattern for path in meant for pattern in set(_generalise(path)))
    candidates = {
        pattern
        for pattern, count in counts.items()
        if _is_frequent(pattern, count) and pattern in matches and 2 * count > len(matches[pattern])
    }
    while remaining and candidates:
        gains = {p: 2 * len(matches[p] & remaining) - len(matches[p]) for p in candidates}
        best = max(candidates, key=lambda p: (gains[p], -p.count("*"), len(p), p))
        if gains[best] <= 0:
            break
        yield best
        remaining -= matches[best]
        candidates.remove(best)
    yield from remaining


def _is_frequent(pattern: str, count: int) -> bool:
    """Whether so many folders are no coincidence: two for each wildcard, and a grid for several."""
    return bool(count >= 2 ** pattern.count("*"))


def _generalise(path: str) -> Iterator[str]:
    """The patterns with wildcards that match a path."""
    *above, name = path.split("/")
    loose = above[-_MOST_PARTS:]
    fixed = above[: len(above) - len(loose)]
    first, last = _FIRST_WORD.match(name), _LAST_WORD.search(name)
    names = {name, "*", f"{first[0]}*" if first else "*", f"*{last[0]}" if last else "*"}
    for parts in product(*((part, "*") for part in loose), sorted(names)):
        pattern = "/".join((*fixed, *parts))
        if "*" in pattern:
            yield pattern
