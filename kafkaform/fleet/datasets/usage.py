"""Determine when topics were last written and read, as far as snapshots show it.

Each build continues from the previous one (STATE) with the snapshots that landed since; old ones
are never read again, and one that lands late adds nothing. End offsets only grow, so two looks
reveal any write between them. Committed offsets of a group expire some time after the group is
gone, so a topic counts as unread only while looks at the groups are close enough.
"""

from __future__ import annotations

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, Window

from ...core.landing import GROUP_USAGE, LIVE, TOPIC_USAGE
from ..landed.cluster_names import CHECKSUM_COLUMN
from ..tables.dataset import Frames

OFFSETS = ("end_offset", "written_at", "offsets_since", "offsets_at")
GROUPS = ("committed", "read_at", "groups_since", "groups_at")
STATE = (*OFFSETS, *GROUPS)
"""Columns of `unused_topics` that the next build continues from."""
KEY = ("cluster", "topic")
MOST_DAYS_BETWEEN_LOOKS = 7
"""Kafka's default for how long the offsets of an empty group are kept
(offsets.retention.minutes)."""
COMPLETE, VISIBLE = "complete", "visible_only"


def build_usage(frames: Frames, build: str) -> DataFrame:
    """Return KEY and STATE: one row per topic whose use any snapshot has shown.

    Inputs: live, cluster, snapshot, snapshot_raw, and the previous unused_topics. build: the build
    that read the new snapshots.
    """
    before = frames["unused_topics"].select(*KEY, *STATE)
    looks = _list_looks(frames, build, before)
    offsets = _find_written(_list_offsets(frames, build), before)
    groups = _find_read(_list_groups(frames, build), looks, before)
    # full: a topic may have groups and no offsets (a partition without a leader), and the reverse.
    rows = offsets.join(groups, list(KEY), "full").join(looks, ["cluster"], "left")
    no_groups = F.create_map().cast("map<string,bigint>")
    committed = F.when(F.col("groups_at").isNotNull(), F.coalesce("committed", no_groups))
    return rows.withColumn("committed", committed).select(*KEY, *STATE)


def _list_seen(frames: Frames, build: str, kind: str) -> DataFrame:
    """Return cluster, key, attrs, at: rows of this kind in new snapshots and in `live`. The newest
    snapshot may be in both; a build with `--only` may have read it without making this table."""
    raw, live = frames["snapshot_raw"], frames["live"]
    new = (F.col("_build") == build) & (F.col("source") == LIVE) & (F.col("kind") == kind)
    columns = ("key", "attrs", F.col("captured_at").alias("at"))
    rows = raw.where(new).select(F.col("subject").alias("cluster"), *columns)
    return rows.unionByName(live.where(F.col("kind") == kind).select("cluster", *columns))


# -- writes


def _list_offsets(frames: Frames, build: str) -> DataFrame:
    """Return KEY, at (of the snapshot), end_offset: a row per look at a topic, some of them
    twice."""
    end = F.col("attrs")["end_offsets_sum"].try_cast("bigint")
    rows = _list_seen(frames, build, TOPIC_USAGE).select(
        "cluster", F.col("key").alias("topic"), "at", end.alias("end_offset")
    )
    return rows.where(F.col("end_offset").isNotNull())


def _find_written(looks: DataFrame, before: DataFrame) -> DataFrame:
    """Return KEY and OFFSETS."""
    previous = before.where(F.col("offsets_at").isNotNull()).select(
        *KEY, F.col("offsets_at").alias("at"), "end_offset", "written_at", "offsets_since"
    )
    rows = looks.unionByName(previous, allowMissingColumns=True)
    of_topic = Window.partitionBy(*KEY)
    old = F.col("offsets_since").isNotNull()
    # A late snapshot lies before what is known and is dropped: the state cannot be wound back.
    until = F.max(F.when(old, F.col("at"))).over(of_topic)
    later = rows.withColumn("until", until).where(old | _is_after("at", "until"))
    # end_offset breaks ties: two looks at the same time are ordered, so every build agrees.
    last = F.lag("end_offset").over(of_topic.orderBy("at", "end_offset"))
    # Unequal, not greater: a topic that was recreated starts again from lower offsets.
    moved = later.withColumn("moved", F.when(F.col("end_offset") != last, F.col("at")))
    return moved.groupBy(*KEY).agg(
        F.max(F.struct("at", "end_offset")).getField("end_offset").alias("end_offset"),
        F.max(F.coalesce("moved", "written_at")).alias("written_at"),
        # Observation began with the first look ever, which only the previous state knows.
        F.min(F.coalesce("offsets_since", "at")).alias("offsets_since"),
        F.max("at").alias("offsets_at"),
    )


def _is_after(at: str, until: str) -> Column:
    return F.col(until).isNull() | (F.col(at) > F.col(until))


# -- looks at groups


