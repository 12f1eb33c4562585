"""Select what exists now: the newest rows of clusters, of states and of configurations."""

from __future__ import annotations

import pyspark.sql.functions as F
from pyspark.sql import DataFrame

from ...core.landing import DESIRED, LIVE, STATE
from ..landed.cluster_names import (
    CHECKSUM_COLUMN,
    add_cluster_names,
    select_latest_snapshots,
    select_newest,
)
from ..tables.dataset import BuildContext, Frames
from ..tables.definitions import TABLES

FAILED = "failed"


def build_live(frames: Frames, context: BuildContext) -> DataFrame:
    """Return the objects that each cluster showed last. Inputs: snapshot, snapshot_raw.

    Per kind: if the newest snapshot could not read the kind, the newest one that could is used. A
    snapshot that failed as a whole is never used. A kind that no coverage mentions was read
    whenever anything was.
    """
    # Not `complete` ones: a snapshot with one failed kind still shows all others.
    good = _select_good(frames, LIVE)
    kinds = _explode_kinds(good)
    by_kind = _select_covered(kinds).select(
        "subject", F.col("key").alias("kind"), F.col("snapshot").alias("_of")
    )
    cluster_kinds = kinds.select("subject", F.col("key").alias("kind")).distinct()
    last = select_latest_snapshots(good, ["subject"]).select(
        "subject", F.col("snapshot").alias("_last")
    )
    chosen = cluster_kinds.join(by_kind, ["subject", "kind"], how="left").withColumn(
        "_known", F.lit(True)
    )
    rows = frames["snapshot_raw"].where(F.col("source") == LIVE)
    # One row per cluster and kind on the right: broadcasting it keeps the large side unshuffled.
    marked = rows.join(F.broadcast(chosen), ["subject", "kind"], how="left").join(
        F.broadcast(last), "subject", how="inner"
    )
    # A kind whose every look failed is known and has no `_of`: null equals no snapshot, so no rows.
    newest_snapshot = F.when(F.col("_known"), F.col("_of")).otherwise(F.col("_last"))
    newest = marked.where(F.col("snapshot") == newest_snapshot)
    newest = newest.withColumn("cluster", F.col("subject"))
    return _keep_once(newest, ("cluster", "kind", "key")).select(*TABLES["live"].names)


def find_live_builds(frames: Frames) -> DataFrame:
    """Return the builds that read the rows of `live`."""
    good = _select_good(frames, LIVE)
    last = select_latest_snapshots(good, ["subject"]).select("_build")
    return last.unionByName(_select_covered(_explode_kinds(good)).select("_build")).distinct()


def _select_good(frames: Frames, source: str) -> DataFrame:
    """Return the snapshots that have rows."""
    return frames["snapshot"].where(
        (F.col("source") == source) & F.col(CHECKSUM_COLUMN).isNotNull()
    )


def _explode_kinds(good: DataFrame) -> DataFrame:
    about = ("subject", "snapshot", "captured_at", "_file", "_build")
    return good.select(*about, F.explode("coverage"))


def _select_covered(kinds: DataFrame) -> DataFrame:
    """Return the newest snapshot of each cluster and kind that could read it."""
    return select_latest_snapshots(kinds.where(F.col("value") != FAILED), ["subject", "key"])


def build_recorded(frames: Frames, context: BuildContext) -> DataFrame:
    """Return the objects that each state records. Inputs: snapshot, snapshot_raw, cluster."""
    return _select_rows(_select_states(frames), frames, "recorded")


def find_recorded_builds(frames: Frames) -> DataFrame:
    """Return the builds that read the newest states."""
    return _select_states(frames).select("_build").distinct()


def _select_states(frames: Frames) -> DataFrame:
    return select_latest_snapshots(_select_good(frames, STATE), ["subject"])


def build_desired(frames: Frames, context: BuildContext) -> DataFrame:
    """Return the objects that each configuration declares; none for a configuration that could not
    be read the last time (`lineage.desired_known`). Inputs: snapshot, snapshot_raw, cluster."""
    return _select_rows(_select_configurations(frames), frames, "desired")


def find_desired_builds(frames: Frames) -> DataFrame:
    """Return the builds that read the newest configurations."""
    return _select_configurations(frames).select("_build").distinct()


def _select_configurations(frames: Frames) -> DataFrame:
    configurations = frames["snapshot"].where(F.col("source") == DESIRED)
    # First the newest, then whether it is good: an older configuration would hide that it is
    # unreadable.
    return select_latest_snapshots(configurations, ["subject"]).where(
        F.col(CHECKSUM_COLUMN).isNotNull()
    )


def _select_rows(snapshots: DataFrame, frames: Frames, table: str) -> DataFrame:
    """Return the rows of these snapshots of states or configurations, one snapshot per lineage.

    Objects in a cluster that nobody has reached yet are left out: there is nothing to compare them
    with, and no name for the cluster.
    """
    chosen = snapshots.select("source", "subject", "snapshot", "scopes")
    rows = frames["snapshot_raw"].join(
        F.broadcast(chosen), ["source", "subject", "snapshot"], how="inner"
    )
    placed = rows.withColumns(
        {
            "lineage": F.col("subject"),
            # A row that was written before the cluster answered has no scope id; its snapshot may
            # know it.
            "scope_id": F.coalesce("scope_id", F.try_element_at("scopes", F.col("instance"))),
        }
    )
    named = add_cluster_names(placed.where(F.col("scope_id").isNotNull()), frames["cluster"])
    distinct = _keep_once(named, ("cluster", "kind", "key", "lineage"))
    return distinct.select(*TABLES[table].names)


def _keep_once(rows: DataFrame, keys: tuple[str, ...]) -> DataFrame:
    """Keep one row per key. A file that was read twice has each row twice; and two provider
    instances may lead to one cluster, of which the first counts."""
    return select_newest(rows, keys, F.asc_nulls_last("instance"), F.asc("_file"))
