"""Path of a page -> the function that makes it.

A path names a page, and for one thing of a listing its id. Ids are looked up in listings; nothing
of a path ever becomes the name of a file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from urllib.parse import parse_qsl

from . import access, drift, fleet, log, objects, overview, plans, runs
from .page import WindowPage, render_page
from .sources import Query, Sources

_ID = re.compile(r"[0-9a-f]{20}")
FIELDS = 16
"""How many fields a query can have."""

PAGES: Mapping[str, Callable[[Sources, Query], WindowPage]] = {
    "": overview.make_page,
    "plans": plans.make_page,
    "objects": objects.make_page,
    "log": log.make_page,
    "access": access.make_page,
    "drift": drift.make_page,
    "fleet": fleet.make_page,
}
"""Path -> the page."""
ITEMS: Mapping[str, Callable[[Sources, str, Query], WindowPage | None]] = {
    "objects": objects.make_object_page,
    "log": runs.make_run_page,
    "records": log.make_records_page,
    "fleet": fleet.make_table_page,
}
"""First part of a path -> the page of one thing, from its id; None if there is no such thing."""
DOCUMENTS: Mapping[str, Callable[[Sources, str, str], str | None]] = {
    "plans": plans.render_saved,
    "recorded": log.render_recorded,
    "report": fleet.render_report,
}
"""First part of a path -> the page of one thing that is rendered elsewhere, from its id and the
root; None if there is no such thing."""


def find_page(sources: Sources, path: str, query: str, root: str) -> str | None:
    """The page of a path as HTML, None if there is none. root: the path of the overview.

    Raises KafkaformError if it cannot be read.
    """
    name, slash, page_id = path.partition("/")
    if not slash:
        make = PAGES.get(name)
        return render_page(make(sources, _read_query(query)), root) if make else None
    if not _ID.fullmatch(page_id):
        return None
    if document := DOCUMENTS.get(name):
        return document(sources, page_id, root)
    item = ITEMS.get(name)
    page = item(sources, page_id, _read_query(query)) if item else None
    return render_page(page, root) if page else None


def _read_query(query: str) -> Query:
    try:
        return dict(parse_qsl(query, max_num_fields=FIELDS, errors="backslashreplace"))
    except ValueError:  # too many fields
        return {}
