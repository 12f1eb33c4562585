"""Compute since when each object has been as it is: intervals between snapshots (SCD type 2).

An object exists as long as snapshots show it with the same attributes and incarnation. It is
deleted at the first snapshot that read its kind completely and does not show it. A snapshot that
could not see everything proves what it shows, and nothing about what it does not show.
"""

from __future__ import annotations

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, Window

from ...core.landing import CLUSTER, GROUP_USAGE, LIVE, TOPIC_USAGE
from ..landed.snapshots import CHECKSUM_COLUMN, select_newest
from ..tables.definitions import TABLES, BuildContext, Frames

COUNTER_KINDS = (CLUSTER, TOPIC_USAGE, GROUP_USAGE)
"""Kinds that are counters, not objects: they differ in every snapshot."""
_OBJECT = ("cluster", "kind", "key")
_COMPLETE, _FAILED = "complete", "failed"
_INTERVAL_COLUMNS = (
    *_OBJECT,
    "incarnation",
    "attrs",
    "seen_before",
    "valid_from",
    "valid_to",
    "deleted",
)


def build_history(frames: Frames, context: BuildContext) -> DataFrame:
    """Return the rows of `history`. Inputs: snapshot, snapshot_raw, and the previous history.

    Only new snapshots are read; open intervals continue from the previous rows. If a snapshot lands
    that is older than one that is known, its cluster's history is computed again. Of two snapshots
    with the same time, the one with the greater name counts.
    """
    before, good = frames["history"], _select_good(frames["snapshot"])
    covered = F.broadcast(_select_known(before, good))
    # Clusters with late snapshots are not among them: their old intervals may be wrong now.
    continued = before.join(covered.select("cluster"), "cluster", how="left_semi")
    times = _select_unread(_build_timeline(good), covered)
    # An open interval counts as if the object had been seen at its start. following: the first new
    # snapshot that could prove its deletion.
    proofs = times.groupBy("cluster", "kind").agg(F.min("proof").alias("following"))
    proven = continued.where(F.col("valid_to").isNull()).join(
        proofs, ["cluster", "kind"], how="left"
    )
    about = {"at": F.col("valid_from"), "carried": F.lit(True)}
    open_intervals = proven.withColumns(about).select(
        *_OBJECT, "at", "incarnation", "attrs", "following", "seen_before", "carried"
    )
    live_rows = (
        frames["snapshot_raw"]
        .where(F.col("source") == LIVE)
        .withColumn("cluster", F.col("subject"))
    )
    objects = live_rows.select(*_OBJECT, "snapshot", "incarnation", "attrs", "_file")
    timed_objects = objects.join(times.drop("proof"), ["cluster", "kind", "snapshot"], how="inner")
    sightings = select_newest(timed_objects, [*_OBJECT, "at"], F.asc("_file")).drop(
        "snapshot", "_file"
    )
    intervals = _build_intervals(sightings.unionByName(open_intervals, allowMissingColumns=True))
    closed = continued.where(F.col("valid_to").isNotNull()).select(*_INTERVAL_COLUMNS)
    # What the new history covers, one row per cluster.
    marks = F.broadcast(
        good.groupBy("cluster").agg(
            F.max("at").alias("known_until"), F.count_distinct("snapshot").alias("known_snapshots")
        )
    )
    rows = intervals.unionByName(closed).join(marks, "cluster", how="inner")
    return rows.select(*TABLES["history"].names)


def find_new_builds(frames: Frames) -> DataFrame:
    """Return the builds that read the new snapshots."""
    good = _select_good(frames["snapshot"])
    covered = F.broadcast(_select_known(frames["history"], good))
    return _select_unread(good, covered).select("_build").distinct()


def _select_unread(good: DataFrame, covered: DataFrame) -> DataFrame:
    """Return the snapshots that the previous history does not cover."""
    all_of_them = good.join(covered, "cluster", how="left")
    # null: the cluster has no history yet, or must be computed again.
    unread = F.col("known_until").isNull() | (F.col("at") > F.col("known_until"))
    return all_of_them.where(unread).drop("known_until")


def _select_good(snapshot: DataFrame) -> DataFrame:
    """Return the clusters' snapshots that have rows."""
    good = snapshot.where((F.col("source") == LIVE) & F.col(CHECKSUM_COLUMN).isNotNull())
    at = F.col("captured_at").alias("at")
    name = F.col("subject").alias("cluster")
    return good.select(name, "snapshot", at, "coverage", "_file", "_build")


