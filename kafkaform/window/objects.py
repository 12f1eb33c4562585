"""The recorded objects: a listing, and one object with its history from the log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from ..audit.chain import read_glances
from ..audit.event import Glance, Record, RecordKind
from ..core.errors import KafkaformError
from ..core.resource import Identity
from ..core.value import FrozenMap, Value
from ..render.text import render_value
from ..state.model import Row, State
from ..workflow.stores import Store
from .page import Blank, Cell, CellRow, Form, WindowPage, WindowSection, make_id, make_table
from .sources import Query, Sources, read_number
from .times import render_moment

SENSITIVE = "(sensitive)"
_ABOUT_ONE = frozenset(
    {
        *(RecordKind.OUTCOME, RecordKind.RECOVER, RecordKind.INTENT),
        *(RecordKind.OBLIGATION, RecordKind.DISCHARGED, RecordKind.STATE),
    }
)
"""Kinds of records that can be about an object."""


def make_page(sources: Sources, query: Query) -> WindowPage:
    """List the recorded objects."""
    state = sources.open_store().backend.load().state
    return show_objects(state, query.get("q", ""), read_number(query, "first"))


def show_objects(state: State | None, search: str = "", first: int = 0) -> WindowPage:
    """The listing. search: words that must all occur in a row."""
    words = search.casefold().split()
    rows = sorted(state.objects.items()) if state else []
    found = [row for _, row in rows if _fits(row, words)]
    columns = ("Object", "Kind", "Provider", "Addresses", "Protected", "Owner")
    form = Form("objects", "Search", (Blank("q", "Search", search, "words of a name"),), "Search")
    cells = [_make_row(row) for row in found]
    table = make_table("Recorded objects", columns, cells, first, "objects", q=search)
    lead = () if rows else ("The state is empty.",)
    section = WindowSection("objects", "Objects", lead, form=form, tables=(table,))
    return WindowPage("objects", "Objects", "What the state records.", (section,))


def _fits(row: Row, words: Sequence[str]) -> bool:
    one = row.identity
    text = " ".join((one.instance, one.kind, one.key, *row.owners, row.owner or "")).casefold()
    return all(word in text for word in words)


def _make_row(row: Row) -> CellRow:
    return (
        Cell(row.identity.key, f"objects/{make_id(str(row.identity))}"),
        Cell(row.identity.kind, style="code"),
        Cell(row.identity.instance),
        Cell(", ".join(row.owners), style="code"),
        Cell("" if row.protected == "no" else row.protected),
        Cell(row.owner or ""),
    )


# ── one object ──────────────────────────────────────────────────────────────────────────


class ObjectStory(Struct, frozen=True):
    """One object."""

    identity: Identity
    row: Row | None
    """None if the state does not have it any more."""
    entries: tuple[Record, ...]
    """The records about it, in order."""
    fault: str
    """Why the log cannot be trusted after its last sound record."""


def make_object_page(sources: Sources, id: str, query: Query) -> WindowPage | None:
    """The page of an object that the state or the log knows; None if neither does."""
    found = read_story(sources.open_store(), id)
    return None if found is None else show_object(found, id, read_number(query, "first"))


def read_story(store: Store, id: str) -> ObjectStory | None:
    """What state and log have of the object with this id."""
    state = store.backend.load().state
    rows = state.objects.values() if state else ()
    row = next((row for row in rows if make_id(str(row.identity)) == id), None)
    identity, entries, fault = row.identity if row else None, [], ""
    ids: dict[Identity, bool] = {}
    try:
        for glance in read_glances(store.sink.lines(), store.sink.location):
            for one in _list_identities(glance):
                if one not in ids:
                    ids[one] = make_id(str(one)) == id
                if ids[one]:
                    identity = one
                    entries.append(glance.read_whole())
            # Almost all records are about other objects, so what was parsed of them is dropped.
            glance.forget()
    except KafkaformError as error:
        fault = f"{error.message}. {error.advice}"
    return ObjectStory(identity, row, tuple(entries), fault) if identity else None


def _list_identities(glance: Glance) -> Iterator[Identity]:
    if glance.kind not in _ABOUT_ONE:
        return
    body = glance.body
    for item in body.get("objects", ()) if glance.kind == RecordKind.STATE else (body,):
        # A seal of a torn append is about no object.
        if {"instance", "kind", "key"} <= item.keys():
            yield Identity(item["instance"], item["kind"], item["key"])


def show_object(found: ObjectStory, id: str, first: int = 0) -> WindowPage:
    """The page of an object."""
    identity, row = found.identity, found.row
    about = f"{identity.kind} on {identity.instance}"
    sections = [_show_row(row) if row else _GONE]
    rows = [_make_entry(record) for record in reversed(found.entries)]
    columns = ("Record", "Time", "Kind", "By", "Run", "What", "Values")
    table = make_table("Records, the newest first", columns, rows, first, f"objects/{id}")
    lead = () if rows else ("The audit log has no record about it.",)
    sections.append(WindowSection("history", "History", lead, warning=found.fault, tables=(table,)))
    return WindowPage("objects", identity.key, about, tuple(sections))


_GONE = WindowSection("state", "State", ("The state does not record this object any more.",))


def _show_row(row: Row) -> WindowSection:
    facts = [
        ("Addresses", Cell(", ".join(row.owners), style="code")),
        ("Id", Cell(row.incarnation or "–", style="code")),
        ("Protected", Cell(row.protected)),
        ("Owner", Cell(row.owner or "–")),
        ("Owned since record", Cell(f"{row.origin:,}")),
    ]
    if row.labels:
        facts.append(("Labels", Cell(render_value(row.labels))))
    values = [
        (Cell(name, style="code"), Cell(text, style="code"))
        for name, text in _list_values(row.attributes)
    ]
    table = make_table("Recorded attributes", ("Attribute", "Value"), values)
    return WindowSection("state", "State", facts=tuple(facts), tables=(table,))


def _list_values(attributes: Mapping[str, Value]) -> Iterator[tuple[str, str]]:
    for name, item in sorted(attributes.items()):
        if isinstance(item, FrozenMap) and item:
            yield from ((f"{name}.{key}", render_value(one)) for key, one in sorted(item.items()))
        else:
            yield name, render_value(item)


def _make_entry(record: Record) -> CellRow:
    body = record.body
    words = [body.get("action"), body.get("outcome"), body.get("what"), body.get("reason")]
    if body.get("error"):
        words.append(body["error"]["message"])
    return (
        Cell(f"{record.seq:,}", style="number"),
        Cell(render_moment(record.time)),
        Cell(record.kind, style="code"),
        Cell(record.actor),
        Cell(record.run, f"log/{make_id(record.run)}"),
        Cell(": ".join(str(word) for word in words if word)),
        Cell("; ".join(_list_changes(body)), style="code"),
    )


def _list_changes(body: FrozenMap) -> Iterator[str]:
    for one in body.get("paths", ()):
        if one["sensitive"]:
            yield f"{one['path']} = {SENSITIVE}"
        else:
            yield f"{one['path']}: {render_value(one['before'])} → {render_value(one['after'])}"
