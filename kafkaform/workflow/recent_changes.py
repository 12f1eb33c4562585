"""The last changes of an object, for an editor that asks again and again.

Only the end of a log in a local file is read, and once as long as it stays the same. A log in a
store is not asked: looking at a word must not wait for a network, or use a login.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from ..audit.history import ToldChanges
from ..audit.sinks.local import LocalSink
from ..core.errors import KafkaformError
from ..provider.registry import Registry
from ..render.history import list_change_rows
from .history import list_words, make_change_document, make_selection, read_recent
from .stores import open_folder_store

SHOWN = 3
"""How many changes of one object are shown."""


class _LogEnd(NamedTuple):
    """The end of a log, as it was read."""

    line: bytes
    told: ToldChanges


class RecentChanges:
    """What the ends of logs say."""

    def __init__(self) -> None:
        self._ends: dict[Path, _LogEnd] = {}
        self._registry = Registry()

    def list_lines(self, folder: Path, address: str) -> Sequence[str]:
        """The last changes of a block in this folder, the newest first, one line for each; none if
        the log cannot be read."""
        with suppress(KafkaformError, OSError):
            return self._list_lines(folder, address)
        return ()

    def _list_lines(self, folder: Path, address: str) -> Sequence[str]:
        store = open_folder_store(folder, None, None)
        line = store.sink.last() if isinstance(store.sink, LocalSink) else None
        if line is None:
            return ()
        end = self._ends.get(folder)
        if end is None or end.line != line:
            end = self._ends[folder] = _LogEnd(line, read_recent(store))
        calls = make_selection(address)
        told = end.told
        changes = [c for c in told.changes if calls(c.identity, (c.address, *c.owners))]
        newest = changes[: -SHOWN - 1 : -1]
        words = list_words(self._registry, (change.identity for change in newest))
        documents: list[Mapping[str, Any]] = [
            make_change_document(change, told.runs) for change in newest
        ]
        return [
            f"{time} UTC, {actor}, run {run}: {action} {values} ({outcome})"
            for time, actor, run, outcome, action, _, values in list_change_rows(documents, words)
        ]
