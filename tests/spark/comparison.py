"""Made rows and wanted rows, side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from kafkaform.fleet.tables.definitions import TABLES

Row = dict[str, Any]


_EMPTY = {
    "string": "",
    "boolean": False,
    "int": 0,
    "bigint": 0,
    "timestamp": datetime(2026, 1, 1, tzinfo=UTC),
    "map<string,string>": {},
}


def filled(table: str, rows: Iterable[Row]) -> list[Row]:
    """The rows with something in every column that must not be null."""
    required = [column for column in TABLES[table].columns if column.required]
    empty = {column.name: _EMPTY.get(column.type, []) for column in required}
    return [{**empty, **row} for row in rows]


def plain(made: Any) -> list[Row]:
    """The rows of a DataFrame, with times as the text that UTC gives them."""
    import pyspark.sql.functions as F

    times = {n: F.col(n).cast("string") for n, kind in made.dtypes if kind == "timestamp"}
    rows = (made.withColumns(times) if times else made).collect()
    return [row.asDict(recursive=True) for row in rows]


def text(value: Any) -> Any:
    """A time as `plain` gives it; all else as it is."""
    if not isinstance(value, datetime):
        return value
    digits = value.isoformat(" ", "microseconds").removesuffix("+00:00")
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def alike(made: list[Row], wanted: list[Row], table: str) -> None:
    """The same rows, whatever their order, with all columns of the table, each key once."""
    names, key = TABLES[table].names, TABLES[table].key
    wanted = [{name: text(row.get(name)) for name in names} for row in wanted]
    made = sorted(made, key=lambda row: [str(row[name]) for name in key])
    wanted.sort(key=lambda row: [str(row[name]) for name in key])
    for rows in (made, wanted):
        keys = Counter(tuple(row[name] for name in key) for row in rows)
        assert not [one for one, count in keys.items() if count > 1]
    for one, other in zip(made, wanted, strict=False):
        assert one == other
    assert len(made) == len(wanted)
    required = [column.name for column in TABLES[table].columns if column.required]
    assert not [row for row in made if any(row[name] is None for name in required)]
