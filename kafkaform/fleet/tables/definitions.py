"""Every table of the pipeline, read from `tables.txt`: layer, columns, key. Data alone, so that
whoever reads tables without Spark knows them too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from importlib.resources import files
from itertools import groupby

from msgspec import Struct

SCHEMA_VERSION = 1
"""Of all tables; a store that a later version wrote is refused."""


class Layer(StrEnum):
    BRONZE = "bronze"
    SILVER = "silver"
    GOLD = "gold"


class RebuildScope(StrEnum):
    """What of a table is made anew when something new has landed."""

    APPENDED = "appended"
    CLUSTER = "cluster"
    LINEAGE = "lineage"
    WHOLE = "whole"


class TableColumn(Struct, frozen=True):
    """type: in Spark's words; about: empty where the name says it."""

    name: str
    type: str
    required: bool
    about: str


class Table(Struct, frozen=True):
    """key: what no two rows share; empty: there is no such thing."""

    name: str
    layer: Layer
    scope: RebuildScope
    key: tuple[str, ...]
    columns: tuple[TableColumn, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def ddl(self) -> str:
        """The columns as Spark reads them."""
        return ", ".join(
            f"`{c.name}` {c.type}{' NOT NULL' if c.required else ''}" for c in self.columns
        )


def _parse_tables() -> Iterator[Table]:
    text = files(__package__).joinpath("tables.txt").read_text("utf-8")
    lines = (line.rstrip() for line in text.splitlines() if not line.startswith("#"))
    for some, block in groupby(lines, key=bool):
        if some:
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
