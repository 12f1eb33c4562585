"""Tables and charts of the report as data, how their values are written, and the sections that
consist of them.

Charts are measured in per cent of the width and in pixels of height, so that a chart fits any width
and its letters keep their size. Every series has a colour, a pattern and a letter, so that none of
them is needed to tell it apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import Any

from msgspec import Struct

from ...core.text import inline, render_with_exact
from .questions import Answers, Rows
from .rows import to_jsonable, to_text

CLIP = 240
"""How many characters of a foreign text a cell shows."""
UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
CHART_ROWS = 20
"""Bars of a chart that has one for each cluster or owner; the tables have the rest."""
ROW, BAR = 40, 14
"""Pixels of a bar with its label, and of the bar alone."""
HEIGHT, FOOT_HEIGHT = 140, 20
"""Pixels of the field of a chart by days, and of the line of days below it."""
LABEL_CHARACTERS = 26
"""How many characters of a bar's label fit on a phone. The table has the whole label."""
LETTER_SHARE = 4.0
"""A part narrower than this (per cent) has no room for its letter."""
LETTER_HEIGHT = 12
"""A part of a column lower than this (pixels) has no room for its letter."""
MIN_COLUMNS = 12
"""A chart has room for at least this many days, so that a few columns do not become walls."""
LABEL_COLUMNS = 4
"""From this many columns on, the first and the last day fit side by side."""
_UNITS = frozenset(("ms", "bytes"))
"""How paths of attributes end whose values have this unit."""
SectionAnswers = Mapping[str, Rows]
"""Question -> rows, of the questions that a part needs."""


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
SIZE_COLUMNS = tuple(
    GridColumn(name, name.capitalize(), ColumnKind.NUMBER)
    for name in ("topics", "partitions", "replicas")
)
TRAFFIC_COLUMNS = (
    GridColumn("ingress_per_day", "Written a day", ColumnKind.BYTES, "unknown"),
    GridColumn("egress_per_day", "Read a day", ColumnKind.BYTES, "unknown"),
)
STORAGE_COLUMNS = (
    GridColumn("bytes", "Size", ColumnKind.BYTES, "not measured"),
    GridColumn("bytes_per_day", "Size, growth a day", ColumnKind.BYTES, "unknown"),
)
COST_COLUMNS = (
    GridColumn("cost", "Cost a month", ColumnKind.MONEY, "no rates"),
    GridColumn("currency", "Currency"),
)


class AtLeast(float):
    """An amount of what is known; what is unknown may add to it."""


class ReportGrid(Struct, frozen=True):
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
) -> ReportGrid:
    """Make a table. Its total is the `total` of the first row, or else the number of rows."""
    total = int(rows[0].get("total") or len(rows)) if rows else 0
    cells = tuple(tuple(row.get(column.name) for column in columns) for row in rows)
    return ReportGrid(caption, tuple(columns), cells, total, csv)


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
        if column.kind is ColumnKind.SHARE:
            return f"{value:.1%}"
        if column.kind is ColumnKind.BYTES:
            return render_bytes(value)
        if column.kind is ColumnKind.MONEY:
            return f"{'at least ' if isinstance(value, AtLeast) else ''}{value:,.2f}"
        return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}".rstrip("0").rstrip(".")
    written = inline(", ".join(map(str, value))) if isinstance(value, list) else to_text(value)
    return clip_text(written, CLIP)


def clip_text(text: str, length: int) -> str:
    """Cut a text that is longer; the last character is then an ellipsis."""
    return text if len(text) <= length else text[: length - 1] + "…"


def render_bytes(value: float) -> str:
    """`1.5 GiB`."""
    unit = 0
    while abs(value) >= 1024 and unit < len(UNITS) - 1:
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


class Series(Struct, frozen=True):
    """What one colour means."""

    key: str
    """Names the colour and the pattern in the style sheet."""
    title: str
    letter: str


class Bar(Struct, frozen=True):
    """One bar or column."""

    label: str
    values: tuple[float, ...]
    """One per series."""
    note: str = ""
    """Next to the label."""
    limit: float | None = None
    """Where a line is drawn."""

    @property
    def total(self) -> float:
        return sum(self.values)


class ChartPart(Struct, frozen=True):
    """One coloured piece; x and width in per cent, y and height in pixels."""

    series: Series
    value: float
    x: float
    y: float
    width: float
    height: float
    letter: bool = False


class ChartMark(Struct, frozen=True):
    """A text or a line next to the pieces; x in per cent, y in pixels."""

    text: str
    x: float
    y: float
    anchor: str = "start"


