"""Answer `fleet history` and `fleet status` from the newest build, and who changed an object.

A cluster does not record who changed a value. The tables know the window between two snapshots in
which a change appeared, and the run that made it, if a landed log has a request with that effect.
So only a change that was made with kafkaform, from another state, has a name.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct

from ...core.change import Change
from ...core.errors import KafkaformError, UsageError
from ...core.resource import Identity
from ..report.questions import DETAILS, NUMBERS, ask_questions
from ..report.rows import Sheet, render_table
from ..tables import reader
from ..tables.definitions import Row, quote_text
from ..tables.reader import Build, Gold, read_current

SENSITIVE = "(sensitive)"
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_SEARCHED_KEYS = 10_000
"""How many keys are searched for one that resembles a wrong one."""

VERDICTS: Mapping[str, str] = {
    "applied": "applied",
    "out_of_band": "OUT OF BAND",
    "unclear": "unclear: the outcome of the apply is unknown",
    "not_effective": "applied, without effect",
}
OUTCOMES: Mapping[str, str] = {
    "applied": "applied, in no snapshot yet",
    "failed": "failed",
    "unknown": "unknown: it may have happened",
    "started": "started",
    "skipped": "skipped",
}
NOT_IN_SNAPSHOT = "applied, in no snapshot"
"""Before the first snapshot, or undone or changed again before the next one."""


_OBJECT_CHANGES = {
    ("absent", "present"): "appeared",
    ("present", "absent"): "gone",
    ("present", "present"): "replaced",
}
"""Before and after of a change of the whole object -> what happened."""
OBJECTS = 200
"""How many objects the tables are asked about at once: more are not read one by one."""


class HistoryEntry(Struct, frozen=True):
    """One line of an object's history."""

    at: datetime
    """When it was done or, if that is unknown, first seen."""
    what: str
    path: str
    """Empty: the object as a whole."""
    before: str | None
    after: str | None
    mark: str
    """Whether kafkaform did it."""
    not_before: datetime | None = None
    """The last snapshot without it. None: `at` is exact, or no snapshot is without it."""
    actor: str | None = None
    run: str | None = None
    commit: str | None = None


_COLUMNS = HistoryEntry.__struct_fields__


def parse_span(text: str) -> timedelta:
    """Parse `90m`, `12h`, `30d` or `2w`. Raises UsageError."""
    match = re.fullmatch(r"(\d{1,5})([mhdw])", text.strip())
    if match is None:
        raise UsageError(f"{text!r} is not a duration", "Write it as 90m, 12h, 30d or 2w.")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


# ── history ─────────────────────────────────────────────────────────────────────────────


def read_history(tables: Gold, cluster: str, key: str, since: timedelta | None = None) -> Sheet:
    """Return what happened to one object, the oldest first.

    key: `topic/orders`, with the kind as in a configuration, with or without `kafka_`; since: back
    from the newest capture; if nothing has happened since, the last entry before. Raises
    UsageError: no such cluster or object; StorageError.
    """
    tables.require("history")
    kind, slash, name = key.partition("/")
    if not slash or not name:
        raise UsageError(
            f"{key!r} is not an object",
            "Write kind and key, such as topic/orders or quota/user=ci.",
        )
    kinds = f"({quote_text(kind)}, {quote_text('kafka_' + kind)})"
    condition = f"cluster = {quote_text(cluster)} and kind in {kinds} and key = {quote_text(name)}"
    rows = {
        table: tables.read_rows(f"select * from {table} where {condition}")
        if tables.has(table)
        else []
        for table in ("history", "change_attribution", "event")
    }
    if not any(rows.values()):
        raise _not_found_error(tables, cluster, kind, name, kinds)
    entries = build_timeline(rows["history"], rows["change_attribution"], rows["event"])
    first = tables.build.as_of - since if since is not None else None
    recent = tuple(entry for entry in entries if first is None or entry.at >= first)
    values = (tuple(getattr(e, name) for name in _COLUMNS) for e in recent or entries[-1:])
    return Sheet(_COLUMNS, tuple(values))


