"""What a section of the report is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from msgspec import Struct

from .charts import Chart
from .grids import Grid
from .questions import Answers, Rows


class SectionBlock(Struct, frozen=True):
    """leads: sentences; charts: None among them is left out."""

    leads: tuple[str, ...] = ()
    charts: tuple[Chart, ...] = ()
    grids: tuple[Grid, ...] = ()


class ReportSection(Struct, frozen=True):
    """id: what links lead to; about: how to read it; missing: what this build has not made."""

    id: str
    title: str
    about: str
    leads: tuple[str, ...]
    charts: tuple[Chart, ...]
    grids: tuple[Grid, ...]
    missing: tuple[str, ...]


Known = Mapping[str, Rows]
Make = Callable[[Known, datetime], SectionBlock]


class SectionPiece(Struct, frozen=True):
    """name: what is missing without it; needs: answers that `make` reads."""

    name: str
    needs: tuple[str, ...]
    make: Make


class Outline(Struct, frozen=True):
    """A section before anything is known."""

    id: str
    title: str
    about: str
    pieces: tuple[SectionPiece, ...]


def make_section(outline: Outline, answers: Answers, as_of: datetime) -> ReportSection:
    """The section with all of its pieces for which the build has the tables."""
    blocks, missing = [], []
    for piece in outline.pieces:
        known = {name: rows for name in piece.needs if (rows := answers.get(name)) is not None}
        if len(known) == len(piece.needs):
            blocks.append(piece.make(known, as_of))
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
    """The rows with `object`: `topic orders`, from kind and key."""
    return [{**row, "object": _name_object(row["kind"], row["key"])} for row in rows]


def _name_object(kind: str, key: str) -> str:
    return f"{kind.removeprefix('kafka_')} {key}".strip()


def join_words(parts: Iterable[str]) -> str:
    """`a, b and c`."""
    *most, last = [*parts] or [""]
    return f"{', '.join(most)} and {last}" if most else last


def render_age(since: datetime | None, as_of: datetime) -> str:
    """`12 d`, `5 h`, `20 min`; empty if it is not known."""
    if since is None:
        return ""
    minutes = max(0, int((as_of - since).total_seconds() // 60))
    if minutes < 60:
        return f"{minutes} min"
    hours = minutes // 60
    return f"{hours // 24} d" if hours >= 48 else f"{hours} h"
