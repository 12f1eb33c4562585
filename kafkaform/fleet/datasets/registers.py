"""List the clusters and states of the fleet, and how much is known about each."""

from __future__ import annotations

from datetime import timedelta

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

from ...core.landing import CLUSTER, DESIRED, LIVE, STATE
from ..landed.cluster_names import CHECKSUM_COLUMN, select_latest_snapshots
from ..tables.dataset import BuildContext, Frames
from ..tables.definitions import TABLES

_MAP = "map<string,string>"
_DECLARED = (
    "cluster string, declared_id string, env string, region string, owner string, "
    "super_users array<string>, allow_if_no_acl boolean"
)
_STATES = "lineage string, name string, owner string"


def build_cluster(frames: Frames, context: BuildContext) -> DataFrame:
    """Return every cluster of fleet.hcl, every one that has landed, and every other scope id that a
    state, a configuration or a log mentions.

    Inputs: snapshot, snapshot_raw, run. One row per name. A cluster's id is the one that it
    answered with last, or else the one in the register.
    """
    tries = frames["snapshot"].where(F.col("source") == LIVE)
    last = select_latest_snapshots(tries, ["subject"]).select(
        F.col("subject").alias("cluster"),
        F.col(CHECKSUM_COLUMN).isNull().alias("failed"),
        F.col("error").alias("last_error"),
    )
    good = _select_newest(frames)
    # Any snapshot with an id, even a failed one: a cluster that answered but could not be read is
    # known.
    ids = select_latest_snapshots(tries.where(F.col("scope_id").isNotNull()), ["subject"])
    landed = (
        last.join(_select_shown(good), "cluster", how="left")
        .join(ids.select(F.col("subject").alias("cluster"), "scope_id"), "cluster", how="left")
        .join(_count_brokers(frames["snapshot_raw"]), ["cluster", "snapshot"], how="left")
    )
    declared = _list_declared(frames["snapshot"], context)
    # full: a cluster that was removed from fleet.hcl still has data, and one that never answered
    # has none.
    clusters = declared.join(landed, "cluster", how="full").withColumn(
        "cluster_id", F.coalesce("scope_id", "declared_id")
    )
    # left_anti on an id that can be null on the right: rows without an id match nothing, as
    # intended.
    strangers = _list_mentioned(frames).join(
        clusters.select("cluster_id"), "cluster_id", how="left_anti"
    )
    unnamed = strangers.withColumn("cluster", F.col("cluster_id"))
    rows = clusters.unionByName(unnamed, allowMissingColumns=True)
    return _fill_columns(rows, context)


def find_newest_builds(frames: Frames) -> DataFrame:
    """Return the builds that read the newest snapshot of each cluster."""
    return _select_newest(frames).select("_build").distinct()


def _select_newest(frames: Frames) -> DataFrame:
    good = (F.col("source") == LIVE) & F.col(CHECKSUM_COLUMN).isNotNull()
    return select_latest_snapshots(frames["snapshot"].where(good), ["subject"])


def _fill_columns(rows: DataFrame, context: BuildContext) -> DataFrame:
    filled = {
        "registered": F.coalesce("registered", F.lit(False)),
        "status": _judge_status(context),
        "coverage": F.coalesce("coverage", F.create_map().cast(_MAP)),
        "error": F.col("last_error"),
        # The attribute is text; ANSI mode would fail the build for a bad one.
        "brokers": F.expr("try_cast(brokers AS INT)"),
    }
    return rows.withColumns(filled).select(*TABLES["cluster"].names)


def _judge_status(context: BuildContext) -> Column:
    """A failure of the newest snapshot counts more than the age of the last good one."""
    oldest = context.as_of - timedelta(hours=context.register.settings.stale_after_hours)
    return (
        F.when(F.col("failed"), "failed")
        # Never read is not empty: every later table treats the cluster as unknown.
        .when(F.col("captured_at").isNull(), "never")
        .when(F.col("captured_at") < F.lit(oldest), "stale")
        .when(F.col("complete"), "read")
        .otherwise("partial")
    )


def _select_shown(good: DataFrame) -> DataFrame:
    name = F.col("subject").alias("cluster")
    return good.select(name, "snapshot", "captured_at", "coverage", "complete")


