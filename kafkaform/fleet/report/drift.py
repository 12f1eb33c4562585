"""Sections of the report on live clusters: drift, who changed what, and what is in use."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

from .figures import (
    CHART_ROWS,
    CLUSTER,
    OBJECT,
    OWNER,
    Bar,
    Chart,
    ColumnKind,
    GridColumn,
    Outline,
    SectionAnswers,
    SectionBlock,
    SectionPiece,
    Series,
    join_words,
    make_day_bars,
    make_grid,
    name_objects,
    render_age,
    render_count,
    show_settings,
    sum_column,
)
from .questions import DAYS

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
"""Drift class -> key of the group that charts show it in."""
_DIFFERING = ("outside", "pending", "behind")
"""Groups of objects that differ from what is declared or recorded."""
_MEANING: Mapping[str, str] = {
    "in_sync": "declared, recorded and live are the same",
    "drifted": "changed on the cluster; an apply would set it back",
    "conflict": "declared, recorded and live all differ",
    "deleted_out_of_band": "declared and recorded, gone from the cluster",
    "undeclared_override": "set on the cluster, not declared",
    "pending_create": "declared, not created yet",
    "pending_update": "declared differently, not applied yet",
    "pending_delete": "no longer declared, not deleted yet",
    "state_behind": "live as declared, recorded differently",
    "stale_state": "only recorded; neither declared nor live",
    "unadopted": "declared and live, not recorded",
    "unmanaged": "live, in no known state",
    "unknown": "unknown: not read, or the configuration is unknown",
}
"""Drift class -> what it means."""
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
"""Verdict -> key of its series."""
_OBJECT = (
    CLUSTER,
    OBJECT,
    GridColumn("path", "Attribute", ColumnKind.CODE, "as a whole"),
)
_ROWS = (
    *_OBJECT,
    GridColumn("drift_class", "Class", ColumnKind.WORD),
    GridColumn("meaning", "What it means", ColumnKind.LONG),
    GridColumn("desired", "Declared", ColumnKind.VALUE),
    GridColumn("live", "Live", ColumnKind.VALUE),
    GridColumn("state", "Recorded", ColumnKind.VALUE),
    GridColumn("first_seen", "Since", ColumnKind.TIME),
    OWNER,
)
_CLASSES = (
    GridColumn("drift_class", "Class", ColumnKind.WORD),
    GridColumn("meaning", "What it means", ColumnKind.LONG),
    GridColumn("objects", "Objects", ColumnKind.NUMBER),
    GridColumn("clusters", "Clusters", ColumnKind.NUMBER),
    GridColumn("oldest", "Oldest since", ColumnKind.TIME),
)
_CHANGES = (
    GridColumn("window_end", "Seen at", ColumnKind.TIME),
    *_OBJECT,
    GridColumn("before", "Before", ColumnKind.VALUE, "not set"),
    GridColumn("after", "After", ColumnKind.VALUE, "not set"),
    GridColumn("verdict", "Verdict", ColumnKind.WORD),
    GridColumn("actor", "By", missing="unknown"),
    GridColumn("run", "Run", ColumnKind.CODE),
    GridColumn("window_start", "Not yet at", ColumnKind.TIME, "no earlier snapshot"),
)
_KEYS = tuple(series.key for series in _VERDICTS)


def show_drift_by_cluster(answers: SectionAnswers, as_of: datetime) -> SectionBlock:
    """The section part on drift by cluster."""
    rows = answers["drift_clusters"]
    counted: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    oldest: dict[str, datetime] = {}
    for row in rows:
        name = row["cluster"]
        counted[name][_GROUP_OF[row["drift_class"]]] += row["objects"]
        if row["drift_class"] != "unknown":
            oldest[name] = min(oldest.get(name, row["oldest"]), row["oldest"])
    names = sorted(counted, key=lambda name: (oldest.get(name, as_of), name))
    bars = tuple(
        Bar(
            name,
            tuple(counted[name][s.key] for s in GROUPS),
            f"oldest {render_age(oldest[name], as_of)}" if name in oldest else "",
        )
        for name in names
    )
    owned: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in answers["drift_owners"]:
        group = _GROUP_OF[row["drift_class"]]
        if group in _DIFFERING:
            owned[row["owner"] or "none"][group] += row["objects"]
    owner_bars = sorted(
        (Bar(owner, tuple(counts[s.key] for s in GROUPS)) for owner, counts in owned.items()),
        key=lambda bar: (-bar.total, bar.label),
    )
    owners = Chart(
        "drift-owners",
        "Objects that differ, by owner, most first",
        "objects",
        "owner",
        GROUPS,
        tuple(owner_bars[:CHART_ROWS]),
        more=max(0, len(owner_bars) - CHART_ROWS),
    )
    chart = Chart(
        "drift-clusters",
        "Objects not in sync, by cluster, oldest first",
        "objects",
        "cluster",
        GROUPS,
        bars[:CHART_ROWS],
        more=max(0, len(bars) - CHART_ROWS),
    )
    clusters = sum(any(groups[key] for key in _DIFFERING) for groups in counted.values())
    return SectionBlock((_write_lead(answers["drift_classes"], as_of, clusters),), (chart, owners))


def _write_lead(classes: Sequence[Mapping[str, Any]], as_of: datetime, clusters: int) -> str:
    differing = [row for row in classes if _GROUP_OF.get(row["drift_class"]) in _DIFFERING]
    counts = {
        group: sum_column(
            [row for row in classes if _GROUP_OF.get(row["drift_class"]) == group], "objects"
        )
        for group in ("unmanaged", "unknown")
    }
    others_text = "".join(
        f" {render_count(count, 'object')} {verb}."
        for count, verb in (
            (counts["unmanaged"], "are managed by nobody"),
            (counts["unknown"], "could not be compared"),
        )
        if count
    )
    if not differing:
        return f"No object that could be compared differs from what is declared.{others_text}"
    since = min(row["oldest"] for row in differing)
    return (
        f"{render_count(sum_column(differing, 'objects'), 'object')} on "
        f"{render_count(clusters, 'cluster')} differ from "
        f"what is declared, the oldest for {render_age(since, as_of)}.{others_text}"
    )


def show_drift_by_class(answers: SectionAnswers, as_of: datetime) -> SectionBlock:
    """The section part on drift by class, with the rows."""
    rows = [{**row, "meaning": _MEANING[row["drift_class"]]} for row in answers["drift_classes"]]
    drift_rows = [
        {**row, "meaning": _MEANING[row["drift_class"]]}
        for row in name_objects(answers["drift_rows"])
    ]
    overrides = int(answers["overrides"][0]["n"]) if answers["overrides"] else 0
    overrides_text = (
        f"{render_count(overrides, 'setting')} on clusters that nobody declared."
        if overrides
        else ""
    )
    return SectionBlock(
        (overrides_text,) if overrides_text else (),
        (),
        (
            make_grid("Objects by class", _CLASSES, rows, "drift"),
            make_grid(
                "Objects that differ: edited ones first, unmanaged ones last",
                _ROWS,
                show_settings(drift_rows, "desired", "live", "state"),
                "drift",
            ),
        ),
    )


def show_drift_over_time(answers: SectionAnswers, as_of: datetime) -> SectionBlock:
    """The section part on drift by day."""
    bars = _count_daily(answers["drift_days"], "drift_class", _GROUP_OF, "objects", GROUPS)
    title = f"Objects not in sync, by day, last {DAYS} days"
    return SectionBlock(
        (), (Chart("drift-days", title, "objects", "day", GROUPS, bars, days=True),)
    )


def show_changes(answers: SectionAnswers, as_of: datetime) -> SectionBlock:
    """The section part on changes and who made them."""
    rows = answers["change_days"]
    bars = _count_daily(rows, "verdict", _VERDICT_OF, "changes", _VERDICTS)
    sums = {key: sum(bar.values[n] for bar in bars) for n, key in enumerate(_KEYS)}
    title = f"Changes seen on clusters, by day, last {DAYS} days"
    lead = (
        f"In {DAYS} days, {render_count(int(sums['outside']), 'change')} came out of band and "
        f"{render_count(int(sums['applied']), 'change')} by an apply."
    )
    remarks = [
        f"{render_count(int(sums['unclear']), 'change')} could not be attributed"
        * bool(sums["unclear"]),
        f"{render_count(int(sums['behind']), 'apply', 'applies')} had no effect"
        * bool(sums["behind"]),
    ]
    remark = join_words(filter(None, remarks))
    return SectionBlock(
        (f"{lead}{f' {remark}.' if remark else ''}" if rows else f"No change in {DAYS} days.",),
        (Chart("changes-days", title, "changes", "day", _VERDICTS, bars, days=True),),
        (
            make_grid(
                "Changes that no apply made, newest first",
                _CHANGES,
                show_settings(name_objects(answers["change_rows"]), "before", "after"),
                "change_attribution",
            ),
        ),
    )


def _count_daily(
    rows: Sequence[Mapping[str, Any]],
    column: str,
    groups: Mapping[str, str],
    value: str,
    series: Sequence[Series],
) -> tuple[Bar, ...]:
    counted: dict[tuple[date, str], float] = defaultdict(float)
    for row in rows:
        counted[row["day"], groups[row[column]]] += row[value]
    return make_day_bars([row["day"] for row in rows], counted, series)


DRIFT = Outline(
    "drift",
    "Drift",
    "What is declared, what was recorded and what is live, compared. A cluster that was not read "
    "is unknown, never in sync.",
    (
        SectionPiece(
            "drift", ("drift_classes", "drift_clusters", "drift_owners"), show_drift_by_cluster
        ),
        SectionPiece("drift by day", ("drift_days",), show_drift_over_time),
        SectionPiece(
            "drift by class", ("drift_classes", "overrides", "drift_rows"), show_drift_by_class
        ),
    ),
)
CHANGES = Outline(
    "changes",
    "Changes",
    "What changed between two snapshots, and whether an apply did it. A change that was undone "
    "before the next snapshot cannot be seen.",
    (SectionPiece("changes", ("change_days", "change_rows"), show_changes),),
)


_USE_VERDICTS = (
    Series("candidate", "candidate", "C"),
    Series("kept", "kept", "K"),
    Series("in_use", "in use", "I"),
    Series("too_new", "too new", "T"),
    Series("unknown", "insufficient evidence", "?"),
)
_USE_VERDICT_OF: Mapping[str, str] = {"insufficient_evidence": "unknown"}
_TOPICS = (
    CLUSTER,
    GridColumn("topic", "Topic", ColumnKind.KEY),
    GridColumn("confidence", "Confidence", ColumnKind.SHARE),
    GridColumn("idle_since", "Idle since", ColumnKind.TIME, "unknown"),
    GridColumn("partitions", "Partitions", ColumnKind.NUMBER, "unknown"),
    GridColumn("bytes", "Size", ColumnKind.BYTES, "not measured"),
    OWNER,
    GridColumn("evidence", "Evidence", ColumnKind.LONG),
)
_KEPT_TOPICS = (
    CLUSTER,
    GridColumn("topic", "Topic", ColumnKind.KEY),
    GridColumn("idle_since", "Idle since", ColumnKind.TIME, "unknown"),
    GridColumn("bytes", "Size", ColumnKind.BYTES, "not measured"),
    OWNER,
    GridColumn("kept", "Why it stays", ColumnKind.LONG),
)
_GROUP_VERDICTS = (
    Series("applied", "progressing", "P"),
    Series("behind", "idle", "I"),
    Series("outside", "stuck", "S"),
    Series("pending", "stopped", "H"),
    Series("unmanaged", "unused", "U"),
    Series("unknown", "insufficient evidence", "?"),
)
_GROUP_VERDICT_OF: Mapping[str, str] = {
    **{"progressing": "applied", "idle": "behind", "stuck": "outside", "stopped": "pending"},
    **{"unused": "unmanaged", "insufficient_evidence": "unknown"},
}
_GROUPS = (
    GridColumn("verdict", "Verdict", ColumnKind.WORD),
    CLUSTER,
    GridColumn("group_id", "Group", ColumnKind.KEY),
    GridColumn("topic", "Topic", ColumnKind.KEY),
    GridColumn("members", "Members", ColumnKind.NUMBER, "unknown"),
    GridColumn("lag", "Lag, records", ColumnKind.NUMBER, "unknown"),
    GridColumn("since", "Not moved since", ColumnKind.TIME, "unknown"),
    OWNER,
)


def show_unused_topics(answers: SectionAnswers, as_of: datetime) -> SectionBlock:
    """The section part on unused topics."""
    counts = {
        _USE_VERDICT_OF.get(row["verdict"], row["verdict"]): int(row["topics"])
        for row in answers["unused_verdicts"]
    }
    candidates, kept_topics, unknown = (
        counts.get(key, 0) for key in ("candidate", "kept", "unknown")
    )
    bars = (
        (Bar("all topics", tuple(counts.get(s.key, 0) for s in _USE_VERDICTS)),) if counts else ()
    )
    lead = "No topic is a candidate for removal."
    if candidates:
        lead = (
            f"{render_count(candidates, 'topic')} may be unused: ask the owner before anything "
            "is deleted."
        )
    caption = "Candidates, most certain first"
    grids = [make_grid(caption, _TOPICS, answers["unused_rows"], "unused_topics")]
    if kept_topics:
        lead += f" fleet.hcl keeps {render_count(kept_topics, 'unused topic')}."
        grids.append(make_grid("Kept", _KEPT_TOPICS, answers["kept_topics"], "unused_topics"))
    if unknown:
        lead += f" For {render_count(unknown, 'topic')} there is not enough evidence."
    chart = Chart("unused-topics", "Topics by verdict", "topics", "fleet", _USE_VERDICTS, bars)
    return SectionBlock((lead,), (chart,), tuple(grids))


def show_groups(answers: SectionAnswers, as_of: datetime) -> SectionBlock:
    """The section part on groups without progress."""
    counts = {
        _GROUP_VERDICT_OF[row["verdict"]]: int(row["pairs"]) for row in answers["group_verdicts"]
    }
    values = tuple(counts.get(series.key, 0) for series in _GROUP_VERDICTS)
    bars = (Bar("all groups", values),) if counts else ()
    stuck = counts.get("outside", 0)
    lead = (
        f"{render_count(stuck, 'group makes', 'groups make')} no progress in a topic although "
        "there are members and records to read."
        if stuck
        else "No group is stuck."
    )
    title = "Groups and the topics that they read, by verdict"
    chart = Chart("groups", title, "pairs", "fleet", _GROUP_VERDICTS, bars)
    caption = "Groups without progress, the largest lag first"
    grid = make_grid(caption, _GROUPS, answers["group_rows"], "group_progress")
    return SectionBlock((lead,), (chart,), (grid,))


UNUSED = Outline(
    "unused",
    "Unused topics",
    "Topics that nobody has written or read during the grace days, by several signals. A candidate "
    "is a question to its owner, never a verdict.",
    (
        SectionPiece(
            "unused topics", ("unused_verdicts", "unused_rows", "kept_topics"), show_unused_topics
        ),
    ),
)
CONSUMERS = Outline(
    "groups",
    "Consumer groups",
    "What each group does with the topics that it reads, by its offsets in the snapshots of the "
    "last 31 days. Idle: there is nothing to read. Stuck: it has members and does not read what "
    "is there. Stopped: it has no members. Unused: stopped for 14 days.",
    (SectionPiece("groups", ("group_verdicts", "group_rows"), show_groups),),
)
