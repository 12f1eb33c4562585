"""The tables' columns as Spark types."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from pyspark.sql import types as t

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
    return _build_struct(TABLES[table])


def _build_struct(table: Table) -> t.StructType:
    return t.StructType(
        [t.StructField(c.name, parse_data_type(c.type), not c.required) for c in table.columns]
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
