"""Makes the rows of `describe` from the objects of a listing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from kafkaform.core.resource import Observed
from kafkaform.core.value import FrozenMap

from ..protocol.keys import SEPARATOR


def list_attributes(
    items: Sequence[Observed], _: str, fields: Mapping[str, str]
) -> tuple[FrozenMap, ...]:
    """The attributes of each object that fits. fields: attribute -> glob for its value."""
    return tuple(
        item.attributes
        for item in sort_by_fields(items)
        if all(fnmatchcase(str(item.attributes[name]), glob) for name, glob in fields.items())
    )


def sort_by_fields(items: Iterable[Observed]) -> list[Observed]:
    """Sorted by the fields of the key: `User:b` before `User:billing`."""
    # `|` is greater than all letters, so the plain text would put `User:billing|…` first.
    return sorted(items, key=lambda item: item.identity.key.replace(SEPARATOR, "\0"))
