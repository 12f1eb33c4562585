"""The meanings of first words: `var`, `local`, `each`, `path`, `module`, `data`, resource types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct, field

from ..values.faults import Deferred, EvalError, Location, Poisoned, suggest_near
from ..values.value import ObjectVal, Val
from .references import get_attribute


class Unset(Poisoned):
    """A variable has no value, or a data source was not read."""


Outcome = Val | Poisoned | Deferred
"""A value, or the exception to raise instead of it."""


class Space(Struct, frozen=True):
    """Names with values, such as `var`. Evaluation must follow the order of the graph: a name that
    is declared but not evaluated yet is not in it."""

    word: str
    """What one of its names stands for, such as `variable`."""
    outcomes: Mapping[str, Outcome]

    def find(self, name: str, location: Location) -> Val:
        if name not in self.outcomes:
            raise EvalError(
                location,
                f'There is no {self.word} "{name}"',
                advice=suggest_near(name, self.outcomes),
            )
        outcome = self.outcomes[name]
        if isinstance(outcome, Poisoned | Deferred):
            raise outcome
        return outcome

    def read_word(self, location: Location) -> Val:
        raise EvalError(
            location, f"Which {self.word} is meant?", "Its name is missing behind a dot."
        )


class Fixed(Struct, frozen=True):
    """A word with one value, such as `each` or `path`."""

    value: ObjectVal

    def find(self, name: str, location: Location) -> Val:
        return get_attribute(self.value, name, location)

    def read_word(self, location: Location) -> Val:
        return self.value


class Live(Mapping[str, Val]):
    """Fields of an object that are looked up when they are asked for.

    One output of a module may be faulty, or known only after the apply; the others can still be
    used.
    """

    __slots__ = ("_outcomes",)

    def __init__(self, outcomes: Mapping[str, Outcome]) -> None:
        self._outcomes = outcomes

    def __getitem__(self, name: str) -> Val:
        outcome = self._outcomes[name]
        if isinstance(outcome, Poisoned | Deferred):
            raise outcome
        return outcome

    def __contains__(self, name: object) -> bool:
        return name in self._outcomes

    def __iter__(self) -> Iterator[str]:
        return iter(self._outcomes)

    def __len__(self) -> int:
        return len(self._outcomes)


class OnDemand(Struct, frozen=True):
    """Names whose values are made when they are first asked for, and then kept."""

    word: str
    """What one of its names stands for, such as `module`."""
    names: Mapping[str, object]
    """All names; only the keys matter."""
    make: Callable[[str], Outcome]
    outcomes: dict[str, Outcome] = field(default_factory=dict)

    def find(self, name: str, location: Location) -> Val:
        if name not in self.outcomes:
            if name not in self.names:
                advice = suggest_near(name, self.names)
                raise EvalError(location, f'There is no {self.word} "{name}"', advice=advice)
            self.outcomes[name] = self.make(name)
        outcome = self.outcomes[name]
        if isinstance(outcome, Poisoned | Deferred):
            raise outcome
        return outcome

    def read_word(self, location: Location) -> Val:
        raise EvalError(
            location, f"Which {self.word} is meant?", "Its name is missing behind a dot."
        )


class Data(Struct, frozen=True):
    """`data`: the answers of data sources, by type and name."""

    outcomes: Mapping[str, Mapping[str, Outcome]]

    def find(self, name: str, location: Location) -> Val:
        # `data.TYPE` is an object of all answers, each of which is looked up when it is used.
        return ObjectVal(Live(self.outcomes.get(name, {})))

    def read_word(self, location: Location) -> Val:
        raise EvalError(location, "Which data source is meant?", "Write data.TYPE.NAME.")
