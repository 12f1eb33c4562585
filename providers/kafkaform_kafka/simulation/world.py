"""The objects of a simulated cluster, and changes of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

Key = tuple[str, str]
"""The kind of an object and the key of its identity."""

Changes = dict[Key, Any]
"""One atomic batch: key -> the object after the batch, None if it is deleted."""


class SimulatedWorld:
    """Frozen objects by kind and key. Only `apply` changes them."""

    def __init__(self) -> None:
        self._kinds: dict[str, dict[str, Any]] = {}

    def of(self, kind: str) -> Mapping[str, Any]:
        """A live view of the objects of a kind by key."""
        return MappingProxyType(self._kinds.setdefault(kind, {}))

    def get(self, key: Key) -> Any:
        """The object, or None."""
        return self._kinds.get(key[0], {}).get(key[1])

    def apply(self, changes: Changes) -> None:
        """Replay one batch of the log."""
        for (kind, key), value in changes.items():
            objects = self._kinds.setdefault(kind, {})
            if value is None:
                objects.pop(key, None)
            else:
                objects[key] = value

    def __iter__(self) -> Iterator[Key]:
        return ((kind, key) for kind, objects in self._kinds.items() for key in objects)
