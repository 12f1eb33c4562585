"""Find the clusters that have new input. Only their rows are recomputed.

Two results depend on the build's time (`BuildContext.as_of`) and not on new rows alone: whether a
snapshot is stale (table `cluster`, which every build recomputes) and whether a waiver still counts.
Everything else about a cluster is judged as of its own newest snapshot. The `as_of` in the drift of
an unreadable cluster is the time at which it was last judged.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

import pyspark.sql.functions as F
from msgspec import Struct
from pyspark.sql import Column, DataFrame

from ...core.landing import LIVE
from ..tables.manifest import ALL_CLUSTERS, Clusters
from .intake import get_source, get_subject

Row = Mapping[str, Any]
Rows = Mapping[str, Row]
Views = tuple[DataFrame, DataFrame]
"""A table as the previous build left it, and as this build has made it."""
_BEGIN = "run_begin"


class ChangedClusters(Struct, frozen=True):
    """What a build has to recompute."""

    clusters: Clusters
    """Their rows are recomputed."""
    renamed: bool
    """Old audit records may belong to other clusters now: a name or an id is new or gone, or two
    names have the same id."""


def find_changed_clusters(
    files: Iterable[str], clusters: Views, lineages: Views, lines: DataFrame, ended: DataFrame
) -> ChangedClusters:
    """Compare the tables `cluster` and `lineage` with those of the previous build.

    files: new ones, below the landing folder; lines: rows of `audit_raw` that no earlier build has
    seen; ended: rows of `policy_findings` whose waiver has ended since.

    A cluster has new input if it has a new snapshot; if its row changes, such as its status, or
    that of another cluster with the same id; if a lineage that concerns it (now or before) has a
    new state or configuration; if a record is about it; or if a waiver has ended. A lineage that
    may concern any cluster causes all clusters to be recomputed when it becomes, or stops being,
    such a lineage.
    """
    # A run may have changed clusters without a recorded step, so all of its scopes count.
    run_scopes = F.when(F.col("kind") == _BEGIN, F.get_json_object("body", "$.scopes"))
    scopes = F.to_json(F.array("scope_id", run_scopes))
    clusters_before, clusters_now, lineages_before, lineages_now, line_scopes, waived = (
        _collect_parts(
            *(_select_rows(view, "cluster") for view in clusters),
            *(_select_rows(view, "lineage") for view in lineages),
            _select_part(lines.select(scopes.alias("key")).distinct(), F.col("key")),
            _select_part(ended.select("cluster").distinct(), F.col("cluster")),
        )
    )
    changed = _find_changes(lineages_before, lineages_now)
    renamed = _is_renamed(clusters_before, clusters_now)
    # Only the transition: while a lineage stays unread, the clusters' rows already say "unknown".
    if any(_reaches_all(old) != _reaches_all(new) for old, new in changed.values()):
        return ChangedClusters(ALL_CLUSTERS, renamed)
    views = (clusters_before, clusters_now)
    names = _find_changes(clusters_before, clusters_now).keys() | waived.keys()
    # A new snapshot counts even if no column of `cluster` changes: its rows may be other ones.
    names |= {get_subject(key) for key in files if get_source(key) == LIVE}
    lineage_scopes = {
        scope
        for versions in changed.values()
        for row in versions
        for scope in row.get("scopes", {}).values()
        if scope
    }
    names |= _find_names(views, names, {*lineage_scopes, *_list_line_scopes(line_scopes)})
    if changed:
        # Any unread state may be about a cluster that never said which one it is.
        names |= {name for name in clusters_now if not _list_ids(views, name)}
    # ALL_CLUSTERS instead of a list of every name: a table is then overwritten, which is
    # cheaper than replacing all of its clusters one by one.
    return ChangedClusters(
        ALL_CLUSTERS if names >= clusters_now.keys() else frozenset(names), renamed
    )


def _is_renamed(previous: Rows, current: Rows) -> bool:
    """True if names and ids are paired differently now, or if two names share an id."""
    named = [
        sorted((row["cluster_id"], name) for name, row in view.items() if row.get("cluster_id"))
        for view in (previous, current)
    ]
    shared = any(len(dict(ids)) < len(ids) for ids in named)
    return shared or named[0] != named[1]


def _find_names(views: Sequence[Rows], changed: Iterable[str], scopes: Iterable[str]) -> set[str]:
    """Return the names of these scopes and all names that share an id with a changed cluster, since
    rows may move from one name to the other."""
    names: dict[str, set[str]] = defaultdict(set)
    for name in {name for view in views for name in view}:
        for scope in _list_ids(views, name):
            names[scope].add(name)
    all_scopes = {*scopes, *(scope for name in changed for scope in _list_ids(views, name))}
    return {name for scope in all_scopes for name in names.get(scope, {scope})}


def _list_ids(views: Sequence[Rows], name: str) -> frozenset[str]:
    ids = (view.get(name, {}).get("cluster_id") for view in views)
    return frozenset(cluster_id for cluster_id in ids if cluster_id)


def _find_changes(previous: Rows, current: Rows) -> Mapping[str, tuple[Row, Row]]:
    """Return key -> the row before and after; empty: there is none."""
    keys = previous.keys() | current.keys()
    rows = {key: (previous.get(key, {}), current.get(key, {})) for key in keys}
    return {key: versions for key, versions in rows.items() if versions[0] != versions[1]}


def _reaches_all(lineage: Row) -> bool:
    """True if the lineage could not be read and may concern any cluster. `drift` uses the same rule
    to call an object `unknown`."""
    if not lineage or (lineage["desired_known"] and lineage.get("state_at")):
        return False
    scopes = lineage["scopes"].values()
    return not scopes or None in scopes


def _list_line_scopes(line_scopes: Iterable[str]) -> Iterator[str]:
    """Yield the scope of each step, and all scopes of each run that begins."""
    for text in line_scopes:
        step, run = json.loads(text)
        if step is not None:
            yield step
        if run is not None:
            yield from map(str, filter(None, json.loads(run).values()))


# ── one query for all of it ─────────────────────────────────────────────────────────────


def _select_rows(view: DataFrame, key: str) -> DataFrame:
    """Return whole rows as JSON: two reads of a table can differ in types, but not in that text."""
    return _select_part(view, F.col(key), F.to_json(F.struct("*")))


def _select_part(rows: DataFrame, key: Column, row: Column | None = None) -> DataFrame:
    return rows.select(key.alias("key"), (F.lit("{}") if row is None else row).alias("row"))


def _collect_parts(*queries: DataFrame) -> tuple[Rows, ...]:
    """Return the rows of each part by key. One query for all parts: planning six would take
    longer."""
    # The driver may collect here: one small row per cluster, lineage and distinct scope.
    numbered = (query.withColumn("part", F.lit(n)) for n, query in enumerate(queries))
    rows: tuple[dict[str, Row], ...] = tuple({} for _ in queries)
    for key, row, query in reduce(DataFrame.unionByName, numbered).collect():
        rows[query][key] = json.loads(row)
    return rows
