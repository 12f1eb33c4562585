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
    """The parts of two texts or two lists that differ, in order, between runs of equal parts."""
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
        yield from (Piece("-", part) for part in gone[start:end])
        yield from (Piece("+", part) for part in come[first:last])


def _as_tuple(side: Value) -> tuple[Value, ...]:
    return side if isinstance(side, tuple) else ()


def _count_shared(one: Sequence[T], other: Sequence[T]) -> int:
    """The number of equal elements at the start of both."""
    pairs = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
