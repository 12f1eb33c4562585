"""Follow what snapshots measure from day to day: sizes of topics, room on disks, and offsets of
groups; and say how they grow.

`measured` keeps one point per day, that of the day's last snapshot, so that the order in which
snapshots land decides nothing, and growth needs no other rows than those of its own object.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import itemgetter

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

from ...core.landing import DISK_USAGE, GROUP_USAGE, LIVE, TOPIC_USAGE
from ..tables.definitions import TABLES, BuildContext, Frames
from .history import (
    find_new_builds,
    mark_known,
    select_good,
    select_known,
    select_unread,
)
from .resources import add_owner

POINT_DAYS = 31
"""How many days `measured` keeps, up to that of the newest snapshot."""
MIN_DAYS = 7
"""With fewer days, growth is unknown."""
HORIZON_DAYS = 5 * 365
"""A disk that is full later than this is not reported."""
STALL_HOURS = 20
"""A group that has not moved for this long makes no progress. Less than a day, so that daily
snapshots count although each is taken at a slightly different time."""
UNUSED_DAYS = 14
"""A group without members that has not moved for this long is unused. Twice the time for which
Kafka keeps the offsets of an empty group by default (offsets.retention.minutes)."""
_KINDS = (TOPIC_USAGE, GROUP_USAGE, DISK_USAGE)
_OBJECT = ("cluster", "kind", "key")
_TOPIC, _COMPLETE = "kafka_topic", "complete"
find_measured_builds = partial(find_new_builds, table="measured")


def build_measured(frames: Frames, context: BuildContext) -> DataFrame:
    """Return the rows of `measured`. Inputs: snapshot, snapshot_raw, and the previous rows.

    Only new snapshots are read. If one lands that is older than a known one, all snapshots of its
    cluster are read again. Of two snapshots at the same time, the greater name counts.
    """
    before, good = frames["measured"], select_good(frames["snapshot"])
    covered = F.broadcast(select_known(before, good))
    columns = ("at", "snapshot", "bytes", "records", "members")
    old = (
        before.join(covered.select("cluster"), "cluster", how="left_semi")
        .select(*_OBJECT, F.explode("points").alias("point"))
        # Empty: a snapshot at the same time is not read again, so nothing is compared with it.
        .select(*_OBJECT, "point.*", F.lit("").alias("snapshot"))
    )
    new = _list_measures(frames["snapshot_raw"], select_unread(good, covered))
    marks = F.broadcast(mark_known(good))
    newest = F.max(F.struct(*columns)).alias("newest")
    daily = old.unionByName(new).groupBy(*_OBJECT, "day").agg(newest)
    recent = daily.join(marks, "cluster", how="inner").where(
        F.col("day") > F.date_sub(F.to_date("known_until"), POINT_DAYS)
    )
    values = (F.col(f"newest.{name}").alias(name) for name in columns if name != "snapshot")
    points = F.array_sort(F.collect_list(F.struct("day", *values)))
    marked = recent.groupBy(*_OBJECT, "known_until", "known_snapshots")
    return marked.agg(points.alias("points")).select(*TABLES["measured"].names)


def _list_measures(raw: DataFrame, snapshots: DataFrame) -> DataFrame:
    """Return _OBJECT, day, at, snapshot, bytes, records and members of these snapshots."""
    attrs = F.col("attrs")
    numbers = {
        name: attrs[name].try_cast("bigint")
        for name in ("bytes", "total_bytes", "usable_bytes", "end_offsets_sum", "committed_sum")
    }
    used = numbers["total_bytes"] - numbers["usable_bytes"]
    rows = raw.where((F.col("source") == LIVE) & F.col("kind").isin(*_KINDS)).select(
        F.col("subject").alias("cluster"),
        *("kind", "key", "snapshot"),
        F.coalesce(numbers["bytes"], used).alias("bytes"),
        F.coalesce(numbers["end_offsets_sum"], numbers["committed_sum"]).alias("records"),
        attrs["members"].try_cast("bigint").alias("members"),
    )
    times = snapshots.select("cluster", "snapshot", "at", F.to_date("at").alias("day")).distinct()
    return rows.join(F.broadcast(times), ["cluster", "snapshot"], how="inner")


# ── topics ──────────────────────────────────────────────────────────────────────────────


def build_topics(frames: Frames, context: BuildContext) -> DataFrame:
    """Return the rows of `topic_growth`, one per topic of `live`.

    Inputs: cluster, live, measured, snapshot, desired, recorded.

    `ingress_per_day` and `egress_per_day` are records a day times the mean bytes of a record on
    disk. Of what is not on disk as it was written, a compacted topic or one with tiered storage, no
    mean is known; without records a day, nothing was written or read.
    """
    followed = _gather_topics(frames, context).withColumn("points", _begin_at_zero())
    records = F.col("end_offsets_sum") - F.col("start_offsets_sum")
    written = F.col("records_per_day")
    read = F.when(F.col("readers").isNull(), F.lit(0.0)).otherwise(F.col("read_per_day"))
    grown = {
        "days": F.coalesce(F.size(_keep_known("points", "bytes")), F.lit(0)).cast("int"),
        "bytes_skew": _compute_skew("partition_bytes_max", F.col("bytes"), F.col("factor")),
        "records_skew": _compute_skew("partition_records_max", records, F.lit(1)),
        "records_per_day": _count_advance(),
        "mean": _compute_mean(records),
    }
    traffic = {
        "ingress_per_day": _weigh(written),
        "egress_per_day": F.when(F.col("shows_groups"), _weigh(read)),
    }
    return (
        _add_slope(followed, "bytes_per_day")
        .withColumns(grown)
        .withColumns(traffic)
        .select(*TABLES["topic_growth"].names)
    )


def _gather_topics(frames: Frames, context: BuildContext) -> DataFrame:
    """Return the topics with what the newest snapshot shows of them, and what was measured."""
    attrs, live = F.col("attrs"), frames["live"]
    named = add_owner(live.where(F.col("kind") == _TOPIC), frames, context.register).select(
        *("cluster", F.col("key").alias("topic"), "owner"),
        attrs["partitions"].try_cast("int").alias("partitions"),
        attrs["replication_factor"].try_cast("int").alias("factor"),
        attrs["config.cleanup.policy"].alias("policy"),
        F.coalesce(attrs["config.remote.storage.enable"] == "true", F.lit(False)).alias("tiered"),
    )
    usage = live.where(F.col("kind") == TOPIC_USAGE).select(
        *("cluster", F.col("key").alias("topic")),
        *(
            attrs[name].try_cast("bigint").alias(name)
            for name in (
                *("bytes", "end_offsets_sum", "start_offsets_sum"),
                *("partition_bytes_max", "partition_records_max"),
            )
        ),
    )
    points = _select_points(frames["measured"], TOPIC_USAGE, "topic")
    shows_groups = F.try_element_at("coverage", F.lit(GROUP_USAGE)) == _COMPLETE
    as_of = frames["cluster"].select(
        *("cluster", F.col("captured_at").alias("as_of")),
        F.coalesce(shows_groups, F.lit(False)).alias("shows_groups"),
    )
    return (
        named.join(as_of.where("as_of is not null"), "cluster", how="inner")
        .join(usage, ["cluster", "topic"], how="left")
        .join(points, ["cluster", "topic"], how="left")
        .join(_list_days(frames["snapshot"]), "cluster", how="left")
        .join(_count_read(frames["measured"], live), ["cluster", "topic"], how="left")
        .join(F.broadcast(_select_default_policies(live)), "cluster", how="left")
    )


def _select_default_policies(live: DataFrame) -> DataFrame:
    """Return cluster and default_policy: the cleanup policy of topics without one of their own, as
    far as it was set while the brokers were running; null: Kafka's own, which deletes."""
    defaults = live.where(F.col("kind") == "kafka_cluster_config")
    policy = F.max(F.col("attrs")["config.log.cleanup.policy"])
    return defaults.groupBy("cluster").agg(policy.alias("default_policy"))


