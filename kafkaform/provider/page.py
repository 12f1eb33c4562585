"""Pages: what a provider tells people, as lines, tables and prose that are not laid out yet.

A provider knows what its documents mean, and a renderer knows terminals. Nothing in a page is
escaped: the renderer makes foreign text harmless.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from msgspec import Struct

Cells: TypeAlias = tuple[str, ...]


class Grid(Struct, frozen=True):
    """A table."""

    rows: tuple[Cells, ...]
    """The rows, each with as many cells as the first one."""
    right: frozenset[int] = frozenset()
    """The numbers of the columns that are aligned to the right."""


class Prose(Struct, frozen=True):
    """Sentences that are broken into lines."""

    text: str
    """The sentences."""


Page: TypeAlias = Iterator[str | Grid | Prose]
"""A document, from top to bottom. A plain text is one line."""
