"""Answer who changed a drifted object and when, as far as the tables of the newest build know.

A cluster does not record who changed a value. The tables know the window between two snapshots in
which a change appeared, and the run that made it, if a landed log has a request with that effect.
So only a change that somebody made with kafkaform, from another state, has a name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from importlib.util import find_spec

from ...core.change import Change
from ...core.errors import KafkaformError
from ...core.resource import Identity
from ..tables.reader import Gold, Row, quote_text, read_current

OBJECTS = 200
"""How many objects the tables are asked about at once; nobody reads more answers one by one."""
_PACKAGES = ("deltalake", "pyarrow")


def find_outside_changes(
    root: str, scopes: Mapping[str, str], changes: Sequence[Change], last: Mapping[Identity, str]
) -> Mapping[Identity, str]:
    """Identity -> the newest change of its drifted paths, as text; why there is none, if the tables
    cannot be read.

    scopes: provider instance -> id of its cluster; last: when each object was last set, RFC 3339:
    what happened before that explains no drift.
    """
    if any(find_spec(name) is None for name in _PACKAGES):
        return {}
    try:
        rows = _ask_tables(Gold(read_current(root)), scopes, changes[:OBJECTS])
    # These answers are an addition: what they are added to must not fail with them.
    except KafkaformError as error:
        text = f"the fleet's tables cannot be read: {error}"
        return {change.identity: text for change in changes}
    return {i: _render_row(row) for i, row in rows.items() if _is_later(row, last.get(i))}


def _ask_tables(
    gold: Gold, scopes: Mapping[str, str], changes: Sequence[Change]
) -> dict[Identity, Row]:
    """Identity -> the newest row that shows a drifted path of the object changing."""
    newest: dict[Identity, Row] = {}
    for instance in sorted({change.identity.instance for change in changes}):
        own_changes = {
            (change.identity.kind, change.identity.key): change
            for change in changes
            if change.identity.instance == instance
        }
        keys = ", ".join(sorted({quote_text(key) for _, key in own_changes}))
        rows = gold.read_rows(
            "SELECT a.kind, a.key, a.path, a.window_start, a.window_end, a.verdict, a.actor, a.run "
            "FROM change_attribution a JOIN cluster c ON a.cluster = c.cluster "
            f"WHERE c.cluster_id = {quote_text(scopes[instance])} AND a.key IN ({keys}) "
            "AND a.verdict IN ('out_of_band', 'applied') ORDER BY a.window_end"
        )
        for row in rows:
            change = own_changes.get((row["kind"], row["key"]))
            if change is not None and row["path"] in _list_paths(change):
                newest[change.identity] = row
    return newest


def _list_paths(change: Change) -> set[str]:
    """The drifted paths as the tables write them; the object as a whole has the empty one."""
    return {".".join(item.path) for item in change.drift}


def _is_later(row: Row, last: str | None) -> bool:
    # The snapshot that shows our own last write comes after it, too.
    after = last is None or row["window_end"] > datetime.fromisoformat(last)
    start = row["window_start"]
    own = row["verdict"] == "applied" and last is not None and start is not None
    return after and not (own and start <= datetime.fromisoformat(last or ""))


def _render_row(row: Row) -> str:
    end = row["window_end"].strftime("%Y-%m-%d %H:%M UTC")
    start = row["window_start"]
    window = f"between {start:%Y-%m-%d %H:%M} and {end}" if start is not None else f"before {end}"
    if row["verdict"] == "applied":
        return f"changed {window} by {row['actor']} (run {row['run']})"
    return f"changed {window} without kafkaform, so nothing says by whom"
