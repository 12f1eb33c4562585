"""What a table is made from, and by which function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec import Struct

from ..landed.register import Register

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Frames = Mapping[str, "DataFrame"]
"""Table -> its rows. Of a table of scope `cluster`, those of the touched clusters alone."""


class BuildContext(Struct, frozen=True):
    """as_of: the newest capture that landed, which is this build's now (UTC): the same inputs make
    the same tables on any day."""

    register: Register
    as_of: datetime
    build: str


class Dataset(Struct, frozen=True):
    """table: a name in TABLES; inputs: tables that it is made from; its own name among them: what
    the build before made of the touched clusters, no rows in the first build."""

    table: str
    inputs: tuple[str, ...]
    build: Callable[[Frames, BuildContext], DataFrame]
    builds: Callable[[Frames], DataFrame] | None = None
    """_build of all rows of `snapshot_raw` that it needs, from its other inputs: the builds that
    took them in. None: it needs those of any. All that ever landed is there, and what has not
    changed since need not be read again."""
    of_records: bool = False
    """It says what logs say, under the names that clusters have: without new lines and new names
    it stays as it is."""
