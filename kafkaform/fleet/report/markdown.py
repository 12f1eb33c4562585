"""Render a short report as Markdown for a chat or a review; foreign text is only text in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from ...core.text.display import inline
from .figures import ColumnKind, Grid, GridColumn, clip_text, render_moment, render_value
from .model import STATUSES, FleetReport
from .sections import render_count

TABLE_ROWS = 5
"""Rows per table."""
TABLE_COLUMNS = 7
"""Columns per table; the page has the rest."""
CELL_CHARACTERS = 80
"""Characters per cell."""
_FOREIGN_KINDS = (
    ColumnKind.CODE,
    ColumnKind.KEY,
    ColumnKind.VALUE,
    ColumnKind.TEXT,
    ColumnKind.LONG,
)
_MARKDOWN_CHARACTERS = re.compile(r"[\\`*\[\]<>#|~&@!$_]|:(?=//)|(?<=www)\.")


def render_markdown(report: FleetReport) -> str:
    """Render at most a few rows per table. The same report gives the same bytes."""
    return "\n".join(_render_lines(report)) + "\n"


def _render_lines(report: FleetReport) -> Iterator[str]:
    yield f"# Fleet report, {render_moment(report.as_of)} UTC"
    yield ""
    yield _render_coverage(report)
    yield ""
    yield "| | Now | Change |"
    yield "|---|---:|---:|"
    for number in report.numbers:
        least = "at least " if number.least else ""
        value = "unknown" if number.value is None else f"{least}{number.value:,}"
        change = "–" if number.change is None else f"{number.change:+,}" if number.change else "="
        yield f"| {number.title} | {value} | {change} |"
    for section in report.sections:
        yield ""
        yield f"## {section.title}"
        yield ""
        yield " ".join(map(escape_prose, section.leads))
        if section.missing:
            yield f"Unknown: this build has no {', '.join(section.missing)}."
        for table in section.grids:
            if table.rows and table.csv:
                yield from _render_table(table)
    yield ""
    yield (
        f"Build {escape_code(report.build)}. Unknown is not zero: what could not be read is "
        "not counted."
    )


def _render_coverage(report: FleetReport) -> str:
    coverage = report.coverage
    if coverage.expected is None:
        return "**Coverage: unknown.**"
    counts = ", ".join(f"{coverage.counts[status]:,} {status}" for status in STATUSES)
    words = f"Coverage: {coverage.expected:,} clusters expected; {counts}"
    extra = f", {coverage.unregistered:,} not in fleet.hcl" if coverage.unregistered else ""
    unknown = render_count(coverage.states.total, "configuration")
    states = f"; {unknown} unknown" if coverage.states.total else ""
    return f"{words}{extra}{states}." if coverage.whole else f"**{words}{extra}{states}.**"


def _render_table(table: Grid) -> Iterator[str]:
    columns = table.columns[:TABLE_COLUMNS]
    yield ""
    yield f"{table.caption} ({table.total:,}):"
    yield ""
    yield f"| {' | '.join(column.title for column in columns)} |"
    yield f"|{'|'.join('---:' if column.right else '---' for column in columns)}|"
    for row in table.rows[:TABLE_ROWS]:
        yield f"| {' | '.join(_render_cells(row, columns))} |"


def _render_cells(row: Sequence[Any], columns: Sequence[GridColumn]) -> Iterator[str]:
    for value, column in zip(row, columns, strict=False):
        written = render_value(value, column)
        foreign = value is not None and column.kind in _FOREIGN_KINDS and value != ""
        yield escape_code(written).replace("|", r"\|") if foreign else written


def escape_prose(text: str) -> str:
    """Escape a sentence with foreign parts: Markdown's special characters become references."""
    return _MARKDOWN_CHARACTERS.sub(lambda match: f"&#{ord(match[0])};", inline(text))


def escape_code(text: str) -> str:
    r"""Make a code span. Tables read a pipe after a backslash in two ways, so it is written
    `\x7c`."""
    printable = inline(text)
    clipped = clip_text(printable, CELL_CHARACTERS)
    clear = re.sub(r"(?<=\\)\|", "x7c", clipped)
    ticks = "`" * (max(map(len, re.findall(r"`+", clear)), default=0) + 1)
    gap = " " if not clear.strip() or clear[0] in "` " or clear[-1] in "` " else ""
    return f"{ticks}{gap}{clear}{gap}{ticks}"
