"""Render the plans of many folders as one HTML page that loads nothing: a table of the folders, a
search over all of them, then a part for each folder."""

from __future__ import annotations

from msgspec import Struct, structs

from ...html.document import render_document
from ...version import VERSION
from ..folders import FolderRow, FoldersSummary, render_folder_counts
from .html_page import NAMED, PagePart, list_choices, make_pages, make_part


class FolderPart(Struct, frozen=True):
    """The part of one folder."""

    id: str
    """The anchor, unique on the page."""
    row: FolderRow
    shown: PagePart


def render_folders_html(summary: FoldersSummary, *, command: str = "") -> str:
    """The page. The same plans give the same bytes. command: applies exactly these plans."""
    parts = [
        FolderPart(f"folder-{number}", row, make_part(row.view, f"folder-{number}-"))
        for number, row in enumerate(summary.planned, 1)
        if row.view is not None
    ]
    words = {name: item for part in parts for name, item in part.row.review.words.items()}
    groups = [group for part in parts for group in part.shown.groups]
    return render_document(
        make_pages(words),
        "folders.html.j2",
        "plan.css.j2",
        "filter.js.j2",
        title=" ".join(render_folder_counts(summary)) or summary.name,
        unplanned=[row for row in summary.rows if row.view is None],
        parts=[{"id": p.id, "row": p.row, **structs.asdict(p.shown)} for p in parts],
        idle=len(summary.rows) - len(summary.listed),
        choices=list_choices(groups) if groups else {},
        first=NAMED,
        command=command if summary.digest else "",
        version=VERSION,
    )
