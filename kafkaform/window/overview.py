"""The overviews: of a folder, with what is recorded, what was done last and what earlier runs left
open, and of a repository, with its folders.

The page of a repository has the owners, clusters, last runs, drift and dangers of its folders, as
far as states, logs and saved plans tell. Each folder has the pages of a window of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

from msgspec import Struct

from ..audit.index import LoggedRun, LogIndex, list_pending
from ..core.errors import KafkaformError
from ..core.finding import Level
from ..core.parallel import map_parallel
from ..core.text import render_count
from ..state.model import State
from ..workflow.configuration.repository import Cluster, Repository, RepositoryFolder
from ..workflow.configuration.repository_file import read_repository
from ..workflow.configuration.repository_folders import list_folders
from ..workflow.history import RunSummary, list_recent_runs
from ..workflow.stores import STORES_AT_ONCE, open_listed_store
from ..workflow.workspace import read_log
from .page import (
    Cell,
    CellRow,
    Trail,
    WindowPage,
    WindowSection,
    WindowTable,
    cut_rows,
    link_object,
    make_id,
    make_link,
    make_pager,
    render_moment,
)
from .plans import NewestPlan, SavedPlan, count_objects, find_newest, list_saved
from .sources import Query, Sources, read_number


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
            for name, id in sorted(state.providers.items())
        ),
    )
    tables = (_count_objects(state),) if state.objects else ()
    links = (_link_plans(data.saved), Cell("All objects", "objects"))
    return WindowSection("state", "State", facts=facts, tables=tables, links=links)


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


FOLDERS = "folders"
"""The first part of the paths of the folders' pages."""
_REACHED = ("bootstrap_servers", "url")
"""The arguments of a cluster that say where it is."""


class FolderEntry(Struct, frozen=True):
    """What is known about a folder without asking a system."""

    folder: RepositoryFolder
    state: State | None = None
    """None: nothing was applied yet, or it cannot be read."""
    last: RunSummary | None = None
    """The newest run that sent something."""
    newest: NewestPlan | None = None
    fault: str = ""
    """Why the folder, its state or its log cannot be used."""

    @property
    def drift(self) -> int | None:
        """How many objects others had changed when the newest plan was made; None: no plan."""
        newest = None if self.newest is None else self.newest.plan
        return None if newest is None else len(newest.plan.drifted)

    @property
    def dangers(self) -> int | None:
        """How many objects of that plan have dangers; None: no plan."""
        newest = None if self.newest is None else self.newest.plan
        return None if newest is None else count_objects(newest.plan, Level.DANGER)


def make_repository_page(sources: Sources, query: Query) -> WindowPage:
    """Read and show it. Raises UsageError, ConfigurationError for faults in its file."""
    repository = _read(sources)
    folders = list_folders(repository)
    row_slice = cut_rows(len(folders), read_number(query, "first"))
    entries = map_parallel(
        partial(read_entry, sources, repository), folders[row_slice], STORES_AT_ONCE
    )
    return show_repository(repository, folders, entries, row_slice)


def _read(sources: Sources) -> Repository:
    assert sources.repository is not None  # only then are these pages asked for
    return read_repository(sources.repository)


def open_folder(sources: Sources, id: str, root: str) -> Sources | None:
    """What the pages of a folder read; None if no folder that can be used has this id. root: the
    path of the repository's page."""
    repository = _read(sources)
    for folder in list_folders(repository):
        if make_id(folder.path) == id and not folder.faults:
            return _make_sources(sources, repository, folder, root)
    return None


def _make_sources(
    sources: Sources, repository: Repository, folder: RepositoryFolder, root: str
) -> Sources:
    path = repository.path / folder.path
    trail = Trail(repository.name, root, folder.path)
    store = open_listed_store(path, folder)
    return Sources(path, store, sources.fleet_root, sources.inputs, live=sources.live, trail=trail)


def read_entry(sources: Sources, repository: Repository, folder: RepositoryFolder) -> FolderEntry:
    """What is known about a folder; with its fault if that cannot be read."""
    if folder.faults:
        fault = folder.faults[0]
        return FolderEntry(folder, fault=f"{fault.summary} ({fault.range}). {fault.advice}")
    try:
        own = _make_sources(sources, repository, folder, "")
        state = own.store.backend.load().state
        last = next(iter(list_recent_runs(own.store, 1)[0]), None)
    except KafkaformError as error:
        return FolderEntry(folder, fault=f"{error.message}. {error.advice}")
    newest = find_newest(own)
    return FolderEntry(folder, state, last, newest, "; ".join(newest.faults))


# ── the page ────────────────────────────────────────────────────────────────────────────


