"""Tables of the report as data, and how their values are written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct

from ...core.text.display import inline
from ..exports.rows import to_jsonable, to_text

CLIP = 240
"""How many characters of a foreign text a cell shows."""


class ColumnKind(StrEnum):
    """What a column contains, which decides how it is written and aligned."""

    TEXT = "text"
    LONG = "long"  # a sentence or more
    WORD = "word"  # one of a few
    CODE = "code"  # names, letter by letter
    KEY = "key"  # the same, and longer
    VALUE = "value"  # of an attribute: an empty one is not a missing one
    NUMBER = "number"
    SHARE = "share"
    BYTES = "bytes"
    MONEY = "money"
    TIME = "time"
    DAY = "day"
    FLAG = "flag"


class GridColumn(Struct, frozen=True):
    """A column."""

    name: str
    """The member of a row."""
    title: str
    kind: ColumnKind = ColumnKind.TEXT
    missing: str = "–"
    """What null means here, and what an empty text means."""

    @property
    def right(self) -> bool:
        """True for columns that are aligned to the right."""
        return self.kind in (
            ColumnKind.NUMBER,
            ColumnKind.SHARE,
            ColumnKind.BYTES,
            ColumnKind.MONEY,
        )


CLUSTER = GridColumn("cluster", "Cluster", ColumnKind.CODE)
OBJECT = GridColumn("object", "Object", ColumnKind.KEY)
OWNER = GridColumn("owner", "Owner", missing="none")
SEVERITY = GridColumn("severity", "Severity", ColumnKind.WORD)
FINDING = GridColumn("what", "Finding", ColumnKind.WORD)
DETAIL = GridColumn("detail", "Detail", ColumnKind.LONG)
SIZES = tuple(
    GridColumn(name, name.capitalize(), ColumnKind.NUMBER)
    for name in ("topics", "partitions", "replicas")
)
SPENT = (
    GridColumn("bytes", "Size", ColumnKind.BYTES, "not measured"),
    GridColumn("cost", "Cost a month", ColumnKind.MONEY, "no rates"),
    GridColumn("currency", "Currency"),
)


class Grid(Struct, frozen=True):
    """A table."""

    caption: str
    columns: tuple[GridColumn, ...]
    rows: tuple[tuple[Any, ...], ...]
    total: int
    """How many rows there are; `rows` may be only the first of them."""
    csv: str = ""
    """The table whose CSV file has all rows. Empty: none has."""

    @property
    def more(self) -> int:
        """How many rows are not shown."""
        return self.total - len(self.rows)


def make_grid(
    caption: str, columns: Sequence[GridColumn], rows: Sequence[Mapping[str, Any]], csv: str = ""
) -> Grid:
    """Make a table. Its total is the `total` of the first row, or else the number of rows."""
    total = int(rows[0].get("total") or len(rows)) if rows else 0
    cells = tuple(tuple(row.get(column.name) for column in columns) for row in rows)
    return Grid(caption, tuple(columns), cells, total, csv)


UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def render_value(value: Any, column: GridColumn) -> str:
    """Write a value for people, on one line; null as the column says."""
    if value is None or value == "":
        return '""' if value == "" and column.kind is ColumnKind.VALUE else column.missing
    if column.kind is ColumnKind.FLAG:
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return render_moment(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, int | float):
        return _render_number(value, column.kind)
    written = inline(", ".join(map(str, value))) if isinstance(value, list) else to_text(value)
    return written if len(written) <= CLIP else written[: CLIP - 1] + "…"


def _render_number(value: float, kind: ColumnKind) -> str:
    if kind is ColumnKind.SHARE:
        return f"{value:.1%}"
    if kind is ColumnKind.BYTES:
        return render_bytes(value)
    if kind is ColumnKind.MONEY:
        return f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}".rstrip("0").rstrip(".")


def render_bytes(value: float) -> str:
    """`1.5 GiB`."""
    unit = 0
    while value >= 1024 and unit < len(UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{value:,.0f} {UNITS[unit]}" if unit == 0 else f"{value:,.1f} {UNITS[unit]}"


def render_moment(time: datetime) -> str:
    """`2026-11-22 05:00` in UTC."""
    aware = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    return aware.strftime("%Y-%m-%d %H:%M")


def sort_key(value: Any) -> str:
    """Return what a cell is sorted by: a number, or text."""
    plain = to_jsonable(value)
    if isinstance(plain, bool):
        return str(int(plain))
    return "" if plain is None else inline(plain if isinstance(plain, str) else str(plain))


def sum_column(rows: Iterable[Mapping[str, Any]], name: str) -> int:
    """Sum a column; null counts as 0."""
    return sum(int(row[name] or 0) for row in rows)
