"""Check a table before readers see it: its columns and types, required values, and its key.

Delta Lake has NOT NULL and CHECK constraints but no unique keys, and a violation surfaces as a bare
Py4J error. So all checks are made here, after the write and before the manifest names the version.
The columns that are checked, as Spark's types, are also the schema with which tables are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

import pyspark.sql.functions as F
from msgspec import Struct
from pyspark.sql import DataFrame
from pyspark.sql import types as t

from ...core.errors import StorageError
from .definitions import TABLES, Table

_SIMPLE: dict[str, type[t.DataType]] = {
    "string": t.StringType,
    "boolean": t.BooleanType,
    "int": t.IntegerType,
    "bigint": t.LongType,
    "double": t.DoubleType,
    "date": t.DateType,
    "timestamp": t.TimestampType,
}


@cache
def build_schema(table: str) -> t.StructType:
    """Return the schema of a table in TABLES; required columns are not nullable."""
    columns = TABLES[table].columns
    return t.StructType(
        [t.StructField(c.name, parse_data_type(c.type), not c.required) for c in columns]
    )


def parse_data_type(text: str) -> t.DataType:
    """Parse `array<struct<a:string,b:bigint>>` to Spark's type. Raises KeyError: there is no such
    type.

    Spark's own parser runs in the JVM, and schemas must be available without a session.
    """
    head, _, inner_text = text.partition("<")
    inner_types = tuple(_split_parts(inner_text.removesuffix(">")))
    if head == "array":
        return t.ArrayType(parse_data_type(inner_types[0]))
    if head == "map":
        return t.MapType(parse_data_type(inner_types[0]), parse_data_type(inner_types[1]))
    if head == "struct":
        members = (member.split(":", 1) for member in inner_types)
        return t.StructType([t.StructField(name, parse_data_type(kind)) for name, kind in members])
    return _SIMPLE[head]()


def _split_parts(text: str) -> Iterator[str]:
    """Split at the commas that are outside of brackets."""
    depth = start = 0
    for at, sign in enumerate(text):
        depth += (sign == "<") - (sign == ">")
        if sign == "," and not depth:
            yield text[start:at]
            start = at + 1
    yield text[start:]


def conform_rows(table: str, rows: DataFrame) -> DataFrame:
    """Return the rows with the table's columns and types. Raises StorageError: they have others."""
    declared = [(f.name, f.dataType.simpleString()) for f in build_schema(table).fields]
    # Nullability is left out: Spark infers it per plan, so it differs between equal results.
    actual = [(f.name, f.dataType.simpleString()) for f in rows.schema.fields]
    if actual == declared:
        # A cast to the declared type is free where types are equal.
        # Text that a Connect client has typed has a collation by name, which only Spark can read.
        return rows.select(
            *(F.col(c.name).cast(c.type).alias(c.name) for c in TABLES[table].columns)
        )
    mismatch = next(
        (fields for fields in zip(actual, declared, strict=False) if fields[0] != fields[1]),
        (actual, declared),
    )
    raise StorageError(
        f"table {table}: what was made has {mismatch[0]} where the table has {mismatch[1]}",
        "Report it to the project: the table is not as it is declared.",
    )


def check_rows(table: str, rows: DataFrame) -> int:
    """Return the number of rows. Raises StorageError, with an example: two rows have the same key,
    or a required column is null."""
    definition = TABLES[table]
    counts = _count_faults(definition, rows)
    suspect = counts.twice or any(counts.nulls.values())
    problem = _find_problem(definition, rows, counts) if suspect else None
    if problem:
        raise StorageError(
            f"table {table}: {problem}",
            "The build before this one stays the current one. Look for what has landed twice or "
            "in part; if it is sound, report it to the project.",
        )
    return counts.rows


class _Found(Struct, frozen=True):
    """What one pass over the rows counted."""

    rows: int
    twice: int
    """Rows whose key another row seems to have (by its hash)."""
    nulls: Mapping[str, int]
    """Required column -> rows in which it is null."""


def _count_faults(definition: Table, rows: DataFrame) -> _Found:
    """Count rows, keys and nulls in one pass.

    Keys are counted by a 64-bit hash, because grouping by whole keys shuffles all of their text.
    Two keys with one hash raise a false suspicion, which `_find_problem` then checks exactly.
    """
    hashed = F.count_distinct(F.xxhash64(*definition.key)) if definition.key else F.count(F.lit(1))
    nulls = [F.count_if(F.col(c).isNull()).alias(f"null_{c}") for c in _list_required(definition)]
    row = rows.agg(F.count(F.lit(1)).alias("rows"), hashed.alias("keys"), *nulls).collect()[0]
    counts = {c: row[f"null_{c}"] for c in _list_required(definition)}
    return _Found(row["rows"], row["rows"] - row["keys"], counts)


def _list_required(definition: Table) -> tuple[str, ...]:
    return tuple(column.name for column in definition.columns if column.required)


def _find_problem(definition: Table, rows: DataFrame, counts: _Found) -> str | None:
    """Describe the first fault with an example; None: only hashes collided."""
    example = F.to_json(F.struct(*map(F.col, definition.key))) if definition.key else F.lit("")
    for column, count in counts.nulls.items():
        if count:
            # `max` instead of `first`: the example must not depend on the order of partitions.
            example_key = rows.where(F.col(column).isNull()).select(F.max(example)).collect()[0][0]
            suffix = f", such as where {example_key}" if example_key else ""
            return f"column {column} is null in {count} rows{suffix}"
    counted = rows.groupBy(*definition.key).agg(F.count(F.lit(1)).alias("rows"))
    example_key = counted.where(F.col("rows") > 1).select(F.max(example)).collect()[0][0]
    return (
        f"two rows have the same {', '.join(definition.key)}: {example_key}"
        if example_key
        else None
    )