def _compute_mean(records: Column) -> Column:
    """The mean bytes of a record on the disk of one broker. Null: there is none, its size is
    unknown, or the disk has not each record between the first and the last offset."""
    policy = F.coalesce("policy", "default_policy", F.lit("delete"))
    is_whole = ~policy.contains("compact") & ~F.col("tiered") & (records > 0)
    size = F.nullif(F.col("bytes"), F.lit(0).cast("bigint"))
    return F.when(is_whole, _divide(size, F.col("factor") * records))


def _weigh(records: Column) -> Column:
    """The bytes of so many records. Of none they are known without the mean."""
    size = F.round(records * F.col("mean")).try_cast("bigint")
    return F.when(records == 0, F.lit(0).cast("bigint")).otherwise(size)


def _count_read(measured: DataFrame, live: DataFrame) -> DataFrame:
    """Return cluster, topic, readers (groups with committed offsets) and read_per_day: how many
    records they moved on a day, all together; null if that is unknown of one."""
    key = F.col("key")
    groups = live.where(F.col("kind") == GROUP_USAGE).select(
        # A group's name may contain spaces, a topic's cannot.
        *("cluster", "key", F.substring_index(key, " ", -1).alias("topic")),
        F.col("attrs")["committed_sum"].try_cast("bigint").alias("committed"),
    )
    points = _select_points(measured, GROUP_USAGE, "key")
    followed = groups.where("committed is not null").join(points, ["cluster", "key"], how="left")
    advanced = followed.withColumn("advance", _count_advance())
    all_known = F.count("advance") == F.count(F.lit(1))
    return advanced.groupBy("cluster", "topic").agg(
        F.count(F.lit(1)).alias("readers"),
        F.when(all_known, F.sum("advance")).alias("read_per_day"),
    )


