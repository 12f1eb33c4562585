"""A dataset: a table, the tables that it is computed from, and the function that computes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec import Struct

from ..landed.register import Register

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Frames = Mapping[str, "DataFrame"]
"""Table -> its rows. For a table of scope `cluster`, only the rows of the clusters to recompute."""


class BuildContext(Struct, frozen=True):
    """What every dataset function gets besides its inputs."""

    register: Register
    as_of: datetime
    """The newest capture that has landed (UTC). It is the build's "now": no dataset reads the
    clock, so the same inputs give the same tables on any day."""
    build: str


class Dataset(Struct, frozen=True):
    """How one table is computed."""

    table: str
    """A name in TABLES."""
    inputs: tuple[str, ...]
    """Tables that it reads. Its own name among them stands for what the previous build computed for
    the same clusters: no rows in the first build."""
    build: Callable[[Frames, BuildContext], DataFrame]
    builds: Callable[[Frames], DataFrame] | None = None
    """Return `_build` of all rows of `snapshot_raw` that it needs, computed from its other inputs.
    None: it needs all of them. Everything that ever landed is in that table, so reading only the
    builds that matter keeps an incremental build short."""
    of_records: bool = False
    """The table depends on audit records and on cluster names only. Without new lines or new names
    it stays as it is."""
