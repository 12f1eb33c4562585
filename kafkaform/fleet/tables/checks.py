"""What is checked of a table before readers see it: its columns, what is never null, its key."""

from __future__ import annotations

from collections.abc import Mapping

import pyspark.sql.functions as F
from msgspec import Struct
from pyspark.sql import DataFrame

from ...core.errors import StorageError
from .definitions import TABLES, Table
from .schemas import build_schema


def conform_rows(table: str, rows: DataFrame) -> DataFrame:
    """The rows as they are to be written. Raises StorageError: columns or types are not the
    table's."""
    wanted = [(f.name, f.dataType.simpleString()) for f in build_schema(table).fields]
    found = [(f.name, f.dataType.simpleString()) for f in rows.schema.fields]
    if found == wanted:
        # Text that a Connect client has typed has a collation by name, which only Spark can read.
        return rows.select(
            *(F.col(c.name).cast(c.type).alias(c.name) for c in TABLES[table].columns)
        )
    unlike = next(
        (pair for pair in zip(found, wanted, strict=False) if pair[0] != pair[1]), (found, wanted)
    )
    raise StorageError(
        f"table {table}: what was made has {unlike[0]} where the table has {unlike[1]}",
        "Report it to the project: the table is not as it is declared.",
    )


def check_rows(table: str, rows: DataFrame) -> int:
    """How many rows there are. Raises StorageError, with an example: a key occurs twice, or a
    required column is null."""
    about = TABLES[table]
    found = _count_faults(about, rows)
    suspect = found.twice or any(found.nulls.values())
    problem = _find_problem(about, rows, found) if suspect else None
    if problem:
        raise StorageError(
            f"table {table}: {problem}",
            "The build before this one stays the current one. Look for what has landed twice or "
            "in part; if it is sound, report it to the project.",
        )
    return found.rows


class _Found(Struct, frozen=True):
    """twice: rows whose key another one has, too; nulls: column -> rows where it is null."""

    rows: int
    twice: int
    nulls: Mapping[str, int]


def _count_faults(about: Table, rows: DataFrame) -> _Found:
    """In one pass. Keys are counted by a number that stands for them, since to group by whole keys
    takes longer. Two keys may have one number: that is a suspicion, which `_find_problem` looks
    into."""
    hashed = F.count_distinct(F.xxhash64(*about.key)) if about.key else F.count(F.lit(1))
    nulls = [F.count_if(F.col(c).isNull()).alias(f"null_{c}") for c in _list_required(about)]
    row = rows.agg(F.count(F.lit(1)).alias("rows"), hashed.alias("keys"), *nulls).collect()[0]
    counts = {c: row[f"null_{c}"] for c in _list_required(about)}
    return _Found(row["rows"], row["rows"] - row["keys"], counts)


def _list_required(about: Table) -> tuple[str, ...]:
    return tuple(column.name for column in about.columns if column.required)


def _find_problem(about: Table, rows: DataFrame, found: _Found) -> str | None:
    example = F.to_json(F.struct(*map(F.col, about.key))) if about.key else F.lit("")
    for column, count in found.nulls.items():
        if count:
            shown = rows.where(F.col(column).isNull()).select(F.max(example)).collect()[0][0]
            where = f", such as where {shown}" if shown else ""
            return f"column {column} is null in {count} rows{where}"
    counted = rows.groupBy(*about.key).agg(F.count(F.lit(1)).alias("rows"))
    shown = counted.where(F.col("rows") > 1).select(F.max(example)).collect()[0][0]
    return f"two rows have the same {', '.join(about.key)}: {shown}" if shown else None