def _select_points(measured: DataFrame, kind: str, key: str) -> DataFrame:
    """Return cluster, the key under this name, and points."""
    rows = measured.where(F.col("kind") == kind)
    return rows.select("cluster", F.col("key").alias(key), "points")


def _list_days(snapshot: DataFrame) -> DataFrame:
    """Return cluster and looked: the days on which all topics were measured."""
    good = select_good(snapshot)
    whole = good.where(F.try_element_at("coverage", F.lit(TOPIC_USAGE)) == _COMPLETE)
    return whole.groupBy("cluster").agg(F.collect_set(F.to_date("at")).alias("looked"))


def _begin_at_zero() -> Column:
    """The points, with zeros for the days on which all topics were measured and this one did not
    exist yet: a new topic has grown from nothing."""
    points, last = F.col("points"), F.to_date("as_of")
    first = F.array_min(F.transform(points, lambda point: point["day"]))
    earlier = F.filter("looked", lambda day: (day < first) & (day > F.date_sub(last, POINT_DAYS)))
    unknown = F.lit(None).cast("bigint")
    zeros = F.transform(
        earlier,
        lambda day: F.struct(
            day.alias("day"),
            F.lit(None).cast("timestamp").alias("at"),
            F.lit(0).cast("bigint").alias("bytes"),
            F.lit(0).cast("bigint").alias("records"),
            unknown.alias("members"),
        ),
    )
    return F.array_sort(F.concat(F.coalesce(zeros, F.slice(points, 1, 0)), points))


def _keep_known(points: str, value: str) -> Column:
    return F.filter(points, lambda point: point[value].isNotNull())


def _sum_up(values: Column | str, measure: Callable[[Column], Column]) -> Column:
    """The sum over an array of what is measured of each element, as a double."""
    return F.aggregate(
        values, F.lit(0.0), lambda total, value: total + measure(value).cast("double")
    )


def _divide(total: Column, count: Column) -> Column:
    """The quotient as a double; null if the divisor is 0."""
    # `try_divide` takes no doubles on Sail.
    return total.cast("double") / F.nullif(count.cast("double"), F.lit(0.0))


def _add_slope(rows: DataFrame, name: str) -> DataFrame:
    """Add a column: the slope a day of the least-squares line through the bytes of `points`; null
    for fewer than MIN_DAYS days."""
    # Inside the row, without a shuffle: `regr_slope` would need a row for each point.
    pairs = F.transform(
        _keep_known("points", "bytes"),
        lambda point: F.struct(
            F.unix_date(point["day"]).cast("double").alias("x"),
            point["bytes"].cast("double").alias("y"),
        ),
    )
    centred = rows.withColumn("_pairs", pairs).withColumns(
        {
            f"_{axis}": _divide(_sum_up("_pairs", itemgetter(axis)), F.size("_pairs"))
            for axis in ("x", "y")
        }
    )
    mean_x, mean_y = F.col("_x"), F.col("_y")
    slope = _divide(
        _sum_up("_pairs", lambda pair: (pair["x"] - mean_x) * (pair["y"] - mean_y)),
        _sum_up("_pairs", lambda pair: (pair["x"] - mean_x) * (pair["x"] - mean_x)),
    )
    judged = centred.withColumn(name, F.when(F.size("_pairs") >= MIN_DAYS, slope))
    return judged.drop("_pairs", "_x", "_y")


def _count_advance() -> Column:
    """Records a day: what the offsets of the points have grown from each to the next. A topic that
    was deleted and created again starts from zero, and a group may go back: that is no growth."""
    dated_points = _keep_known("points", "records")
    steps = F.transform(
        dated_points,
        lambda point, n: F.when(
            n > 0, F.greatest(point["records"] - F.get(dated_points, n - 1)["records"], F.lit(0))
        ).otherwise(F.lit(0)),
    )
    grown = _sum_up(steps, lambda step: step)
    days = F.datediff(
        F.get(dated_points, F.size(dated_points) - 1)["day"], F.get(dated_points, 0)["day"]
    )
    return F.when(F.size(dated_points) >= MIN_DAYS, _divide(grown, days))


def _compute_skew(largest: str, total: Column, copies: Column) -> Column:
    """How many times as large as the average partition the largest one is, to two decimals; null
    for an empty topic."""
    share = _divide(F.col(largest) * F.col("partitions") * copies, total)
    return F.round(share, 2)


# ── disks ───────────────────────────────────────────────────────────────────────────────


