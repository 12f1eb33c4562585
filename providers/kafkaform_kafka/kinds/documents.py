"""Rows of `describe`, from objects as a listing shows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from kafkaform.core.resource import Observed
from kafkaform.core.value import FrozenMap

from ..protocol.keys import SEPARATOR


def list_attributes(
    items: Sequence[Observed], _: str, fields: Mapping[str, str]
) -> tuple[FrozenMap, ...]:
    """Each object with all of its attributes. fields: attribute -> glob for its value."""
    return tuple(
        item.attributes
        for item in sort_by_fields(items)
        if all(fnmatchcase(str(item.attributes[name]), glob) for name, glob in fields.items())
    )


def sort_by_fields(items: Iterable[Observed]) -> list[Observed]:
    """By one field of the key after the other: `User:b` before `User:billing`."""
    return sorted(items, key=lambda item: item.identity.key.replace(SEPARATOR, "\0"))
