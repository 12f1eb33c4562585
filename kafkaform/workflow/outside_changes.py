"""Who made the changes that no run of a log made, as far as the fleet's tables know.

The tables have the logs of other states: a change that one of their runs made has a name there.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from importlib.util import find_spec
from typing import Any

from msgspec.structs import replace

from ..audit.history import OUTSIDE, LoggedChange, LoggedValue, ToldChanges
from ..audit.records import render_time
from ..core.change import OutcomeStatus
from ..core.resource import Identity
from ..fleet import answers

ROOT = "KAFKAFORM_FLEET_ROOT"
"""Where the fleet's tables are, if this computer knows."""
TABLE_PACKAGES = ("deltalake", "pyarrow")
"""What reads the fleet's tables, which the extra `fleet-read` has."""
EPOCH = "1970-01-01T00:00:00+00:00"
NO_RECORD = 0
"""The number of the record that shows a change, if only the tables do."""
Row = Mapping[str, Any]


def find_fleet_root() -> str | None:
    """Where the fleet's tables are; None if nobody said, or if nothing here can read them."""
    root = os.environ.get(ROOT)
    return root if root and can_read_tables() else None


def can_read_tables() -> bool:
    """True if the packages that read the fleet's tables are installed."""
    return all(map(find_spec, TABLE_PACKAGES))


def name_writers(
    reading: ToldChanges, scopes: Mapping[str, str], root: str | None
) -> list[LoggedChange]:
    """The changes, those from outside with who made them and in which run, if the tables know.

    scopes: provider instance -> id of its system; root: of the fleet, None if there is none. A
    change of several values becomes one for each run that made some of them.
    """
    outside = {change.identity for change in reading.changes if change.action == OUTSIDE}
    if root is None or not outside or not can_read_tables():
        return reading.changes
    rows_of_tables = answers.history.list_changes(root, scopes, outside, "applied")
    # The snapshot that shows what a run of this log did comes after it, too.
    rows = {
        i: [r for r in rows_of_tables[i] if r["run"] not in reading.runs] for i in rows_of_tables
    }
    named: list[LoggedChange] = []
    for change in reading.changes:
        writers = rows.get(change.identity, ()) if change.action == OUTSIDE else ()
        named += _name_writers(change, writers) if writers else (change,)
    return named


def list_later_changes(
    reading: ToldChanges,
    identities: Collection[Identity],
    scopes: Mapping[str, str],
    root: str | None,
) -> list[LoggedChange]:
    """What the tables know of these objects after the last look of a log at each: by runs of other
    states, and by nobody whose log they have. scopes, root: as for `name_writers`."""
    if root is None or not can_read_tables():
        return []
    looked = {change.identity: change.time for change in reading.changes}
    rows = answers.history.list_changes(root, scopes, identities, "applied", "out_of_band")
    return [
        _make_change(identity, row)
        for identity, changes in rows.items()
        for row in changes
        if row["window_start"] is not None
        and row["run"] not in reading.runs
        and row["window_start"] >= datetime.fromisoformat(looked.get(identity, EPOCH))
    ]


def _make_change(identity: Identity, row: Row) -> LoggedChange:
    since, time = (render_time(row[n].timestamp()) for n in ("window_start", "window_end"))
    values = (LoggedValue(row["path"], row["before"], row["after"]),)
    applied = OutcomeStatus.APPLIED.value
    return LoggedChange(
        NO_RECORD,
        time,
        identity,
        "",
        OUTSIDE,
        applied,
        values,
        row["actor"],
        row["run"],
        since=since,
    )


def _name_writers(change: LoggedChange, rows: Sequence[Row]) -> Iterator[LoggedChange]:
    writers: dict[tuple[str | None, str | None], list[LoggedValue]] = {}
    for value in change.values:
        row = _find_row(change, value, rows)
        writer = (None, None) if row is None else (row["actor"], row["run"])
        writers.setdefault(writer, []).append(value)
    for (actor, run), values in writers.items():
        yield replace(change, actor=actor, run=run, values=tuple(values))


def _find_row(change: LoggedChange, value: LoggedValue, rows: Iterable[Row]) -> Row | None:
    """The newest row that shows this value changing between the two looks. rows: in order."""
    after = datetime.fromisoformat(change.since) if change.since else None
    until = datetime.fromisoformat(change.time)
    newest = None
    for row in rows:
        begins = row["window_start"]
        fits = after is None or row["window_end"] > after
        if row["path"] == value.path and fits and (begins is None or begins < until):
            newest = row
    return newest