def show_repository(
    repository: Repository,
    folders: Sequence[RepositoryFolder],
    entries: Sequence[FolderEntry],
    row_slice: slice,
) -> WindowPage:
    """The page. folders: all of them; entries: those of the rows in the slice."""
    facts = [
        ("File", Cell(str(repository.path / repository.file), style="code")),
        ("Folders", Cell(f"{len(folders):,}")),
    ]
    if repository.owner:
        facts.append(("Who can change the file", Cell(repository.owner)))
    if len(entries) == len(folders):
        facts += _sum_up(entries)
    faulty = [entry for entry in entries if entry.fault]
    sections = [_show_faults(faulty)] if faulty else []
    lead = (
        "Drift and dangers are those of the newest plan that is saved in the folder or recorded in "
        "its log. What was done since, and plans that are saved elsewhere, are not known here.",
    )
    rows = tuple(_make_row(entry) for entry in entries)
    columns = (
        *("Folder", "Owner", "Clusters", "Objects", "Last apply", "Result"),
        *("Newest plan", "Drift", "Dangers"),
    )
    pager = make_pager("", row_slice, len(folders))
    tables = (WindowTable("By path", columns, rows, len(folders), pager),) if rows else ()
    if not rows:
        lead = ("No folder that a folders block matches has a configuration.",)
    listing = WindowSection("folders", "Folders", lead, facts=tuple(facts), tables=tables)
    sections.append(listing)
    if repository.clusters:
        sections.append(_show_clusters(repository, folders))
    return WindowPage("", repository.name, "A repository of many folders.", tuple(sections))


def _sum_up(entries: Sequence[FolderEntry]) -> Iterator[tuple[str, Cell]]:
    for name, style, numbers in (
        ("Objects that others changed", "warn", [entry.drift or 0 for entry in entries]),
        ("Dangers in plans", "bad", [entry.dangers or 0 for entry in entries]),
    ):
        count = sum(1 for number in numbers if number)
        text = f"{sum(numbers):,} in {render_count(count, 'folder')}" if count else "none known"
        yield name, Cell(text, style=style if count else "good")


def _show_faults(entries: Sequence[FolderEntry]) -> WindowSection:
    rows = tuple((_link_folder(entry), Cell(entry.fault)) for entry in entries)
    table = WindowTable("What cannot be read", ("Folder", "Why"), rows, len(rows))
    lead = ("The other folders are shown as usual.",)
    return WindowSection("faults", "Faults", lead, tables=(table,))


def _link_folder(entry: FolderEntry) -> Cell:
    path = entry.folder.path
    return Cell(path, "" if entry.folder.faults else _make_path(entry.folder))


def _make_path(folder: RepositoryFolder, page: str = "") -> str:
    return f"{FOLDERS}/{make_id(folder.path)}/{page}"


def _make_row(entry: FolderEntry) -> CellRow:
    folder, state = entry.folder, entry.state
    clusters = dict.fromkeys(cluster.name for cluster in folder.uses.values())
    objects = "" if state is None else f"{len(state.objects):,}"
    return (
        _link_folder(entry),
        Cell(folder.owner or ""),
        Cell(", ".join(clusters)),
        Cell(objects, _make_path(folder, "objects") if objects else "", "number"),
        *_show_last(entry),
        *_show_newest(entry),
    )


def _show_last(entry: FolderEntry) -> tuple[Cell, Cell]:
    if entry.last is None:
        unread = entry.fault and entry.newest is None
        return Cell(""), Cell("cannot be read", style="bad") if unread else Cell("never applied")
    facts = entry.last.facts
    run = Cell(render_moment(facts.time), _make_path(entry.folder, f"log/{make_id(facts.run)}"))
    if entry.last.complete:
        return run, Cell("complete", style="good")
    return run, Cell("no end" if entry.last.complete is None else "not complete", style="warn")


def _show_newest(entry: FolderEntry) -> tuple[Cell, Cell, Cell]:
    newest = None if entry.newest is None else entry.newest.plan
    if newest is None:
        return Cell(""), Cell(""), Cell("")
    moment = render_moment(newest.plan.created) or newest.title
    return (
        Cell(moment, _make_path(entry.folder, newest.link)),
        Cell(f"{entry.drift:,}", style="warn" if entry.drift else ""),
        Cell(f"{entry.dangers:,}", style="bad" if entry.dangers else ""),
    )


def _show_clusters(repository: Repository, folders: Sequence[RepositoryFolder]) -> WindowSection:
    columns = ("Cluster", "Provider", "Address", "Folders that use it")
    rows = tuple(
        (
            Cell(name),
            Cell(cluster.provider),
            Cell(_render_address(cluster), style="code"),
            Cell(f"{sum(cluster in f.uses.values() for f in folders):,}", style="number"),
        )
        for name, cluster in sorted(repository.clusters.items())
    )
    table = WindowTable("Of the file", columns, rows, len(rows))
    return WindowSection("clusters", "Clusters", tables=(table,))


def _render_address(cluster: Cluster) -> str:
    values = (cluster.arguments.get(name) for name in _REACHED)
    return "; ".join(v if isinstance(v, str) else ", ".join(map(str, v)) for v in values if v)