def _list_looks(frames: Frames, build: str, before: DataFrame) -> DataFrame:
    """Return one row per cluster whose groups were ever looked at: cluster; old_at, the last look
    that the previous build knew (null: none); times, that look and all later ones, in order;
    groups_at, the last of them; groups_since, the start of an unbroken series of complete looks
    that are close enough to each other (null: the last one is not complete)."""
    newest = frames["cluster"].select("cluster", F.col("captured_at").alias("newest"))
    metas = frames["snapshot"].where((F.col("source") == LIVE) & F.col(CHECKSUM_COLUMN).isNotNull())
    named = metas.select(F.col("subject").alias("cluster"), "_build", "captured_at", "coverage")
    is_wanted = (F.col("_build") == build) | (F.col("captured_at") == F.col("newest"))
    coverage = F.try_element_at("coverage", F.lit(GROUP_USAGE))
    look = F.struct(F.col("captured_at").alias("at"), (coverage == COMPLETE).alias("whole"))
    new = (
        named.join(newest, ["cluster"], "left")
        .where(is_wanted & coverage.isin(COMPLETE, VISIBLE))
        .select("cluster", look.alias("look"))
    )
    old = F.struct(F.col("groups_at").alias("at"), F.col("groups_since").alias("since"))
    previous = before.where(F.col("groups_at").isNotNull()).select("cluster", old.alias("old"))
    grouped = new.unionByName(previous, allowMissingColumns=True).groupBy("cluster")
    # Every topic of a cluster has the same last look, so `max` only picks it.
    return _fold_looks(grouped.agg(F.max("old").alias("old"), F.collect_set("look").alias("looks")))


def _fold_looks(rows: DataFrame) -> DataFrame:
    old_at = F.col("old.at")
    later = F.filter("looks", lambda look: old_at.isNull() | (look["at"] > old_at))
    begin = F.struct(old_at.alias("at"), F.col("old.since").alias("since"))
    sorted_ = rows.withColumn("later", F.array_sort(later))
    # A fold over a short sorted array: the break between two looks depends on the look before.
    folded = sorted_.withColumn("last", F.aggregate("later", begin, _fold_look))
    times = F.array_compact(F.concat(F.array(old_at), F.col("later.at")))
    return folded.select(
        *("cluster", old_at.alias("old_at"), times.alias("times")),
        F.col("last.at").alias("groups_at"),
        F.col("last.since").alias("groups_since"),
    )


def _fold_look(last: Column, look: Column) -> Column:
    """Return at and since after this look. last: at and since before it."""
    near = look["at"] <= last["at"] + F.make_dt_interval(F.lit(MOST_DAYS_BETWEEN_LOOKS))
    since = F.when(near & last["since"].isNotNull(), last["since"]).otherwise(look["at"])
    return F.struct(look["at"].alias("at"), F.when(look["whole"], since).alias("since"))


# -- reads


def _list_groups(frames: Frames, build: str) -> DataFrame:
    """Return KEY, at, group, committed, members; some rows twice. A group's name may contain
    spaces, a topic's cannot."""
    key, attrs = F.col("key"), F.col("attrs")
    topic = F.substring_index(key, " ", -1)
    return _list_seen(frames, build, GROUP_USAGE).select(
        *("cluster", topic.alias("topic"), "at"),
        F.left(key, F.length(key) - F.length(topic) - 1).alias("group"),
        attrs["committed_sum"].try_cast("bigint").alias("committed"),
        attrs["members"].try_cast("bigint").alias("members"),
    )


def _find_read(rows: DataFrame, looks: DataFrame, before: DataFrame) -> DataFrame:
    """Return KEY, committed and read_at. A topic is read by a group that has members, by one that
    moved its offsets since the previous look, and by one that did not exist then."""
    previous = before.where(F.col("groups_at").isNotNull()).select(
        *(*KEY, F.col("groups_at").alias("at"), "read_at", F.lit(True).alias("old")),
        F.explode_outer("committed").alias("group", "committed"),
    )
    placed = (
        rows.unionByName(previous, allowMissingColumns=True)
        .join(looks.select("cluster", "old_at", "times"), ["cluster"], "inner")
        .where(F.col("old") | _is_after("at", "old_at"))
        .withColumn("n", F.array_position("times", F.col("at")))
        .where(F.col("n") > 0)
    )
    judged = placed.withColumn("moved", F.when(_is_active(), F.col("at")))
    newest_groups = F.when(_is_last() & F.col("group").isNotNull(), F.struct("group", "committed"))
    by_topic = judged.groupBy(*KEY).agg(
        F.collect_set(newest_groups).alias("now"),
        F.max(F.coalesce("moved", "read_at")).alias("read_at"),
    )
    return by_topic.select(*KEY, _map_by_group().alias("committed"), "read_at")


def _map_by_group() -> Column:
    """Return group -> committed. Two snapshots may have ended at the same time: the larger number
    counts."""
    groups = F.array_sort(F.array_distinct("now.group"))
    return F.map_from_arrays(groups, F.transform(groups, _find_most))


def _find_most(group: Column) -> Column:
    return F.array_max(F.filter("now", lambda entry: entry["group"] == group))["committed"]


def _is_last() -> Column:
    return F.col("n") == F.size("times")


def _is_active() -> Column:
    of_topic = Window.partitionBy(*KEY).orderBy("group", "n", "committed")
    # Positions of looks, not times: "the look before" is the previous position.
    n = F.col("n")
    is_same_group = F.lag("group").over(of_topic).eqNullSafe(F.col("group"))
    just_before = is_same_group & (F.lag("n").over(of_topic) >= n - 1)
    # Null-safe: a group without committed offsets twice in a row has not moved.
    has_not_moved = just_before & F.lag("committed").over(of_topic).eqNullSafe(F.col("committed"))
    return (F.col("members") > 0) | ((n > 1) & ~F.coalesce(has_not_moved, F.lit(False)))
