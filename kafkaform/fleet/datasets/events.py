"""Read the steps of runs from the audit log: one row per record about a step."""

from __future__ import annotations

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

from ..landed.cluster_names import add_cluster_names, select_newest
from ..landed.log_lines import STEPS
from ..tables.dataset import BuildContext, Frames
from ..tables.definitions import TABLES

_BODY = (
    "action string, address string, adopts boolean, approval string, attempt int, "
    "duration_ms bigint, error struct<code:string,message:string>, incarnation string, "
    "instance string, key string, kind string, of_run string, outcome string, "
    "paths array<struct<path:string,before:variant,after:variant,sensitive:boolean>>, "
    "phase string, plan string, scope_id string, step string"
)
"""Values are variants: read as strings, numbers would get exponents."""
_COPIED_MEMBERS = (
    *("action", "address", "adopts", "approval", "attempt", "duration_ms", "incarnation"),
    *("instance", "key", "kind", "outcome", "phase", "plan", "scope_id", "step"),
)
_ID = ("lineage", "seq")


def build_event(frames: Frames, context: BuildContext) -> DataFrame:
    """Return one row per record, however often it landed. Inputs: audit_raw, event_conflict,
    cluster, run.

    If two different records claim the same place, neither is used (`event_conflict`). run: the run
    whose step it is, since a recovery reports on an earlier run's. A large record whose copy in a
    topic has no body is ignored until the log itself lands.
    """
    raw = frames["audit_raw"].where(F.col("kind").isin(*STEPS))
    parsed = raw.select(*_ID, "time", "run", "actor", "kind", F.from_json("body", _BODY).alias("b"))
    # A file and a topic may both have brought the record; the copies are equal, except for the
    # body.
    steps = select_newest(parsed.where(F.col("b.step").isNotNull()), _ID, F.asc("time"))
    flat = steps.select(
        _make_event_id().alias("event_id"),
        *_ID,
        F.try_to_timestamp(F.col("time")).alias("ts"),
        F.coalesce("b.of_run", "run").alias("run"),
        "actor",
        F.col("kind").alias("record"),
        F.col("b.error.code").alias("error_code"),
        F.col("b.error.message").alias("error"),
        F.transform("b.paths", _make_change).alias("changes"),
        *(F.col(f"b.{name}") for name in _COPIED_MEMBERS),
    )
    doubted = frames["event_conflict"].select("event_id").distinct()
    # left_anti keeps what has no conflict. `NOT IN` would drop every row as soon as one id is null.
    sure = flat.join(doubted, "event_id", how="left_anti")
    commits = frames["run"].select("lineage", "run", "commit")
    with_commit = sure.join(commits, ["lineage", "run"], how="left")
    return add_cluster_names(with_commit, frames["cluster"]).select(*TABLES["event"].names)


def _make_change(path: Column) -> Column:
    return F.struct(
        path["path"].alias("path"),
        path["before"].cast("string").alias("before"),
        path["after"].cast("string").alias("after"),
        path["sensitive"].alias("sensitive"),
    )


def build_event_conflict(frames: Frames, context: BuildContext) -> DataFrame:
    """Return records that share lineage and seq but not the hash: one row per line. Input:
    audit_raw."""
    sound = frames["audit_raw"].where(F.col("seq").isNotNull())
    # Two hashes, not two lines: a repeated line is no conflict. min and max need no list per group.
    rivals = sound.groupBy(*_ID).agg(F.min("hash").alias("_low"), F.max("hash").alias("_high"))
    doubted = rivals.where(F.col("_low") != F.col("_high")).select(*_ID)
    # Usually there are none: Spark then skips the join, and no line is read.
    lines = sound.join(F.broadcast(doubted), list(_ID), how="inner").select(
        _make_event_id().alias("event_id"),
        "lineage",
        F.col("line").alias("payload"),
        "_file",
        "_build",
    )
    first = select_newest(lines, ["event_id", "payload"], F.asc("_file"), F.asc("_build"))
    return first.select(*TABLES["event_conflict"].names)


def _make_event_id() -> Column:
    return F.concat_ws("/", "lineage", "seq")