def _count_brokers(snapshot_raw: DataFrame) -> DataFrame:
    """Return cluster, snapshot, brokers, quota_callback: one row per snapshot."""
    about = snapshot_raw.where((F.col("source") == LIVE) & (F.col("kind") == CLUSTER))
    return about.groupBy(F.col("subject").alias("cluster"), "snapshot").agg(
        F.max(F.col("attrs")["brokers"]).alias("brokers"),
        F.max(F.col("attrs")["quota_callback"]).alias("quota_callback"),
    )


def _list_declared(like: DataFrame, context: BuildContext) -> DataFrame:
    """Return what fleet.hcl declares. like: a frame of the session to create it in."""
    rows = [
        (c.name, c.cluster_id, c.env, c.region, c.owner, _to_list(c.super_users), c.allow_if_no_acl)
        for c in context.register.clusters
    ]
    # With a DDL schema: an empty list, or a column of nulls, has no type to infer.
    declared = like.sparkSession.createDataFrame(rows, _DECLARED)
    return declared.withColumn("registered", F.lit(True))


def _to_list(names: tuple[str, ...] | None) -> list[str] | None:
    return None if names is None else list(names)


def _list_mentioned(frames: Frames) -> DataFrame:
    """Return cluster_id, each once. A run records at its start which clusters it is about."""
    run_scopes = frames["run"].select(F.explode(F.map_values("scopes")).alias("cluster_id"))
    snapshot_scopes = frames["snapshot"].select(
        F.explode(F.map_values("scopes")).alias("cluster_id")
    )
    scopes = run_scopes.unionByName(snapshot_scopes).where(F.col("cluster_id").isNotNull())
    return scopes.distinct()


def build_lineage(frames: Frames, context: BuildContext) -> DataFrame:
    """Return every state of fleet.hcl whose lineage is known, and every one that has landed.

    Inputs: snapshot, audit_raw. One row per lineage. A configuration that could not be read the
    last time is unknown, whatever was known before; a state is known as it was last read.
    """
    snapshot = frames["snapshot"]
    # All tries, not only the good ones: a configuration that fails now must be unknown now.
    tries = select_latest_snapshots(snapshot.where(F.col("source") == DESIRED), ["subject"])
    states = snapshot.where((F.col("source") == STATE) & F.col(CHECKSUM_COLUMN).isNotNull())
    desired = tries.select(
        F.col("subject").alias("lineage"),
        F.col(CHECKSUM_COLUMN).isNotNull().alias("desired_known"),
        F.when(F.col(CHECKSUM_COLUMN).isNotNull(), F.col("captured_at")).alias("desired_at"),
        F.col("scopes").alias("desired_scopes"),
        "error",
    )
    state = select_latest_snapshots(states, ["subject"]).select(
        F.col("subject").alias("lineage"),
        F.col("captured_at").alias("state_at"),
        F.col("scopes").alias("state_scopes"),
    )
    named = [(s.lineage, s.name, s.owner) for s in context.register.states if s.lineage]
    declared = snapshot.sparkSession.createDataFrame(named, _STATES)
    logs = frames["audit_raw"].where(F.col("seq").isNotNull()).select("lineage").distinct()
    landed = snapshot.where(F.col("source") != LIVE).select(F.col("subject").alias("lineage"))
    rows = (
        logs.union(landed)
        .distinct()
        .join(declared.dropDuplicates(["lineage"]), "lineage", how="full")
        .join(desired, "lineage", how="left")
        .join(state, "lineage", how="left")
    )
    filled = {
        "desired_known": F.coalesce("desired_known", F.lit(False)),
        "scopes": _merge_maps(F.col("desired_scopes"), F.col("state_scopes")),
    }
    return rows.withColumns(filled).select(*TABLES["lineage"].names)


def _merge_maps(first: Column, second: Column) -> Column:
    """Merge two maps, which may be null. If both have a key, the second wins."""
    empty = F.create_map().cast(_MAP)
    first_map, second_map = F.coalesce(first, empty), F.coalesce(second, empty)
    # `map_concat` of maps with a common key is an error by default (spark.sql.mapKeyDedupPolicy).
    first_only = F.map_filter(first_map, lambda key, _: ~F.map_contains_key(second_map, key))
    return F.map_concat(first_only, second_map)
