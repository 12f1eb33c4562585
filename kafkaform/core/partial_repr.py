"""A repr that leaves out fields that hold secrets or much text."""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import Struct


class PartialRepr(Struct, frozen=True):
    """A Struct whose repr does not show the fields that `_unshown` names."""

    _unshown: ClassVar[frozenset[str]]

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Name and value of each field that is shown, for rich too."""
        names = self.__struct_fields__
        return [(name, getattr(self, name)) for name in names if name not in self._unshown]

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.__rich_repr__())
        return f"{type(self).__name__}({shown})"
