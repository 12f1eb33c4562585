"""The definitions of all tables, read from `tables.txt`: layer, scope, key, columns.

Plain data without Spark types, because `fleet query` and the reports need them without pyspark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from importlib.resources import files
from itertools import groupby

from msgspec import Struct

SCHEMA_VERSION = 1
"""Version of all tables. Tables that a later version wrote are refused."""


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


class Table(Struct, frozen=True):
    """One table."""

    name: str
    layer: Layer
    scope: RebuildScope
    key: tuple[str, ...]
    """Columns that identify a row. Empty: rows may repeat."""
    columns: tuple[TableColumn, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its columns, in order."""
        return tuple(column.name for column in self.columns)

    @property
    def ddl(self) -> str:
        """The columns as Spark's SQL declares them."""
        return ", ".join(
            f"`{c.name}` {c.type}{' NOT NULL' if c.required else ''}" for c in self.columns
        )


def _parse_tables() -> Iterator[Table]:
    text = files(__package__).joinpath("tables.txt").read_text("utf-8")
    lines = (line.rstrip() for line in text.splitlines() if not line.startswith("#"))
    for has_text, block in groupby(lines, key=bool):
        if has_text:
            yield _parse_table(list(block))


def _parse_table(lines: list[str]) -> Table:
    layer, name, scope, *key = lines[0].split()
    columns = tuple(_parse_column(*line.split(None, 2)) for line in lines[1:])
    return Table(
        name, Layer(layer), RebuildScope(scope), tuple(key[0].split(",")) if key else (), columns
    )


def _parse_column(name: str, kind: str, about: str = "") -> TableColumn:
    return TableColumn(name, kind.removesuffix("!"), kind.endswith("!"), about)


TABLES: Mapping[str, Table] = {table.name: table for table in _parse_tables()}
GOLD = tuple(name for name, table in TABLES.items() if table.layer is Layer.GOLD)
