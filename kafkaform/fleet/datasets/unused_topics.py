"""Find topics that seem to be unused, by several signals, and only where these were observed.

A candidate is not a proof. Readers that commit no offsets leave no trace in a snapshot, nor does a
group that came and went between two snapshots and left its offsets as they were.

When topics were last written and read: each build continues from the previous one (STATE) with the
snapshots that landed since. If one lands late, or a topic is back that the last snapshot did not
show, the cluster's use is computed again from all its snapshots, so that the order in which they
landed, and the number of builds, decide nothing. End offsets only grow, so two looks reveal any
write between them. Committed offsets of a group expire some time after the group is gone, so a
topic counts as unread only while looks at the groups are close enough.
"""

from __future__ import annotations

import json
from datetime import date

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, Window

from ...core.landing import GROUP_USAGE, LIVE, TOPIC_USAGE
from ..landed.register import Register, describe_keep, matches
from ..tables.definitions import TABLES, BuildContext, Frames
from .history import is_internal, mark_known, select_good, select_known, select_unread
from .resources import add_owner

OFFSETS = ("end_offset", "written_at", "offsets_since", "offsets_at")
GROUPS = ("committed", "read_at", "groups_since", "groups_at")
STATE = (*OFFSETS, *GROUPS)
"""Columns of `unused_topics` that the next build continues from."""
KEY = ("cluster", "topic")
MOST_DAYS_BETWEEN_LOOKS = 7
"""Kafka's default for how long the offsets of an empty group are kept
(offsets.retention.minutes)."""
COMPLETE, VISIBLE = "complete", "visible_only"
_CANDIDATE = "candidate"
_TOPIC, _ACL = "kafka_topic", "kafka_acl"
_ACCESS = ("Read", "Write", "All")
"""Operations that use a topic."""
SIGNALS = ("written", "read", "empty", "granted", "aged")
"""Columns that count for the confidence, if they can be judged."""


def build_usage(frames: Frames) -> DataFrame:
    """Return KEY and STATE: one row per topic whose use any snapshot has shown.

    Inputs: history, live, snapshot, snapshot_raw, and the previous unused_topics.
    """
    good = select_good(frames["snapshot"])
    covered = F.broadcast(_select_covered(frames, good))
    before = (
        frames["unused_topics"]
        .select(*KEY, *STATE)
        .join(covered.select("cluster"), "cluster", how="left_semi")
    )
    # A topic counts as watched only where a snapshot lists it. Otherwise a row about the use of a
    # topic that no snapshot listed yet would count in a build of everything, and be forgotten by
    # builds that follow each other.
    has_topics = F.try_element_at("coverage", F.lit(_TOPIC)).isin(COMPLETE, VISIBLE)
    snapshots = select_unread(good, covered).where(has_topics)
    looks = _list_looks(snapshots, before)
    key, attrs = F.col("key"), F.col("attrs")
    # A row per look at a topic, some of them twice.
    topic_offsets = _list_seen(frames, snapshots, TOPIC_USAGE, key).select(
        "cluster", "topic", "at", attrs["end_offsets_sum"].try_cast("bigint").alias("end_offset")
    )
    offsets = _find_written(topic_offsets.where(F.col("end_offset").isNotNull()), before)
    # A group's name may contain spaces, a topic's cannot.
    groups = _find_read(
        _list_seen(frames, snapshots, GROUP_USAGE, F.substring_index(key, " ", -1)).select(
            *("cluster", "topic", "at"),
            F.left(key, F.length(key) - F.length("topic") - 1).alias("group"),
            attrs["committed_sum"].try_cast("bigint").alias("committed"),
            attrs["members"].try_cast("bigint").alias("members"),
        ),
        looks,
        before,
    )
    # full: a topic may have groups and no offsets (a partition without a leader), and the reverse.
    rows = offsets.join(groups, list(KEY), "full").join(looks, ["cluster"], "left")
    no_groups = F.create_map().cast("map<string,bigint>")
    committed = F.when(F.col("groups_at").isNotNull(), F.coalesce("committed", no_groups))
    return rows.withColumn("committed", committed).select(*KEY, *STATE)


