"""The structure of a section of the report: its declared pieces, and what is computed from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from msgspec import Struct

from .figures import Chart, Grid
from .questions import Answers, Rows

SectionAnswers = Mapping[str, Rows]
"""Question -> rows, of the questions that a part needs."""


class SectionBlock(Struct, frozen=True):
    """A part of a section, computed."""

    leads: tuple[str, ...] = ()
    """Sentences at its top."""
    charts: tuple[Chart, ...] = ()
    grids: tuple[Grid, ...] = ()


class ReportSection(Struct, frozen=True):
    """A section, computed."""

    id: str
    """The target of links."""
    title: str
    about: str
    """How to read it."""
    leads: tuple[str, ...]
    charts: tuple[Chart, ...]
    grids: tuple[Grid, ...]
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
