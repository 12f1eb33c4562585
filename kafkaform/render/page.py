"""Pages of providers as lines, with all foreign text made harmless."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from itertools import zip_longest

from ..core.text.cell_width import cell_width
from ..provider.page import Grid, Page, Prose
from .text import inline, render_table, wrap_text

NARROWEST = 12
"""Columns that a cell keeps however small the terminal is."""
PROSE_WIDTH = 96


def lines(page: Page, width: int | None = None) -> Iterator[str]:
    """The page line by line. width: of the terminal, None for a pipe, where nothing is cut off."""
    for part in page:
        if isinstance(part, Grid):
            rows = [[inline(cell) for cell in row] for row in part.rows]
            yield from render_table(fitted(rows, width), part.right)
        elif isinstance(part, Prose):
            yield from textwrap.wrap(inline(part.text), min(PROSE_WIDTH, width or PROSE_WIDTH))
        else:
            yield inline(part)


def fitted(rows: list[list[str]], width: int | None) -> list[list[str]]:
    """The rows with their widest cells wrapped, into rows below, until a line fits."""
    if width is None or not rows:
        return rows
    widths = [max(map(cell_width, column)) for column in zip(*rows, strict=True)]
    while sum(widths) + 2 * (len(widths) - 1) > width and max(widths) > NARROWEST:
        excess = sum(widths) + 2 * (len(widths) - 1) - width
        widest = widths.index(max(widths))
        others = max((w for n, w in enumerate(widths) if n != widest), default=0)
        widths[widest] = max(NARROWEST, widths[widest] - excess, min(others, widths[widest] - 1))
    return [list(line) for row in rows for line in _broken(row, widths)]


def _broken(row: list[str], widths: list[int]) -> Iterable[tuple[str, ...]]:
    """One row as several, so that no cell is wider than its column."""
    parts = [wrap_text(text, width) for text, width in zip(row, widths, strict=True)]
    return zip_longest(*parts, fillvalue="")
