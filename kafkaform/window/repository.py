"""The page of a repository: its folders with their owners, clusters, last runs, drift and dangers,
as far as states, logs and saved plans tell. Each folder has the pages of a window of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from ..core.errors import KafkaformError
from ..core.finding import Level
from ..core.text.quantity import render_count
from ..state.model import State
from ..workflow.configuration.repository import Cluster, Repository, RepositoryFolder
from ..workflow.configuration.repository_file import read_repository
from ..workflow.configuration.repository_folders import list_folders
from ..workflow.history import RunSummary, list_recent_runs
from ..workflow.stores import open_listed_store
from .page import (
    Cell,
    CellRow,
    Trail,
    WindowPage,
    WindowSection,
    WindowTable,
    cut_rows,
    make_id,
    make_pager,
    render_moment,
)
from .plans import NewestPlan, count_findings, find_newest
from .sources import Query, Sources, read_number

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
        """How many dangers that plan has; None: no plan."""
        newest = None if self.newest is None else self.newest.plan
        return None if newest is None else count_findings(newest.plan, Level.DANGER)


def make_page(sources: Sources, query: Query) -> WindowPage:
    """Read and show it. Raises UsageError, ConfigurationError for faults in its file."""
    repository = _read(sources)
    folders = list_folders(repository)
    row_slice = cut_rows(len(folders), read_number(query, "first"))
    entries = [read_entry(sources, repository, folder) for folder in folders[row_slice]]
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
    return Sources(path, store, sources.fleet_root, sources.inputs, trail=trail)


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
