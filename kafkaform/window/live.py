"""Who uses things now: what looks at live systems show, if the window was started with `--live`.

A page shows the answer that is kept and asks nobody. Only the button of its form does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from ..core.resource import Identity
from ..core.text.display import Cells, Grid, Prose
from ..core.text.quantity import render_span
from ..state.model import State
from ..workflow.live_looks import KEPT_SECONDS, LiveLooks, LookAnswer, Subject
from .page import Cell, CellRow, Form, WindowPage, WindowSection, WindowTable, make_id, make_table
from .related import TOPIC
from .sources import Query, Sources, list_instances, read_rules

NOW = "now"
"""The id of the section on the page of an object."""
DISKS = "disks"
_OFFLINE = (
    "The window was started without --live, so it asks no cluster. `kafkaform serve --live` looks "
    "who uses a topic now when you ask for it."
)
_KEPT = f"Answers are shown for {render_span(int(KEPT_SECONDS))}. Nothing is asked by itself."


def make_object_sections(
    sources: Sources, state: State | None, identity: Identity
) -> Iterator[WindowSection]:
    """The section of an object that can be looked at."""
    if state is None or identity not in state.objects:
        return
    if sources.live is None:
        if identity.kind == TOPIC:
            yield WindowSection(NOW, "Now", (_OFFLINE,))
        return
    lead = sources.live.find_lead(identity.kind, identity.instance)
    if lead:
        path = f"objects/{make_id(str(identity))}"
        subject = _make_subject(sources, state, identity.instance, identity)
        yield _make_section(sources.live, subject, NOW, "Now", lead, path)


def make_disks_page(sources: Sources, query: Query) -> WindowPage:
    """The disks of each system that the state or the configuration names."""
    assert sources.live is not None  # the menu of another window has no such page
    state, rules = sources.open_store().backend.load().state, read_rules(sources)
    sections = tuple(
        _make_section(
            sources.live,
            _make_subject(sources, state, instance),
            make_id(instance),
            instance,
            lead,
            f"{DISKS}/{make_id(instance)}",
        )
        for instance in list_instances(state, rules.blocks)
        if (lead := sources.live.find_lead("", instance))
    )
    if not sections:
        text = rules.fault or "Neither the state nor the configuration names a cluster."
        sections = (WindowSection(DISKS, "Disks", (text,)),)
    return WindowPage(DISKS, "Disks", "What the brokers say when you ask.", sections)


def find_object_subject(sources: Sources, id: str) -> tuple[Subject, str] | None:
    """What the form of an object's page asks about, and the place that shows the answer."""
    state = sources.open_store().backend.load().state
    for identity in state.objects if state else ():
        if make_id(str(identity)) == id and sources.live is not None:
            if not sources.live.find_lead(identity.kind, identity.instance):
                return None
            subject = _make_subject(sources, state, identity.instance, identity)
            return subject, f"objects/{id}#{NOW}"
    return None


def find_disks_subject(sources: Sources, id: str) -> tuple[Subject, str] | None:
    """The same of a system on the page of disks."""
    state = sources.open_store().backend.load().state
    for instance in list_instances(state, read_rules(sources).blocks):
        if make_id(instance) == id:
            return _make_subject(sources, state, instance), f"{DISKS}#{id}"
    return None


def _make_subject(
    sources: Sources, state: State | None, instance: str, identity: Identity | None = None
) -> Subject:
    scope = str(state.providers.get(instance, "")) if state else ""
    kind, key = (identity.kind, identity.key) if identity else ("", "")
    return Subject(sources.folder, instance, kind, key, scope)


def _make_section(
    live: LiveLooks, subject: Subject, id: str, title: str, lead: str, path: str
) -> WindowSection:
    """path: of the form."""
    answer = live.find_answer(subject)
    texts, warning, button = [lead], "", "Look now"
    tables: list[WindowTable] = []
    if live.is_running(subject):
        texts.append("A look is under way. Load the page again to see what it has seen.")
    elif answer is None:
        texts.append(_KEPT)
    else:
        button, warning = "Look again", answer.fault
        sentences, tables = _split_page(answer.page)
        texts += [_render_age(answer), *sentences]
    form = Form(path, title, (), button, method="post")
    return WindowSection(id, title, tuple(texts), warning=warning, form=form, tables=tuple(tables))


def _render_age(answer: LookAnswer) -> str:
    time = datetime.fromtimestamp(answer.time, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return f"Asked at {time}, {render_span(answer.age)} ago."


def _split_page(page: Sequence[str | Grid | Prose]) -> tuple[list[str], list[WindowTable]]:
    """The sentences and the tables. A line before a table is its caption."""
    texts: list[str] = []
    tables: list[WindowTable] = []
    previous: str | Grid | Prose = ""
    for item in page:
        if isinstance(item, Grid):
            caption = item.caption
            if not caption and isinstance(previous, str) and previous:
                caption = texts.pop()
            head, *rows = item.rows
            tables.append(make_table(caption, head, [_make_cells(item, row) for row in rows]))
        else:
            texts.append(item.text if isinstance(item, Prose) else item)
        previous = item
    return texts, tables


def _make_cells(grid: Grid, row: Cells) -> CellRow:
    return tuple(
        Cell(text, style="number" if column in grid.right else "")
        for column, text in enumerate(row)
    )
