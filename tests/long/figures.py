"""What a long test found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Figures:
    """name: of the test; counts: what was done, by what it is called; violations: of what is
    promised, each with what replays it; seconds: that it took."""

    name: str
    counts: Mapping[str, int]
    violations: tuple[str, ...]
    seconds: float