def build_timeline(
    intervals: Sequence[Row], attributed: Sequence[Row], events: Sequence[Row]
) -> tuple[HistoryEntry, ...]:
    """Merge rows of `history`, `change_attribution` and `event` of one object into one line of
    time.

    A change that has an event appears once, at the event's time.
    """
    by_id = {event["event_id"]: event for event in events}
    attributed_events = {row["event_id"] for row in attributed}
    attributed_changes = {(row["window_end"], row["path"]) for row in attributed}
    newest = max((row["known_until"] for row in intervals), default=None)
    entries = [_make_attributed_entry(row, by_id.get(row["event_id"])) for row in attributed]
    for event in events:
        if event["outcome"] is not None and event["event_id"] not in attributed_events:
            entries += _list_tries(event, newest)
    entries += (e for e in _list_intervals(intervals) if (e.at, e.path) not in attributed_changes)
    return tuple(sorted(entries, key=lambda e: (e.at, e.path, e.what, e.mark, e.run or "")))


def _make_attributed_entry(row: Row, event: Row | None) -> HistoryEntry:
    exact = event is not None
    action = "changed" if row["path"] else _OBJECT_CHANGES[row["before"], row["after"]]
    return HistoryEntry(
        event["ts"] if event is not None else row["window_end"],
        action,
        row["path"],
        row["before"],
        row["after"],
        VERDICTS[row["verdict"]],
        None if exact else row["window_start"],
        row["actor"],
        row["run"],
        row["commit"],
    )


def _list_tries(event: Row, newest: datetime | None) -> Iterator[HistoryEntry]:
    """Yield one entry per attribute that a step was to change; one if it names none. newest: the
    time of the last snapshot."""
    mark = OUTCOMES.get(event["outcome"], event["outcome"])
    if event["outcome"] == "applied" and newest is not None and event["ts"] <= newest:
        mark = NOT_IN_SNAPSHOT
    if event["outcome"] == "failed" and event["error_code"]:
        mark = f"failed: {event['error_code']}"
    changes = event["changes"] or [{"path": "", "before": None, "after": None, "sensitive": False}]
    for change in changes:
        hidden = SENSITIVE if change["sensitive"] else None
        yield HistoryEntry(
            event["ts"],
            event["action"] or event["step"],
            change["path"],
            hidden or change["before"],
            hidden or change["after"],
            mark,
            None,
            event["actor"],
            event["run"],
            event["commit"],
        )


def _list_intervals(rows: Sequence[Row]) -> Iterator[HistoryEntry]:
    """Yield what only snapshots show: when the object was first seen, and every change after
    that."""
    mark, before = "not judged", None
    for row in sorted(rows, key=lambda row: row["valid_from"]):
        at, since = row["valid_from"], row["seen_before"]
        if before is None:
            action = "first seen" if since is None else "appeared"
            yield HistoryEntry(at, action, "", None, None, mark if since else "", since)
        else:
            for path in sorted(before.keys() | row["attrs"].keys()):
                old, new = before.get(path), row["attrs"].get(path)
                if old != new:
                    yield HistoryEntry(at, "changed", path, old, new, mark, since)
        before = row["attrs"]
        if row["deleted"] and row["valid_to"] is not None:
            yield HistoryEntry(row["valid_to"], "gone", "", None, None, mark)
            before = None


