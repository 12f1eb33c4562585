"""What the arguments of a rule can be, as data: one table for Hypothesis, for a seed and for JSON.

Every value that is drawn consists of JSON's own types, so a list of drawn steps can be saved and
played again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from hypothesis import strategies as st


@dataclass(frozen=True)
class Pick:
    """One of these values; those that stand here twice come twice as often."""

    options: Sequence[Any]


@dataclass(frozen=True)
class Whole:
    """A whole number from least to most."""

    least: int
    most: int


@dataclass(frozen=True)
class Many:
    """A list of least to most values."""

    of: Shape
    most: int
    least: int = 0


@dataclass(frozen=True)
class Either:
    """A value of one of these shapes."""

    shapes: Sequence[Shape]


@dataclass(frozen=True)
class Record:
    """A mapping with these members."""

    members: Mapping[str, Shape]


Shape = Pick | Whole | Many | Either | Record


def record(**members: Shape) -> Record:
    return Record(members)


def draw(shape: Shape, random: Random) -> Any:
    """A value of this shape."""
    if isinstance(shape, Pick):
        return random.choice(shape.options)
    if isinstance(shape, Whole):
        return random.randint(shape.least, shape.most)
    if isinstance(shape, Many):
        count = random.randint(shape.least, shape.most)
        return [draw(shape.of, random) for _ in range(count)]
    if isinstance(shape, Either):
        return draw(random.choice(shape.shapes), random)
    return {name: draw(member, random) for name, member in shape.members.items()}


def strategy(shape: Shape) -> st.SearchStrategy[Any]:
    """The values of this shape, for Hypothesis."""
    if isinstance(shape, Pick):
        return st.sampled_from(shape.options)
    if isinstance(shape, Whole):
        return st.integers(shape.least, shape.most)
    if isinstance(shape, Many):
        return st.lists(strategy(shape.of), min_size=shape.least, max_size=shape.most)
    if isinstance(shape, Either):
        return st.one_of([strategy(one) for one in shape.shapes])
    return st.fixed_dictionaries({n: strategy(one) for n, one in shape.members.items()})