def find_new_builds(frames: Frames) -> DataFrame:
    """Return the builds that read the snapshots which this table has not used yet."""
    good = select_good(frames["snapshot"])
    covered = F.broadcast(_select_covered(frames, good))
    return select_unread(good, covered).select("_build").distinct()


def _select_covered(frames: Frames, good: DataFrame) -> DataFrame:
    """Return cluster and known_until of the clusters whose use continues from the previous rows.
    One row per cluster."""
    before = frames["unused_topics"]
    clusters = select_known(before, good)
    # A topic that the last snapshot hid has no row, although earlier ones have shown its use.
    topics = frames["live"].where(F.col("kind") == _TOPIC).select("cluster", "key")
    rowless = topics.join(
        before.select("cluster", F.col("topic").alias("key")), ["cluster", "key"], how="left_anti"
    )
    intervals = (
        frames["history"].where(F.col("kind") == _TOPIC).select("cluster", "key", "valid_from")
    )
    returned = (
        rowless.join(intervals, ["cluster", "key"], how="inner")
        .join(clusters, "cluster", how="inner")
        .where(F.col("valid_from") <= F.col("known_until"))
    )
    return clusters.join(returned.select("cluster").distinct(), "cluster", how="left_anti")


def _list_seen(frames: Frames, snapshots: DataFrame, kind: str, topic: Column) -> DataFrame:
    """Return cluster, topic, key, attrs, at: rows of this kind in these snapshots, about topics
    that the same snapshot lists. topic: the name in a row of this kind."""
    chosen = F.broadcast(snapshots.select("cluster", "snapshot").distinct())
    rows = (
        frames["snapshot_raw"]
        .where((F.col("source") == LIVE) & F.col("kind").isin(kind, _TOPIC))
        .select(
            *(F.col("subject").alias("cluster"), "snapshot", "kind", "key", "attrs"),
            F.col("captured_at").alias("at"),
        )
        .join(chosen, ["cluster", "snapshot"], how="left_semi")
    )
    listed = rows.where(F.col("kind") == _TOPIC).select(
        "cluster", "snapshot", F.col("key").alias("topic")
    )
    named = rows.where(F.col("kind") == kind).withColumn("topic", topic)
    return named.join(listed, ["cluster", "snapshot", "topic"], how="left_semi")


# -- writes


def _find_written(looks: DataFrame, before: DataFrame) -> DataFrame:
    """Return KEY and OFFSETS."""
    previous = before.where(F.col("offsets_at").isNotNull()).select(
        *KEY, F.col("offsets_at").alias("at"), "end_offset", "written_at", "offsets_since"
    )
    rows = looks.unionByName(previous, allowMissingColumns=True)
    of_topic = Window.partitionBy(*KEY)
    old = F.col("offsets_since").isNotNull()
    # A snapshot at the very time of the last look adds nothing to it.
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


