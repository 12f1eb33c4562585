"""Write rows for people and programs: aligned text, JSON, and CSV that no spreadsheet executes."""

from __future__ import annotations

import csv
import io
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from msgspec import Struct

from ...core.canonical import dumps
from ...core.storage import make_storage_error
from ...core.text.display import cell_width, escape_log_commands
from ...core.text.quantity import render_amount, render_quantity
from ..access.operation_bits import MASKS
from ..tables.definitions import GOLD, SCHEMA_VERSION, TABLES
from ..tables.reader import Gold, to_rows
from .csv_cells import expand_mask, render_cell, render_rows
from .csv_cells import render_utc as render_utc
from .csv_cells import to_jsonable as to_jsonable
from .csv_cells import to_text as to_text

NOTHING = "-"
INTERNAL: Mapping[str, frozenset[str]] = {
    "unused_topics": frozenset(
        ("end_offset", "written_at", "offsets_since", "offsets_at")
        + ("committed", "read_at", "groups_since", "groups_at")
    ),
}
"""Table -> columns that only the next build reads."""
_COLUMN_UNITS: Mapping[str, str] = {"_bytes": "bytes", "_ms": "ms"}
"""The end of a column's name -> the unit of its values."""
_LARGE = 1000
"""Smaller figures are readable as they are."""
Mask = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]
"""Turns a row of a table into the row that may be shown."""


class Sheet(Struct, frozen=True):
    """A table to print."""

    names: tuple[str, ...]
    """Of the columns."""
    rows: tuple[tuple[Any, ...], ...]
    """Each with as many values."""


FindUnit = Callable[[Mapping[str, Any], str], str]
"""A row and one of its columns -> the unit of the value (`core/text/quantity.py`), empty for
none."""


def render_table(
    sheet: Sheet, find_unit: FindUnit = lambda _, column: find_column_unit(column)
) -> str:
    """Render columns two spaces apart, numbers flush right, null as `-`, masks in words, times and
    sizes with a readable amount before the exact number. The last line counts the rows."""
    rows = [tuple(map(expand_mask, sheet.names, row)) for row in sheet.rows]
    cells = [[to_text(name) for name in sheet.names]]
    for row in rows:
        named = dict(zip(sheet.names, row, strict=True))
        units = [
            find_unit(named, name) if find_unit is not None else find_column_unit(name)
            for name in sheet.names
        ]
        cells.append(list(map(_render_cell, row, units)))
    columns = list(zip(*cells, strict=True))
    widths = [max(map(cell_width, column)) for column in columns]
    right = [_is_numeric(values) for values in zip(*rows, strict=True)] or [False] * len(widths)
    lines = ("  ".join(map(_pad_cell, row, widths, right)).rstrip() for row in cells)
    count = len(sheet.rows)
    return "\n".join((*lines, f"({count:,} {'row' if count == 1 else 'rows'})")) + "\n"


def find_column_unit(column: str) -> str:
    """The unit that the name of a column says."""
    return next((unit for end, unit in _COLUMN_UNITS.items() if f"_{column}".endswith(end)), "")


def _render_cell(value: Any, unit: str) -> str:
    exact = to_text(value) or NOTHING
    number = int(value) if isinstance(value, float) and value.is_integer() else value
    amount = render_quantity(number, unit)
    if isinstance(number, int) and number >= _LARGE and amount.partition(" ")[0] == str(number):
        amount = render_amount(number, unit)  # a measured figure has no short exact amount
    return f"{amount} ({exact})" if amount and amount.partition(" ")[0] != exact else exact


def _pad_cell(cell: str, width: int, flush: bool) -> str:
    blanks = " " * (width - cell_width(cell))
    return blanks + cell if flush else cell + blanks


def _is_numeric(values: Iterable[object]) -> bool:
    """True for a column that contains nothing but numbers."""
    known = [value for value in values if value is not None]
    return bool(known) and all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in known
    )


def render_json(sheet: Sheet) -> str:
    """`{"schema_version", "columns", "rows": [{…}]}` on one line."""
    rows = [dict(zip(sheet.names, row, strict=True)) for row in sheet.rows]
    data = {"schema_version": SCHEMA_VERSION, "columns": sheet.names, "rows": rows}
    return escape_log_commands(dumps(to_jsonable(data))) + "\n"


def render_csv(sheet: Sheet) -> str:
    """RFC 4180 with a header; cells as in `csv_cells.render_cell`."""
    target = io.StringIO()
    write_rows(target, sheet.names, sheet.rows)
    return target.getvalue()


def write_rows(file: IO[str], names: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    """Write CSV row by row."""
    writer = csv.writer(file, lineterminator="\r\n")
    writer.writerow(names)
    writer.writerows([render_cell(value) for value in row] for row in rows)


FORMATS: Mapping[str, Callable[[Sheet], str]] = {
    "table": render_table,
    "json": render_json,
    "csv": render_csv,
}


def csv_name(stem: str, table: str) -> str:
    """Return the name of a table's file."""
    return f"{stem}-{table}.csv"


def write_csv(gold: Gold, folder: Path, stem: str, mask: Mask | None = None) -> tuple[Path, ...]:
    """Write every gold table of the build to `<stem>-<table>.csv`, ordered by its key. A file is
    there completely or not at all. mask: applied to each row.

    Raises StorageError.
    """
    tables = [name for name in GOLD if gold.has(name)]
    paths = tuple(folder / csv_name(stem, name) for name in tables)
    for name, path in zip(tables, paths, strict=True):
        with write_whole(path, "cannot write the report's tables") as half:
            _write_table(gold, name, half, mask)
    return paths


@contextmanager
def write_whole(path: Path, task: str) -> Iterator[Path]:
    """Yield a path for a file or folder, which gets its name only when it is complete. Raises
    StorageError."""
    # In the same folder: a rename across disks is a copy, which can be cut short.
    half = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield half
        half.replace(path)
    except OSError as error:
        raise make_storage_error(task, path, error) from None
    finally:
        if half.is_dir():
            shutil.rmtree(half)
        half.unlink(missing_ok=True)


def _write_table(gold: Gold, name: str, path: Path, mask: Mask | None) -> None:
    table = TABLES[name]
    names = [column for column in table.names if column not in INTERNAL.get(name, ())]
    columns = ", ".join(f'"{column}"' for column in names)
    order = ", ".join(f'"{column}"' for column in table.key)
    with path.open("x", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\r\n")
        writer.writerow([MASKS.get(column, column) for column in names])
        for batch in gold.read_batches(f"select {columns} from {name} order by {order}"):
            if mask:
                shown = (mask(name, row) for row in to_rows(batch))
                writer.writerows(
                    [render_cell(expand_mask(c, row[c])) for c in names] for row in shown
                )
            else:
                writer.writerows(render_rows(batch))