def build_disks(frames: Frames, context: BuildContext) -> DataFrame:
    """Return the rows of `disks`, one per volume of `live`. Inputs: live, measured."""
    attrs = F.col("attrs")
    disks = (
        frames["live"]
        .where(F.col("kind") == DISK_USAGE)
        .select(
            *("cluster", "key", F.col("captured_at").alias("as_of")),
            attrs["broker"].try_cast("int").alias("broker"),
            F.array_join(F.from_json(attrs["log_dirs"], "array<string>"), ",").alias("log_dirs"),
            *(
                attrs[name].try_cast("bigint").alias(name)
                for name in ("total_bytes", "usable_bytes", "log_bytes", "replicas")
            ),
            F.coalesce(attrs["failed"] == "true", F.lit(False)).alias("failed"),
        )
    )
    points = _select_points(frames["measured"], DISK_USAGE, "key")
    rows = disks.where(F.col("broker").isNotNull() & F.col("log_dirs").isNotNull()).join(
        points, ["cluster", "key"], how="left"
    )
    room = _divide(F.col("usable_bytes"), F.col("used_per_day"))
    days_until_full = F.when(F.col("usable_bytes") <= 0, F.lit(0.0)).when(
        F.col("used_per_day") > 0, F.ceil(room)
    )
    # Compare before the cast: a tiny slope gives more days than an int holds, an error under ANSI.
    date = F.date_add(F.to_date("as_of"), days_until_full.cast("int"))
    full = F.when(days_until_full <= HORIZON_DAYS, date)
    used = _divide(F.col("total_bytes") - F.col("usable_bytes"), F.col("total_bytes"))
    judged = {
        "full_on": full,
        "used_share": used,
        "days": F.coalesce(F.size(_keep_known("points", "bytes")), F.lit(0)).cast("int"),
    }
    return _add_slope(rows, "used_per_day").withColumns(judged).select(*TABLES["disks"].names)


# ── groups ──────────────────────────────────────────────────────────────────────────────


def build_groups(frames: Frames, context: BuildContext) -> DataFrame:
    """Return the rows of `group_progress`, one per group and topic of `live`.

    Inputs: live, measured, desired, recorded.
    """
    key, attrs, live = F.col("key"), F.col("attrs"), frames["live"]
    # A group's name may contain spaces, a topic's cannot.
    topic = F.substring_index(key, " ", -1)
    groups = live.where(F.col("kind") == GROUP_USAGE).select(
        *("cluster", "key", F.col("captured_at").alias("as_of"), topic.alias("topic")),
        F.left(key, F.length(key) - F.length(topic) - 1).alias("group_id"),
        attrs["state"].alias("state"),
        *(
            attrs[name].try_cast("bigint").alias(alias)
            for name, alias in (("members", "members"), ("committed_sum", "committed"))
        ),
        attrs["lag"].try_cast("bigint").alias("lag"),
    )
    owned = live.where(F.col("kind") == _TOPIC)
    owners = add_owner(owned, frames, context.register).select(
        "cluster", F.col("key").alias("topic"), "owner"
    )
    points = _select_points(frames["measured"], GROUP_USAGE, "key")
    rows = groups.join(points, ["cluster", "key"], how="left").join(
        owners, ["cluster", "topic"], how="left"
    )
    moves = F.transform(
        "points",
        lambda point, n: F.when(
            (n > 0) & ~point["records"].eqNullSafe(F.get("points", n - 1)["records"]), point["at"]
        ),
    )
    joined = F.filter("points", lambda point: point["members"] > 0)
    followed = rows.withColumns(
        {
            "moved_at": F.array_max(moves),
            "joined_at": F.array_max(F.transform(joined, lambda point: point["at"])),
            "since": F.get("points", F.lit(0))["at"],
        }
    )
    return followed.withColumn("verdict", _judge_group()).select(*TABLES["group_progress"].names)


def _judge_group() -> Column:
    members, lag = F.col("members"), F.col("lag")
    stall = F.col("as_of") - F.make_dt_interval(hours=F.lit(STALL_HOURS))
    old = F.col("as_of") - F.make_dt_interval(F.lit(UNUSED_DAYS))
    used = F.greatest("moved_at", "joined_at")
    return (
        # A member that commits nothing may keep its offsets elsewhere.
        F.when(members.isNull() | F.col("committed").isNull(), "insufficient_evidence")
        .when(F.col("moved_at") > stall, "progressing")
        .when(F.col("since").isNull() | (F.col("since") > stall), "insufficient_evidence")
        .when((members > 0) & (lag > 0), "stuck")
        .when((members > 0) & (lag == 0), "idle")
        .when(members > 0, "insufficient_evidence")
        .when((F.col("since") <= old) & F.coalesce(used <= old, F.lit(True)), "unused")
        .otherwise("stopped")
    )
