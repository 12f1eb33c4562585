"""Find what is inconsistent across clusters, states and logs."""

from __future__ import annotations

from functools import reduce

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, Window

from ..landed.register import NamingRule, Register, matches
from ..tables.definitions import TABLES, BuildContext, Frames
from .history import is_internal
from .resources import add_owner

SEVERITY = {
    "unlike": "low",
    "naming": "medium",
    "chain_broken": "high",
    "chain_gap": "medium",
    "stale": "medium",
    "failed": "high",
    "unregistered": "medium",
    "two_owners": "high",
    "conflicting_event": "high",
    "renamed": "medium",
    "mixed_releases": "medium",
    "subject_without_topic": "low",
    "topic_without_schema": "low",
}
TOPIC, CLUSTER, STATE, EVENT = "kafka_topic", "cluster", "state", "event"
"""`kind` of what a finding is about. States and events are in no cluster; their `cluster` is
empty."""

MAX_NAMES = 20
"""A finding names at most this many clusters, the first by name."""

_READ = ("read", "partial")
_SUBJECT = "schema_registry_schema"
_NAMED_AFTER_TOPIC = "-(key|value)$"
"""The end of the subjects that TopicNameStrategy names after a topic."""


def build(frames: Frames, context: BuildContext) -> DataFrame:
    """Return the rows of `fleet_consistency`.

    Inputs: live, desired, recorded, cluster, lineage, run, event_conflict, for all clusters.
    """
    findings = (
        _find_unlike(frames),
        *(_find_misnamed(frames, rule) for rule in context.register.naming),
        _find_broken_chains(frames),
        _find_silent_clusters(frames["cluster"]),
        _find_two_owners(frames),
        _find_conflicts(frames),
        _find_renamed(frames["cluster"]),
        _find_mixed_releases(frames["cluster"]),
        *_find_unpaired_subjects(frames, context.register),
    )
    rows = add_owner(reduce(DataFrame.unionByName, findings), frames, context.register)
    severity = F.create_map(*(F.lit(word) for entry in SEVERITY.items() for word in entry))
    return (
        rows.withColumn("severity", F.element_at(severity, F.col("finding")))
        # Two naming rules with the same pattern may cover the same cluster.
        .dropDuplicates([*TABLES["fleet_consistency"].key])
        .select(*TABLES["fleet_consistency"].names)
    )


def _make_finding(
    rows: DataFrame,
    finding: Column | str,
    kind: Column | str,
    key: Column | str,
    detail: Column,
    clusters: Column,
    cluster: Column | None = None,
) -> DataFrame:
    """rows: with `owner`, and with `cluster` unless it is given; finding, kind, key: a column, or
    the text itself."""
    return rows.select(
        _to_column(finding).alias("finding"),
        (F.col("cluster") if cluster is None else cluster).alias("cluster"),
        _to_column(kind).alias("kind"),
        _to_column(key).alias("key"),
        detail.alias("detail"),
        "owner",
        clusters.alias("clusters"),
    )


def _to_column(value: Column | str) -> Column:
    return F.lit(value) if isinstance(value, str) else value


def _take_some(clusters: Column) -> Column:
    return F.slice(F.array_sort(clusters), 1, MAX_NAMES)


# ── topics of one name ──────────────────────────────────────────────────────────────────


def _find_unlike(frames: Frames) -> DataFrame:
    """Return topics of one name that differ between clusters of one env: for each path, those that
    do not have the value that most have, or all of them if no value is the most frequent.

    Clusters without an env are compared with each other. Partitions and config are compared, on
    clusters that are readable now.
    """
    # A stale cluster would make all others look odd.
    cluster = frames["cluster"].where(F.col("status").isin(*_READ)).select("cluster", "env")
    topics = frames["live"].where((F.col("kind") == TOPIC) & ~is_internal("attrs"))
    of_name = Window.partitionBy("env", "key")
    attrs = F.map_filter("attrs", lambda p, _: (p == "partitions") | p.startswith("config."))
    # A map cannot be compared or grouped, and its order is that of the file: sort the entries
    # first.
    form = F.to_json(F.array_sort(F.map_entries(attrs)))
    named = (
        topics.join(cluster, "cluster", how="inner")
        .select("cluster", "env", "key", "owner", attrs.alias("attrs"), form.alias("_form"))
        # Equal minimum and maximum: all alike. Most names end here, before any path is looked at.
        .withColumn("_least", F.min("_form").over(of_name))
        .withColumn("_most", F.max("_form").over(of_name))
        .where(F.col("_least") != F.col("_most"))
    )
    paths = F.array_distinct(F.flatten(F.collect_set(F.map_keys("attrs")).over(of_name)))
    rows = (
        named.withColumn("clusters", _take_some(F.collect_set("cluster").over(of_name)))
        .withColumn("_paths", paths)
        .select("*", F.explode("_paths").alias("path"))
        .withColumn("value", F.try_element_at("attrs", "path"))
    )
    odd = _find_odd(rows)
    detail = F.when(
        F.col("_tops") == 1,
        F.format_string(
            "%s is %s, where %d of %d clusters have %s",
            "path",
            _render_value("value"),
            "_top",
            "_all",
            _render_value("_usual"),
        ),
    ).otherwise(
        F.format_string(
            "%s is %s, and the %d clusters differ", "path", _render_value("value"), "_all"
        )
    )
    return _make_finding(odd, "unlike", TOPIC, F.col("key"), detail, F.col("clusters"))


