"""What there is now: of clusters, of states and of configurations, each as it landed last."""

from __future__ import annotations

import pyspark.sql.functions as F
from pyspark.sql import DataFrame

from ...core.landing import DESIRED, LIVE, STATE
from ..landed.cluster_names import GOOD, latest_snapshots, named, newest
from ..tables.dataset import Context, Frames
from ..tables.definitions import TABLES

FAILED = "failed"


def live(frames: Frames, context: Context) -> DataFrame:
    """The objects that each cluster showed last. frames: snapshot, snapshot_raw.

    Kind by kind: where the newest snapshot could not read one, the newest that could counts; a
    snapshot that failed as a whole never does. A kind that no coverage speaks of was read whenever
    anything was.
    """
    good = _good(frames, LIVE)
    kinds = _kinds(good)
    by_kind = _covered(kinds).select(
        "subject", F.col("key").alias("kind"), F.col("snapshot").alias("_of")
    )
    known = kinds.select("subject", F.col("key").alias("kind")).distinct()
    last = latest_snapshots(good, ["subject"]).select("subject", F.col("snapshot").alias("_last"))
    chosen = known.join(by_kind, ["subject", "kind"], how="left").withColumn("_known", F.lit(True))
    rows = frames["snapshot_raw"].where(F.col("source") == LIVE)
    found = rows.join(F.broadcast(chosen), ["subject", "kind"], how="left").join(
        F.broadcast(last), "subject", how="inner"
    )
    wanted = F.when(F.col("_known"), F.col("_of")).otherwise(F.col("_last"))
    kept = found.where(F.col("snapshot") == wanted)
    kept = kept.withColumn("cluster", F.col("subject"))
    return _once(kept, ("cluster", "kind", "key")).select(*TABLES["live"].names)


def live_builds(frames: Frames) -> DataFrame:
    """The builds that took in what `live` is made of."""
    good = _good(frames, LIVE)
    last = latest_snapshots(good, ["subject"]).select("_build")
    return last.unionByName(_covered(_kinds(good)).select("_build")).distinct()


def _good(frames: Frames, source: str) -> DataFrame:
    """Snapshots that have rows."""
    return frames["snapshot"].where((F.col("source") == source) & F.col(GOOD).isNotNull())


def _kinds(good: DataFrame) -> DataFrame:
    about = ("subject", "snapshot", "captured_at", "_file", "_build")
    return good.select(*about, F.explode("coverage"))


def _covered(kinds: DataFrame) -> DataFrame:
    """The newest snapshot of each cluster and kind that could read it."""
    return latest_snapshots(kinds.where(F.col("value") != FAILED), ["subject", "key"])


def recorded(frames: Frames, context: Context) -> DataFrame:
    """The objects that each state has. frames: snapshot, snapshot_raw, cluster."""
    return _of_lineages(_states(frames), frames, "recorded")


def recorded_builds(frames: Frames) -> DataFrame:
    return _states(frames).select("_build").distinct()


def _states(frames: Frames) -> DataFrame:
    return latest_snapshots(_good(frames, STATE), ["subject"])


def desired(frames: Frames, context: Context) -> DataFrame:
    """The objects that each configuration declares; none of one that could not be read the last
    time (`lineage.desired_known`). frames: snapshot, snapshot_raw, cluster."""
    return _of_lineages(_configurations(frames), frames, "desired")


def desired_builds(frames: Frames) -> DataFrame:
    return _configurations(frames).select("_build").distinct()


def _configurations(frames: Frames) -> DataFrame:
    mine = frames["snapshot"].where(F.col("source") == DESIRED)
    return latest_snapshots(mine, ["subject"]).where(F.col(GOOD).isNotNull())


def _of_lineages(snapshots: DataFrame, frames: Frames, table: str) -> DataFrame:
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
    found = named(placed.where(F.col("scope_id").isNotNull()), frames["cluster"])
    once = _once(found, ("cluster", "kind", "key", "lineage"))
    return once.select(*TABLES[table].names)


def _once(rows: DataFrame, keys: tuple[str, ...]) -> DataFrame:
    """A file that was taken in twice has each row twice; and two instances may lead to one
    cluster, of which the first one counts."""
    return newest(rows, keys, F.asc_nulls_last("instance"), F.asc("_file"))
