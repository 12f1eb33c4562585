"""Sections on what differs from the code, and on who changed it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

from .charts import Bar, Chart, Series, by_day
from .grids import CLUSTER, OBJECT, OWNER, Column, Kind, grid, total
from .questions import DAYS
from .sections import Block, Known, Outline, Piece, age, count, named, sentence

CHART_ROWS = 20
"""Bars of a chart; the tables have the rest."""

GROUPS = (
    Series("outside", "edited or deleted outside", "E"),
    Series("pending", "declared, not applied yet", "P"),
    Series("behind", "state behind the cluster", "B"),
    Series("unmanaged", "not managed", "N"),
    Series("unknown", "unknown", "?"),
)
_GROUP_OF: Mapping[str, str] = {
    "drifted": "outside",
    "conflict": "outside",
    "deleted_out_of_band": "outside",
    "undeclared_override": "outside",
    "pending_create": "pending",
    "pending_update": "pending",
    "pending_delete": "pending",
    "state_behind": "behind",
    "stale_state": "behind",
    "unadopted": "unmanaged",
    "unmanaged": "unmanaged",
    "unknown": "unknown",
}
_MEANING: Mapping[str, str] = {
    "in_sync": "declared, recorded and live are the same",
    "drifted": "changed on the cluster; an apply would set it back",
    "conflict": "declared, recorded and live all differ",
    "deleted_out_of_band": "declared and recorded, gone from the cluster",
    "undeclared_override": "set on the cluster, not declared",
    "pending_create": "declared, not created yet",
    "pending_update": "declared otherwise, not applied yet",
    "pending_delete": "no longer declared, not deleted yet",
    "state_behind": "live as declared, recorded otherwise",
    "stale_state": "recorded alone; neither declared nor live",
    "unadopted": "declared and live, not recorded",
    "unmanaged": "live, in no known state",
    "unknown": "nobody knows: not read, or the configuration is not known",
}
_VERDICTS = (
    Series("applied", "by an apply", "A"),
    Series("outside", "out of band", "O"),
    Series("unclear", "unclear", "U"),
    Series("behind", "apply without effect", "X"),
)
_VERDICT_OF: Mapping[str, str] = {
    "applied": "applied",
    "out_of_band": "outside",
    "unclear": "unclear",
    "not_effective": "behind",
}
_OBJECT = (
    CLUSTER,
    OBJECT,
    Column("path", "Attribute", Kind.CODE, "as a whole"),
)
_ROWS = (
    *_OBJECT,
    Column("drift_class", "Class", Kind.WORD),
    Column("desired", "Declared", Kind.VALUE),
    Column("live", "Live", Kind.VALUE),
    Column("state", "Recorded", Kind.VALUE),
    Column("first_seen", "Since", Kind.TIME),
    OWNER,
)
_CLASSES = (
    Column("drift_class", "Class", Kind.WORD),
    Column("meaning", "What it means", Kind.LONG),
    Column("objects", "Objects", Kind.NUMBER),
    Column("clusters", "Clusters", Kind.NUMBER),
    Column("oldest", "Oldest since", Kind.TIME),
)
_CHANGES = (
    Column("window_end", "Seen at", Kind.TIME),
    *_OBJECT,
    Column("before", "Before", Kind.VALUE, "not set"),
    Column("after", "After", Kind.VALUE, "not set"),
    Column("verdict", "Verdict", Kind.WORD),
    Column("actor", "By", missing="unknown"),
    Column("run", "Run", Kind.CODE),
    Column("window_start", "Not yet at", Kind.TIME, "no snapshot before"),
)


def by_cluster(known: Known, as_of: datetime) -> Block:
    rows = known["drift_clusters"]
    counted: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    oldest: dict[str, datetime] = {}
    for row in rows:
        name = row["cluster"]
        counted[name][_GROUP_OF[row["drift_class"]]] += row["objects"]
        if row["drift_class"] != "unknown":
            oldest[name] = min(oldest.get(name, row["oldest"]), row["oldest"])
    names = sorted(counted, key=lambda name: (oldest.get(name, as_of), name))
    bars = tuple(
        Bar(name, tuple(counted[name][s.key] for s in GROUPS), _oldest(oldest.get(name), as_of))
        for name in names
    )
    chart = Chart(
        "drift-clusters",
        "Objects that differ, by cluster, oldest first",
        "objects",
        "cluster",
        GROUPS,
        bars[:CHART_ROWS],
        more=max(0, len(bars) - CHART_ROWS),
    )
    return Block((_lead(known["drift_classes"], as_of, len(oldest)),), (chart,))


def _oldest(since: datetime | None, as_of: datetime) -> str:
    return f"oldest {age(since, as_of)}" if since else ""


def _lead(classes: Sequence[Mapping[str, Any]], as_of: datetime, clusters: int) -> str:
    some = [row for row in classes if row["drift_class"] not in ("in_sync", "unknown")]
    unknown = total([row for row in classes if row["drift_class"] == "unknown"], "objects")
    rest = f" For {count(unknown, 'object')} it is not known." if unknown else ""
    if not some:
        return f"Nothing that could be compared differs from what is declared.{rest}"
    since = min(row["oldest"] for row in some)
    return (
        f"{count(total(some, 'objects'), 'object')} on {count(clusters, 'cluster')} differ from "
        f"what is declared, the oldest for {age(since, as_of)}.{rest}"
    )


def by_class(known: Known, as_of: datetime) -> Block:
    rows = [{**row, "meaning": _MEANING[row["drift_class"]]} for row in known["drift_classes"]]
    overrides = int(known["overrides"][0]["n"]) if known["overrides"] else 0
    also = f"{count(overrides, 'setting')} on clusters that nobody declared." if overrides else ""
    return Block(
        (also,) if also else (),
        (),
        (
            grid("Objects by class", _CLASSES, rows, "drift"),
            grid(
                "What differs: edits first, what nobody manages last",
                _ROWS,
                named(known["drift_rows"]),
                "drift",
            ),
        ),
    )


def over_time(known: Known, as_of: datetime) -> Block:
    bars = _daily(known["drift_days"], "drift_class", _GROUP_OF, "objects", GROUPS)
    title = f"Objects that differ, by day, last {DAYS} days"
    return Block((), (Chart("drift-days", title, "objects", "day", GROUPS, bars, days=True),))


def changed(known: Known, as_of: datetime) -> Block:
    rows = known["change_days"]
    bars = _daily(rows, "verdict", _VERDICT_OF, "changes", _VERDICTS)
    sums = {key: sum(bar.values[n] for bar in bars) for n, key in enumerate(_KEYS)}
    title = f"Changes seen on clusters, by day, last {DAYS} days"
    lead = (
        f"In {DAYS} days {count(int(sums['outside']), 'change')} came out of band and "
        f"{count(int(sums['applied']), 'change')} by an apply."
    )
    others = [
        f"{count(int(sums['unclear']), 'change')} cannot be told apart" * bool(sums["unclear"]),
        f"{count(int(sums['behind']), 'apply', 'applies')} had no effect" * bool(sums["behind"]),
    ]
    more = sentence(filter(None, others))
    return Block(
        (f"{lead}{f' {more}.' if more else ''}" if rows else f"No change in {DAYS} days.",),
        (Chart("changes-days", title, "changes", "day", _VERDICTS, bars, days=True),),
        (
            grid(
                "Changes that no apply made, newest first",
                _CHANGES,
                named(known["change_rows"]),
                "change_attribution",
            ),
        ),
    )


_KEYS = tuple(series.key for series in _VERDICTS)


def _daily(
    rows: Sequence[Mapping[str, Any]],
    column: str,
    groups: Mapping[str, str],
    value: str,
    series: Sequence[Series],
) -> tuple[Bar, ...]:
    counted: dict[tuple[date, str], float] = defaultdict(float)
    for row in rows:
        counted[row["day"], groups[row[column]]] += row[value]
    return by_day([row["day"] for row in rows], counted, series)


DRIFT = Outline(
    "drift",
    "Drift",
    "What is declared, what was recorded and what is live, compared. A cluster that was not read "
    "is unknown, never in sync.",
    (
        Piece("drift", ("drift_classes", "drift_clusters"), by_cluster),
        Piece("drift by day", ("drift_days",), over_time),
        Piece("drift by class", ("drift_classes", "overrides", "drift_rows"), by_class),
    ),
)
CHANGES = Outline(
    "changes",
    "Changes",
    "What changed between two snapshots, and whether an apply did it. What was changed and set "
    "back between two snapshots cannot be seen.",
    (Piece("changes", ("change_days", "change_rows"), changed),),
)