def _not_found_error(tables: Gold, cluster: str, kind: str, name: str, kinds: str) -> UsageError:
    condition = f"cluster = {quote_text(cluster)}"
    if not tables.read_rows(f"select 1 from history where {condition} limit 1"):
        clusters = [r["cluster"] for r in tables.read_rows("select distinct cluster from history")]
        return _wrong_name_error(f"there is no snapshot of cluster {cluster!r}", cluster, clusters)
    keys = tables.read_rows(
        f"select distinct key from history where {condition} and kind in {kinds} order by key"
        f" limit {_SEARCHED_KEYS}"
    )
    if not keys:
        kind_rows = tables.read_rows(
            f"select distinct kind from history where {condition} order by kind"
        )
        names = [row["kind"].removeprefix("kafka_") for row in kind_rows]
        return _wrong_name_error(f"cluster {cluster} has no objects of kind {kind!r}", kind, names)
    message = f"cluster {cluster} never had {kind}/{name}"
    return _wrong_name_error(message, name, [row["key"] for row in keys])


def _wrong_name_error(message: str, wrong: str, names: Sequence[str]) -> UsageError:
    close = difflib.get_close_matches(wrong, names, 3) or sorted(names)[:5]
    return UsageError(message, f"There are {', '.join(close)}{' …' * (len(names) > len(close))}.")


# ── status ──────────────────────────────────────────────────────────────────────────────


class FleetStatus(Struct, frozen=True):
    """What `fleet status` shows."""

    build: Build
    complete: bool | None
    """Every registered cluster was read completely and every configuration is known. None: the
    build lacks the tables to tell."""
    sheets: Mapping[str, Sheet]
    """Title -> rows."""


def read_status(root: str) -> FleetStatus:
    """Return which builds exist, how much of the fleet the newest one knows, and what went wrong.

    Raises UsageError: there is no build; StorageError.
    """
    build = reader.read_current(root)
    tables = Gold(build)
    names = ("clusters_off", "states_off", "quarantine")
    answers = ask_questions(
        tables, {"clusters": NUMBERS["clusters"], **{name: DETAILS[name] for name in names}}
    )
    clusters, off, states = (answers[name] for name in ("clusters", *names[:2]))
    expected = [row for row in clusters or () if row["registered"]]
    is_complete = all(row["status"] == "read" for row in expected) and not states
    table_rows: tuple[tuple[Any, ...], ...] = tuple(
        (name, table.rows, table.version, round(table.seconds, 2))
        for name, table in build.tables.items()
    )
    counts: Counter[tuple[str, bool]] = Counter()
    oldest: dict[tuple[str, bool], datetime] = {}
    for cluster_row in clusters or ():
        group = cluster_row["status"], cluster_row["registered"]
        counts[group] += cluster_row["clusters"]
        if cluster_row["oldest"] is not None:
            oldest[group] = cluster_row["oldest"]
    columns = ("status", "registered", "clusters", "oldest", "age_hours")
    sheets = {
        "Builds": _list_builds(build),
        "Clusters": Sheet(
            columns,
            tuple((*p, n, *_compute_age(oldest.get(p), build.as_of)) for p, n in counts.items()),
        ),
        "Not read whole": _select_columns(off or (), ("cluster", "status", "captured_at", "error")),
        "Configurations not known": _select_columns(states or (), ("state", "desired_at", "error")),
        "Quarantine": _select_columns(
            answers["quarantine"] or (), ("source", "reason", "lines", "file", "newest")
        ),
        "Tables": Sheet(("table", "rows", "version", "seconds"), table_rows),
    }
    return FleetStatus(build, is_complete if clusters is not None else None, sheets)


def render_status(status: FleetStatus) -> str:
    """Render all parts that have rows, as tables with titles."""
    coverage = {True: "complete", False: "not complete", None: "unknown"}[status.complete]
    head = f"Build {status.build.name}: coverage {coverage}\n"
    sections = (
        f"\n{title}\n{render_table(sheet)}" for title, sheet in status.sheets.items() if sheet.rows
    )
    return head + "".join(sections)


