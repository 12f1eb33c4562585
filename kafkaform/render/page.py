"""Render the pages of providers, such as those of `describe`, as lines that are safe to print."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from itertools import zip_longest

from ..core.text.cell_width import cell_width
from ..provider.page import Grid, Page, Prose
from .text import inline, render_table, wrap_text

NARROWEST = 12
"""Columns that each column of a table keeps, however narrow the terminal is."""
PROSE_WIDTH = 96
"""Columns; longer lines of prose are hard to read, however wide the terminal is."""


def render_page(page: Page, width: int | None = None) -> Iterator[str]:
    """The page line by line. width: of the terminal in columns, None for a pipe."""
    for item in page:
        if isinstance(item, Grid):
            rows = [[inline(cell) for cell in row] for row in item.rows]
            yield from render_table(wrap_cells(rows, width), item.right)
        elif isinstance(item, Prose):
            yield from textwrap.wrap(inline(item.text), min(PROSE_WIDTH, width or PROSE_WIDTH))
        else:
            yield inline(item)


def wrap_cells(rows: list[list[str]], width: int | None) -> list[list[str]]:
    """The rows with cells wrapped into further rows, so that lines fit into `width` columns."""
    # Nothing is wrapped for a pipe: `grep` and `awk` need a row on one line.
    if width is None or not rows:
        return rows
    widths = [max(map(cell_width, column)) for column in zip(*rows, strict=True)]
    while sum(widths) + 2 * (len(widths) - 1) > width and max(widths) > NARROWEST:
        # Down to the next narrower column, so that several wide ones shrink evenly.
        excess = sum(widths) + 2 * (len(widths) - 1) - width
        widest = widths.index(max(widths))
        second_widest = max((w for n, w in enumerate(widths) if n != widest), default=0)
        widths[widest] = max(
            NARROWEST, widths[widest] - excess, min(second_widest, widths[widest] - 1)
        )
    return [list(line) for row in rows for line in _wrap_row(row, widths)]


def _wrap_row(row: list[str], widths: list[int]) -> Iterable[tuple[str, ...]]:
    """One row as several, so that no cell is wider than its column. widths: in columns."""
    cells = [wrap_text(text, width) for text, width in zip(row, widths, strict=True)]
    return zip_longest(*cells, fillvalue="")
