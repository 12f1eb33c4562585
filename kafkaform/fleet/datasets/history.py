"""Since when each object was as it is: intervals between snapshots (SCD2, gaps and islands).

An object is there as long as snapshots show it with the same attributes and incarnation. It is
gone at the first snapshot that read its kind completely and does not have it: one that could not
see everything proves what it shows, and nothing of what it does not show.
"""

from __future__ import annotations

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, Window

from ...core.landing import CLUSTER, GROUP_USAGE, LIVE, TOPIC_USAGE
from ..landed.cluster_names import GOOD, select_newest
from ..tables.dataset import BuildContext, Frames
from ..tables.definitions import TABLES

LEFT_OUT = (CLUSTER, TOPIC_USAGE, GROUP_USAGE)
"""Kinds that are counters, not objects: they differ in each snapshot."""
_OBJECT = ("cluster", "kind", "key")
_COMPLETE, _FAILED = "complete", "failed"
_MADE = (*_OBJECT, "incarnation", "attrs", "seen_before", "valid_from", "valid_to", "deleted")


def build_history(frames: Frames, context: BuildContext) -> DataFrame:
    """frames: snapshot, snapshot_raw, history (what the build before made of these clusters).

    Only snapshots that are new are read, and what was so until then goes on from there. Where one
    has landed that is older than one that is known, that cluster's history is made anew. Of two
    snapshots of one moment, the one whose name comes last counts.
    """
    before, good = frames["history"], _select_good(frames["snapshot"])
    known = F.broadcast(_select_known(before, good))
    kept = before.join(known.select("cluster"), "cluster", how="left_semi")
    times = _select_unread(_build_timeline(good), known)
    standing = _carry_over(kept.where(F.col("valid_to").isNull()), times)
    seen = _list_seen(frames["snapshot_raw"], times)
    made = _build_intervals(seen.unionByName(standing, allowMissingColumns=True))
    closed = kept.where(F.col("valid_to").isNotNull()).select(*_MADE)
    marks = F.broadcast(_make_marks(good))
    rows = made.unionByName(closed).join(marks, "cluster", how="inner")
    return rows.select(*TABLES["history"].names)


def find_new_builds(frames: Frames) -> DataFrame:
    """The builds that took in what is new."""
    good = _select_good(frames["snapshot"])
    known = F.broadcast(_select_known(frames["history"], good))
    return _select_unread(good, known).select("_build").distinct()


def _select_unread(good: DataFrame, known: DataFrame) -> DataFrame:
    """What has landed since."""
    all_of_them = good.join(known, "cluster", how="left")
    unread = F.col("known_until").isNull() | (F.col("at") > F.col("known_until"))
    return all_of_them.where(unread).drop("known_until")


def _select_good(snapshot: DataFrame) -> DataFrame:
    """Of clusters, those that have rows."""
    good = snapshot.where((F.col("source") == LIVE) & F.col(GOOD).isNotNull())
    at = F.col("captured_at").alias("at")
    name = F.col("subject").alias("cluster")
    return good.select(name, "snapshot", at, "coverage", "_file", "_build")


def _make_marks(good: DataFrame) -> DataFrame:
    """cluster, known_until, known_snapshots: what a history is made of; one row a cluster."""
    return good.groupBy("cluster").agg(
        F.max("at").alias("known_until"), F.count_distinct("snapshot").alias("known_snapshots")
    )


def _select_known(before: DataFrame, good: DataFrame) -> DataFrame:
    """cluster, known_until: where nothing has landed late; one row a cluster."""
    marks = before.groupBy("cluster").agg(
        F.max("known_until").alias("known_until"), F.max("known_snapshots").alias("_then")
    )
    old = good.join(marks, "cluster", how="inner").where(F.col("at") <= F.col("known_until"))
    now = old.groupBy("cluster", "known_until", "_then").agg(
        F.count_distinct("snapshot").alias("_now")
    )
    return now.where(F.col("_now") == F.col("_then")).select("cluster", "known_until")


