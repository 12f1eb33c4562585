"""Rows of a table as a DataFrame."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_schema

from kafkaform.fleet.spark.store import build_schema


def frame(spark: SparkSession, table: str, rows: Iterable[Mapping[str, Any]]) -> DataFrame:
    """With exactly the table's columns; members that a row leaves out are null. Times without a
    zone are UTC.

    Raises KeyError: a row has a member that is no column.
    """
    columns = build_schema(table)
    data = []
    for row in rows:
        unknown = row.keys() - set(columns.names)
        if unknown:
            raise KeyError(f"{table} has no column {', '.join(sorted(unknown))}")
        data.append({f.name: _plain(row.get(f.name), f.dataType) for f in columns.fields})
    # Through Arrow, because other rows go through a Python process of Spark's first.
    arrow = pa.Table.from_pylist(data, to_arrow_schema(columns, timezone="UTC"))
    return spark.createDataFrame(arrow, columns)


def _plain(value: Any, kind: t.DataType) -> Any:
    """As Arrow takes it: maps as pairs, structs by name."""
    if value is None:
        return None
    if isinstance(kind, t.MapType):
        return [(name, _plain(each, kind.valueType)) for name, each in value.items()]
    if isinstance(kind, t.ArrayType):
        return [_plain(each, kind.elementType) for each in value]
    if isinstance(kind, t.StructType):
        members = value if isinstance(value, Mapping) else dict(zip(kind.names, value, strict=True))
        return {f.name: _plain(members.get(f.name), f.dataType) for f in kind.fields}
    return value
