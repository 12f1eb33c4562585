"""How applies end: of each day, cluster and kind, and of each error that they met."""

from __future__ import annotations

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, Window

from ..tables.dataset import BuildContext, Frames
from ..tables.definitions import TABLES
from .attempts import OUTCOME, select_tries

STEP = ("lineage", "run", "step")
GOOD = ("applied", "started")
ALL = ""
"""error_code of the row about all steps of that day, cluster and kind."""


def build(frames: Frames, context: BuildContext) -> DataFrame:
    """The rows of `apply_reliability`.

    Inputs: event, run; of all clusters. A step counts on the day of its last try and ends as that
    one did; an intent that nothing ended is `unknown`. Steps less applied, failed, unknown and
    skipped are those that started work which goes on. The row of an error is about the steps that
    met it in any try, however they ended; its durations are those of the tries that met it.
    Durations are measured from send to answer, so what was skipped, is open or was closed by a
    later run has none. retries: tries after the first. partial_runs: runs in which some step was
    applied and another one was not, or which did not come to their end. validated_then_failed:
    failed steps of runs in which the dry run refused none.
    """
    run = frames["run"].select("lineage", "run", "refused", "complete", F.lit(True).alias("_seen"))
    steps = _add_end(select_tries(frames["event"])).join(run, ["lineage", "run"], how="left")
    met = F.array_distinct(F.array(F.lit(ALL), F.coalesce("error_code", F.lit(ALL))))
    rows = _add_run(steps).withColumn("error_code", F.explode(met))
    group = ["day", "cluster", "kind", "error_code"]
    once = Window.partitionBy(*group, *STEP).orderBy("seq")
    first = rows.withColumn("_once", F.row_number().over(once) == 1)
    return first.groupBy(*group).agg(*_count_figures()).select(*TABLES["apply_reliability"].names)


def _count_figures() -> tuple[Column, ...]:
    once, end = F.col("_once"), F.col("_end")
    clean = F.coalesce(F.col("refused") == 0, F.lit(False))
    this_run = F.struct("lineage", "run")
    return (
        F.count_if(once).alias("steps"),
        *(F.count_if(once & (end == name)).alias(name) for name in _ENDS),
        F.sum(F.when(once, F.col("_tries") - 1).otherwise(0)).alias("retries"),
        F.count_distinct(this_run).alias("runs"),
        F.count_distinct(F.when(F.col("_partial"), this_run)).alias("partial_runs"),
        F.count_if(once & clean & (end == "failed")).alias("validated_then_failed"),
        F.percentile("_measured", 0.5).alias("p50_ms"),
        F.percentile("_measured", 0.95).alias("p95_ms"),
    )


_ENDS = ("applied", "failed", "unknown", "skipped")


def _add_end(sent: DataFrame) -> DataFrame:
    """Each try with how its step ended, on which day, after how many tries."""
    step = Window.partitionBy(*STEP)
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
    """Each try with whether its run did some of its steps and others not."""
    whole = Window.partitionBy("lineage", "run")
    good = F.col("_end").isin(*GOOD)
    cut_off = F.col("_seen") & ~F.coalesce("complete", F.lit(False))
    undone = F.max(~good | F.coalesce(cut_off, F.lit(False))).over(whole)
    return steps.withColumn("_partial", F.max(good).over(whole) & undone)
