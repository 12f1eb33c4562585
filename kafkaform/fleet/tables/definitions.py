"""The definitions of all tables, and what a dataset is: a table, its inputs, and its function.

Tables are read from `tables.txt`: layer, scope, key, description, columns. Plain data without Spark
types, because `fleet query` and the reports need them without pyspark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from importlib.resources import files
from itertools import groupby
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ..landed.register import Register

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


SCHEMA_VERSION = 4
"""Version of all tables. Tables that a later version wrote are refused."""
SOON_DAYS = 30
"""A credential that expires within so many days is counted by the report and `--fail-on`."""
Row = Mapping[str, Any]
"""Column -> its value."""
Frames = Mapping[str, "DataFrame"]
"""Table -> its rows. For a table of scope `cluster`, only the rows of the clusters to recompute."""


class Layer(StrEnum):
    """How far rows are processed: as landed, typed and deduplicated, or answering a question."""

    BRONZE = "bronze"
    SILVER = "silver"
    GOLD = "gold"


class RebuildScope(StrEnum):
    """Which rows of a table a build recomputes."""

    APPENDED = "appended"
    """None: rows are only added."""
    CLUSTER = "cluster"
    """The rows of clusters that have new input."""
    LINEAGE = "lineage"
    """The rows of audit logs that have new lines."""
    WHOLE = "whole"
    """All rows."""


class TableColumn(Struct, frozen=True):
    """One column."""

    name: str
    type: str
    """As Spark's SQL writes it."""
    required: bool
    about: str
    """What it means; empty if the name says so."""


class TableDefinition(Struct, frozen=True):
    """One table."""

    name: str
    layer: Layer
    scope: RebuildScope
    key: tuple[str, ...]
    """Columns that identify a row. Empty: rows may repeat."""
    columns: tuple[TableColumn, ...]
    about: str
    """What its rows are."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its columns, in order."""
        return tuple(column.name for column in self.columns)


def _parse_tables() -> Iterator[TableDefinition]:
    text = files(__package__).joinpath("tables.txt").read_text("utf-8")
    lines = (line.rstrip() for line in text.splitlines() if not line.startswith("#"))
    for has_text, block in groupby(lines, key=bool):
        if has_text:
            yield _parse_table(list(block))


def _parse_table(lines: list[str]) -> TableDefinition:
    layer, name, scope, *key = lines[0].split()
    return TableDefinition(
        name,
        Layer(layer),
        RebuildScope(scope),
        tuple(key[0].split(",")) if key else (),
        tuple(_parse_column(*line.split(None, 2)) for line in lines[2:]),
        lines[1].strip().removeprefix("# "),
    )


def _parse_column(name: str, kind: str, about: str = "") -> TableColumn:
    return TableColumn(name, kind.removesuffix("!"), kind.endswith("!"), about)


TABLES: Mapping[str, TableDefinition] = {table.name: table for table in _parse_tables()}
GOLD = tuple(name for name, table in TABLES.items() if table.layer is Layer.GOLD)


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
    """Tables that it reads. Its own name among them means what the previous build computed for
    the same clusters: no rows in the first build."""
    build: Callable[[Frames, BuildContext], DataFrame]
    builds: Callable[[Frames], DataFrame] | None = None
    """Return `_build` of all rows of `snapshot_raw` that it needs, computed from its other inputs.
    None: it needs all of them. Everything that ever landed is in that table, so reading only the
    builds that matter keeps an incremental build short."""
    of_records: bool = False
    """The table depends on audit records and on cluster names only. Without new lines or new names
    it stays as it is."""


def quote_text(text: str) -> str:
    """Return the text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"
