"""Frozen values, of which configuration, plans, state and logs are made.

A value is `None` (not set), a bool, an int, a `Decimal` (a number that is not whole), a str, a
tuple, a `FrozenMap` with str keys, or a `SecretRef`. Numbers are exact: there are no binary floats.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, NoReturn, Union

from msgspec import Struct


# A subclass of dict, because lookups, comparison and JSON encoding then run in C: a plan of 10,000
# objects does millions of them.
class FrozenMap(dict[str, Any]):
    """A dict that cannot be changed; equal to a dict with the same items."""

    __slots__ = ("_hash",)

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("FrozenMap cannot be changed; make a new one")

    __setitem__ = __delitem__ = clear = pop = popitem = setdefault = update = _refuse
    __ior__ = _refuse

    def __hash__(self) -> int:  # type: ignore[override]  # dict is unhashable because it is mutable
        try:
            return self._hash  # type: ignore[has-type, no-any-return]  # set below
        except AttributeError:
            self._hash = hash(frozenset(self.items()))
            return self._hash

    def __reduce__(self) -> tuple[type[FrozenMap], tuple[dict[str, Any]]]:
        return FrozenMap, (dict(self),)

    def with_items(self, items: Mapping[str, Any]) -> FrozenMap:
        """A new map with the items of this one, overridden by these."""
        return FrozenMap({**self, **items})

    def without(self, keys: Iterable[str]) -> FrozenMap:
        """A new map without these keys."""
        gone = set(keys)
        return FrozenMap({key: value for key, value in self.items() if key not in gone})


EMPTY = FrozenMap()


class SecretRef(Struct, frozen=True, order=True):
    """The name of a secret. Its value is read after approval, just before the first intent."""

    source: str
    """`env`, `file`, `command` or `variable`."""
    name: str
    """The environment variable, the path, the words of the command as a JSON list, or the sensitive
    input variable."""

    def __str__(self) -> str:
        return f"{self.source}:{self.name}"

    @property
    def words(self) -> tuple[str, ...]:
        """The words of a command; none for another source, or if a forged file has other JSON."""
        if self.source != COMMAND:
            return ()
        try:
            words = json.loads(self.name)
        except (ValueError, RecursionError):
            return ()
        fits = isinstance(words, list) and all(isinstance(word, str) for word in words)
        return tuple(words) if fits else ()


COMMAND = "command"
"""The source of secrets that a command prints."""


def make_command_reference(words: Iterable[str]) -> SecretRef:
    """The reference to what a command prints. words: the program and its arguments."""
    return SecretRef(COMMAND, json.dumps(list(words), ensure_ascii=False))


# A recursive alias cannot be written with |.
Value = Union[None, bool, int, Decimal, str, tuple["Value", ...], FrozenMap, SecretRef]  # noqa: UP007  # strings know no |


def freeze(value: Any) -> Value:
    """The frozen form of plain Python data (dict, list, set, str, bool, int, Decimal, None).

    Raises TypeError for a float and any other type: no inexact number can get in.
    """
    if value is None or isinstance(value, str | bool | int | SecretRef):
        return value
    if isinstance(value, Decimal):
        # 1.0 and 1 are equal and must be equal bytes, too.
        return int(value) if value == value.to_integral_value() else value
    if isinstance(value, Mapping):
        return FrozenMap({str(key): freeze(item) for key, item in value.items()})
    if isinstance(value, list | tuple):
        return tuple(freeze(item) for item in value)
    if isinstance(value, set | frozenset):
        return tuple(sorted((freeze(item) for item in value), key=repr))
    raise TypeError(f"no frozen form for {type(value).__name__}")


def find_references(value: Any) -> Iterator[SecretRef]:
    """Every secret reference inside a frozen value."""
    if isinstance(value, SecretRef):
        yield value
    elif isinstance(value, Mapping | tuple):
        for item in value.values() if isinstance(value, Mapping) else value:
            # Almost all items are text, and a generator for each takes longer than to look at it.
            if not isinstance(item, str):
                yield from find_references(item)
