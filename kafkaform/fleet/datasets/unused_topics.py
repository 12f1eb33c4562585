"""Find topics that nobody seems to use, by several signals, and only where these were observed.

A candidate is no proof. Readers that commit no offsets leave no trace in a snapshot, nor does a
group that came and went between two snapshots and left its offsets as they were.
"""

from __future__ import annotations

import json

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

from ...core.landing import TOPIC_USAGE
from ..landed.register import Register
from ..tables.dataset import BuildContext, Frames
from ..tables.definitions import TABLES
from .attribution import is_internal
from .owners import add_owner
from .usage import COMPLETE, KEY, VISIBLE, build_usage

_TOPIC, _ACL = "kafka_topic", "kafka_acl"
_ACCESS = ("Read", "Write", "All")
"""Operations that use a topic."""
SIGNALS = ("written", "read", "empty", "granted", "aged")
"""Columns that count for the confidence, if they can be judged."""


def build(frames: Frames, context: BuildContext) -> DataFrame:
    """Return the rows of `unused_topics`, from `live`, `history`, `cluster`, `snapshot`,
    `snapshot_raw`, `desired`, `recorded` and itself.

    One row per topic that is not Kafka's own, judged as of its cluster's newest snapshot. `in_use`:
    written or read within the grace days. `too_new`: it appeared within them. `candidate`: neither
    written nor read, and both were observed all the time. Everything else is
    `insufficient_evidence`. Emptiness, grants and age are shown, and count for the confidence.
    """
    # Several signals: an empty topic may be a queue that is read quickly, and a full one an old
    # archive.
    usage = build_usage(frames, context.build)
    rows = (
        _select_topics(frames, context.register)
        .join(usage, list(KEY), "left")
        .join(_collect_past(frames["history"]), list(KEY), "left")
        .join(_find_principals(frames["live"]), list(KEY), "left")
    )
    columns = {"granted": _is_granted(context.register), "born": _find_birth()}
    judged = _add_signals(rows.withColumns(columns), context.register.settings.grace_days)
    verdicts = judged.withColumn("verdict", _judge_verdict()).withColumn(
        "evidence", _describe_evidence()
    )
    return verdicts.select(*TABLES["unused_topics"].names)


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


def _collect_past(history: DataFrame) -> DataFrame:
    """Return KEY and past: the start of each interval of the topic."""
    form = F.struct("incarnation", "valid_from", "seen_before")
    rows = history.where(F.col("kind") == _TOPIC).groupBy("cluster", "key")
    return rows.agg(F.collect_list(form).alias("past")).withColumnRenamed("key", "topic")


def _find_birth() -> Column:
    """Return at, when the present topic was first shown, and before, a time at which it certainly
    did not exist (null: none is known)."""
    own_forms = F.filter("past", lambda form: form["incarnation"].eqNullSafe(F.col("incarnation")))
    begins = F.transform(own_forms, _make_beginning)
    return F.array_min(begins)


def _make_beginning(form: Column) -> Column:
    return F.struct(form["valid_from"].alias("at"), form["seen_before"].alias("before"))


# -- grants


def _find_principals(live: DataFrame) -> DataFrame:
    """Return KEY and principals: who may read or write the topic by an ALLOW. An empty array: all
    ACLs of the topic are about something else. No row: the topic has no ACL. DENYs are ignored."""
    names = live.where(F.col("kind") == _TOPIC).select("cluster", F.col("key").alias("topic"))
    patterns = _select_patterns(live)
    everybody = F.array_distinct(F.flatten(F.collect_list("principals")))
    covering = _find_covering(names, patterns).join(
        patterns, ["cluster", "pattern", "name"], "inner"
    )
    return covering.groupBy(*KEY).agg(everybody.alias("principals"))


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
    return topics.select(*KEY, F.inline(F.concat(literals, prefixes)))


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
    has_others = F.size(F.array_except("principals", owner_principals)) > 0
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
    return (
        rows.withColumn("written", idle[0])
        .withColumn("read", idle[1])
        .withColumn("empty", F.when(F.col("offsets_at") == F.col("as_of"), F.col("empty")))
        .withColumn("aged", F.when(old | appeared, old))
        .withColumns({"idle_since": _find_idle_since(), "confidence": _compute_confidence()})
    )


def _find_idle_since() -> Column:
    active = F.greatest("written_at", "read_at")
    return F.coalesce(active, F.greatest("offsets_since", "groups_since"))


def _compute_confidence() -> Column:
    judged = [F.when(F.col(name).isNotNull(), 1).otherwise(0) for name in SIGNALS]
    return F.round(sum(judged, F.lit(0)) / F.lit(float(len(SIGNALS))), 2)


def _judge_verdict() -> Column:
    used = F.col("written") | F.col("read")
    return (
        F.when(used, "in_use")
        # `~null` is null, and `when` passes it over: a topic of unknown age is not "too new".
        .when(~F.col("aged"), "too_new")
        # `written | read` is null if one is unknown and the other is not true.
        .when(used.isNull(), "insufficient_evidence")
        .otherwise("candidate")
    )


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
