"""Select what is known now: clusters and states, their newest rows, owners of objects, and
credentials with their age and end."""

from __future__ import annotations

import json
from datetime import timedelta

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

from ...core.landing import CLUSTER, DESIRED, LIVE, STATE
from ..landed.register import Register, matches
from ..landed.snapshots import (
    CHECKSUM_COLUMN,
    add_cluster_names,
    select_latest_snapshots,
    select_newest,
)
from ..tables.definitions import TABLES, BuildContext, Frames

FAILED = "failed"
OBJECT = ("cluster", "kind", "key")
DECLARED_IN = ("desired", "recorded")
"""Tables that name owners, the most trusted first."""
_NAMED_AS_TOPIC = ("kafka_topic", "kafka_topic_config", "topic_usage")
"""Kinds whose key is a topic's name."""
_SCRAM = "kafka_user_scram_credential"
_MAP = "map<string,string>"
_DECLARED = (
    "cluster string, declared_id string, env string, region string, owner string, "
    "super_users array<string>, allow_if_no_acl boolean"
)
_STATES = "lineage string, name string, owner string"


def build_live(frames: Frames, context: BuildContext) -> DataFrame:
    """Return the objects that each cluster showed last. Inputs: snapshot, snapshot_raw.

    Per kind: if the newest snapshot could not read the kind, the newest one that could is used. A
    snapshot that failed as a whole is never used. A kind that no coverage mentions was read
    whenever anything was.
    """
    # Not `complete` ones: a snapshot with one failed kind still shows all others.
    good = _select_good(frames, LIVE)
    kinds = _explode_kinds(good)
    by_kind = _select_covered(kinds).select(
        "subject", F.col("key").alias("kind"), F.col("snapshot").alias("_of")
    )
    cluster_kinds = kinds.select("subject", F.col("key").alias("kind")).distinct()
    last = select_latest_snapshots(good, ["subject"]).select(
        "subject", F.col("snapshot").alias("_last")
    )
    chosen = cluster_kinds.join(by_kind, ["subject", "kind"], how="left").withColumn(
        "_known", F.lit(True)
    )
    rows = frames["snapshot_raw"].where(F.col("source") == LIVE)
    # One row per cluster and kind on the right: broadcasting it keeps the large side unshuffled.
    marked = rows.join(F.broadcast(chosen), ["subject", "kind"], how="left").join(
        F.broadcast(last), "subject", how="inner"
    )
    # A kind whose every look failed is known and has no `_of`: null equals no snapshot, so no rows.
    newest_snapshot = F.when(F.col("_known"), F.col("_of")).otherwise(F.col("_last"))
    newest = marked.where(F.col("snapshot") == newest_snapshot)
    newest = newest.withColumn("cluster", F.col("subject"))
    return _keep_once(newest, ("cluster", "kind", "key")).select(*TABLES["live"].names)


def find_live_builds(frames: Frames) -> DataFrame:
    """Return the builds that read the rows of `live`."""
    good = _select_good(frames, LIVE)
    last = select_latest_snapshots(good, ["subject"]).select("_build")
    return last.unionByName(_select_covered(_explode_kinds(good)).select("_build")).distinct()


def _select_good(frames: Frames, source: str) -> DataFrame:
    """Return the snapshots that have rows."""
    return frames["snapshot"].where(
        (F.col("source") == source) & F.col(CHECKSUM_COLUMN).isNotNull()
    )


def _explode_kinds(good: DataFrame) -> DataFrame:
    about = ("subject", "snapshot", "captured_at", "_file", "_build")
    return good.select(*about, F.explode("coverage"))


def _select_covered(kinds: DataFrame) -> DataFrame:
    """Return the newest snapshot of each cluster and kind that could read it."""
    return select_latest_snapshots(kinds.where(F.col("value") != FAILED), ["subject", "key"])


def build_recorded(frames: Frames, context: BuildContext) -> DataFrame:
    """Return the objects that each state records. Inputs: snapshot, snapshot_raw, cluster."""
    return _select_rows(_select_states(frames), frames, "recorded")


def find_recorded_builds(frames: Frames) -> DataFrame:
    """Return the builds that read the newest states."""
    return _select_states(frames).select("_build").distinct()