def _list_looks(snapshots: DataFrame, before: DataFrame) -> DataFrame:
    """Return one row per cluster whose groups were ever looked at: cluster; old_at, the last look
    that the previous build knew (null: none); times, that look and all later ones, in order;
    groups_at, the last of them; groups_since, the start of an unbroken series of complete looks
    that are close enough to each other (null: the last one is not complete)."""
    coverage = F.try_element_at("coverage", F.lit(GROUP_USAGE))
    look = F.struct("at", (coverage == COMPLETE).alias("whole"))
    new = snapshots.where(coverage.isin(COMPLETE, VISIBLE)).select("cluster", look.alias("look"))
    old = F.struct(F.col("groups_at").alias("at"), F.col("groups_since").alias("since"))
    previous = before.where(F.col("groups_at").isNotNull()).select("cluster", old.alias("old"))
    no_look = F.lit(None).cast("struct<at:timestamp,since:timestamp>").alias("old")
    looks = new.select("*", no_look).unionByName(previous, allowMissingColumns=True)
    grouped = looks.groupBy("cluster")
    # Every topic of a cluster has the same last look, so `max` only picks it.
    old_at = F.col("old.at")
    later = F.filter("looks", lambda look: old_at.isNull() | (look["at"] > old_at))
    begin = F.struct(old_at.alias("at"), F.col("old.since").alias("since"))
    ordered = grouped.agg(
        F.max("old").alias("old"), F.collect_set("look").alias("looks")
    ).withColumn("later", F.array_sort(later))
    # A fold over a short sorted array: the break between two looks depends on the look before.
    folded = ordered.withColumn("last", F.aggregate("later", begin, _fold_look))
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
    of_topic = Window.partitionBy(*KEY).orderBy("group", "n", "committed")
    # Positions of looks, not times: "the look before" is the previous position.
    n = F.col("n")
    is_same_group = F.lag("group").over(of_topic).eqNullSafe(F.col("group"))
    just_before = is_same_group & (F.lag("n").over(of_topic) >= n - 1)
    # Null-safe: a group without committed offsets twice in a row has not moved.
    has_not_moved = just_before & F.lag("committed").over(of_topic).eqNullSafe(F.col("committed"))
    judged = placed.withColumn(
        "moved",
        F.when(
            (F.col("members") > 0) | ((n > 1) & ~F.coalesce(has_not_moved, F.lit(False))),
            F.col("at"),
        ),
    )
    newest_groups = F.when(
        (F.col("n") == F.size("times")) & F.col("group").isNotNull(), F.struct("group", "committed")
    )
    by_topic = judged.groupBy(*KEY).agg(
        F.collect_set(newest_groups).alias("now"),
        F.max(F.coalesce("moved", "read_at")).alias("read_at"),
    )

    def find_most(group: Column) -> Column:
        """Two snapshots may have ended at the same time: the larger number counts."""
        return F.array_max(F.filter("now", lambda entry: entry["group"] == group))["committed"]

    groups = F.array_sort(F.array_distinct("now.group"))
    return by_topic.select(
        *KEY,
        F.map_from_arrays(groups, F.transform(groups, find_most)).alias("committed"),
        "read_at",
    )


def build(frames: Frames, context: BuildContext) -> DataFrame:
    """Return the rows of `unused_topics`, from `live`, `history`, `cluster`, `snapshot`,
    `snapshot_raw`, `desired`, `recorded` and its previous rows.

    One row per topic that is not Kafka's own, judged as of its cluster's newest snapshot. `in_use`:
    written or read within the grace days. `too_new`: it appeared within them. `candidate`: neither
    written nor read, and both were observed all the time. Everything else is
    `insufficient_evidence`. Emptiness, grants and age are shown, and count for the confidence.
    """
    # Several signals: an empty topic may be a queue that is read quickly, and a full one an old
    # archive.
    usage = build_usage(frames)
    form = F.struct("incarnation", "valid_from", "seen_before")
    intervals = frames["history"].where(F.col("kind") == _TOPIC).groupBy("cluster", "key")
    # principals: who may read or write the topic by an ALLOW. An empty array: all ACLs of the topic
    # are about something else. No row: the topic has no ACL. DENYs are ignored.
    live = frames["live"]
    names = live.where(F.col("kind") == _TOPIC).select("cluster", F.col("key").alias("topic"))
    patterns = _select_patterns(live)
    everybody = F.array_distinct(F.flatten(F.collect_list("principals")))
    covering = _find_covering(names, patterns).join(
        patterns, ["cluster", "pattern", "name"], "inner"
    )
    rows = (
        _select_topics(frames, context.register)
        .join(usage, list(KEY), "left")
        .join(
            intervals.agg(F.collect_list(form).alias("past")).withColumnRenamed("key", "topic"),
            list(KEY),
            "left",
        )
        .join(covering.groupBy(*KEY).agg(everybody.alias("principals")), list(KEY), "left")
    )
    # born.at: when the present topic was first shown; born.before: a time at which it certainly did
    # not exist (null: none is known).
    own_forms = F.filter("past", lambda form: form["incarnation"].eqNullSafe(F.col("incarnation")))
    begins = F.transform(
        own_forms,
        lambda form: F.struct(form["valid_from"].alias("at"), form["seen_before"].alias("before")),
    )
    columns = {"granted": _is_granted(context.register), "born": F.array_min(begins)}
    judged = _add_signals(rows.withColumns(columns), context.register.settings.grace_days)
    verdicts = judged.withColumns(
        {
            "kept": F.when(
                _judge_verdict() == _CANDIDATE,
                _find_keep(context.register, context.as_of.date()),
            ),
            "evidence": _describe_evidence(),
        }
    ).withColumn("verdict", F.when(F.col("kept").isNotNull(), "kept").otherwise(_judge_verdict()))
    # What the rows cover, one row per cluster.
    marks = F.broadcast(mark_known(select_good(frames["snapshot"])))
    return verdicts.join(marks, "cluster", how="left").select(*TABLES["unused_topics"].names)


