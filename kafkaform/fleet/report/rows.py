"""Write rows for people and programs: aligned text, JSON, and CSV that no spreadsheet executes.

`documents` renders the same cells a batch of Arrow at a time.
"""

from __future__ import annotations

import csv
import io
import math
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import IO, Any

from msgspec import Struct

from ...core.canonical import dumps
from ...core.storage import make_storage_error
from ...core.text import (
    cell_width,
    escape_formula,
    escape_log_commands,
    inline,
    render_amount,
    render_quantity,
)
from ..access.permission_rows import MASKS, list_operations
from ..tables.definitions import SCHEMA_VERSION

SECOND = "%Y-%m-%dT%H:%M:%SZ"
NULL_CELL = "-"
INTERNAL: Mapping[str, frozenset[str]] = {
    "unused_topics": frozenset(
        ("end_offset", "written_at", "offsets_since", "offsets_at")
        + ("committed", "read_at", "groups_since", "groups_at")
    ),
    "effective_permissions": frozenset(MASKS.values()),
}
"""Table -> columns that only the next build or other tools read. What people read has the words of
masks in the place of the masks."""
_COLUMN_UNITS: Mapping[str, str] = {"_bytes": "bytes", "_ms": "ms"}
"""The end of a column's name -> the unit of its values."""
_LARGE = 1000
"""Smaller figures are readable as they are."""
Mask = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]
"""Turns a row of a table into the row that may be shown."""
FindUnit = Callable[[Mapping[str, Any], str], str]
"""A row and one of its columns -> the unit of the value (`core/text.py`), empty for
none."""


def to_text(value: object) -> str:
    """Render a value on one line: times in UTC, collections as canonical JSON, null as nothing."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return render_utc(value)
    if isinstance(value, list | tuple | dict):
        return dumps(to_jsonable(value))
    return inline(str(value))


def render_utc(time: datetime) -> str:
    """RFC 3339 with Z, to the second. A time without a zone is UTC."""
    aware = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    return aware.strftime(SECOND)


def to_jsonable(value: Any) -> Any:
    """Return the value in JSON's types. NaN and infinity become null."""
    if isinstance(value, Mapping):
        return {str(name): to_jsonable(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_jsonable(item) for item in value]
    if isinstance(value, datetime):
        return render_utc(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def render_cell(value: object) -> str:
    """Render a value. Text that a spreadsheet would execute gets an apostrophe in front; numbers
    stay."""
    return to_text(value) if isinstance(value, int | float) else escape_formula(to_text(value))


def expand_mask(column: str, value: Any) -> Any:
    """Return a mask as the operations that it means, by the name of its column; else the
    value."""
    return (
        ", ".join(list_operations(value)) if column in MASKS and isinstance(value, int) else value
    )


class Sheet(Struct, frozen=True):
    """A table to print."""

    names: tuple[str, ...]
    """Of the columns."""
    rows: tuple[tuple[Any, ...], ...]
    """Each with as many values."""


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
    exact = to_text(value) or NULL_CELL
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
    present = [value for value in values if value is not None]
    return bool(present) and all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in present
    )


def render_json(sheet: Sheet) -> str:
    """`{"schema_version", "columns", "rows": [{…}]}` on one line."""
    rows = [dict(zip(sheet.names, row, strict=True)) for row in sheet.rows]
    data = {"schema_version": SCHEMA_VERSION, "columns": sheet.names, "rows": rows}
    return escape_log_commands(dumps(to_jsonable(data))) + "\n"


def render_csv(sheet: Sheet) -> str:
    """RFC 4180 with a header; cells as in `render_cell`."""
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