def _find_odd(rows: DataFrame) -> DataFrame:
    """Return the rows whose value is not the usual one. rows: with env, key, path, value. _all:
    number of clusters; _top: how many have the most frequent value; _tops: how many values are that
    frequent; _usual: that value."""
    path, value = ("env", "key", "path"), ("env", "key", "path", "value")
    of_path = Window.partitionBy(*path)
    is_top = F.col("_count") == F.col("_top")
    counted = (
        rows.withColumn("_count", F.count("*").over(Window.partitionBy(*value)))
        .withColumn("_all", F.count("*").over(of_path))
        .withColumn("_top", F.max("_count").over(of_path))
        .where(F.col("_count") < F.col("_all"))
    )
    tops = F.size(F.collect_set(F.when(is_top, F.struct("value"))).over(of_path))
    # In a struct, because null (not set) is a value here, and aggregates pass over nulls.
    usual = F.max(F.when(is_top, F.struct("value"))).over(of_path)
    return (
        counted.withColumn("_tops", tops)
        .withColumn("_usual", usual["value"])
        .where(~is_top | (F.col("_tops") > 1))
    )


def _render_value(value: str) -> Column:
    return F.coalesce(value, F.lit("not set"))


# ── names ───────────────────────────────────────────────────────────────────────────────


def _find_misnamed(frames: Frames, rule: NamingRule) -> DataFrame:
    """Return live or declared objects whose whole key does not match the rule. Kafka's own topics
    are exempt. The pattern is Java's, as Spark runs it."""
    columns = ("cluster", "kind", "key", "owner")
    live = frames["live"].where(~is_internal("attrs")).select(*columns)
    rows = live.unionByName(frames["desired"].select(*columns))
    wrong = (
        rows.where(F.col("kind") == rule.kind)
        .where(matches(F.col("cluster"), rule.cluster))
        # `rlike` searches anywhere in the text, hence the anchors.
        .where(~F.col("key").rlike(rf"\A(?:{rule.pattern})\z"))
        .groupBy("cluster", "kind", "key")
        .agg(F.max("owner").alias("owner"))
    )
    detail = F.lit(f"the name does not match {rule.pattern}")
    return _make_finding(wrong, "naming", F.col("kind"), F.col("key"), detail, F.array("cluster"))


# ── logs ────────────────────────────────────────────────────────────────────────────────


def _find_broken_chains(frames: Frames) -> DataFrame:
    """Return logs that are not sound: one row per log and fault, with the first run that shows
    it."""
    first = F.min_by("run", F.struct("started_at", "run"))
    faulty = (
        frames["run"]
        .where(F.col("chain").isin("gap", "broken"))
        .groupBy("lineage", "chain")
        .agg(first.alias("run"))
        .join(_list_states(frames), "lineage", how="left")
    )
    fault = F.when(F.col("chain") == "gap", "the log lacks records").otherwise(
        "the log is not what was written"
    )
    detail = F.concat(fault, F.lit(", first seen in run "), "run")
    finding = F.concat(F.lit("chain_"), "chain")
    clusters = F.coalesce("clusters", F.array().cast("array<string>"))
    key = F.coalesce("name", "lineage")
    return _make_finding(faulty, finding, STATE, key, detail, clusters, F.lit(""))


