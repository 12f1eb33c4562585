"""All objects of a simulated cluster, of every kind, and changes of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

Key = tuple[str, str]
"""The kind of an object and its key, as in its identity."""

Changes = dict[Key, Any]
"""One atomic batch: the object as it is afterwards, None if it is gone."""


class SimulatedWorld:
    """kind -> key -> object. Objects are frozen; only `apply` changes the world."""

    def __init__(self) -> None:
        self._kinds: dict[str, dict[str, Any]] = {}

    def of(self, kind: str) -> Mapping[str, Any]:
        """The objects of a kind by key, as they are at any time one looks."""
        return MappingProxyType(self._kinds.setdefault(kind, {}))

    def get(self, key: Key) -> Any:
        """The object, or None."""
        return self._kinds.get(key[0], {}).get(key[1])

    def apply(self, changes: Changes) -> None:
        """Replay one batch of the log."""
        for (kind, key), made in changes.items():
            objects = self._kinds.setdefault(kind, {})
            if made is None:
                objects.pop(key, None)
            else:
                objects[key] = made

    def __iter__(self) -> Iterator[Key]:
        return ((kind, key) for kind, objects in self._kinds.items() for key in objects)
