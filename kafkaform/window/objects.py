"""The recorded objects: a listing, and one object with its history from the log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from ..audit.history import OUTSIDE, LoggedChange, ToldChanges, tell_changes
from ..audit.records import Glance, Record, RecordKind
from ..audit.sink import read_archived, read_present
from ..core.errors import KafkaformError
from ..core.resource import Identity
from ..core.text import render_count
from ..core.value import EMPTY, FrozenMap
from ..render.text import render_value
from ..state.model import Row, State
from ..workflow.outside_changes import name_writers
from ..workflow.stores import Store
from .fleet import show_topic_use
from .page import (
    Blank,
    Cell,
    CellRow,
    Choice,
    Form,
    Types,
    WindowPage,
    WindowSection,
    describe_object,
    describe_paths,
    link_object,
    list_values,
    make_id,
    make_table,
    render_moment,
)
from .related import (
    TABLES,
    TOPIC,
    find_related,
    list_related_sections,
    make_object_sections,
    read_types,
)
from .runs import STYLES
from .sources import Query, Sources, list_instances, read_number

NO_OWNER = "(none)"
"""What the filter calls objects of no team."""
CHANGES = "changes"
"""The part of the query with the first row of the table of changes."""
_ABOUT_ONE = frozenset(
    {
        *(RecordKind.OUTCOME, RecordKind.RECOVER, RecordKind.INTENT),
        *(RecordKind.OBLIGATION, RecordKind.DISCHARGED, RecordKind.STATE),
    }
)
"""Kinds of records that can be about an object."""


class ObjectFilter(Struct, frozen=True):
    """Which objects are listed; an empty field means all."""

    q: str = ""
    """Words that must all occur in a row."""
    kind: str = ""
    provider: str = ""
    owner: str = ""
    """A team, or NO_OWNER."""
    topic: str = ""
    """The name of a topic: it, and what concerns it."""

    @property
    def filled(self) -> dict[str, str]:
        """The fields that say something, for links that keep the filter."""
        return {name: text for name in self.__struct_fields__ if (text := getattr(self, name))}


def make_page(sources: Sources, query: Query) -> WindowPage:
    """List the recorded objects."""
    state = sources.open_store().backend.load().state
    fields = {name: query.get(name, "").strip() for name in ObjectFilter.__struct_fields__}
    return show_objects(state, ObjectFilter(**fields), read_number(query, "first"))


def show_objects(
    state: State | None,
    selection: ObjectFilter = ObjectFilter(),
    first: int = 0,
) -> WindowPage:
    """The listing of these objects."""
    rows = [row for _, row in sorted(state.objects.items())] if state else []
    matches = list(_select_rows(state, rows, selection)) if state else []
    form = _make_form(rows, selection)
    total = render_count(len(rows), "recorded object")
    lead = f"{len(matches):,} of {total}." if rows else "The state is empty."
    if rows and not matches:
        lead = f"None of {total} fits the filter."
    links = (Cell("Show all objects", "objects"),) if rows and selection.filled else ()
    columns = ("Object", "Kind", "Provider", "Addresses", "Protected", "Owner")
    cells = [
        (
            link_object(row.identity),
            Cell(row.identity.kind, style="code"),
            Cell(row.identity.instance),
            Cell(", ".join(row.owners), style="code"),
            Cell("" if row.protected == "no" else row.protected),
            Cell(row.owner or ""),
        )
        for row in matches
    ]
    table = make_table("Recorded objects", columns, cells, first, "objects", **selection.filled)
    section = WindowSection(
        "objects", "Objects", (lead,), form=form, tables=(table,) if matches else (), links=links
    )
    return WindowPage("objects", "Objects", "What the state records.", (section,))


def _select_rows(state: State, rows: Sequence[Row], selection: ObjectFilter) -> Iterator[Row]:
    words, concerned = selection.q.casefold().split(), _list_concerned(state, selection.topic)
    for row in rows:
        if (
            (not selection.kind or row.identity.kind == selection.kind)
            and (not selection.provider or row.identity.instance == selection.provider)
            and (not selection.owner or (row.owner or NO_OWNER) == selection.owner)
            and (not selection.topic or row.identity in concerned)
            and (not words or _has_words(row, words))
        ):
            yield row


def _list_concerned(state: State, name: str) -> frozenset[Identity]:
    """The topics of this name in all clusters, and what concerns them."""
    if not name:
        return frozenset()
    types, concerned = read_types(state), set[Identity]()
    for instance in list_instances(state, ()):
        topic = Identity(instance, TOPIC, name)
        concerned |= {topic, *find_related(state, topic, types).identities}
    return frozenset(concerned)


def _has_words(row: Row, words: Sequence[str]) -> bool:
    identity = row.identity
    texts = (identity.instance, identity.kind, identity.key, describe_object(identity))
    text = " ".join((*texts, *row.owners, row.owner or "")).casefold()
    return all(word in text for word in words)


def _make_form(rows: Sequence[Row], selection: ObjectFilter) -> Form:
    kinds = sorted({row.identity.kind for row in rows})
    instances = sorted({row.identity.instance for row in rows})
    owners = sorted({row.owner for row in rows if row.owner})
    choices = (NO_OWNER,) if any(not row.owner for row in rows) and owners else ()
    owner = _make_choice("owner", "Owner", selection.owner, [*choices, *owners])
    provider = _make_choice("provider", "Provider", selection.provider, instances)
    fields = (
        Blank("q", "Search", selection.q, "words of a name"),
        _make_choice("kind", "Kind", selection.kind, kinds),
        *((provider,) if len(instances) > 1 or selection.provider else ()),
        *((owner,) if owners or selection.owner else ()),
        Blank("topic", "Topic", selection.topic, "all, or orders"),
    )
    return Form("objects", "Filter", fields, "Show")


def _make_choice(name: str, label: str, value: str, options: Sequence[str]) -> Choice:
    # What is asked for stays visible, even if no object has it any more.
    unlisted = {value: value} if value and value not in options else {}
    return Choice(
        name, label, value, {"": "all", **unlisted, **{option: option for option in options}}
    )


# ── one object ──────────────────────────────────────────────────────────────────────────


class ObjectStory(Struct, frozen=True):
    """One object."""

    identity: Identity
    row: Row | None
    """None if the state does not have it any more."""
    entries: tuple[Record, ...]
    """The records about it, in order."""
    reading: ToldChanges
    """What changed of it, with the runs that did it."""
    fault: str
    """Why the log cannot be trusted after its last sound record."""


def make_object_page(sources: Sources, id: str, query: Query) -> WindowPage | None:
    """The page of an object that the state or the log knows; None if neither does."""
    store = sources.open_store()
    state = store.backend.load().state
    story = read_story(store, state, id)
    if story is None:
        return None
    scopes = state.providers if state else {}
    story.reading.changes = name_writers(story.reading, scopes, sources.fleet_root)
    firsts = {name: read_number(query, name) for name in ("first", *TABLES)}
    types = read_types(state)
    sections = tuple(make_object_sections(sources, state, story.identity))
    if state:
        sections += list_related_sections(state, story.identity, types, id, firsts)
    if state and sources.fleet_root is not None and story.identity.kind == TOPIC:
        scope = str(state.providers.get(story.identity.instance, ""))
        use = show_topic_use(sources.fleet_root, scope, story.identity.key)
        sections = (*sections, use)
    return show_object(story, id, types, sections, firsts["first"], read_number(query, CHANGES))


def read_story(store: Store, state: State | None, id: str) -> ObjectStory | None:
    """What state and log have of the object with this id."""
    rows = state.objects.values() if state else ()
    row = next((row for row in rows if make_id(str(row.identity)) == id), None)
    identity, fault = row.identity if row else None, ""
    entries: list[Record] = []
    ids: dict[Identity, bool] = {}

    def is_asked(candidate: Identity) -> bool:
        if candidate not in ids:
            ids[candidate] = make_id(str(candidate)) == id
        return ids[candidate]

    def collect() -> Iterator[Glance]:
        nonlocal identity, fault
        try:
            for glance in read_present(store.sink):
                for candidate in filter(is_asked, _list_identities(glance)):
                    identity = candidate
                    entries.append(glance.read_whole())
                yield glance
        except KafkaformError as error:
            fault = f"{error.message}. {error.advice}"

    reading = tell_changes(collect(), is_asked)
    if not fault:
        reading.unread = read_archived(store.sink.sealed)
    return ObjectStory(identity, row, tuple(entries), reading, fault) if identity else None


def _list_identities(glance: Glance) -> Iterator[Identity]:
    if glance.kind not in _ABOUT_ONE:
        return
    body = glance.body
    for item in body.get("objects", ()) if glance.kind == RecordKind.STATE else (body,):
        # A seal of a torn append is about no object.
        if {"instance", "kind", "key"} <= item.keys():
            yield Identity(item["instance"], item["kind"], item["key"])


def show_object(
    story: ObjectStory,
    id: str,
    types: Types = EMPTY,
    related: Sequence[WindowSection] = (),
    first: int = 0,
    first_change: int = 0,
) -> WindowPage:
    """The page of an object. related: what it works with, and what works with it."""
    identity, row = story.identity, story.row
    summary = f"{identity.kind} on {identity.instance}"
    rows = [_make_entry(record, types) for record in reversed(story.entries)]
    columns = ("Record", "Time", "Kind", "By", "Run", "What", "Values")
    table = make_table("Records, the newest first", columns, rows, first, f"objects/{id}")
    lead = () if rows else ("The audit log has no record about it.",)
    lead = tuple(filter(None, (*lead, story.reading.unread.sentence)))
    changes = [_make_change_row(c, story.reading, types) for c in reversed(story.reading.changes)]
    heads = ("Time", "By", "Run", "Commit", "What", "Values", "Outcome")
    path = f"objects/{id}"
    change_table = make_table(
        "Changes, the newest first", heads, changes, first_change, path, CHANGES
    )
    tables = (change_table, table) if changes else (table,)
    history = WindowSection("history", "History", lead, warning=story.fault, tables=tables)
    state = _show_row(row, types) if row else _GONE
    return WindowPage("objects", describe_object(identity), summary, (state, *related, history))


_GONE = WindowSection("state", "State", ("The state does not record this object any more.",))


def _show_row(row: Row, types: Types) -> WindowSection:
    facts = [
        ("Addresses", Cell(", ".join(row.owners), style="code")),
        ("Id", Cell(row.incarnation or "–", style="code")),
        ("Protected", Cell(row.protected)),
        ("Owner", Cell(row.owner or "–")),
        ("Managed since record", Cell(f"{row.origin:,}")),
    ]
    if row.labels:
        facts.append(("Labels", Cell(render_value(row.labels))))
    values = [
        (Cell(name, style="code"), Cell(text, style="code"))
        for name, text in list_values(row, types)
    ]
    table = make_table("Recorded attributes", ("Attribute", "Value"), values)
    return WindowSection("state", "State", facts=tuple(facts), tables=(table,))


def _make_change_row(change: LoggedChange, reading: ToldChanges, types: Types) -> CellRow:
    """One change; of one from outside, the two looks that enclose it."""
    facts = reading.runs.get(change.run or "")
    request = facts.pull_request if facts else None
    commit = [((facts.commit if facts else "") or "")[:9], f"#{request}" if request else ""]
    time, run = render_moment(change.time), change.run
    values = [
        {"path": v.path, "before": v.before, "after": v.after, "sensitive": v.sensitive}
        for v in change.values
    ]
    outcome = "seen" if change.action == OUTSIDE else change.outcome
    return (
        Cell(f"{render_moment(change.since)} – {time}" if change.since else time),
        Cell(change.actor or "unknown"),
        Cell(run, f"log/{make_id(run)}") if run else Cell("–"),
        Cell(" ".join(filter(None, commit)), style="code"),
        Cell(f"undo of {facts.undoes}" if facts and facts.undoes else change.action),
        Cell(
            "; ".join(describe_paths(change.identity.kind, change.action, values, types)),
            style="code",
        ),
        Cell(outcome, style=STYLES.get(outcome, "")),
    )


def _make_entry(record: Record, types: Types) -> CellRow:
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
        Cell("; ".join(_describe_values(body, types)), style="code"),
    )


def _describe_values(body: FrozenMap, types: Types) -> tuple[str, ...]:
    kind, action = str(body.get("kind", "")), str(body.get("action", ""))
    return describe_paths(kind, action, body.get("paths", ()), types)