def _list_states(frames: Frames) -> DataFrame:
    """Return lineage, name, owner and the names of the clusters that it reaches."""
    reached = frames["lineage"].select(
        # outer: a state that reaches no known cluster must not vanish from the findings.
        "lineage",
        "name",
        "owner",
        F.explode_outer(F.map_values("scopes")).alias("cluster_id"),
    )
    names = frames["cluster"].select("cluster_id", "cluster")
    return (
        reached.join(names, "cluster_id", how="left")
        .groupBy("lineage")
        .agg(
            F.max("name").alias("name"),
            F.max("owner").alias("owner"),
            _take_some(F.collect_set("cluster")).alias("clusters"),
        )
    )


def _find_conflicts(frames: Frames) -> DataFrame:
    """Return records of which the logs have several versions: somebody changed one."""
    forms = (
        frames["event_conflict"]
        .groupBy("event_id", "lineage")
        .agg(
            F.count_distinct("payload").alias("count"),
            F.array_join(F.array_sort(F.collect_set("_file")), ", ").alias("files"),
        )
        .join(_list_states(frames), "lineage", how="left")
    )
    detail = F.format_string("%d different records have this id, in %s", "count", "files")
    clusters = F.coalesce("clusters", F.array().cast("array<string>"))
    return _make_finding(
        forms, "conflicting_event", EVENT, F.col("event_id"), detail, clusters, F.lit("")
    )


# ── clusters and owners ─────────────────────────────────────────────────────────────────


def _find_silent_clusters(cluster: DataFrame) -> DataFrame:
    """Return clusters that are stale, failed or never read, and those that fleet.hcl does not
    name."""
    stale, failed = F.col("status") == "stale", F.col("status").isin("failed", "never")
    is_missing = failed & F.col("registered")
    findings = F.array_compact(
        F.array(
            F.when(
                stale, F.struct(F.lit("stale").alias("finding"), _describe_age().alias("detail"))
            ),
            F.when(
                is_missing,
                F.struct(F.lit("failed").alias("finding"), _describe_failure().alias("detail")),
            ),
            F.when(
                ~F.col("registered"),
                F.struct(
                    F.lit("unregistered").alias("finding"),
                    F.lit("fleet.hcl does not name it").alias("detail"),
                ),
            ),
        )
    )
    rows = cluster.select("cluster", "owner", F.inline(findings))
    return _make_finding(
        rows, F.col("finding"), CLUSTER, F.col("cluster"), F.col("detail"), F.array("cluster")
    )


def _describe_age() -> Column:
    return F.concat(F.lit("its newest snapshot is of "), _render_time("captured_at"))


def _describe_failure() -> Column:
    never = F.when(F.col("status") == "never", F.lit("it was never read"))
    return F.coalesce(never, "error", F.lit("it could not be read"))


def _render_time(name: str) -> Column:
    return F.date_format(name, "yyyy-MM-dd HH:mm")


def _find_two_owners(frames: Frames) -> DataFrame:
    """Return objects that several states have recorded: each state would undo the other's
    changes."""
    states = frames["lineage"].select("lineage", F.coalesce("name", "lineage").alias("name"))
    recorded_objects = (
        _find_recorded_twice(frames["recorded"])
        .join(states, "lineage", how="left")
        .groupBy("cluster", "kind", "key")
        .agg(
            F.count_distinct("lineage").alias("count"),
            F.max("owner").alias("owner"),
            F.array_sort(F.collect_set(F.coalesce("name", "lineage"))).alias("names"),
        )
        .where(F.col("count") > 1)
    )
    detail = F.concat(F.lit("recorded in the states "), F.array_join("names", ", "))
    return _make_finding(
        recorded_objects, "two_owners", F.col("kind"), F.col("key"), detail, F.array("cluster")
    )


def _find_recorded_twice(recorded: DataFrame) -> DataFrame:
    """Return the rows of objects that are recorded more than once, and some whose hash collides."""
    # Grouping by a number instead of three texts: of millions of objects, few are recorded twice. A
    # collision only adds rows, which the exact count afterwards removes.
    rows = recorded.withColumn("_object", F.xxhash64("cluster", "kind", "key"))
    counted = rows.groupBy("_object").agg(F.count(F.lit(1)).alias("rows"))
    several = counted.where(F.col("rows") > 1).select("_object")
    return rows.join(several, "_object", how="left_semi")


