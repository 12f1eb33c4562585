"""What the window reads: a folder, its store, and the fleet's files."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from pathlib import Path

from msgspec import Struct

from ..workflow.configuration.evaluation import Inputs
from ..workflow.stores import Store


class Sources(Struct, frozen=True):
    """Where the pages come from."""

    folder: Path
    """The folder with saved plans and the configuration."""
    store: Store
    """The state and the log. Nothing is read through this value itself, see `open_store`."""
    fleet_root: str | None = None
    """Where the fleet's files are, None if nobody said."""
    inputs: Inputs = Inputs()
    """The values of the configuration's variables."""

    def open_store(self) -> Store:
        """The store as if it had just been opened."""
        # Sinks and backends remember what they read, and each page must read anew.
        return Store(self.store.folder, copy(self.store.backend), copy(self.store.sink))


Query = Mapping[str, str]
"""The query of an address, each name once."""


def read_number(query: Query, name: str) -> int:
    """A number of a query, 0 if there is none."""
    text = query.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
