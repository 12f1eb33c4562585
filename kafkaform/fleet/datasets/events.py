"""What runs were about to do to objects, and what came of it: one row a record that tells of it."""

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
"""Values are variants: as texts, numbers would get exponents."""
_SAME = (
    *("action", "address", "adopts", "approval", "attempt", "duration_ms", "incarnation"),
    *("instance", "key", "kind", "outcome", "phase", "plan", "scope_id", "step"),
)
_ID = ("lineage", "seq")


def build_event(frames: Frames, context: BuildContext) -> DataFrame:
    """frames: audit_raw, event_conflict, cluster, run. One row a record, however often it landed.

    What two different records claim to be is neither of them (`event_conflict`). run is the one
    whose step it is: a recovery tells what became of an earlier run's. A large record of which a
    topic has no body tells nothing, until the log itself lands.
    """
    raw = frames["audit_raw"].where(F.col("kind").isin(*STEPS))
    told = raw.select(*_ID, "time", "run", "actor", "kind", F.from_json("body", _BODY).alias("b"))
    steps = select_newest(told.where(F.col("b.step").isNotNull()), _ID, F.asc("time"))
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
        *(F.col(f"b.{name}") for name in _SAME),
    )
    doubted = frames["event_conflict"].select("event_id").distinct()
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
    """Records that have the place of another one, and that one: the same lineage and seq, another
    hash. frames: audit_raw. One row a line."""
    sound = frames["audit_raw"].where(F.col("seq").isNotNull())
    rivals = sound.groupBy(*_ID).agg(F.min("hash").alias("_low"), F.max("hash").alias("_high"))
    doubted = rivals.where(F.col("_low") != F.col("_high")).select(*_ID)
    # There are none as a rule: then no line is looked at.
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