def _find_renamed(cluster: DataFrame) -> DataFrame:
    """Return names that belong to the same cluster."""
    # Null ids were removed: a window puts all nulls into one partition, as if they were one
    # cluster.
    same_id = Window.partitionBy("cluster_id")
    rows = (
        cluster.where(F.col("cluster_id").isNotNull())
        .withColumn("clusters", F.array_sort(F.collect_set("cluster").over(same_id)))
        .where(F.size("clusters") > 1)
    )
    other_names = F.filter("clusters", lambda name: name != F.col("cluster"))
    words = F.lit("its id "), F.col("cluster_id"), F.lit(" is also that of ")
    detail = F.concat(*words, F.array_join(other_names, ", "))
    return _make_finding(
        rows, "renamed", CLUSTER, F.col("cluster"), detail, _take_some(F.col("clusters"))
    )


def _find_mixed_releases(cluster: DataFrame) -> DataFrame:
    """Return clusters whose brokers run different releases of Kafka: an upgrade goes on, or was
    forgotten."""
    mixed = cluster.where(F.col("status").isin(*_READ) & (F.size("releases") > 1))
    detail = F.concat(F.lit("its brokers run Kafka "), F.array_join("releases", ", "))
    return _make_finding(
        mixed, "mixed_releases", CLUSTER, F.col("cluster"), detail, F.array("cluster")
    )


# ── topics and subjects ─────────────────────────────────────────────────────────────────


def _find_unpaired_subjects(frames: Frames, register: Register) -> tuple[DataFrame, DataFrame]:
    """Return subjects `TOPIC-key` and `TOPIC-value` without the topic, and topics without either of
    them, of registries whose Kafka cluster is declared.

    Both assume TopicNameStrategy. A topic is found only if at least one subject is named like that
    after a topic of its cluster; subjects with other names, those of a context (`:.name:`) and
    topics that begin with `_` never are. What was not read completely is not judged.
    """
    pairs = _list_registries(frames["cluster"], register)
    key = F.col("key")
    # registry, key, topic, owner, cluster: whether the topic exists or not.
    subjects = (
        frames["live"]
        .where((F.col("kind") == _SUBJECT) & key.rlike(_NAMED_AFTER_TOPIC) & ~key.startswith(":"))
        .select(
            F.col("cluster").alias("registry"),
            "key",
            F.regexp_replace("key", _NAMED_AFTER_TOPIC, "").alias("topic"),
            "owner",
        )
        .join(F.broadcast(pairs), "registry", how="inner")
    )
    topics = (
        frames["live"]
        .where((F.col("kind") == TOPIC) & ~is_internal("attrs") & ~key.startswith("_"))
        .select("cluster", F.col("key").alias("topic"), F.col("owner").alias("_owner"))
    )
    strays = subjects.join(topics, ["cluster", "topic"], how="left_anti")
    used = subjects.join(topics, ["cluster", "topic"], how="left_semi").select("cluster").distinct()
    bare = (
        topics.join(F.broadcast(pairs), "cluster", how="inner")
        .join(used, "cluster", how="left_semi")
        .join(subjects.select("cluster", "topic"), ["cluster", "topic"], how="left_anti")
        .groupBy("cluster", "topic")
        .agg(
            F.max("_owner").alias("owner"),
            _take_some(F.collect_set("registry")).alias("registries"),
        )
    )
    stray_detail = F.format_string("cluster %s has no topic %s", "cluster", "topic")
    bare_detail = F.concat(
        F.lit("no subject is named after it in "), F.array_join("registries", ", ")
    )
    return (
        _make_finding(
            strays,
            "subject_without_topic",
            _SUBJECT,
            key,
            stray_detail,
            F.array("registry", "cluster"),
            F.col("registry"),
        ),
        _make_finding(
            bare, "topic_without_schema", TOPIC, F.col("topic"), bare_detail, F.array("cluster")
        ),
    )


def _list_registries(cluster: DataFrame, register: Register) -> DataFrame:
    """Return registry and cluster: the pairs of which all subjects and topics were read. All
    registries of a cluster must have been: a subject may be in the other one."""
    pairs = [(c.name, c.kafka_cluster) for c in register.clusters if c.kafka_cluster is not None]
    declared = cluster.sparkSession.createDataFrame(pairs, "registry string, cluster string")
    readable = cluster.where(F.col("status").isin(*_READ))

    def select_whole(kind: str) -> DataFrame:
        whole = F.try_element_at("coverage", F.lit(kind)) == "complete"
        return readable.where(whole).select("cluster")

    registries = select_whole(_SUBJECT).withColumnRenamed("cluster", "registry")
    unread = declared.join(registries, "registry", how="left_anti").select("cluster")
    return (
        declared.join(select_whole(TOPIC), "cluster", how="left_semi")
        .join(unread, "cluster", how="left_anti")
        .select("registry", "cluster")
    )
