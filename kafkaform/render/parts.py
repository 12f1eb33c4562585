"""Compare long texts and lists part by part, so that every difference is visible."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import TypeVar

from msgspec import Struct

from ..core.value import Value

LONG = 240
"""Characters; two texts are compared part by part if one of them has more."""
MANY = 500
"""Parts; with more of them, everything between the first and the last difference counts as
different."""

ALIKE = 0.5
"""The share of words that an edited part has in common with the one that it replaces."""

_WORD = re.compile(r"\w+")
_PART = re.compile(r"[^,;\n]*[,;\n]|[^,;\n]+")
T = TypeVar("T")


class Piece(Struct, frozen=True):
    """One removed or added part, or a run of unchanged parts."""

    sign: str
    """`-` or `+` for one part, a space for unchanged ones."""
    part: Value = None
    same: int = 0
    """The number of unchanged parts."""


def split_text(text: str) -> list[str]:
    """The text cut after each comma, semicolon and line end. Joined, the parts are the text."""
    return _PART.findall(text)


def are_long(before: Value, after: Value) -> bool:
    """True for two texts if one of them is too long to be read beside the other."""
    both = isinstance(before, str) and isinstance(after, str)
    return both and max(len(before), len(after)) > LONG  # type: ignore[arg-type]


def compare_parts(before: Value, after: Value) -> Iterator[Piece]:
    """The parts of two texts or two lists that differ, between runs of equal parts."""
    old, new = (
        split_text(s) if isinstance(s, str) else list(_as_tuple(s)) for s in (before, after)
    )
    # Equal ends are cut off first. Most changes of a long list leave little in between.
    head = _count_shared(old, new)
    tail = _count_shared(old[head:][::-1], new[head:][::-1])
    gone, come = old[head : len(old) - tail], new[head : len(new) - tail]
    if head:
        yield Piece(" ", same=head)
    yield from _compare_middle(gone, come)
    if tail:
        yield Piece(" ", same=tail)


def _compare_middle(gone: Sequence[Value], come: Sequence[Value]) -> Iterator[Piece]:
    blocks: Sequence[tuple[str, int, int, int, int]] = [("replace", 0, len(gone), 0, len(come))]
    # SequenceMatcher takes time in proportion to the product of both lengths, or worse.
    if max(len(gone), len(come)) <= MANY:
        blocks = SequenceMatcher(None, gone, come).get_opcodes()
    for kind, start, end, first, last in blocks:
        if kind == "equal":
            yield Piece(" ", same=end - start)
            continue
        yield from _order_replaced(gone[start:end], come[first:last])


def _order_replaced(gone: Sequence[Value], come: Sequence[Value]) -> Iterator[Piece]:
    """Parts that replace others: what is new or gone first, so that it does not hide among parts
    that were only edited, then each edited part with the one that it replaces."""
    pairs = _pair_edits(gone, come) if 1 < len(gone) + len(come) - 1 <= MANY else {}
    replaced = set(pairs.values())
    yield from (Piece("-", element) for index, element in enumerate(gone) if index not in replaced)
    yield from (Piece("+", element) for index, element in enumerate(come) if index not in pairs)
    for index, old in pairs.items():
        yield from (Piece("-", gone[old]), Piece("+", come[index]))


def _pair_edits(gone: Sequence[Value], come: Sequence[Value]) -> dict[int, int]:
    """Place of a new part -> place of the old part that it edits: the one with most words in
    common, if that is at least half of the words of both."""
    words = [[set(_WORD.findall(str(element))) for element in side] for side in (gone, come)]
    scores = [
        (len(old & new) / len(old | new), -abs(index - at), index, at)
        for at, old in enumerate(words[0])
        for index, new in enumerate(words[1])
        if old & new
    ]
    pairs: dict[int, int] = {}
    paired: set[int] = set()
    for score, _, index, at in sorted(scores, reverse=True):
        if score < ALIKE:
            break
        if index not in pairs and at not in paired:
            pairs[index] = at
            paired.add(at)
    return dict(sorted(pairs.items()))


def _as_tuple(side: Value) -> tuple[Value, ...]:
    return side if isinstance(side, tuple) else ()


def _count_shared(first: Sequence[T], second: Sequence[T]) -> int:
    """The number of equal elements at the start of both."""
    pairs = zip(first, second, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(first), len(second)))
