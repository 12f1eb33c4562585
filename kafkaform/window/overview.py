"""The overview: what is recorded, what was done last, and what earlier runs left open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from ..audit.index import LoggedRun, LogIndex, list_pending
from ..core.errors import KafkaformError
from ..core.text.quantity import render_count
from ..state.model import State
from ..workflow.workspace import read_log
from .page import (
    Cell,
    WindowPage,
    WindowSection,
    WindowTable,
    link_object,
    make_id,
    make_link,
    render_moment,
)
from .plans import SavedPlan, list_saved
from .sources import Query, Sources


class Overview(Struct, frozen=True):
    """What the overview shows."""

    state_location: str
    log_location: str
    state: State | None
    log: LogIndex | None
    """None if the log cannot be trusted."""
    fault: str
    """Why it cannot."""
    saved: Sequence[SavedPlan]


def make_page(sources: Sources, query: Query) -> WindowPage:
    """Read and show it. Raises StorageError if the state cannot be read."""
    store = sources.open_store()
    state, log, fault = store.backend.load().state, None, ""
    try:
        log = read_log(store.sink, state)
    except KafkaformError as error:
        fault = f"{error.message}. {error.advice}"
    locations = (store.backend.location, store.sink.location)
    return show_overview(Overview(*locations, state, log, fault, list_saved(sources.folder)))


def show_overview(data: Overview) -> WindowPage:
    """The page of these data."""
    sections = [_show_state(data), _show_log(data)]
    if data.log is not None:
        sections.append(_show_open(data.log))
    return WindowPage("", "Overview", data.state_location, tuple(sections))


def _show_state(data: Overview) -> WindowSection:
    state = data.state
    if state is None:
        lead = ("There is no state yet: nothing was applied from here.",)
        return WindowSection("state", "State", lead, links=(_link_plans(data.saved),))
    facts = (
        ("Serial", Cell(f"{state.serial:,}")),
        ("Objects", Cell(f"{len(state.objects):,}", "objects")),
        ("Lineage", Cell(state.lineage, style="code")),
        ("Written by", Cell(f"kafkaform {state.kafkaform_version or '(unknown)'}")),
        *(
            (f"System ID of {name}", Cell(str(id), style="code"))
            for name, id in _list_systems(state)
        ),
    )
    tables = (_count_objects(state),) if state.objects else ()
    links = (_link_plans(data.saved), Cell("All objects", "objects"))
    return WindowSection("state", "State", facts=facts, tables=tables, links=links)


def _list_systems(state: State) -> list[tuple[str, object]]:
    return sorted(state.providers.items())


def _link_plans(saved: Sequence[SavedPlan]) -> Cell:
    return Cell(f"{render_count(len(saved), 'saved plan')} in this folder", "plans")


def _count_objects(state: State) -> WindowTable:
    count = Counter((identity.kind, identity.instance) for identity in state.objects)
    safe = Counter(
        (identity.kind, identity.instance)
        for identity, row in state.objects.items()
        if row.protected != "no"
    )
    rows = tuple(
        (
            Cell(kind, make_link("objects", kind=kind, provider=instance)),
            Cell(instance),
            Cell(f"{number:,}", style="number"),
            Cell(f"{safe[kind, instance]:,}", style="number"),
        )
        for (kind, instance), number in sorted(count.items())
    )
    columns = ("Kind", "Provider", "Objects", "Protected")
    return WindowTable("Recorded objects by kind", columns, rows, len(rows))


def _show_log(data: Overview) -> WindowSection:
    title, file = "Audit log", ("File", Cell(data.log_location))
    if data.log is None:
        return WindowSection("log", title, warning=data.fault, facts=(file,), links=(_LOG,))
    runs = tuple(data.log.runs.values())
    last = runs[-1] if runs else None
    facts = [file, ("Records", Cell(f"{data.log.head.seq:,}")), *_show_run(last)]
    return WindowSection("log", title, facts=tuple(facts), links=(_LOG,))


_LOG = Cell("Runs and records", "log")


def _show_run(last: LoggedRun | None) -> Sequence[tuple[str, Cell]]:
    if last is None:
        return (("Last run", Cell("none")),)
    end = Cell("complete", style="good") if last.complete else Cell("not complete", style="warn")
    return (
        ("Last run", Cell(last.run, f"log/{make_id(last.run)}")),
        ("Last record", Cell(render_moment(last.time))),
        ("Result", end),
    )


def _show_open(log: LogIndex) -> WindowSection:
    pending = list_pending(log)
    if not pending:
        return WindowSection("open", "Left open by earlier runs", ("Nothing.",))
    rows = tuple(
        (
            Cell(item.identity.kind, style="code"),
            link_object(item.identity),
            Cell(item.identity.instance),
            Cell(item.action),
            Cell(item.run, f"log/{make_id(item.run)}"),
        )
        for item in pending
    )
    columns = ("Kind", "Object", "Provider", "What", "Run")
    table = WindowTable("Open work", columns, rows, len(rows))
    lead = (
        "Requests without a recorded outcome, long work, and settings to remove. The next "
        "kafkaform apply finds out what became of them.",
    )
    return WindowSection("open", "Left open by earlier runs", lead, tables=(table,))
