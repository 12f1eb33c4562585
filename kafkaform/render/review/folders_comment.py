"""Render the plans of many folders as one review comment: a table of the folders with links, what
is dangerous or blocked in all of them, then a section for each folder.

What does not fit under the limit is counted in the first line: first the details of large sections,
then sections of folders without dangers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from markupsafe import Markup

from ..folders import FolderRow, FoldersSummary, render_totals
from ..text import inline, render_count
from .comment import LIMIT, Filled, Section, fill_sections, make_section, render_markdown
from .comment_rows import make_tables, render_cell, render_code, render_fence, render_prose

_HEAD = "| Folder | Owner | + | ~ | − | Dangers | |\n|---|---|--:|--:|--:|--:|---|"
_DRIFT_HEAD = "| Folder | Owner | Drift | Dangers | |\n|---|---|--:|--:|---|"
_URGENT = {
    "blocked": ("Blocked", "| Folder | Object | Why | Fix |\n|---|---|---|---|"),
    "dangers": (
        "Dangers",
        "| Folder | Danger | Object | Change | What could happen |\n|---|---|---|---|---|",
    ),
}
"""Tables of each plan whose rows stand before the sections, too: their titles and heads here."""
LEAST_SECTION = 1_500
"""Characters of a shortened section; a section that gets fewer is left out."""
_FRONT = 0.6
"""The part of the limit that the tables before the sections can take."""
_FIRST_LINES = 1_200
"""Characters reserved for the first line of a shortened comment, and for what closes it."""
_FEW = 10
"""How many left out sections are named."""


def render_folders_markdown(
    summary: FoldersSummary, *, command: str = "", whole: str = "", limit: int = LIMIT
) -> str:
    """The comment, at most `limit` characters.

    command: applies exactly these plans; whole: a file that has all of them, for comments that have
    not.
    """
    anchors = {row.review.path: f"folder-{n}" for n, row in enumerate(summary.listed, 1)}
    front = fill_sections(_list_sections(summary, anchors), int(limit * _FRONT))
    last = _render_last(summary, command)
    head = [f"## kafkaform plan of {_render_title(summary)}", *map(_render_filled, front.values())]
    room = limit - sum(map(len, head)) - len(last) - _FIRST_LINES
    sections = _fit_sections(summary.planned, anchors, room)
    cut = _render_cut(summary.planned, sections, front, whole)
    return "\n\n".join(filter(None, (cut, *head, last, *sections.values()))) + "\n"


def _render_title(summary: FoldersSummary) -> str:
    name = render_code(summary.name)
    if not summary.planned:
        return f"{name}: {'nothing' if summary.failed else 'no changes'}"
    folders = render_count(len(summary.planned), "folder")
    return f"{folders} of {name}: {render_totals(summary)}"


def _link(row: FolderRow, anchors: Mapping[str, str]) -> Markup:
    """The folder, as a link to its section if it has one."""
    name = render_cell(row.review.path)
    if row.view is None:
        return name
    # Forges put this in front of the ids of comments, so that no comment can have one of theirs.
    return Markup(f"[{name}](#user-content-{anchors[row.review.path]})")


def _list_sections(summary: FoldersSummary, anchors: Mapping[str, str]) -> Iterator[Section]:
    """What stands before the folders' own sections."""
    unplanned = [row for row in summary.rows if row.view is None]
    urgent: dict[str, list[Markup]] = {name: [] for name in _URGENT}
    for row in summary.planned:
        for table in make_tables(row.view) if row.view is not None and _is_urgent(row) else ():
            if table.name in urgent:
                link = _link(row, anchors)
                urgent[table.name] += [Markup(f"| {link} {item.row}") for item in table.items]
    rows = sorted(summary.planned, key=lambda row: not _is_urgent(row))
    render_row = partial(_render_row, anchors, summary.refresh)
    head = _DRIFT_HEAD if summary.refresh else _HEAD
    yield make_section("failed", "Not planned", unplanned, _render_failed, "folder", share=0.4)
    yield make_section("folders", "", rows, render_row, "folder", head, share=0.6)
    for name, (title, columns) in _URGENT.items():
        yield make_section(name, title, urgent[name], Markup, f"{name} row", columns, share=0.7)


def _is_urgent(row: FolderRow) -> bool:
    return bool(row.dangers or row.note)


