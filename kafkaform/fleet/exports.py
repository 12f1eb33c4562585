"""Rows for people and for other programs: aligned text, JSON, and CSV that no spreadsheet runs."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from ..core.canonical import dumps
from ..core.dataclass import dataclass
from ..core.foreign import inline, spreadsheet_safe
from ..core.storage import refusal
from .gold import Gold, plain
from .tables import GOLD, SCHEMA_VERSION, TABLES

NOTHING = "-"
Mask = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]
"""(table, row) -> the row as it may be shown."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """names: of the columns; rows: as many values each."""

    names: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


def text(value: object) -> str:
    """One value on one line: times in UTC, collections as canonical JSON, nothing for null."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return utc(value)
    if isinstance(value, list | tuple | dict):
        return dumps(jsonable(value))
    return inline(str(value))


def utc(time: datetime) -> str:
    """RFC 3339 with Z, to the second; a time without a zone is UTC."""
    aware = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    return aware.strftime("%Y-%m-%dT%H:%M:%SZ")


def jsonable(value: Any) -> Any:
    """The same in JSON's types; what is not a number becomes null."""
    if isinstance(value, Mapping):
        return {str(name): jsonable(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    if isinstance(value, datetime):
        return utc(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def as_table(sheet: Sheet) -> str:
    """Columns two spaces apart, numbers flush right, `-` for null; a last line counts."""
    cells = [[text(v) or NOTHING for v in row] for row in (sheet.names, *sheet.rows)]
    columns = list(zip(*cells, strict=True))
    widths = [max(map(_width, column)) for column in columns]
    right = [_numbers(values) for values in zip(*sheet.rows, strict=True)] or [False] * len(widths)
    lines = ("  ".join(map(_padded, row, widths, right)).rstrip() for row in cells)
    count = len(sheet.rows)
    return "\n".join((*lines, f"({count:,} {'row' if count == 1 else 'rows'})")) + "\n"


def _padded(cell: str, width: int, flush: bool) -> str:
    blanks = " " * (width - _width(cell))
    return blanks + cell if flush else cell + blanks


def _width(cell: str) -> int:
    """How many columns of a terminal the text takes."""
    if cell.isascii():
        return len(cell)
    from rich.cells import cell_len  # a table of all wide characters

    return cell_len(cell)


def _numbers(values: Iterable[object]) -> bool:
    """Whether a column holds nothing but numbers."""
    known = [value for value in values if value is not None]
    return bool(known) and all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in known
    )


def as_json(sheet: Sheet) -> str:
    """`{"schema_version", "columns", "rows": [{…}]}` on one line."""
    rows = [dict(zip(sheet.names, row, strict=True)) for row in sheet.rows]
    data = {"schema_version": SCHEMA_VERSION, "columns": sheet.names, "rows": rows}
    return dumps(jsonable(data)) + "\n"


def as_csv(sheet: Sheet) -> str:
    """RFC 4180 with a header. Text that a spreadsheet would run as a formula gets an apostrophe
    before it; numbers stay as they are."""
    target = io.StringIO()
    writer = csv.writer(target, lineterminator="\r\n")
    writer.writerow(sheet.names)
    writer.writerows(map(_cells, sheet.rows))
    return target.getvalue()


def _cells(row: Sequence[object]) -> list[str]:
    return [
        text(value) if isinstance(value, int | float) else spreadsheet_safe(text(value))
        for value in row
    ]


FORMATS: Mapping[str, Callable[[Sheet], str]] = {
    "table": as_table,
    "json": as_json,
    "csv": as_csv,
}


def csv_name(stem: str, table: str) -> str:
    """What the file of one table is called."""
    return f"{stem}-{table}.csv"


def write_csv(gold: Gold, folder: Path, stem: str, mask: Mask | None = None) -> tuple[Path, ...]:
    """Every gold table of the build as `<stem>-<table>.csv`, ordered by its key. A file is there
    whole or not at all. mask: applied to each row.

    Raises StorageError.
    """
    tables = [name for name in GOLD if gold.has(name)]
    paths = tuple(folder / csv_name(stem, name) for name in tables)
    for name, path in zip(tables, paths, strict=True):
        half = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            _write_table(gold, name, half, mask)
            half.replace(path)
        except OSError as error:
            raise refusal("cannot write the report's tables", path, error) from None
        finally:
            half.unlink(missing_ok=True)
    return paths


def _write_table(gold: Gold, name: str, path: Path, mask: Mask | None) -> None:
    table = TABLES[name]
    columns = ", ".join(f'"{column}"' for column in table.names)
    order = ", ".join(f'"{column}"' for column in table.key)
    with path.open("x", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\r\n")
        writer.writerow(table.names)
        for batch in gold.batches(f"select {columns} from {name} order by {order}"):
            for row in plain(batch):
                shown = mask(name, row) if mask else row
                writer.writerow(_cells([shown[column] for column in table.names]))
