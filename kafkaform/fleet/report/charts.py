"""Charts as data, and the figures of their shapes: widths in per cent, heights in pixels, so that
a chart fits any width and its letters keep their size.

Every series has a colour, a pattern and a letter: none of them is needed to tell it from others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta

from msgspec import Struct

from .grids import ColumnKind, Grid, GridColumn, render_value

ROW, BAR = 40, 14
"""Pixels that a bar takes with its label, and alone."""
HEIGHT, FOOT = 140, 20
"""Pixels of the field of a chart by days, and of the line of days below it."""
NAME = 26
"""Characters of a bar's label that a telephone has room for; the table has all."""
LETTER_SHARE = 4.0
"""Per cent of the width below which a part has no room for its letter."""
LETTER_HEIGHT = 12
"""Pixels; the same for columns."""
ROOM = 12
"""Days that a chart has room for at the least, so that few columns are no walls."""
APART = 4
"""Columns from which on the first day and the last one have room side by side."""


class Series(Struct, frozen=True):
    """key: names colour and pattern in the style sheet."""

    key: str
    title: str
    letter: str


class Bar(Struct, frozen=True):
    """values: one for each series; note: beside the label; limit: where a line is drawn."""

    label: str
    values: tuple[float, ...]
    note: str = ""
    limit: float | None = None

    @property
    def total(self) -> float:
        return sum(self.values)


class ChartPart(Struct, frozen=True):
    """One coloured piece; x, width in per cent, y, height in pixels."""

    series: Series
    value: float
    x: float
    y: float
    width: float
    height: float
    letter: bool = False


class ChartMark(Struct, frozen=True):
    """A text or a line beside the pieces; x in per cent, y in pixels."""

    text: str
    x: float
    y: float
    anchor: str = "start"


class Chart(Struct, frozen=True):
    """days: columns side by side, one a day; else bars one below the other. label: what a bar
    is; unit: what is counted; more: bars that were left out."""

    id: str
    title: str
    unit: str
    label: str
    series: tuple[Series, ...]
    bars: tuple[Bar, ...]
    days: bool = False
    more: int = 0

    @property
    def used(self) -> tuple[Series, ...]:
        """The series that have something to show."""
        sums = [sum(column) for column in zip(*(bar.values for bar in self.bars), strict=True)]
        return tuple(s for s, value in zip(self.series, sums, strict=False) if value)

    @property
    def top(self) -> float:
        """The value at the far end of the field; a bar alone fills it."""
        far = max((_find_reach(bar) for bar in self.bars), default=0)
        return max(far if len(self.bars) == 1 and not self.days else _round_up(far), 1)

    @property
    def height(self) -> int:
        return HEIGHT + FOOT if self.days else ROW * len(self.bars)

    @property
    def parts(self) -> tuple[ChartPart, ...]:
        make = self._make_columns if self.days else self._make_rows
        return tuple(make())

    @property
    def labels(self) -> tuple[ChartMark, ...]:
        """Names of bars; of days the first, the middle and the last."""
        if not self.days:
            return tuple(
                ChartMark(_shorten(bar.label), 0, ROW * n + 16) for n, bar in enumerate(self.bars)
            )
        last, y = len(self.bars) - 1, HEIGHT + FOOT - 5
        if len(self.bars) < ROOM:
            few = (0, last) if len(self.bars) >= APART else (0,)
            return tuple(ChartMark(self.bars[n].label, n * self._step, y) for n in few if self.bars)
        wanted = ((0, "start", 0.0), (last // 2, "middle", 0.5), (last, "end", 1.0))
        return tuple(
            ChartMark(self.bars[n].label, (n + share) * self._step, y, anchor)
            for n, anchor, share in wanted
        )

    @property
    def notes(self) -> tuple[ChartMark, ...]:
        """Sums and remarks, flush right above each bar; of columns the scale."""
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
        """The chart in a sentence, for who does not see it."""
        what = f"{'Columns' if self.days else 'Bars'} of {self.unit}, one a {self.label}."
        largest = sorted(self.bars, key=lambda bar: (-bar.total, bar.label))[:3]
        told = "; ".join(
            f"{bar.label}: {render_amount(bar.total)} ({', '.join(self._describe_bar(bar))})"
            for bar in largest
            if bar.total
        )
        return f"{what} {f'The largest are {told}.' if told else 'There is nothing to show.'}"

    @property
    def figures(self) -> Grid:
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
        return Grid(f"{self.title}: figures", tuple(columns), rows, len(rows) + self.more)

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
        return 100 / max(len(self.bars), ROOM)

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
    """One bar for each day from the first to the last, also for those on which nothing was."""
    if not days:
        return ()
    span = (max(days) - min(days)).days
    every = [min(days) + timedelta(days=n) for n in range(span + 1)]
    return tuple(
        Bar(day.isoformat(), tuple(values.get((day, s.key), 0) for s in series)) for day in every
    )


def render_tip(part: ChartPart) -> str:
    """What a piece says when it is pointed at."""
    return f"{part.series.title}: {render_value(part.value, GridColumn('', '', ColumnKind.NUMBER))}"


def _render_note(bar: Bar) -> str:
    """`3,120 of 4,000 · full 2027-01-02`."""
    limit = f" of {render_amount(bar.limit)}" if bar.limit is not None else ""
    return " · ".join(filter(None, (f"{render_amount(bar.total)}{limit}", bar.note)))


def render_amount(value: float) -> str:
    """`1,234`, `0.36`: two decimals where there are any."""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"


def _shorten(label: str) -> str:
    return label if len(label) <= NAME else label[: NAME - 1] + "…"


def _find_reach(bar: Bar) -> float:
    return max(bar.total, bar.limit or 0)


def _round_up(value: float) -> float:
    """1, 2 or 5 times a power of ten, or a half step between: 0 -> 0, 7 -> 8, 43 -> 50."""
    if value <= 0:
        return 0
    power = 10.0 ** (len(str(int(value))) - 1) if value >= 1 else 1.0
    steps = (1, 1.2, 1.6, 2, 2.5, 3, 4, 5, 6, 8, 10)
    return next(power * step for step in steps if power * step >= value)