def _select_states(frames: Frames) -> DataFrame:
    return select_latest_snapshots(_select_good(frames, STATE), ["subject"])


def build_desired(frames: Frames, context: BuildContext) -> DataFrame:
    """Return the objects that each configuration declares; none for a configuration that could not
    be read the last time (`lineage.desired_known`). Inputs: snapshot, snapshot_raw, cluster."""
    return _select_rows(_select_configurations(frames), frames, "desired")


def find_desired_builds(frames: Frames) -> DataFrame:
    """Return the builds that read the newest configurations."""
    return _select_configurations(frames).select("_build").distinct()


def _select_configurations(frames: Frames) -> DataFrame:
    configurations = frames["snapshot"].where(F.col("source") == DESIRED)
    # First the newest, then whether it is good: an older configuration would hide that it is
    # unreadable.
    return select_latest_snapshots(configurations, ["subject"]).where(
        F.col(CHECKSUM_COLUMN).isNotNull()
    )


def _select_rows(snapshots: DataFrame, frames: Frames, table: str) -> DataFrame:
    """Return the rows of these snapshots of states or configurations, one snapshot per lineage.

    Objects in a cluster that was never reached are left out: there is nothing to compare them with,
    and no name for the cluster.
    """
    chosen = snapshots.select("source", "subject", "snapshot", "scopes")
    rows = frames["snapshot_raw"].join(
        F.broadcast(chosen), ["source", "subject", "snapshot"], how="inner"
    )
    placed = rows.withColumns(
        {
            "lineage": F.col("subject"),
            # A row that was written before the cluster answered has no scope id; its snapshot may
            # know it.
            "scope_id": F.coalesce("scope_id", F.try_element_at("scopes", F.col("instance"))),
        }
    )
    named = add_cluster_names(placed.where(F.col("scope_id").isNotNull()), frames["cluster"])
    distinct = _keep_once(named, ("cluster", "kind", "key", "lineage"))
    return distinct.select(*TABLES[table].names)


def _keep_once(rows: DataFrame, keys: tuple[str, ...]) -> DataFrame:
    """Keep one row per key. A file that was read twice has each row twice; and two provider
    instances may lead to one cluster: the first counts."""
    return select_newest(rows, keys, F.asc_nulls_last("instance"), F.asc("_file"))


def add_owner(rows: DataFrame, frames: Frames, register: Register) -> DataFrame:
    """Fill in `owner` where somebody names one.

    rows: of `live` or a similar table (OBJECT and owner). frames: with DECLARED_IN. One owner
    per object is used, so that no row is multiplied.
    """
    # OBJECT and owner, one row each. If lineages differ, the first of the first table wins.
    named = [
        frames[name].select(*OBJECT, F.lit(rank).alias("rank"), "lineage", "owner")
        for rank, name in enumerate(DECLARED_IN)
    ]
    # The minimum of a struct compares field by field: the row with the lowest rank, then lineage.
    first = F.min(F.struct("rank", "lineage", "owner")).getField("owner")
    owned = named[0].unionByName(named[1]).where(F.col("owner").isNotNull())
    declared = (
        owned.groupBy(*OBJECT).agg(first.alias("owner")).withColumnRenamed("owner", "_declared")
    )
    owner = F.coalesce("owner", "_declared", owner_by_name(register))
    return rows.join(declared, list(OBJECT), "left").withColumn("owner", owner).drop("_declared")


