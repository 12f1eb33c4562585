"""What is checked of a table before readers see it: its columns, what is never null, its key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyspark.sql.functions as F
from pyspark.sql import DataFrame

from ..core.errors import StorageError
from .schemas import schema
from .tables import TABLES, Table


def conforming(table: str, rows: DataFrame) -> DataFrame:
    """The rows as they are to be written. Raises StorageError: columns or types are not the
    table's."""
    wanted = [(f.name, f.dataType.simpleString()) for f in schema(table).fields]
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


def sound(table: str, rows: DataFrame) -> int:
    """How many rows there are. Raises StorageError, with an example: a key occurs twice, or a
    required column is null."""
    about = TABLES[table]
    found = _summary(about, rows).collect()[0]
    problem = next(_problems(about, found), None)
    if problem:
        raise StorageError(
            f"table {table}: {problem}",
            "The build before this one stays the current one. Look for what has landed twice or "
            "in part; if it is sound, report it to the project.",
        )
    return int(found["rows"] or 0)


def _summary(about: Table, rows: DataFrame) -> DataFrame:
    """One row of numbers and examples, from one pass over the table."""
    nulls = [F.sum(F.col(c).isNull().cast("int")).alias(f"null_{c}") for c in _required(about)]
    example = F.to_json(F.struct(*map(F.col, about.key))) if about.key else F.lit("")
    counted = rows.groupBy(*about.key).agg(F.count(F.lit(1)).alias("rows"), *nulls)
    twice = [F.max(F.when(F.col("rows") > 1, example)).alias("twice")] if about.key else []
    return counted.agg(
        F.sum("rows").alias("rows"),
        *twice,
        *(F.sum(f"null_{c}").alias(f"count_{c}") for c in _required(about)),
        *(
            F.max(F.when(F.col(f"null_{c}") > 0, example)).alias(f"example_{c}")
            for c in _required(about)
        ),
    )


def _required(about: Table) -> tuple[str, ...]:
    return tuple(column.name for column in about.columns if column.required)


def _problems(about: Table, found: Any) -> Iterator[str]:
    for column in _required(about):
        if found[f"count_{column}"]:
            example = found[f"example_{column}"]
            where = f", such as where {example}" if example else ""
            yield f"column {column} is null in {found[f'count_{column}']} rows{where}"
    if about.key and found["twice"]:
        yield f"two rows have the same {', '.join(about.key)}: {found['twice']}"