class Chart(Struct, frozen=True):
    """A chart."""

    id: str
    title: str
    unit: str
    """What is counted."""
    label: str
    """What a bar is."""
    series: tuple[Series, ...]
    bars: tuple[Bar, ...]
    days: bool = False
    """Columns side by side, one per day. Otherwise bars below each other."""
    more: int = 0
    """How many bars were left out."""

    @property
    def used(self) -> tuple[Series, ...]:
        """The series that have something to show."""
        sums = [sum(column) for column in zip(*(bar.values for bar in self.bars), strict=True)]
        return tuple(s for s, value in zip(self.series, sums, strict=False) if value)

    @property
    def top(self) -> float:
        """The value at the far end of the field. A single bar fills it."""
        far = max((max(bar.total, bar.limit or 0) for bar in self.bars), default=0)
        return max(far if len(self.bars) == 1 and not self.days else _round_up(far), 1)

    @property
    def height(self) -> int:
        return HEIGHT + FOOT_HEIGHT if self.days else ROW * len(self.bars)

    @property
    def parts(self) -> tuple[ChartPart, ...]:
        make = self._make_columns if self.days else self._make_rows
        return tuple(make())

    @property
    def labels(self) -> tuple[ChartMark, ...]:
        """Names of bars; for days the first, the middle and the last one."""
        if not self.days:
            return tuple(
                ChartMark(clip_text(bar.label, LABEL_CHARACTERS), 0, ROW * n + 16)
                for n, bar in enumerate(self.bars)
            )
        last, y = len(self.bars) - 1, HEIGHT + FOOT_HEIGHT - 5
        if len(self.bars) < MIN_COLUMNS:
            positions_shown = (0, last) if len(self.bars) >= LABEL_COLUMNS else (0,)
            return tuple(
                ChartMark(self.bars[n].label, n * self._step, y)
                for n in positions_shown
                if self.bars
            )
        positions = ((0, "start", 0.0), (last // 2, "middle", 0.5), (last, "end", 1.0))
        return tuple(
            ChartMark(self.bars[n].label, (n + share) * self._step, y, anchor)
            for n, anchor, share in positions
        )

    @property
    def notes(self) -> tuple[ChartMark, ...]:
        """Sums and remarks, flush right above each bar; for columns the scale."""
        if self.days:
            return tuple(
                ChartMark(f"{self.top * share:,.0f}", 0, HEIGHT * (1 - share * 0.9), "start")
                for share in (1.0, 0.5)
                if float(self.top * share).is_integer()
            )
        return tuple(
            ChartMark(_render_note(bar), 100, ROW * n + 16, "end")
            for n, bar in enumerate(self.bars)
        )

    @property
    def limits(self) -> tuple[ChartMark, ...]:
        return tuple(
            ChartMark(f"limit {render_amount(bar.limit)}", bar.limit / self.top * 100, ROW * n + 20)
            for n, bar in enumerate(self.bars)
            if bar.limit is not None
        )

    @property
    def about(self) -> str:
        """The chart in a sentence, for people who cannot see it."""
        head = f"{'Columns' if self.days else 'Bars'} of {self.unit}, one a {self.label}."
        largest = sorted(self.bars, key=lambda bar: (-bar.total, bar.label))[:3]
        largest_text = "; ".join(
            f"{bar.label}: {render_amount(bar.total)} ({', '.join(self._describe_bar(bar))})"
            for bar in largest
            if bar.total
        )
        tail = f"The largest are {largest_text}." if largest_text else "There is nothing to show."
        return f"{head} {tail}"

    @property
    def figures(self) -> ReportGrid:
        """The same numbers as a table."""
        columns = [GridColumn("label", self.label.capitalize(), ColumnKind.CODE)]
        columns += [
            GridColumn(series.key, series.title, ColumnKind.NUMBER) for series in self.series
        ]
        limited = any(bar.limit is not None for bar in self.bars)
        noted = any(bar.note for bar in self.bars)
        columns += [GridColumn("limit", "Limit", ColumnKind.NUMBER)] if limited else []
        columns += [GridColumn("note", "Note")] if noted else []
        rows = tuple(
            (bar.label, *bar.values, *([bar.limit] * limited), *([bar.note] * noted))
            for bar in self.bars
        )
        return ReportGrid(f"{self.title}: figures", tuple(columns), rows, len(rows) + self.more)

    def _describe_bar(self, bar: Bar) -> Iterable[str]:
        for series, value in zip(self.series, bar.values, strict=True):
            if value:
                yield f"{series.title} {render_amount(value)}"

    def _make_rows(self) -> Iterable[ChartPart]:
        top = self.top
        for number, bar in enumerate(self.bars):
            x = 0.0
            for series, value in zip(self.series, bar.values, strict=True):
                width = value / top * 100
                if value:
                    wide = width >= LETTER_SHARE
                    yield ChartPart(series, value, x, ROW * number + 21, width, BAR, wide)
                x += width

    @property
    def _step(self) -> float:
        """From one column to the next, in per cent."""
        return 100 / max(len(self.bars), MIN_COLUMNS)

    def _make_columns(self) -> Iterable[ChartPart]:
        top, step = self.top, self._step
        for number, bar in enumerate(self.bars):
            y = float(HEIGHT)
            for series, value in zip(self.series, bar.values, strict=True):
                height = value / top * HEIGHT * 0.9
                y -= height
                if value:
                    x, tall = (number + 0.1) * step, height >= LETTER_HEIGHT
                    yield ChartPart(series, value, x, y, step * 0.8, height, tall)


def make_day_bars(
    days: Sequence[date], values: Mapping[tuple[date, str], float], series: Sequence[Series]
) -> tuple[Bar, ...]:
    """Return a bar for each day from the first to the last, including days without a value."""
    if not days:
        return ()
    span = (max(days) - min(days)).days
    all_days = [min(days) + timedelta(days=n) for n in range(span + 1)]
    return tuple(
        Bar(day.isoformat(), tuple(values.get((day, s.key), 0) for s in series)) for day in all_days
    )


def render_tip(piece: ChartPart) -> str:
    """The text of a piece that is pointed at."""
    return (
        f"{piece.series.title}: {render_value(piece.value, GridColumn('', '', ColumnKind.NUMBER))}"
    )


def _render_note(bar: Bar) -> str:
    """`3,120 of 4,000 · full 2027-01-02`."""
    limit = f" of {render_amount(bar.limit)}" if bar.limit is not None else ""
    return " · ".join(filter(None, (f"{render_amount(bar.total)}{limit}", bar.note)))


def render_amount(value: float) -> str:
    """`1,234`, `0.36`: two decimals if there are any."""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"


def _round_up(value: float) -> float:
    """Round up to a value that reads well on a scale: 0 -> 0, 7 -> 8, 43 -> 50."""
    if value <= 0:
        return 0
    power = 10.0 ** (len(str(int(value))) - 1) if value >= 1 else 1.0
    steps = (1, 1.2, 1.6, 2, 2.5, 3, 4, 5, 6, 8, 10)
    return next(power * step for step in steps if power * step >= value)


class SectionBlock(Struct, frozen=True):
    """A part of a section, computed."""

    leads: tuple[str, ...] = ()
    """Sentences at its top."""
    charts: tuple[Chart, ...] = ()
    grids: tuple[ReportGrid, ...] = ()


class ReportSection(Struct, frozen=True):
    """A section, computed."""

    id: str
    """The target of links."""
    title: str
    about: str
    """How to read it."""
    leads: tuple[str, ...]
    charts: tuple[Chart, ...]
    grids: tuple[ReportGrid, ...]
    missing: tuple[str, ...]
    """Parts whose tables this build has not made."""


Make = Callable[[SectionAnswers, datetime], SectionBlock]
"""Computes a part. It gets the answers and the time of the build."""


class SectionPiece(Struct, frozen=True):
    """A part of a section, declared."""

    name: str
    """What the section lacks without it."""
    needs: tuple[str, ...]
    """The answers that `make` reads."""
    make: Make


class Outline(Struct, frozen=True):
    """A section, declared."""

    id: str
    title: str
    about: str
    pieces: tuple[SectionPiece, ...]


def make_section(outline: Outline, answers: Answers, as_of: datetime) -> ReportSection:
    """Compute the section with all parts for which the build has the tables."""
    blocks, missing = [], []
    for piece in outline.pieces:
        piece_answers = {
            name: rows for name in piece.needs if (rows := answers.get(name)) is not None
        }
        if len(piece_answers) == len(piece.needs):
            blocks.append(piece.make(piece_answers, as_of))
        else:
            missing.append(piece.name)
    return ReportSection(
        outline.id,
        outline.title,
        outline.about,
        tuple(lead for block in blocks for lead in block.leads),
        tuple(chart for block in blocks for chart in block.charts if chart.bars),
        tuple(grid for block in blocks for grid in block.grids),
        tuple(missing),
    )


def render_count(number: int, noun: str, plural: str = "") -> str:
    """`1 topic`, `1,200 topics`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def name_objects(rows: Rows) -> Rows:
    """Add `object`, such as `topic orders`, made of kind and key."""
    return [
        {**row, "object": f"{row['kind'].removeprefix('kafka_')} {row['key']}".strip()}
        for row in rows
    ]


def show_settings(rows: Sequence[Mapping[str, Any]], *names: str) -> Rows:
    """Write the values of attributes with their amounts: `14 d (1209600000)`. names: columns;
    `path` names the attribute."""
    return [
        {**row, **{name: render_setting(row["path"], row[name]) for name in names}} for row in rows
    ]


def render_setting(path: str, value: str | None) -> str | None:
    """`14 d (1209600000)` for a value of `config.retention.ms`."""
    unit = path.rpartition(".")[2]
    return render_with_exact(value, unit) if value is not None and unit in _UNITS else value


def join_words(texts: Iterable[str]) -> str:
    """`a, b and c`."""
    *most, last = [*texts] or [""]
    return f"{', '.join(most)} and {last}" if most else last


def render_age(since: datetime | None, as_of: datetime) -> str:
    """`12 d`, `5 h`, `20 min`; empty if it is unknown."""
    if since is None:
        return ""
    minutes = max(0, int((as_of - since).total_seconds() // 60))
    if minutes < 60:
        return f"{minutes} min"
    hours = minutes // 60
    return f"{hours // 24} d" if hours >= 48 else f"{hours} h"