def owner_by_name(register: Register) -> Column:
    """Return the owner whose globs match the row's key, the first one in the register; null for
    anything but topics."""
    key, topic = F.col("key"), F.col("kind").isin(*_NAMED_AS_TOPIC)
    names = [
        F.when(topic & matches(key, glob), F.lit(owner.name))
        for owner in register.owners
        for glob in owner.topics
    ]
    # Evaluated in order, so the first owner in fleet.hcl wins, as documented.
    return F.coalesce(*names, F.lit(None).cast("string"))


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
    name = F.col("subject").alias("cluster")
    newest = good.select(name, "snapshot", "captured_at", "coverage", "complete")
    about = frames["snapshot_raw"].where((F.col("source") == LIVE) & (F.col("kind") == CLUSTER))
    versions = F.map_filter("attrs", lambda path, _: path.startswith("versions."))
    releases = F.array_sort(F.array_distinct(F.map_values(versions)))
    brokers = about.groupBy(name, "snapshot").agg(
        F.max(F.when(F.size(releases) > 0, releases)).alias("releases"),
        F.max(F.col("attrs")["brokers"]).alias("brokers"),
        F.max(F.col("attrs")["quota_callback"]).alias("quota_callback"),
    )
    landed = (
        last.join(newest, "cluster", how="left")
        .join(ids.select(name, "scope_id"), "cluster", how="left")
        .join(brokers, ["cluster", "snapshot"], how="left")
    )
    declared = _list_registered(frames["snapshot"], context)
    # full: a cluster that was removed from fleet.hcl still has data, and one that never answered
    # has none.
    clusters = declared.join(landed, "cluster", how="full").withColumn(
        "cluster_id", F.coalesce("scope_id", "declared_id")
    )
    # A run records at its start which clusters it is about.
    run_scopes = frames["run"].select(F.explode(F.map_values("scopes")).alias("cluster_id"))
    snapshot_scopes = frames["snapshot"].select(
        F.explode(F.map_values("scopes")).alias("cluster_id")
    )
    scopes = run_scopes.unionByName(snapshot_scopes).where(F.col("cluster_id").isNotNull())
    # left_anti on an id that can be null on the right: rows without an id match nothing, as
    # intended.
    strangers = scopes.distinct().join(clusters.select("cluster_id"), "cluster_id", how="left_anti")
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
    # A failure of the newest snapshot counts more than the age of the last good one.
    oldest = context.as_of - timedelta(hours=context.register.settings.stale_after_hours)
    filled = {
        "registered": F.coalesce("registered", F.lit(False)),
        "status": F.when(F.col("failed"), "failed")
        # Never read is not empty: every later table treats the cluster as unknown.
        .when(F.col("captured_at").isNull(), "never")
        .when(F.col("captured_at") < F.lit(oldest), "stale")
        .when(F.col("complete"), "read")
        .otherwise("partial"),
        "coverage": F.coalesce("coverage", F.create_map().cast(_MAP)),
        "error": F.col("last_error"),
        # The attribute is text; ANSI mode would fail the build for a bad one.
        "brokers": F.expr("try_cast(brokers AS INT)"),
    }
    return rows.withColumns(filled).select(*TABLES["cluster"].names)


def _list_registered(like: DataFrame, context: BuildContext) -> DataFrame:
    """Return what fleet.hcl declares. like: a frame of the session to create it in."""
    registered_rows = [
        (
            c.name,
            c.cluster_id,
            c.env,
            c.region,
            c.owner,
            None if c.super_users is None else list(c.super_users),
            c.allow_if_no_acl,
        )
        for c in context.register.clusters
    ]
    # With a DDL schema: an empty list, or a column of nulls, has no type to infer.
    registered = like.sparkSession.createDataFrame(registered_rows, _DECLARED)
    return registered.withColumn("registered", F.lit(True))


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
    # The maps may be null. If both have a key, that of the state wins.
    empty = F.create_map().cast(_MAP)
    desired_scopes = F.coalesce(F.col("desired_scopes"), empty)
    state_scopes = F.coalesce(F.col("state_scopes"), empty)
    # `map_concat` of maps with a common key is an error by default (spark.sql.mapKeyDedupPolicy).
    desired_only = F.map_filter(
        desired_scopes, lambda key, _: ~F.map_contains_key(state_scopes, key)
    )
    filled = {
        "desired_known": F.coalesce("desired_known", F.lit(False)),
        "scopes": F.map_concat(desired_only, state_scopes),
    }
    return rows.withColumns(filled).select(*TABLES["lineage"].names)


# ── what expires or grows old ───────────────────────────────────────────────────────────


