"""What a provider has to tell people, as data: lines, tables and prose, not laid out yet.

A provider knows what its documents mean, a renderer knows terminals. Nothing in a page is escaped:
the renderer makes foreign text harmless.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from msgspec import Struct

Cells: TypeAlias = tuple[str, ...]


class Grid(Struct, frozen=True):
    """A table: rows of as many cells as the first one has."""

    rows: tuple[Cells, ...]
    right: frozenset[int] = frozenset()
    """The columns that are set flush right."""


class Prose(Struct, frozen=True):
    """Sentences, which are broken into lines."""

    text: str


Page: TypeAlias = Iterator[str | Grid | Prose]
"""A text by itself is one line."""