def _build_timeline(good: DataFrame) -> DataFrame:
    """cluster, kind, snapshot, at of each snapshot that read the kind, with the complete ones
    next to it: previous, following. One row a kind and moment."""
    once = select_newest(good, ["cluster", "at"], F.desc("snapshot"), F.asc("_file"))
    kinds = once.select("cluster", "snapshot", "at", F.explode("coverage").alias("kind", "how"))
    read = kinds.where((F.col("how") != _FAILED) & ~F.col("kind").isin(*LEFT_OUT))
    in_time = Window.partitionBy("cluster", "kind").orderBy("at")
    proof = F.when(F.col("how") == _COMPLETE, F.col("at"))
    earlier = in_time.rowsBetween(Window.unboundedPreceding, -1)
    later = in_time.rowsBetween(1, Window.unboundedFollowing)
    beside = {
        "proof": proof,
        "previous": F.max(proof).over(earlier),
        "following": F.min(proof).over(later),
    }
    return read.withColumns(beside).drop("how")


def _list_seen(snapshot_raw: DataFrame, times: DataFrame) -> DataFrame:
    """The objects of these snapshots, each once: _OBJECT, at, incarnation, attrs, previous,
    following."""
    rows = snapshot_raw.where(F.col("source") == LIVE).withColumn("cluster", F.col("subject"))
    objects = rows.select(*_OBJECT, "snapshot", "incarnation", "attrs", "_file")
    found = objects.join(times.drop("proof"), ["cluster", "kind", "snapshot"], how="inner")
    return select_newest(found, [*_OBJECT, "at"], F.asc("_file")).drop("snapshot", "_file")


def _carry_over(standing: DataFrame, times: DataFrame) -> DataFrame:
    """What still was so, as if it were seen when that began; the first new snapshot that could
    prove that it is gone comes next."""
    proofs = times.groupBy("cluster", "kind").agg(F.min("proof").alias("following"))
    rows = standing.join(proofs, ["cluster", "kind"], how="left")
    about = {"at": F.col("valid_from"), "carried": F.lit(True)}
    return rows.withColumns(about).select(
        *_OBJECT, "at", "incarnation", "attrs", "following", "seen_before", "carried"
    )


def _build_intervals(seen: DataFrame) -> DataFrame:
    """seen: unique by _OBJECT and at."""
    of_object = Window.partitionBy(*_OBJECT)
    by_time = of_object.orderBy("at")
    formed = seen.withColumn("form", F.struct("incarnation", sort_entries(F.col("attrs"))))
    same = F.col("form").eqNullSafe(F.lag("form").over(by_time))
    was_gone = F.coalesce(F.lag("following").over(by_time) < F.col("at"), F.lit(False))
    begins = F.lag("at").over(by_time).isNull() | ~same | was_gone
    numbered = formed.withColumn("begins", begins.cast("int")).withColumn(
        "island", F.sum("begins").over(by_time)
    )
    first = ("incarnation", "attrs", "previous", "seen_before", "carried")
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
    return _close_intervals(with_next).select(*_MADE)


def _close_intervals(islands: DataFrame) -> DataFrame:
    """A snapshot that shows the next form at once is no proof that it was gone between."""
    deleted = F.col("gone").isNotNull() & (
        F.col("next_from").isNull() | (F.col("gone") < F.col("next_from"))
    )
    ended = {
        "deleted": deleted,
        "valid_to": F.when(deleted, F.col("gone")).otherwise(F.col("next_from")),
        "seen_before": F.when(F.col("carried"), F.col("seen_before")).otherwise(
            F.greatest("previous", "last_from")
        ),
    }
    return islands.withColumns(ended)


def sort_entries(attrs: Column) -> Column:
    """A map as what can be compared: the same for the same, in whatever order it was written."""
    return F.array_sort(F.map_entries(attrs))
