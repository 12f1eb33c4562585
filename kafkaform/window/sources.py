"""What the window reads: a folder, its store, and the fleet's files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct

from ..workflow.stores import Store


class Sources(Struct, frozen=True):
    """Where the pages come from."""

    folder: Path
    """The folder with saved plans."""
    # A function, because sinks remember what they read, and each page must read anew.
    open_store: Callable[[], Store]
    """Opens the store of the state and the log."""
    fleet_root: str | None = None
    """Where the fleet's files are, None if nobody said."""


Query = Mapping[str, str]
"""The query of an address, each name once."""


def read_number(query: Query, name: str) -> int:
    """A number of a query, 0 if there is none."""
    text = query.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
