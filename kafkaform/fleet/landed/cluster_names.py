"""By which name a cluster is known: files say scope ids, people say names. And how Spark
takes a path for what it is."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, Window

_GLOB = re.compile(r"([\[\]{}*?\\])")
GOOD = "sha256"
"""Column of `snapshot` that is null for one that has no rows to be believed."""


def select_newest(frame: DataFrame, keys: Sequence[str], *order: Column) -> DataFrame:
    """The first row of each key in this order, which must be a total one."""
    ranked = Window.partitionBy(*keys).orderBy(*order)
    first = frame.withColumn("_rank", F.row_number().over(ranked)).where(F.col("_rank") == 1)
    return first.drop("_rank")


def select_latest_snapshots(snapshot: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The last one of each key; of two of one moment, the one whose name comes last."""
    return select_newest(snapshot, keys, F.desc("captured_at"), F.desc("snapshot"), F.desc("_file"))


def add_cluster_names(frame: DataFrame, cluster: DataFrame) -> DataFrame:
    """frame with `cluster`: the name of the cluster of its scope_id, or the scope id itself.
    cluster: the silver table."""
    found = frame.join(F.broadcast(list_cluster_names(cluster)), "scope_id", how="left")
    return found.withColumn("cluster", F.coalesce("_name", "scope_id")).drop("_name")


def list_cluster_names(cluster: DataFrame) -> DataFrame:
    """scope_id, _name: one row a scope id. Where two names answer with one id, the one in
    fleet.hcl that was read last."""
    known = cluster.where(F.col("cluster_id").isNotNull())
    order = (F.desc("registered"), F.desc_nulls_last("captured_at"), F.asc("cluster"))
    chosen = select_newest(known, ["cluster_id"], *order)
    return chosen.select(F.col("cluster_id").alias("scope_id"), F.col("cluster").alias("_name"))


def escape_pattern(path: str) -> str:
    """Spark takes what looks like a pattern for one, unless it is written like this."""
    return _GLOB.sub(r"\\\1", path)
