"""The meanings of first words: `var`, `local`, `each`, `path`, `module`, `data`, resource types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct, field

from ..values.faults import Deferred, EvalError, Place, Poisoned, suggest_near
from ..values.value import ObjectVal, Val
from .references import get_attribute


class Unset(Poisoned):
    """A variable has no value, or a data source was not read."""


Found = Val | Poisoned | Deferred
"""A value, or the exception to raise instead of it."""


class Space(Struct, frozen=True):
    """Names with values, such as `var`. Evaluation must follow the order of the graph: a name that
    is declared but not evaluated yet is not in it."""

    word: str
    """What one of its names stands for, such as `variable`."""
    found: Mapping[str, Found]

    def find(self, name: str, place: Place) -> Val:
        if name not in self.found:
            raise EvalError(
                place, f'There is no {self.word} "{name}"', advice=suggest_near(name, self.found)
            )
        found = self.found[name]
        if isinstance(found, Poisoned | Deferred):
            raise found
        return found

    def whole(self, place: Place) -> Val:
        raise EvalError(place, f"Which {self.word} is meant?", "Its name is missing behind a dot.")


class Fixed(Struct, frozen=True):
    """A word with one value, such as `each` or `path`."""

    value: ObjectVal

    def find(self, name: str, place: Place) -> Val:
        return get_attribute(self.value, name, place)

    def whole(self, place: Place) -> Val:
        return self.value


class Live(Mapping[str, Val]):
    """Fields of an object that are looked up when they are asked for.

    One output of a module may be faulty, or known only after the apply; the others can still be
    used.
    """

    __slots__ = ("_found",)

    def __init__(self, found: Mapping[str, Found]) -> None:
        self._found = found

    def __getitem__(self, name: str) -> Val:
        found = self._found[name]
        if isinstance(found, Poisoned | Deferred):
            raise found
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._found

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


class OnDemand(Struct, frozen=True):
    """Names whose values are made when they are first asked for, and then kept."""

    word: str
    """What one of its names stands for, such as `module`."""
    names: Mapping[str, object]
    """All names; only the keys matter."""
    make: Callable[[str], Found]
    kept: dict[str, Found] = field(default_factory=dict)

    def find(self, name: str, place: Place) -> Val:
        if name not in self.kept:
            if name not in self.names:
                advice = suggest_near(name, self.names)
                raise EvalError(place, f'There is no {self.word} "{name}"', advice=advice)
            self.kept[name] = self.make(name)
        found = self.kept[name]
        if isinstance(found, Poisoned | Deferred):
            raise found
        return found

    def whole(self, place: Place) -> Val:
        raise EvalError(place, f"Which {self.word} is meant?", "Its name is missing behind a dot.")


class Data(Struct, frozen=True):
    """`data`: the answers of data sources, by type and name."""

    found: Mapping[str, Mapping[str, Found]]

    def find(self, name: str, place: Place) -> Val:
        # `data.TYPE` is an object of all answers, each of which is looked up when it is used.
        return ObjectVal(Live(self.found.get(name, {})))

    def whole(self, place: Place) -> Val:
        raise EvalError(place, "Which data source is meant?", "Write data.TYPE.NAME.")