def _select_topics(frames: Frames, register: Register) -> DataFrame:
    """Return KEY, owner, partitions, incarnation, what the log holds now, and what is known about
    the cluster: as_of, coverage, allow_if_no_acl."""
    live, attrs = frames["live"], F.col("attrs")
    topics = live.where((F.col("kind") == _TOPIC) & ~is_internal("attrs"))
    named = add_owner(topics, frames, register).select(
        *("cluster", F.col("key").alias("topic"), "owner", "incarnation"),
        attrs["partitions"].try_cast("int").alias("partitions"),
    )
    ends = [attrs[f"{side}_offsets_sum"].try_cast("bigint") for side in ("start", "end")]
    logs = live.where(F.col("kind") == TOPIC_USAGE).select(
        *("cluster", F.col("key").alias("topic")),
        (ends[0] == ends[1]).alias("empty"),
        attrs["bytes"].try_cast("bigint").alias("bytes"),
    )
    clusters = frames["cluster"].where(F.col("captured_at").isNotNull())
    cluster_facts = clusters.select(
        "cluster", F.col("captured_at").alias("as_of"), "coverage", "allow_if_no_acl"
    )
    return named.join(logs, list(KEY), "left").join(cluster_facts, ["cluster"], "inner")


# -- grants


def _select_patterns(live: DataFrame) -> DataFrame:
    """Return cluster, pattern, name, principals: each pattern once, since many ACLs share one."""
    attrs = F.col("attrs")
    acls = live.where((F.col("kind") == _ACL) & (attrs["resource_type"] == "Topic"))
    allows = (attrs["acl_permission_type"] == "Allow") & attrs["acl_operation"].isin(*_ACCESS)
    return acls.groupBy(
        "cluster",
        attrs["resource_pattern_type_filter"].alias("pattern"),
        attrs["resource_name"].alias("name"),
    ).agg(F.collect_set(F.when(allows, attrs["acl_principal"])).alias("principals"))


def _find_covering(names: DataFrame, patterns: DataFrame) -> DataFrame:
    """Return KEY, pattern, name: each pattern that covers the topic if an ACL has it. Names are cut
    only to the lengths that some prefix in their cluster has."""
    size = F.when(F.col("pattern") == "Prefixed", F.length("name"))
    lengths = patterns.groupBy("cluster").agg(F.collect_set(size).alias("lengths"))
    topic = F.col("topic")
    # An equality join on cut names. `startswith` as a join condition would compare each topic with
    # each pattern of its cluster.
    fitting = F.filter("lengths", lambda length: length <= F.length(topic))
    prefixes = F.transform(fitting, lambda n: _make_pattern("Prefixed", F.left(topic, n)))
    literals = F.array(_make_pattern("Literal", topic), _make_pattern("Literal", F.lit("*")))
    topics = names.join(lengths, ["cluster"], "inner")
    # `flatten`: Sail's `concat` rejects arrays that differ in what may be null.
    return topics.select(*KEY, F.inline(F.flatten(F.array(literals, prefixes))))


def _make_pattern(kind: str, name: Column) -> Column:
    return F.struct(F.lit(kind).alias("pattern"), name.alias("name"))


def _is_granted(register: Register) -> Column:
    """Null: not all ACLs are known, or the rule for topics without any."""
    own = {owner.name: list(owner.principals) for owner in register.owners}
    # One literal for all owners, since a literal for each makes plans that take minutes.
    owners = F.from_json(F.lit(json.dumps(own)), "map<string,array<string>>")
    owner_principals = F.coalesce(
        F.try_element_at(owners, F.col("owner")), F.array().cast("array<string>")
    )
    has_others = F.exists("principals", lambda name: ~F.array_contains(owner_principals, name))
    granted = F.when(F.col("principals").isNull(), F.col("allow_if_no_acl")).otherwise(has_others)
    coverage = F.try_element_at("coverage", F.lit(_ACL))
    return F.when(coverage == COMPLETE, granted).when(
        (coverage == VISIBLE) & has_others, F.lit(True)
    )


