"""Count how applies end, per day, cluster and kind, and per error that they met."""

from __future__ import annotations

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, Window

from ..tables.dataset import BuildContext, Frames
from ..tables.definitions import TABLES
from .attempts import OUTCOME, select_tries

STEP = ("lineage", "run", "step")
"""The columns that identify a step."""
DONE_OUTCOMES = ("applied", "started")
"""Outcomes that count as done."""
ALL_STEPS = ""
"""`error_code` of the row about all steps of a day, cluster and kind."""


def build(frames: Frames, context: BuildContext) -> DataFrame:
    """Return the rows of `apply_reliability`.

    Inputs: event, run, for all clusters. A step counts on the day of its last try and ends as that
    one did; an intent without an end is `unknown`. Steps minus applied, failed, unknown and skipped
    are those that started work which continues. The row of an error is about the steps that met it
    in any try, however they ended; its durations are those of the tries that met it. Durations run
    from send to answer, so a step that was skipped, is open or was closed by a later run has none.
    retries: tries after the first. partial_runs: runs that applied some step and not another, or
    did not reach their end. validated_then_failed: failed steps of runs whose dry run rejected
    none.
    """
    run = frames["run"].select("lineage", "run", "refused", "complete", F.lit(True).alias("_seen"))
    steps = _add_end(select_tries(frames["event"])).join(run, ["lineage", "run"], how="left")
    # Each step is in the row for all and in the row of each error it met.
    met = F.array_distinct(F.array(F.lit(ALL_STEPS), F.coalesce("error_code", F.lit(ALL_STEPS))))
    rows = _add_run(steps).withColumn("error_code", F.explode(met))
    group = ["day", "cluster", "kind", "error_code"]
    # A step with several tries counts once per group.
    step_order = Window.partitionBy(*group, *STEP).orderBy("seq")
    first = rows.withColumn("_once", F.row_number().over(step_order) == 1)
    return first.groupBy(*group).agg(*_count_figures()).select(*TABLES["apply_reliability"].names)


def _count_figures() -> tuple[Column, ...]:
    is_counted, end = F.col("_once"), F.col("_end")
    clean = F.coalesce(F.col("refused") == 0, F.lit(False))
    this_run = F.struct("lineage", "run")
    return (
        F.count_if(is_counted).alias("steps"),
        *(F.count_if(is_counted & (end == name)).alias(name) for name in _ENDS),
        F.sum(F.when(is_counted, F.col("_tries") - 1).otherwise(0)).alias("retries"),
        F.count_distinct(this_run).alias("runs"),
        F.count_distinct(F.when(F.col("_partial"), this_run)).alias("partial_runs"),
        F.count_if(is_counted & clean & (end == "failed")).alias("validated_then_failed"),
        # Exact, not `approx_percentile`: the same input must give the same table.
        F.percentile("_measured", 0.5).alias("p50_ms"),
        F.percentile("_measured", 0.95).alias("p95_ms"),
    )


_ENDS = ("applied", "failed", "unknown", "skipped")


def _add_end(sent: DataFrame) -> DataFrame:
    """Add to each try how its step ended, on which day, and after how many tries."""
    step = Window.partitionBy(*STEP)
    # The whole partition as frame: the default one ends at the current row, so `last` would be
    # itself.
    in_order = step.orderBy("attempt", "seq").rowsBetween(
        Window.unboundedPreceding, Window.unboundedFollowing
    )
    is_measured = (F.col("record") == OUTCOME) & (F.col("outcome") != "skipped")
    return sent.withColumns(
        {
            "_end": F.last("outcome").over(in_order),
            "day": F.to_date(F.last("ts").over(in_order)),
            "_tries": F.count("*").over(step),
            "_measured": F.when(is_measured, F.col("duration_ms")),
        }
    )


def _add_run(steps: DataFrame) -> DataFrame:
    """Add to each try whether its run applied only some of its steps."""
    of_run = Window.partitionBy("lineage", "run")
    good = F.col("_end").isin(*DONE_OUTCOMES)
    # A run that is not in the table `run` is unknown, not cut off.
    cut_off = F.col("_seen") & ~F.coalesce("complete", F.lit(False))
    undone = F.max(~good | F.coalesce(cut_off, F.lit(False))).over(of_run)
    return steps.withColumn("_partial", F.max(good).over(of_run) & undone)
