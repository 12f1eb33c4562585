"""Which clusters something new is about: their rows are made anew, all others stay.

Two things that a build makes depend on its time (`Context.as_of`) and not on rows alone: whether a
snapshot is stale, which `cluster` says, a table that every build makes anew; and whether a waiver
still holds. All else about a cluster is judged as of its own newest snapshot. `as_of` in the drift
of a cluster that cannot be read is the time at which it was judged last.
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
from ..tables.manifest import ALL, Clusters
from .inputs import get_source, get_subject

Row = Mapping[str, Any]
Rows = Mapping[str, Row]
Views = tuple[DataFrame, DataFrame]
"""A table as the build before left it, and as this one has made it."""
_BEGIN = "run_begin"


class ChangedClusters(Struct, frozen=True):
    """clusters: rows about them are made anew; renamed: old records may be about other clusters
    now, since a name or an id is new or gone, or two names share an id."""

    clusters: Clusters
    renamed: bool


def find_changed_clusters(
    files: Iterable[str], clusters: Views, lineages: Views, lines: DataFrame, ended: DataFrame
) -> ChangedClusters:
    """files: new ones, below the landing folder; lines: of `audit_raw`, those that no build before
    has seen; ended: of `policy_findings`, those whose waiver has ended since.

    A cluster is touched by a snapshot of it; by a change in what is known of it as a whole, such
    as its status, or of another one with the same id; by a new state or configuration of a lineage
    that has to do with it, also if that was so before only; by a record that is about it; and by
    the end of a waiver. A lineage that may have to do with any cluster touches all when it begins
    to be so, and when it ends.
    """
    before, now, were, are, told, waived = _collect_parts(
        *(_select_rows(view, "cluster") for view in clusters),
        *(_select_rows(view, "lineage") for view in lineages),
        _select_part(lines.select(_scopes_column().alias("key")).distinct(), F.col("key")),
        _select_part(ended.select("cluster").distinct(), F.col("cluster")),
    )
    changed, renamed = _find_changes(were, are), _is_renamed(before, now)
    if any(_reaches_all(old) != _reaches_all(new) for old, new in changed.values()):
        return ChangedClusters(ALL, renamed)
    views = (before, now)
    found = _find_changes(before, now).keys() | waived.keys()
    found |= {get_subject(key) for key in files if get_source(key) == LIVE}
    found |= _find_names(views, found, {*_list_lineage_scopes(changed), *_list_line_scopes(told)})
    if changed:
        # Any unread state may be about a cluster that never said which one it is.
        found |= {name for name in now if not _list_ids(views, name)}
    return ChangedClusters(ALL if found >= now.keys() else frozenset(found), renamed)


def _is_renamed(before: Rows, now: Rows) -> bool:
    named = [
        sorted((row["cluster_id"], name) for name, row in view.items() if row.get("cluster_id"))
        for view in (before, now)
    ]
    shared = any(len(dict(pairs)) < len(pairs) for pairs in named)
    return shared or named[0] != named[1]


def _find_names(views: Sequence[Rows], changed: Iterable[str], scopes: Iterable[str]) -> set[str]:
    """Names of these scopes, and all that share an id with a changed cluster: rows may go over
    from one name to the other."""
    names: dict[str, set[str]] = defaultdict(set)
    for name in {name for view in views for name in view}:
        for scope in _list_ids(views, name):
            names[scope].add(name)
    wanted = {*scopes, *(scope for name in changed for scope in _list_ids(views, name))}
    return {name for scope in wanted for name in names.get(scope, {scope})}


def _list_ids(views: Sequence[Rows], name: str) -> frozenset[str]:
    found = (view.get(name, {}).get("cluster_id") for view in views)
    return frozenset(one for one in found if one)


def _find_changes(before: Rows, now: Rows) -> Mapping[str, tuple[Row, Row]]:
    """Key -> the row as it was and as it is; empty: there is none."""
    keys = before.keys() | now.keys()
    pairs = {key: (before.get(key, {}), now.get(key, {})) for key in keys}
    return {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}


def _reaches_all(lineage: Row) -> bool:
    """Whether what no cluster's rows can tell, because it was not read, may be about any cluster:
    the same as `drift` takes for doubtful."""
    if not lineage or (lineage["desired_known"] and lineage.get("state_at")):
        return False
    scopes = lineage["scopes"].values()
    return not scopes or None in scopes


def _list_lineage_scopes(changed: Mapping[str, tuple[Row, Row]]) -> Iterator[str]:
    for pair in changed.values():
        for row in pair:
            yield from filter(None, row.get("scopes", {}).values())


def _list_line_scopes(told: Iterable[str]) -> Iterator[str]:
    """Steps name one scope, the beginning of a run all that it may change."""
    for text in told:
        step, run = json.loads(text)
        if step is not None:
            yield step
        if run is not None:
            yield from map(str, filter(None, json.loads(run).values()))


def _scopes_column() -> Column:
    run = F.when(F.col("kind") == _BEGIN, F.get_json_object("body", "$.scopes"))
    return F.to_json(F.array("scope_id", run))


# ── one query for all of it ─────────────────────────────────────────────────────────────


def _select_rows(view: DataFrame, key: str) -> DataFrame:
    """Rows as text, because that is compared alike however it was read."""
    return _select_part(view, F.col(key), F.to_json(F.struct("*")))


def _select_part(rows: DataFrame, key: Column, row: Column | None = None) -> DataFrame:
    return rows.select(key.alias("key"), (F.lit("{}") if row is None else row).alias("row"))


def _collect_parts(*parts: DataFrame) -> tuple[Rows, ...]:
    """Each part's rows by their key."""
    numbered = (part.withColumn("part", F.lit(n)) for n, part in enumerate(parts))
    found: tuple[dict[str, Row], ...] = tuple({} for _ in parts)
    for key, row, part in reduce(DataFrame.unionByName, numbered).collect():
        found[part][key] = json.loads(row)
    return found
