"""Write the tables of a build as CSV, a batch of Arrow at a time.

The cells are those of `rows.render_cell`, rendered by column: Arrow finds the few texts that may
need a change, and only those are handled in Python.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..access.permission_rows import MASKS
from ..tables.definitions import GOLD, TABLES
from ..tables.reader import Gold, to_rows
from .rows import INTERNAL, SECOND, Mask, expand_mask, render_cell, write_whole

_SUSPECT = r"""^[ "']*[=+\-@|%]|[^\x20-\x7e]|##"""
"""A text without a match stays as it is in a cell (RE2 syntax)."""
_QUOTED = r"""[^\x20-\x7e]|["\\]|##"""
"""A text without a match stays as it is inside of JSON in a cell."""


def render_rows(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    """Return the batch as rows for a CSV writer: text, numbers that it writes as `render_cell`
    would, or None."""
    columns = zip(batch.schema.names, batch.columns, strict=True)
    return zip(*(_render_column(name, column) for name, column in columns), strict=True)


def _render_column(name: str, column: pa.Array) -> list[Any]:
    kind, types = column.type, pa.types
    if name in MASKS:
        # Millions of rows share few distinct masks.
        texts = {value: expand_mask(name, value) for value in pc.unique(column).to_pylist()}
        return [texts[value] for value in column.to_pylist()]
    if types.is_string(kind) or types.is_string_view(kind):
        return _render_texts(column.cast(pa.string()))
    if types.is_list(kind) and types.is_string_view(kind.value_type):
        return _render_lists(column.cast(pa.list_(pa.string())))
    if types.is_timestamp(kind):
        # In whole seconds: Arrow's %S prints the decimals of finer units.
        column = pc.strftime(column.cast(pa.timestamp("s", "UTC"), safe=False), SECOND)
    elif types.is_boolean(kind) or types.is_date32(kind):
        column = column.cast(pa.string())
    elif not (types.is_integer(kind) or types.is_floating(kind)):
        return [render_cell(value) for value in column.to_pylist(maps_as_pydicts="lossy")]
    values: list[Any] = column.to_pylist()
    return values


def _render_texts(column: pa.StringArray) -> list[str | None]:
    values: list[str | None] = column.to_pylist()
    suspect = pc.fill_null(pc.match_substring_regex(column, _SUSPECT), False)
    for index in pc.indices_nonzero(suspect).to_pylist():
        values[index] = render_cell(values[index])
    return values


def _render_lists(column: pa.ListArray) -> list[str | None]:
    """Render lists of texts as JSON."""
    texts = column.flatten()
    bad = pc.or_kleene(pc.match_substring_regex(texts, _QUOTED), pc.is_null(texts))
    if pc.any(bad).as_py():
        return [render_cell(value) for value in column.to_pylist()]
    inside = pc.binary_join(column, pa.scalar('","'))
    joined = pc.binary_join_element_wise('["', inside, '"]', "")
    empty = pc.equal(pc.list_value_length(column), 0)
    values: list[str | None] = pc.if_else(empty, "[]", joined).to_pylist()
    return values


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
            table = TABLES[name]
            names = [column for column in table.names if column not in INTERNAL.get(name, ())]
            columns = ", ".join(f'"{column}"' for column in names)
            order = ", ".join(f'"{column}"' for column in table.key)
            with half.open("x", encoding="utf-8", newline="") as file:
                writer = csv.writer(file, lineterminator="\r\n")
                writer.writerow([MASKS.get(column, column) for column in names])
                for batch in gold.read_batches(f"select {columns} from {name} order by {order}"):
                    if mask:
                        masked = (mask(name, row) for row in to_rows(batch))
                        writer.writerows(
                            [render_cell(expand_mask(c, row[c])) for c in names] for row in masked
                        )
                    else:
                        writer.writerows(render_rows(batch))
    return paths