# -- verdict


def _add_signals(rows: DataFrame, grace_days: int) -> DataFrame:
    """Add SIGNALS, each null if it cannot be judged, and what follows from them."""
    since = F.col("as_of") - F.make_dt_interval(F.lit(grace_days))
    idle = [
        # True as soon as a use is seen. False only if the whole grace period was observed up to the
        # newest snapshot. Otherwise null: unread is not unused.
        F.when(F.col(last) > since, F.lit(True)).when(
            (F.col(first) <= since) & (F.col(newest) == F.col("as_of")), F.lit(False)
        )
        for last, first, newest in (
            ("written_at", "offsets_since", "offsets_at"),
            ("read_at", "groups_since", "groups_at"),
        )
    ]
    appeared = F.col("born.before").isNotNull()
    old = F.col("born.at") <= since
    active = F.greatest("written_at", "read_at")
    judged = [F.when(F.col(name).isNotNull(), 1).otherwise(0) for name in SIGNALS]
    return (
        rows.withColumn("written", idle[0])
        .withColumn("read", idle[1])
        .withColumn("empty", F.when(F.col("offsets_at") == F.col("as_of"), F.col("empty")))
        .withColumn("aged", F.when(old | appeared, old))
        .withColumns(
            {
                "idle_since": F.coalesce(active, F.greatest("offsets_since", "groups_since")),
                "confidence": F.round(sum(judged, F.lit(0)) / F.lit(float(len(SIGNALS))), 2),
            }
        )
    )


def _judge_verdict() -> Column:
    used = F.col("written") | F.col("read")
    return (
        F.when(used, "in_use")
        # `~null` is null, and `when` passes it over: a topic of unknown age is not "too new".
        .when(~F.col("aged"), "too_new")
        # `written | read` is null if one is unknown and the other is not true.
        .when(used.isNull(), "insufficient_evidence")
        .otherwise(_CANDIDATE)
    )


def _find_keep(register: Register, today: date) -> Column:
    """Say which `keep` block keeps the topic; null: none does."""
    texts = (
        F.when(
            matches(F.col("cluster"), keep.cluster) & matches(F.col("topic"), keep.key),
            F.lit(describe_keep(keep)),
        )
        for keep in register.keeps
        if keep.until >= today
    )
    return F.coalesce(*texts, F.lit(None).cast("string"))


def _describe_evidence() -> Column:
    """Say in words what is known about each signal."""
    return F.array(
        _describe_signal("written", "written", "nothing written", "written_at", "offsets_since"),
        _describe_signal("read", "read", "nothing read", "read_at", "groups_since"),
        F.when(F.col("empty"), "empty")
        .when(~F.col("empty"), "holds records")
        .otherwise("whether it is empty is not known"),
        F.when(F.col("granted"), "others than its owner may read or write it")
        .when(~F.col("granted"), "nobody but its owner may read or write it")
        .otherwise("who may read or write it is not known"),
        F.when(F.col("born.at").isNull(), "its age is not known")
        .when(
            F.col("born.before").isNull(), F.concat(F.lit("first seen on "), _render_day("born.at"))
        )
        .otherwise(F.concat(F.lit("appeared on "), _render_day("born.at"))),
    )


def _describe_signal(signal: str, yes: str, no: str, last: str, first: str) -> Column:
    """Say when the signal was last seen, or since when its absence was observed."""
    return (
        F.when(F.col(signal), F.concat(F.lit(f"{yes}, as shown on "), _render_day(last)))
        .when(~F.col(signal), F.concat(F.lit(f"{no} since "), _render_day(F.greatest(last, first))))
        .when(
            F.col(first).isNotNull(), F.concat(F.lit(f"{yes}: watched since "), _render_day(first))
        )
        .otherwise(f"whether it was {yes} is not known")
    )


def _render_day(time: Column | str) -> Column:
    return F.date_format(time, "yyyy-MM-dd")
