"""What references find: the spaces `var`, `local`, `each`, `count`, `path`, and resource types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .access import get_attribute
from .faults import Deferred, EvalError, Place, Poisoned, near
from .values import ObjectVal, Val


class Unset(Poisoned):
    """The value of a variable that nobody has set."""


Found = Val | Poisoned | Deferred
"""A value, or what to raise instead of it."""


@dataclass(frozen=True, slots=True)
class Space:
    """word: what one of its names stands for (`variable`); names that are declared but not
    evaluated yet are not there, so evaluation must follow the order of references."""

    word: str
    found: Mapping[str, Found]

    def find(self, name: str, place: Place) -> Val:
        if name not in self.found:
            raise EvalError(
                place, f'There is no {self.word} "{name}"', advice=near(name, self.found)
            )
        found = self.found[name]
        if isinstance(found, Poisoned | Deferred):
            raise found
        return found

    def whole(self, place: Place) -> Val:
        raise EvalError(place, f"Name one {self.word} behind the dot")


@dataclass(frozen=True, slots=True)
class Fixed:
    """A word with one value, such as `each` or `path`."""

    value: ObjectVal

    def find(self, name: str, place: Place) -> Val:
        return get_attribute(self.value, name, place)

    def whole(self, place: Place) -> Val:
        return self.value


HERE = Fixed(ObjectVal({"module": ".", "root": ".", "cwd": "."}))
"""`path`: file functions start from the configuration folder, whose own path is not told."""
