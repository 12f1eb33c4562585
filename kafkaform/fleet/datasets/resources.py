"""What there is now: of clusters, of states and of configurations, each as it landed last."""

from __future__ import annotations

import pyspark.sql.functions as F
from pyspark.sql import DataFrame

from ...core.landing import DESIRED, LIVE, STATE
from ..landed.cluster_names import GOOD, add_cluster_names, select_latest_snapshots, select_newest
from ..tables.dataset import BuildContext, Frames
from ..tables.definitions import TABLES

FAILED = "failed"


def build_live(frames: Frames, context: BuildContext) -> DataFrame:
    """The objects that each cluster showed last. frames: snapshot, snapshot_raw.

    Kind by kind: where the newest snapshot could not read one, the newest that could counts; a
    snapshot that failed as a whole never does. A kind that no coverage speaks of was read whenever
    anything was.
    """
    good = _select_good(frames, LIVE)
    kinds = _explode_kinds(good)
    by_kind = _select_covered(kinds).select(
        "subject", F.col("key").alias("kind"), F.col("snapshot").alias("_of")
    )
    known = kinds.select("subject", F.col("key").alias("kind")).distinct()
    last = select_latest_snapshots(good, ["subject"]).select(
        "subject", F.col("snapshot").alias("_last")
    )
    chosen = known.join(by_kind, ["subject", "kind"], how="left").withColumn("_known", F.lit(True))
    rows = frames["snapshot_raw"].where(F.col("source") == LIVE)
    found = rows.join(F.broadcast(chosen), ["subject", "kind"], how="left").join(
        F.broadcast(last), "subject", how="inner"
    )
    wanted = F.when(F.col("_known"), F.col("_of")).otherwise(F.col("_last"))
    kept = found.where(F.col("snapshot") == wanted)
    kept = kept.withColumn("cluster", F.col("subject"))
    return _keep_once(kept, ("cluster", "kind", "key")).select(*TABLES["live"].names)


def find_live_builds(frames: Frames) -> DataFrame:
    """The builds that took in what `live` is made of."""
    good = _select_good(frames, LIVE)
    last = select_latest_snapshots(good, ["subject"]).select("_build")
    return last.unionByName(_select_covered(_explode_kinds(good)).select("_build")).distinct()


def _select_good(frames: Frames, source: str) -> DataFrame:
    """Snapshots that have rows."""
    return frames["snapshot"].where((F.col("source") == source) & F.col(GOOD).isNotNull())


def _explode_kinds(good: DataFrame) -> DataFrame:
    about = ("subject", "snapshot", "captured_at", "_file", "_build")
    return good.select(*about, F.explode("coverage"))


def _select_covered(kinds: DataFrame) -> DataFrame:
    """The newest snapshot of each cluster and kind that could read it."""
    return select_latest_snapshots(kinds.where(F.col("value") != FAILED), ["subject", "key"])


def build_recorded(frames: Frames, context: BuildContext) -> DataFrame:
    """The objects that each state has. frames: snapshot, snapshot_raw, cluster."""
    return _select_rows(_select_states(frames), frames, "recorded")


def find_recorded_builds(frames: Frames) -> DataFrame:
    return _select_states(frames).select("_build").distinct()


def _select_states(frames: Frames) -> DataFrame:
    return select_latest_snapshots(_select_good(frames, STATE), ["subject"])


def build_desired(frames: Frames, context: BuildContext) -> DataFrame:
    """The objects that each configuration declares; none of one that could not be read the last
    time (`lineage.desired_known`). frames: snapshot, snapshot_raw, cluster."""
    return _select_rows(_select_configurations(frames), frames, "desired")


def find_desired_builds(frames: Frames) -> DataFrame:
    return _select_configurations(frames).select("_build").distinct()


def _select_configurations(frames: Frames) -> DataFrame:
    mine = frames["snapshot"].where(F.col("source") == DESIRED)
    return select_latest_snapshots(mine, ["subject"]).where(F.col(GOOD).isNotNull())


def _select_rows(snapshots: DataFrame, frames: Frames, table: str) -> DataFrame:
    """The rows of these snapshots of states or configurations, one a lineage.

    What is in a cluster that nobody has reached yet is left out: there is nothing to compare it
    with, and no name to tell it by.
    """
    chosen = snapshots.select("source", "subject", "snapshot", "scopes")
    rows = frames["snapshot_raw"].join(
        F.broadcast(chosen), ["source", "subject", "snapshot"], how="inner"
    )
    placed = rows.withColumns(
        {
            "lineage": F.col("subject"),
            "scope_id": F.coalesce("scope_id", F.try_element_at("scopes", F.col("instance"))),
        }
    )
    found = add_cluster_names(placed.where(F.col("scope_id").isNotNull()), frames["cluster"])
    once = _keep_once(found, ("cluster", "kind", "key", "lineage"))
    return once.select(*TABLES[table].names)


def _keep_once(rows: DataFrame, keys: tuple[str, ...]) -> DataFrame:
    """A file that was taken in twice has each row twice; and two instances may lead to one
    cluster, of which the first one counts."""
    return select_newest(rows, keys, F.asc_nulls_last("instance"), F.asc("_file"))
