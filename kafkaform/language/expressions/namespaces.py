"""What references find: `var`, `local`, `each`, `path`, `module`, `data`, and resource types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct, field

from ..values.faults import Deferred, EvalError, Place, Poisoned, suggest_near
from ..values.value import ObjectVal, Val
from .references import get_attribute


class Unset(Poisoned):
    """The value of a variable that nobody has set."""


Found = Val | Poisoned | Deferred
"""A value, or what to raise instead of it."""


class Space(Struct, frozen=True):
    """word: what one of its names stands for (`variable`); names that are declared but not
    evaluated yet are not there, so evaluation must follow the order of references."""

    word: str
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
        raise EvalError(place, f"Name one {self.word} behind the dot")


class Fixed(Struct, frozen=True):
    """A word with one value, such as `each` or `path`."""

    value: ObjectVal

    def find(self, name: str, place: Place) -> Val:
        return get_attribute(self.value, name, place)

    def whole(self, place: Place) -> Val:
        return self.value


class Live(Mapping[str, Val]):
    """Fields of an object that are looked up when asked for: one of them may be faulty, or known
    only after the apply, without harm to the others."""

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
    """Names whose values are made by `make` when they are first asked for, and then kept."""

    word: str
    names: Mapping[str, object]
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
        raise EvalError(place, f"Name one {self.word} behind the dot")


class Data(Struct, frozen=True):
    """`data`: the answers of data sources by type and name."""

    found: Mapping[str, Mapping[str, Found]]

    def find(self, name: str, place: Place) -> Val:
        return ObjectVal(Live(self.found.get(name, {})))

    def whole(self, place: Place) -> Val:
        raise EvalError(place, "Name a data source behind the dot", advice="data.TYPE.NAME")
