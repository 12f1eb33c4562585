"""List runs, and judge whether the audit log that contains them is complete and unchanged."""

from __future__ import annotations

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, Window

from ..landed.cluster_names import select_newest
from ..landed.log_lines import parse_claimed_seq
from ..tables.dataset import BuildContext, Frames
from ..tables.definitions import TABLES

GENESIS = "0" * 64
"""`prev` of the first record."""
_OUTSIDE = ("state", "recover")
"""Kinds of records that are also written outside of runs: edits of the state, seals of torn
appends."""
_ERRORS = "steps array<struct<error:struct<code:string>>>"
_BEGUN = (
    *(("command", "command"), ("host", "host"), ("commit", "commit")),
    ("kafkaform_version", "version"),
)
"""Member of a `run_begin` -> column."""
_CHAIN = ("sound", "gap", "broken")
"""Verdicts, the worst last."""
_SOUND, _GAP, _BROKEN = range(3)


def build_run(frames: Frames, context: BuildContext) -> DataFrame:
    """Return one row per run that began, planned, tried or ended something. Input: audit_raw.

    A run that was resumed under its own name has ended if its last end comes after its last begin.
    The chain is broken if a record was altered, does not follow its predecessor, or has a rival for
    its place; if a record is missing, the chain has a gap.
    """
    raw = frames["audit_raw"].where(F.col("lineage").isNotNull())
    records = raw.where(F.col("seq").isNotNull())
    runs = records.groupBy("lineage", "run").agg(
        # A struct as order: of two rival records with one number, every build picks the same.
        F.min_by("actor", F.struct("seq", "hash")).alias("actor"),
        F.min(_parse_time("time")).alias("started_at"),
        F.max("seq").alias("last"),
        F.max(F.when(F.col("kind") == "run_begin", F.col("seq"))).alias("begun"),
        F.max(F.when(F.col("kind") == "run_end", F.col("seq"))).alias("ended"),
        _take_last("run_end", F.col("time")).alias("end_time"),
        _take_last("run_end", _get_member("complete")).alias("completeness"),
        *(_take_last("run_begin", _get_member(name)).alias(alias) for name, alias in _BEGUN),
        _take_last("run_begin", _parse_scopes()).alias("scopes"),
        F.max(~F.col("kind").isin(*_OUTSIDE)).alias("ran"),
    )
    # The begin may be in an older log that never landed.
    over = F.col("ended") > F.coalesce("begun", F.lit(0))
    ended = {
        "ended_at": F.when(over, _parse_time("end_time")),
        "complete": F.when(over, F.col("completeness") == "true"),
    }
    ended_runs = runs.where(F.col("ran")).withColumns(ended)
    chains = _judge_chains(raw).withColumnRenamed("seq", "last")
    proven = ended_runs.join(chains, ["lineage", "last"], how="left")
    judged = proven.join(_count_refused(records), ["lineage", "run"], how="left")
    counted = judged.withColumn("refused", F.coalesce("refused", F.lit(0)).cast("int"))
    return counted.select(*TABLES["run"].names)


def _judge_chains(raw: DataFrame) -> DataFrame:
    """Return lineage, seq, chain: whether the log is sound up to each record. One row per
    number."""
    columns = ("lineage", "seq", "hash", "prev")
    # Separately: `line` is most of the table's bytes, and only rejected lines need it.
    # An altered line keeps its place: without it, the log would only seem to lack a record.
    bad = raw.where(F.col("seq").isNull()).withColumn("seq", parse_claimed_seq())
    claimed = raw.where(F.col("seq").isNotNull()).select(*columns).union(bad.select(*columns))
    numbered = (
        claimed.where(F.col("seq").isNotNull())
        .groupBy("lineage", "seq")
        .agg(
            F.min("hash").alias("hash"),
            F.max("hash").alias("_high"),
            F.min("prev").alias("prev"),
        )
    )
    in_order = Window.partitionBy("lineage").orderBy("seq")
    # One task per log. A log is read in one sequence anyway, and its columns here are small.
    before, follows = F.lag("seq", 1, 0).over(in_order), F.lag("hash").over(in_order)
    expected = F.when(F.col("seq") == 1, F.lit(GENESIS)).otherwise(follows)
    worth = (
        F.when(F.col("hash").isNull() | (F.col("hash") != F.col("_high")), _BROKEN)
        # After a gap the next `prev` cannot be checked, so the gap is the verdict, not `broken`.
        .when(F.col("seq") != before + 1, _GAP)
        .when(~F.col("prev").eqNullSafe(expected), _BROKEN)
        .otherwise(_SOUND)
    )
    judged = numbered.withColumn("worth", worth)
    # The worst up to here: nothing after a break can be trusted, everything before it can.
    so_far = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    worst = F.max("worth").over(so_far)
    name = F.element_at(F.array(*map(F.lit, _CHAIN)), worst + 1)
    return judged.select("lineage", "seq", name.alias("chain"))


def _take_last(kind: str, value: Column) -> Column:
    """Return the value in the group's last record of this kind. A copy without its body tells less
    than the record itself, so the longer one counts."""
    is_of_kind = F.col("kind") == kind
    return F.max_by(
        F.when(is_of_kind, value), F.when(is_of_kind, F.struct("seq", "hash", F.length("body")))
    )


def _get_member(name: str) -> Column:
    return F.get_json_object("body", f"$.{name}")


def _parse_scopes() -> Column:
    return F.from_json("body", "scopes map<string,string>")["scopes"]


def _parse_time(name: str) -> Column:
    return F.try_to_timestamp(F.col(name))


def _count_refused(records: DataFrame) -> DataFrame:
    """Return lineage, run, refused: how many steps dry runs rejected. One row per run that had
    any."""
    tried = records.where(F.col("kind") == "validate")
    validations = select_newest(
        tried, ["lineage", "seq", "hash"], F.desc(F.length("body")), F.asc("body")
    )
    steps = F.from_json("body", _ERRORS)["steps"]
    refused = F.size(F.filter(steps, lambda step: step["error"].isNotNull()))
    return validations.groupBy("lineage", "run").agg(F.sum(refused).alias("refused"))