def _render_failed(row: FolderRow) -> Markup:
    review = row.review
    verb = "is skipped" if review.skipped else "failed"
    reason = render_prose(review.skipped or review.fault)
    return Markup(f"- **{render_code(review.path)} {verb}**: {reason}")


def _render_row(anchors: Mapping[str, str], refresh: bool, row: FolderRow) -> Markup:
    counted = (row.counts.drift, row.dangers) if refresh else row.numbers
    numbers = " | ".join(f"{number:,}" if number else "·" for number in counted)
    owner = render_cell(row.review.owner) if row.review.owner else ""
    note = f"**{row.note}**" if row.note else row.extras
    return Markup(f"| {_link(row, anchors)} | {owner} | {numbers} | {note} |")


def _render_filled(section: Filled) -> str:
    title = f"**{section.title}**\n\n" if section.title else ""
    lines = [*([section.head] if section.head else []), *section.pieces]
    tail = f"\n\n{section.tail}" if section.tail else ""
    return title + "\n".join(lines) + tail


def _render_last(summary: FoldersSummary, command: str) -> str:
    idle = len(summary.rows) - len(summary.listed)
    unchanged = f"{render_count(idle, 'folder')} without changes." if idle else ""
    if not summary.digest or not command:
        return unchanged
    held_paths = [render_code(row.review.path) for row in summary.held]
    suffix = f" and {len(held_paths) - _FEW:,} more" if len(held_paths) > _FEW else ""
    without = f", and nothing of {', '.join(held_paths[:_FEW])}{suffix}" if held_paths else ""
    lines = (
        f"To apply exactly these plans{without}:",
        render_fence([inline(command)], "sh"),
        unchanged,
    )
    return "\n\n".join(filter(None, lines))


# ── the sections of folders ─────────────────────────────────────────────────────────────


def _fit_sections(
    rows: Sequence[FolderRow], anchors: Mapping[str, str], room: int
) -> dict[str, str]:
    """Path -> its section, as many as fit; those of folders with dangers first."""
    chosen = sorted(rows, key=lambda row: not row.dangers)[: max(room // LEAST_SECTION, 0)]
    # Small sections are whole, and the others share what is left.
    sections: dict[str, str] = {}
    whole = {row.review.path: _render_section(row, anchors, LIMIT) for row in chosen}
    ordered = sorted(chosen, key=lambda row: len(whole[row.review.path]))
    for number, row in enumerate(ordered):
        path, share = row.review.path, room // (len(ordered) - number)
        text = whole[path] if len(whole[path]) <= share else _render_section(row, anchors, share)
        if len(text) <= share:
            sections[path] = text
            room -= len(text) + 2
    paths = (row.review.path for row in rows)
    return {path: sections[path] for path in paths if path in sections}


def _render_section(row: FolderRow, anchors: Mapping[str, str], limit: int) -> str:
    review = row.review
    assert review.plan is not None, "a row with a section has a plan"
    anchor = f'<a id="{anchors[review.path]}"></a>\n\n'
    text = render_markdown(
        review.plan, words=review.words, name=review.path, limit=limit - len(anchor), closes=False
    )
    return anchor + text.rstrip()


def _render_cut(
    rows: Sequence[FolderRow],
    sections: Mapping[str, str],
    front: Mapping[str, Filled],
    whole: str,
) -> str:
    """What the comment leaves out, and where all of it is; empty for a whole comment."""
    missing = [row for row in rows if row.review.path not in sections]
    omitted = ", ".join(item.omitted for item in front.values() if item.omitted)
    if not missing and not omitted:
        return ""
    text = "**This comment is shortened.**"
    if missing:
        named = ", ".join(render_code(row.review.path) for row in missing[:_FEW])
        suffix = f" and {len(missing) - _FEW:,} more" if len(missing) > _FEW else ""
        grave = sum(bool(row.dangers) for row in missing)
        danger = f"{grave:,} of them have dangers" if grave else "none of them has a danger"
        text += f" It has no section for {render_count(len(missing), 'folder')}: {named}{suffix}; "
        text += f"{danger}."
    text += f" It leaves out {omitted}." if omitted else ""
    if whole:
        return f"{text} All plans are in {render_code(whole)}."
    return f"{text} Run `kafkaform plan` with the same flags to see everything."