def _list_builds(current: Build) -> Sheet:
    """All builds, the newest first."""
    builds = [reader.read_build(current.root, name) for name in reader.list_builds(current.root)]
    builds.sort(key=lambda build: (build.ended, build.name), reverse=True)
    build_rows = tuple(
        (
            build.name,
            build.name == current.name,
            build.as_of,
            build.ended,
            round((build.ended - build.started).total_seconds(), 1),
            len(build.tables),
        )
        for build in builds
    )
    return Sheet(("build", "current", "as_of", "ended", "seconds", "tables"), build_rows)


def _compute_age(time: datetime | None, as_of: datetime) -> tuple[datetime | None, float | None]:
    hours = round((as_of - time).total_seconds() / 3600, 1) if time else None
    return time, hours


def _select_columns(rows: Sequence[Row], names: tuple[str, ...]) -> Sheet:
    return Sheet(names, tuple(tuple(row[name] for name in names) for row in rows))


def find_outside_changes(
    root: str, scopes: Mapping[str, str], changes: Sequence[Change], last: Mapping[Identity, str]
) -> Mapping[Identity, str]:
    """Identity -> the newest change of its drifted paths, as text; why there is none, if the tables
    cannot be read.

    scopes: provider instance -> id of its cluster; last: when each object was last set, RFC 3339:
    what happened before that explains no drift.
    """
    try:
        rows = _ask_tables(Gold(read_current(root)), scopes, changes[:OBJECTS])
    # These answers are an addition: what they are added to must not fail with them.
    except KafkaformError as error:
        text = f"the fleet's tables cannot be read: {error}"
        return {change.identity: text for change in changes}
    return {i: _render_row(row) for i, row in rows.items() if _is_later(row, last.get(i))}


def list_changes(
    root: str, scopes: Mapping[str, str], identities: Collection[Identity], *verdicts: str
) -> Mapping[Identity, Sequence[Row]]:
    """Identity -> the changes with one of these verdicts, the oldest first; none if the tables
    cannot be read.

    scopes: provider instance -> id of its cluster.
    """
    changes: dict[Identity, list[Row]] = {}
    chosen = sorted(identity for identity in identities if identity.instance in scopes)[:OBJECTS]
    # These answers are an addition: what they are added to must not fail with them.
    with suppress(KafkaformError):
        gold = Gold(read_current(root))
        for identity, row in _read_changes(gold, scopes, chosen, verdicts):
            changes.setdefault(identity, []).append(row)
    return changes


def _ask_tables(
    gold: Gold, scopes: Mapping[str, str], changes: Sequence[Change]
) -> dict[Identity, Row]:
    """Identity -> the newest row that shows a drifted path of the object changing."""
    by_identity = {change.identity: change for change in changes}
    newest: dict[Identity, Row] = {}
    for identity, row in _read_changes(gold, scopes, by_identity, ("out_of_band", "applied")):
        # As the tables write paths; the object as a whole has the empty one.
        if row["path"] in {".".join(item.path) for item in by_identity[identity].drift}:
            newest[identity] = row
    return newest


def _read_changes(
    gold: Gold, scopes: Mapping[str, str], identities: Collection[Identity], verdicts: Sequence[str]
) -> Iterator[tuple[Identity, Row]]:
    """The changes of these objects with one of these verdicts, of each the oldest first."""
    for instance in sorted({identity.instance for identity in identities}):
        by_name = {(i.kind, i.key): i for i in identities if i.instance == instance}
        keys = ", ".join(sorted({quote_text(key) for _, key in by_name}))
        rows = gold.read_rows(
            "SELECT a.kind, a.key, a.path, a.before, a.after, a.window_start, a.window_end, "
            "a.verdict, a.actor, a.run "
            "FROM change_attribution a JOIN cluster c ON a.cluster = c.cluster "
            f"WHERE c.cluster_id = {quote_text(scopes[instance])} AND a.key IN ({keys}) "
            f"AND a.verdict IN ({', '.join(map(quote_text, verdicts))}) ORDER BY a.window_end"
        )
        for row in rows:
            identity = by_name.get((row["kind"], row["key"]))
            if identity is not None:
                yield identity, row


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