def build_credentials(frames: Frames, context: BuildContext) -> DataFrame:
    """Return the rows of `credentials`. Inputs: cluster, event, history, live.

    Brokers do not say when a password was set. An apply of ours that created or changed the
    credential set it. Iterations change only with the password, so if a later snapshot shows other
    iterations, somebody else set it before that snapshot.
    """
    as_of = frames["cluster"].select("cluster", F.col("captured_at").alias("as_of"))
    rows = _list_passwords(frames).unionByName(_list_shown(frames["live"]))
    owners = {name: o.name for o in reversed(context.register.owners) for name in o.principals}
    owner = F.try_element_at(
        F.from_json(F.lit(json.dumps(owners)), "map<string,string>"), F.col("principal")
    )
    dated = rows.join(as_of.where("as_of is not null"), "cluster", how="inner")
    columns = {
        "owner": F.coalesce(owner, "owner"),
        "age_days": F.greatest(F.datediff("as_of", "begins_at"), F.lit(0)).cast("int"),
        "days_left": F.floor((F.unix_seconds("ends_at") - F.unix_seconds("as_of")) / 86_400).cast(
            "int"
        ),
    }
    return dated.withColumns(columns).select(*TABLES["credentials"].names)


def _list_passwords(frames: Frames) -> DataFrame:
    """Return the SCRAM credentials of `live`, with when and by what each was set."""
    is_scram = F.col("kind") == _SCRAM
    credentials = frames["live"].where(is_scram).select("cluster", "key", "attrs", "owner")
    interval = F.max(F.struct("valid_from", "seen_before"))
    intervals = frames["history"].where(is_scram).groupBy("cluster", "key")
    sent = frames["event"].where(
        is_scram
        & (F.col("outcome") == "applied")
        & F.col("action").isin("create", "update")
        & ~F.coalesce("adopts", F.lit(False))
    )
    object_key = ["cluster", "key"]
    rows = credentials.join(intervals.agg(interval.alias("newest")), object_key, how="left").join(
        sent.groupBy(*object_key).agg(F.max("ts").alias("set")), object_key, how="left"
    )
    # Without a look before it, the interval may have begun long before its first snapshot.
    is_ours = F.col("set").isNotNull() & (
        F.col("newest.seen_before").isNull() | (F.col("set") >= F.col("newest.seen_before"))
    )
    begins = F.when(is_ours, F.col("set")).otherwise(F.col("newest.valid_from"))
    return rows.where(begins.isNotNull()).select(
        "cluster",
        F.lit(_SCRAM).alias("kind"),
        "key",
        F.concat(F.lit("User:"), F.col("attrs")["username"]).alias("principal"),
        F.lit(None).cast("string").alias("subject"),
        "owner",
        begins.alias("begins_at"),
        F.when(is_ours, "log").otherwise("snapshot").alias("origin"),
        F.lit(None).cast("timestamp").alias("ends_at"),
    )


def _list_shown(live: DataFrame) -> DataFrame:
    """Return the tokens and certificates that the row of the cluster has."""
    prefix = F.regexp_extract("path", r"^(delegation_tokens|certificates)\.", 1)
    field = F.substring_index("path", ".", -1)
    begin, end = F.length(prefix) + 2, F.length("path") - F.length(field) - F.length(prefix) - 2
    members = (
        live.where(F.col("kind") == CLUSTER)
        .select("cluster", F.explode("attrs").alias("path", "value"))
        .where(prefix != "")
        .select(
            "cluster",
            prefix.alias("prefix"),
            F.substring("path", begin, end).alias("key"),
            field.alias("field"),
            "value",
        )
    )
    values = {
        name: F.max(F.when(F.col("field") == name, F.col("value")))
        for name in ("owner", "subject", "begins", "ends")
    }
    rows = members.groupBy("cluster", "prefix", "key").agg(
        *(value.alias(name) for name, value in values.items())
    )
    times = {
        f"{name}_at": F.timestamp_millis(F.col(name).try_cast("bigint"))
        for name in ("begins", "ends")
    }
    kind = F.when(F.col("prefix") == "certificates", "certificate").otherwise("delegation_token")
    return (
        rows.withColumns({**times, "kind": kind, "origin": F.lit("cluster")})
        .where(F.col("begins_at").isNotNull())
        .select(
            *("cluster", "kind", "key", F.col("owner").alias("principal"), "subject"),
            F.lit(None).cast("string").alias("owner"),
            *("begins_at", "origin", "ends_at"),
        )
    )
