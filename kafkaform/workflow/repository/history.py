"""What happened in many folders of a repository, by time: each folder has a log of its own. A
folder whose log cannot be read fails with its reason, and the others go on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from ...audit.history import LoggedChange, RunFacts
from ...core.errors import ConfigurationError, KafkaformError, UsageError
from ...core.parallel import map_parallel
from ...core.value import EMPTY
from ..configuration.repository import Repository, RepositoryFolder
from ..history import (
    ALWAYS,
    FORMAT_VERSION,
    NAMES,
    ChangeFilter,
    Period,
    find_history,
    make_change_document,
    make_selection,
    read_newest,
    suggest_name,
)
from ..stores import STORES_AT_ONCE, Store, open_listed_store


class FolderChanges(Struct, frozen=True):
    """What the log of one folder tells."""

    folder: RepositoryFolder
    changes: tuple[LoggedChange, ...] = ()
    runs: Mapping[str, RunFacts] = EMPTY
    """Run id -> what it said about itself."""
    has_name: bool = False
    """Whether an object has, or had, the name that was asked for."""
    error: KafkaformError | None = None
    """Why nothing could be read."""


class FolderChange(Struct, frozen=True):
    """A change, and the folder whose log has it."""

    folder: str
    change: LoggedChange
    runs: Mapping[str, RunFacts]


class RepositoryHistory(Struct, frozen=True):
    """What happened in the folders."""

    name: str
    """What was asked for; empty: everything."""
    changes: tuple[FolderChange, ...]
    """By time, the oldest first."""
    failed: tuple[FolderChanges, ...]


def read_repository_history(
    repository: Repository,
    folders: Sequence[RepositoryFolder],
    name: str = "",
    period: Period = ALWAYS,
    path: str = "",
    last: int = 50,
) -> RepositoryHistory:
    """What happened to the objects of a name in these folders; without a name the newest changes.

    name, period, path: as for `read_history`; last: how many changes without a name. Raises
    UsageError for a name that no object of any folder had.
    """
    if name:
        make_selection(name)  # a text that is no name is a fault once, and not of each folder
    logs = map_parallel(
        lambda folder: _read_folder(repository, folder, name, period, path, last),
        folders,
        STORES_AT_ONCE,
    )
    if name and folders and not any(item.has_name or item.error for item in logs):
        hints = (suggest_name(_open_store(repository, folder), name) for folder in folders)
        raise UsageError(
            f"neither the states nor the audit logs of the folders have an object {name}",
            next(filter(None, hints), NAMES),
        )
    changes = sorted(_list_changes(logs), key=lambda item: (item.change.time, item.folder))
    failed = tuple(item for item in logs if item.error is not None)
    return RepositoryHistory(name, tuple(changes if name else changes[-last:]), failed)


def _read_folder(
    repository: Repository,
    folder: RepositoryFolder,
    name: str,
    period: Period,
    path: str,
    last: int,
) -> FolderChanges:
    try:
        if folder.faults:
            raise ConfigurationError(f"{folder.path} cannot be used", diagnostics=folder.faults)
        store = _open_store(repository, folder)
        if not name:
            told = read_newest(store, ChangeFilter(period=period), last)
            return FolderChanges(folder, tuple(told.changes), told.runs)
        history = find_history(store, name, period, path)
        changes = tuple(change for item in history.objects for change in item.changes)
        return FolderChanges(folder, changes, history.runs, bool(history.objects))
    except KafkaformError as error:
        return FolderChanges(folder, error=error)


def _open_store(repository: Repository, folder: RepositoryFolder) -> Store:
    return open_listed_store(repository.path / folder.path, folder)


def _list_changes(logs: Iterable[FolderChanges]) -> Iterator[FolderChange]:
    for item in logs:
        for change in item.changes:
            yield FolderChange(item.folder.path, change, item.runs)


def make_repository_document(history: RepositoryHistory) -> Mapping[str, Any]:
    """What `history --all --json` prints."""
    return {
        "format_version": FORMAT_VERSION,
        "name": history.name or None,
        "changes": [
            {"folder": item.folder, **make_change_document(item.change, item.runs)}
            for item in history.changes
        ],
        "failed": [
            {"folder": item.folder.path, "errors": [*_list_errors(item.error)]}
            for item in history.failed
            if item.error is not None
        ],
    }


def _list_errors(error: KafkaformError) -> Iterator[str]:
    for fault in error.diagnostics:
        yield f"{fault.summary} ({fault.range})" if fault.range else fault.summary
