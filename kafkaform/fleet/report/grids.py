"""Tables of the report as data, and how one value of them reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct

from ...core.foreign import inline
from ..exports.rows import jsonable, text

CLIP = 240
"""Characters of a foreign text in a cell."""


class Kind(StrEnum):
    """What a column holds, and so how it is written and aligned."""

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


class Column(Struct, frozen=True):
    """name: of the member of a row; missing: what null means here, and no text."""

    name: str
    title: str
    kind: Kind = Kind.TEXT
    missing: str = "–"

    @property
    def right(self) -> bool:
        return self.kind in (Kind.NUMBER, Kind.SHARE, Kind.BYTES, Kind.MONEY)


CLUSTER = Column("cluster", "Cluster", Kind.CODE)
OBJECT = Column("object", "Object", Kind.KEY)
OWNER = Column("owner", "Owner", missing="none")
SEVERITY = Column("severity", "Severity", Kind.WORD)
FINDING = Column("what", "Finding", Kind.WORD)
DETAIL = Column("detail", "Detail", Kind.LONG)
SIZES = tuple(
    Column(name, name.capitalize(), Kind.NUMBER) for name in ("topics", "partitions", "replicas")
)
SPENT = (
    Column("bytes", "Size", Kind.BYTES, "not measured"),
    Column("cost", "Cost a month", Kind.MONEY, "no rates"),
    Column("currency", "Currency"),
)


class Grid(Struct, frozen=True):
    """total: rows that there are; csv: the table whose file has all, empty: none has."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]
    total: int
    csv: str = ""

    @property
    def more(self) -> int:
        return self.total - len(self.rows)


def grid(
    caption: str, columns: Sequence[Column], rows: Sequence[Mapping[str, Any]], csv: str = ""
) -> Grid:
    """The total is what the first row says, else the number of rows."""
    total = int(rows[0].get("total") or len(rows)) if rows else 0
    cells = tuple(tuple(row.get(column.name) for column in columns) for row in rows)
    return Grid(caption, tuple(columns), cells, total, csv)


UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def shown(value: Any, column: Column) -> str:
    """One value for people, on one line; null as the column says."""
    if value is None or value == "":
        return '""' if value == "" and column.kind is Kind.VALUE else column.missing
    if column.kind is Kind.FLAG:
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return moment(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, int | float):
        return _number(value, column.kind)
    written = inline(", ".join(map(str, value))) if isinstance(value, list) else text(value)
    return written if len(written) <= CLIP else written[: CLIP - 1] + "…"


def _number(value: float, kind: Kind) -> str:
    if kind is Kind.SHARE:
        return f"{value:.1%}"
    if kind is Kind.BYTES:
        return in_bytes(value)
    if kind is Kind.MONEY:
        return f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}".rstrip("0").rstrip(".")


def in_bytes(value: float) -> str:
    """`1.5 GiB`."""
    unit = 0
    while value >= 1024 and unit < len(UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{value:,.0f} {UNITS[unit]}" if unit == 0 else f"{value:,.1f} {UNITS[unit]}"


def moment(time: datetime) -> str:
    """`2026-11-22 05:00` in UTC."""
    aware = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    return aware.strftime("%Y-%m-%d %H:%M")


def order(value: Any) -> str:
    """What a cell is sorted by: a number, or text."""
    plain = jsonable(value)
    if isinstance(plain, bool):
        return str(int(plain))
    return "" if plain is None else inline(plain if isinstance(plain, str) else str(plain))


def total(rows: Iterable[Mapping[str, Any]], name: str) -> int:
    """The sum of a column, null counting as none."""
    return sum(int(row[name] or 0) for row in rows)
