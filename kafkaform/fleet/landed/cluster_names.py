"""Translate scope ids (used in files) to cluster names (used by people); select newest rows."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, Window

_GLOB = re.compile(r"([\[\]{}*?\\])")
CHECKSUM_COLUMN = "sha256"
"""Column of `snapshot` that is null if the snapshot failed: then it has no rows that can be
trusted."""


def select_newest(frame: DataFrame, keys: Sequence[str], *order: Column) -> DataFrame:
    """Keep the first row of each key. order: must be total, so that each build picks the same
    row."""
    # Not dropDuplicates: it keeps an arbitrary row, so two builds of the same input could differ.
    ranked = Window.partitionBy(*keys).orderBy(*order)
    first = frame.withColumn("_rank", F.row_number().over(ranked)).where(F.col("_rank") == 1)
    return first.drop("_rank")


def select_latest_snapshots(snapshot: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Keep the newest snapshot of each key. Of two with the same time, the greater name wins."""
    return select_newest(snapshot, keys, F.desc("captured_at"), F.desc("snapshot"), F.desc("_file"))


def add_cluster_names(frame: DataFrame, cluster: DataFrame) -> DataFrame:
    """Add the column `cluster`: the name that belongs to `scope_id`, or the scope id if there is
    none.

    cluster: the silver table.
    """
    # One row per cluster: small enough to broadcast at any size of fleet, which avoids a shuffle of
    # the large side. A left join keeps rows of clusters that no register names.
    named = frame.join(F.broadcast(list_cluster_names(cluster)), "scope_id", how="left")
    return named.withColumn("cluster", F.coalesce("_name", "scope_id")).drop("_name")


def list_cluster_names(cluster: DataFrame) -> DataFrame:
    """Return scope_id and _name, one row per scope id.

    If two clusters of fleet.hcl have the same id, the one that was read last names the rows.
    """
    # A cluster that never answered has no id. In a join null equals nothing, so its rows would only
    # cost.
    identified = cluster.where(F.col("cluster_id").isNotNull())
    order = (F.desc("registered"), F.desc_nulls_last("captured_at"), F.asc("cluster"))
    chosen = select_newest(identified, ["cluster_id"], *order)
    return chosen.select(F.col("cluster_id").alias("scope_id"), F.col("cluster").alias("_name"))


def escape_pattern(path: str) -> str:
    """Escape glob characters, because Spark's readers expand every path that contains them."""
    return _GLOB.sub(r"\\\1", path)
