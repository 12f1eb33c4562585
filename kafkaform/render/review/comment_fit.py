"""Fit a comment into the limit of a forge: names before values, danger before everything else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from markupsafe import Markup
from msgspec import Struct

from ...core.change import Change
from ...core.resource import Identity
from ..plan_view import PlanView
from ..text import render_count
from .comment_rows import ROW_NAMES, CommentTable, Item, list_names

LEAST = 200
"""Characters: where less is left of a section's room, hardly any piece fits."""
URGENT_SHARE = 0.6
"""The part of the room that rows of urgent tables can take from the names of all other changes."""
MARGIN = 400
"""Characters: a name is longer where the one before it got a row."""
FOLD = 20
"""Rows of a list; a longer one is folded."""


class Shortened(Markup):
    """A piece of the comment from which lines were left out."""


class Section(Struct, frozen=True):
    """A section before it is cut to fit."""

    name: str
    title: str
    head: str
    """The head of a table, or nothing."""
    pieces: Callable[[], Iterator[Markup]]
    """Renders the pieces one by one, so that those without room are never rendered."""
    weights: tuple[int, ...]
    """How many each piece counts."""
    more: str
    """What the tail counts: `change` in `… and 12 more changes`."""
    share: float
    """The part of the remaining room that the section can take at most."""
    before: str = ""
    """What the first line says before the number of missing pieces: `the details of `."""


class Filled(Struct, frozen=True):
    """A section as the template shows it."""

    title: str
    head: Markup
    pieces: tuple[Markup, ...]
    names: Markup = Markup()
    """The names of objects that got no row."""
    tail: str = ""
    """How many pieces did not fit: `… and 12 more changes`, or nothing."""
    omitted: str = ""
    """The same for the first line: `details of 12 changes`."""
    folded: bool = False

    @property
    def size(self) -> int:
        return sum(len(piece) + 1 for piece in self.pieces) + len(self.names)


T = TypeVar("T")


def make_section(
    name: str,
    title: str,
    items: Sequence[T],
    row: Callable[[T], Markup],
    remainder: str,
    head: str = "",
    share: float = 1.0,
    before: str = "",
    weights: tuple[int, ...] = (),
) -> Section:
    weights = weights or (1,) * len(items)
    title = f"{title} ({sum(weights):,})" if title else ""
    return Section(name, title, head, lambda: map(row, items), weights, remainder, share, before)


def fill_sections(sections: Iterable[Section], room: int) -> dict[str, Filled]:
    """The sections that have content, cut to fit. room: characters for all of them together."""
    filled = {}
    for section in sections:
        if not section.weights:
            continue
        pieces = dict(_keep_pieces(section, int(max(room, 0) * section.share)))
        hidden_weight = sum(section.weights) - sum(section.weights[index] for index in pieces)
        tail = (
            f"… and {render_count(hidden_weight, 'more ' + section.more)}" if hidden_weight else ""
        )
        omitted = (
            f"{section.before}{render_count(hidden_weight, section.more)}" if hidden_weight else ""
        )
        filled[section.name] = Filled(
            section.title, Markup(section.head), tuple(pieces.values()), tail=tail, omitted=omitted
        )
        room -= filled[section.name].size
    return filled


def _keep_pieces(section: Section, allowed: int) -> Iterator[tuple[int, Markup]]:
    """The pieces that fit, with their places."""
    for index, piece in enumerate(section.pieces()):
        if allowed < LEAST:
            return
        # A shorter piece can still fit.
        if len(piece) < allowed:
            allowed -= len(piece) + 1
            yield index, piece


class Fit(Struct, frozen=True):
    """The tables as they fit."""

    filled: dict[str, Filled]
    named: frozenset[Identity]
    """The objects that the comment names."""
    bare: frozenset[Identity]
    """Those of them that no row says anything about."""


def fit_tables(tables: Sequence[CommentTable], view: PlanView, room: int) -> Fit:
    """The tables, cut to fit. tables: the dangerous ones first.

    Rows are given up before names, and nothing is named after the first name without room.
    """
    chosen = _choose_rows(tables, view, room)
    room -= sum(len(item.row) + 1 for has_row, _, item in chosen if has_row)
    filled: dict[str, Filled] = {}
    named: set[Identity] = set()
    explained: set[Identity] = set()
    for table in tables:
        own = [(has_row, item) for has_row, at, item in chosen if at is table]
        rows = [item.row for has_row, item in own if has_row]
        hidden_changes: list[Change] = []
        for has_row, item in own:
            inside = ROW_NAMES if has_row else 0
            named.update(change.identity for change in item.changes[:inside])
            explained.update(change.identity for change in item.changes if has_row or item.plain)
            hidden_changes += item.changes[inside:]
        names, room = _fit_names(hidden_changes, view, room)
        named.update(change.identity for change, _ in zip(hidden_changes, names, strict=False))
        if table.items:
            filled[table.name] = _fill_table(table, rows, names, len(hidden_changes) - len(names))
    return Fit(filled, frozenset(named), frozenset(named - explained))


def _fit_names(changes: Sequence[Change], view: PlanView, room: int) -> tuple[list[Markup], int]:
    """As many names as there is room for, and the room that is left; below 0 if a name is cut."""
    names = []
    for name in list_names(changes, view):
        room -= len(name) + 2
        if room < 0:
            break
        names.append(name)
    return names, room


def _choose_rows(
    tables: Sequence[CommentTable], view: PlanView, room: int
) -> list[tuple[bool, CommentTable, Item]]:
    """All items, and whether they get their rows."""
    candidates = [
        (table, item, sizes) for table in tables for item, sizes in _measure_names(table, view)
    ]
    spare = room - MARGIN - sum(sum(sizes) for _, _, sizes in candidates)
    share = int(room * URGENT_SHARE)
    # What a row takes beyond the names that it saves.
    extra = [len(item.row) + 1 - sum(sizes[:ROW_NAMES]) for _, item, sizes in candidates]
    chosen = set()
    for index in sorted(
        range(len(candidates)), key=lambda at: _rank_row(*candidates[at][:2], extra[at])
    ):
        table, item, _ = candidates[index]
        size = len(item.row) + 1
        if extra[index] <= spare or (table.urgent and size <= share):
            chosen.add(index)
            spare -= extra[index]
            share -= size
    return [(index in chosen, table, item) for index, (table, item, _) in enumerate(candidates)]


def _rank_row(table: CommentTable, item: Item, extra: int) -> tuple[int, float]:
    """Who gets a row first: what is dangerous, then what says most about many in little room."""
    if table.urgent:
        return 0, 0
    several = len(item.changes) > 1
    rank = 1 if several else 2 if table.head else 4 if item.plain else 3
    return rank, extra / len(item.changes)


def _measure_names(table: CommentTable, view: PlanView) -> Iterator[tuple[Item, list[int]]]:
    """Each item with the room that the names of its objects take."""
    names = list_names((change for item in table.items for change in item.changes), view)
    for item in table.items:
        yield item, [len(next(names)) + 2 for _ in item.changes]


def _fill_table(
    table: CommentTable, rows: list[Markup], names: list[Markup], hidden_count: int
) -> Filled:
    return Filled(
        table.title,
        Markup(table.head if rows else ""),
        tuple(rows),
        Markup(", ").join(names),
        f"… and {render_count(hidden_count, 'more change')}" if hidden_count else "",
        folded=not table.head and len(rows) > FOLD,
    )