def _select_known(before: DataFrame, good: DataFrame) -> DataFrame:
    """Return cluster and known_until of the clusters for which nothing landed late. One row per
    cluster."""
    marks = before.groupBy("cluster").agg(
        F.max("known_until").alias("known_until"), F.max("known_snapshots").alias("_then")
    )
    # The number of snapshots up to the known end tells whether one has landed late.
    covered_snapshots = good.join(marks, "cluster", how="inner").where(
        F.col("at") <= F.col("known_until")
    )
    counted = covered_snapshots.groupBy("cluster", "known_until", "_then").agg(
        F.count_distinct("snapshot").alias("_now")
    )
    return counted.where(F.col("_now") == F.col("_then")).select("cluster", "known_until")


def _build_timeline(good: DataFrame) -> DataFrame:
    """Return cluster, kind, snapshot, at of each snapshot that read the kind, with the times of the
    complete ones around it: previous, following. One row per kind and moment."""
    # One snapshot per moment, or an object would have two forms at the same time.
    snapshots = select_newest(good, ["cluster", "at"], F.desc("snapshot"), F.asc("_file"))
    kinds = snapshots.select(
        "cluster", "snapshot", "at", F.explode("coverage").alias("kind", "how")
    )
    read = kinds.where((F.col("how") != _FAILED) & ~F.col("kind").isin(*COUNTER_KINDS))
    in_time = Window.partitionBy("cluster", "kind").orderBy("at")
    # Only a complete look can prove that something is missing.
    proof = F.when(F.col("how") == _COMPLETE, F.col("at"))
    earlier = in_time.rowsBetween(Window.unboundedPreceding, -1)
    later = in_time.rowsBetween(1, Window.unboundedFollowing)
    neighbours = {
        "proof": proof,
        # Frames are written out: the default one includes the current row, which proves nothing
        # about itself.
        "previous": F.max(proof).over(earlier),
        "following": F.min(proof).over(later),
    }
    return read.withColumns(neighbours).drop("how")


def _build_intervals(sightings: DataFrame) -> DataFrame:
    """Merge sightings into intervals (gaps and islands). sightings: unique by _OBJECT and at."""
    of_object = Window.partitionBy(*_OBJECT)
    by_time = of_object.orderBy("at")
    formed = sightings.withColumn("form", F.struct("incarnation", sort_entries(F.col("attrs"))))
    # Only topics have an incarnation: a plain comparison of nulls would begin an interval every
    # time.
    is_same_form = F.col("form").eqNullSafe(F.lag("form").over(by_time))
    # A complete look between two sightings did not show it: it was deleted and came back the same.
    was_gone = F.coalesce(F.lag("following").over(by_time) < F.col("at"), F.lit(False))
    begins = F.lag("at").over(by_time).isNull() | ~is_same_form | was_gone
    numbered = formed.withColumn("begins", begins.cast("int")).withColumn(
        "island", F.sum("begins").over(by_time)
    )
    first = ("incarnation", "attrs", "previous", "seen_before", "carried")
    # min_by and max_by take the value of the first or last sighting; `first` would depend on row
    # order.
    islands = numbered.groupBy(*_OBJECT, "island").agg(
        F.min("at").alias("valid_from"),
        F.max_by("following", "at").alias("gone"),
        *(F.min_by(name, "at").alias(name) for name in first),
    )
    in_order = of_object.orderBy("valid_from")
    with_next = islands.withColumns(
        {
            "next_from": F.lead("valid_from").over(in_order),
            "last_from": F.lag("valid_from").over(in_order),
        }
    )
    # A snapshot that already shows the next form does not prove that the object was deleted in
    # between.
    deleted = F.col("gone").isNotNull() & (
        F.col("next_from").isNull() | (F.col("gone") < F.col("next_from"))
    )
    end_columns = {
        "deleted": deleted,
        "valid_to": F.when(deleted, F.col("gone")).otherwise(F.col("next_from")),
        "seen_before": F.when(F.col("carried"), F.col("seen_before")).otherwise(
            F.greatest("previous", "last_from")
        ),
    }
    return with_next.withColumns(end_columns).select(*_INTERVAL_COLUMNS)


def sort_entries(attrs: Column) -> Column:
    """Return a map as a sorted array, which can be compared: map order is the order of writing."""
    return F.array_sort(F.map_entries(attrs))
