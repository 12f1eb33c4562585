"""Which clusters something new is about: their rows are made anew, all others stay."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyspark.sql.functions as F
from pyspark.sql import DataFrame

from ..core.landing import LIVE, REGISTER
from .inputs import source, subject
from .manifest import ALL, Clusters

Row = Mapping[str, Any]
Views = tuple[DataFrame, DataFrame]
"""A table as the build before left it, and as this one has made it."""


def touched(files: Iterable[str], clusters: Views, lineages: Views, lines: DataFrame) -> Clusters:
    """files: new ones, below the landing folder; lines: of `audit_raw`, those of this build.

    A cluster is touched by a snapshot of it; by a change in what is known of it as a whole, such
    as its status; by a new state or configuration of a lineage that has to do with it, also if
    that was so before only; and by a record that is about it. A new register touches all.
    """
    new = tuple(files)
    if any(source(key) == REGISTER for key in new):
        return ALL
    before, now = (_rows(view, "cluster") for view in clusters)
    names = {row["cluster_id"]: name for view in (before, now) for name, row in view.items()}
    scopes = {*_scopes_of_changed(lineages), *_scopes_of_lines(lines)}
    found = {subject(key) for key in new if source(key) == LIVE}
    found |= {name for name in before.keys() | now.keys() if before.get(name) != now.get(name)}
    found |= {names.get(scope, scope) for scope in scopes}
    return ALL if found >= before.keys() | now.keys() else frozenset(found)


def _scopes_of_changed(lineages: Views) -> Iterator[str]:
    before, now = (_rows(view, "lineage") for view in lineages)
    for lineage in before.keys() | now.keys():
        old, new = before.get(lineage, {}), now.get(lineage, {})
        if old != new:
            yield from old.get("scopes", {}).values()
            yield from new.get("scopes", {}).values()


def _scopes_of_lines(lines: DataFrame) -> Iterator[str]:
    """Steps name one scope, the beginning of a run all that it may change."""
    members = (
        F.get_json_object("body", f"$.{name}").alias(name) for name in ("scope_id", "scopes")
    )
    for row in lines.select(*members).distinct().collect():
        if row["scope_id"] is not None:
            yield row["scope_id"]
        if row["scopes"] is not None:
            yield from map(str, json.loads(row["scopes"]).values())


def _rows(view: DataFrame, key: str) -> Mapping[str, Row]:
    """Whole rows by their key. As text, because that is compared alike however it was read."""
    found = view.select(key, F.to_json(F.struct("*")).alias("row")).collect()
    return {row[key]: {"cluster_id": None, **json.loads(row["row"])} for row in found}
