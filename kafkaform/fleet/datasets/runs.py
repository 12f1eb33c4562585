"""Read the audit logs: runs, the steps of runs, how applies ended, and whether a log is unchanged.

A step is attempted one or more times. Each attempt is an intent and the record that ends it.
"""

from __future__ import annotations

from functools import reduce

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, Window

from ..landed.snapshots import (
    STEPS,
    add_cluster_names,
    keep_apart,
    parse_claimed_seq,
    select_newest,
)
from ..tables.definitions import TABLES, BuildContext, Frames

GENESIS = "0" * 64
"""`prev` of the first record."""
_OUTSIDE = ("state", "recover", "checkpoint")
"""Kinds of records that are also written outside of runs: edits of the state, seals of torn
appends, checkpoints before either."""
_ERRORS = "steps array<struct<error:struct<code:string>>>"
_BEGUN = (
    *(("command", "command"), ("host", "host"), ("commit", "commit")),
    ("kafkaform_version", "version"),
)
"""Member of a `run_begin` -> column."""
_CHAIN = ("sound", "gap", "broken")
"""Verdicts, the worst last."""
_SOUND, _GAP, _BROKEN = range(3)
_BODY = (
    "action string, address string, adopts boolean, approval string, attempt int, "
    "duration_ms bigint, error struct<code:string,message:string>, incarnation string, "
    "instance string, key string, kind string, of_run string, outcome string, "
    "paths array<struct<path:string,before:string,after:string,sensitive:boolean>>, "
    "phase string, plan string, scope_id string, step string"
)
_NUMBERS = (
    (r'"after":(-?[0-9.]+),"(before|path)":', '"after":"$1","$2":'),
    (r'"before":(-?[0-9.]+),"path":', '"before":"$1","path":'),
)
"""Numbers among a path's members, and what they become as strings; read as they are, large numbers
would get exponents. Canonical JSON fixes the order of members."""
_COPIED_MEMBERS = (
    *("action", "address", "adopts", "approval", "attempt", "duration_ms", "incarnation"),
    *("instance", "key", "kind", "outcome", "phase", "plan", "scope_id", "step"),
)
_ID = ("lineage", "seq")
OUTCOME, RECOVER, INTENT = "outcome", "recover", "intent"
UNKNOWN = "unknown"
_SENDER = ("ts", "run", "actor", "commit")
_DIGITS = 2
"""Of a percentile of whole milliseconds; beyond them, engines round differently."""
STEP = ("lineage", "run", "step")
"""The columns that identify a step."""
DONE_OUTCOMES = ("applied", "started")
"""Outcomes that count as done."""
ALL_STEPS = ""
"""`error_code` of the row about all steps of a day, cluster and kind."""
_ENDS = ("applied", "failed", "unknown", "skipped")


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
        _take_last("run_begin", F.from_json("body", "scopes map<string,string>")["scopes"]).alias(
            "scopes"
        ),
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
    # refused: how many steps dry runs rejected. One row per run that had any.
    tried = records.where(F.col("kind") == "validate")
    validations = select_newest(
        tried, ["lineage", "seq", "hash"], F.desc(F.length("body")), F.asc("body")
    )
    steps = F.from_json("body", _ERRORS)["steps"]
    refused = F.size(F.filter(steps, lambda step: step["error"].isNotNull()))
    judged = proven.join(
        validations.groupBy("lineage", "run").agg(F.sum(refused).alias("refused")),
        ["lineage", "run"],
        how="left",
    )
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


def _parse_time(name: str) -> Column:
    return F.try_to_timestamp(F.col(name))


def build_event(frames: Frames, context: BuildContext) -> DataFrame:
    """Return one row per record, however often it landed. Inputs: audit_raw, event_conflict,
    cluster, run.

    If two different records claim the same place, neither is used (`event_conflict`). run: the run
    whose step it is, since a recovery reports on an earlier run's. A large record whose copy in a
    topic has no body is ignored until the log itself lands.
    """
    raw = frames["audit_raw"].where(F.col("kind").isin(*STEPS))
    quoted = reduce(lambda body, pair: F.regexp_replace(body, *pair), _NUMBERS, F.col("body"))
    body = keep_apart(F.from_json(quoted, _BODY)).alias("b")
    parsed = raw.select(*_ID, "time", "run", "actor", "kind", body)
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
        F.col("b.paths").alias("changes"),
        *(F.col(f"b.{name}") for name in _COPIED_MEMBERS),
    )
    doubted = frames["event_conflict"].select("event_id").distinct()
    # left_anti keeps what has no conflict. `NOT IN` would drop every row as soon as one id is null.
    sure = flat.join(doubted, "event_id", how="left_anti")
    commits = frames["run"].select("lineage", "run", "commit")
    with_commit = sure.join(commits, ["lineage", "run"], how="left")
    return add_cluster_names(with_commit, frames["cluster"]).select(*TABLES["event"].names)


def build_event_conflict(frames: Frames, context: BuildContext) -> DataFrame:
    """Return records that share lineage and seq but not the hash: one row per line. Input:
    audit_raw."""
    sound = frames["audit_raw"].where(F.col("seq").isNotNull())
    # Two hashes, not two lines: a repeated line is not a conflict. min and max need no lists.
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


def select_tries(event: DataFrame) -> DataFrame:
    """Return the rows of `event` that end an intent, and the intents that nothing has ended.

    run, actor, commit: of the run that sent the request, not of one that recovered it later; since:
    when it was sent; until: when its end was recorded, null if it has none; outcome: `unknown` for
    an open intent, because unknown results get no outcome record.
    """
    # By plan, not by run: a recovery in a later run continues the same plan. event_id breaks ties.
    order = Window.partitionBy("lineage", "plan", "step", "attempt").orderBy("seq", "event_id")
    before = F.lag(F.struct("record", *_SENDER)).over(order)
    paired = event.withColumns({"_intent": before, "_next": F.lead("record").over(order)})
    # `eqNullSafe`: the last row of a window has no next one, and `null <> x` would drop open
    # intents.
    is_open = (F.col("record") == INTENT) & ~F.col("_next").eqNullSafe(OUTCOME)
    is_open &= ~F.col("_next").eqNullSafe(RECOVER)
    ended = F.col("record") != INTENT
    return (
        paired.where((ended & F.col("outcome").isNotNull()) | is_open)
        .withColumn("until", F.when(ended, F.col("ts")))
        .withColumn("outcome", F.coalesce("outcome", F.lit(UNKNOWN)))
        .withColumns({"since": _sender_value("ts"), "run": _sender_value("run")})
        .withColumns({"actor": _sender_value("actor"), "commit": _sender_value("commit")})
        .drop("_intent", "_next")
    )


def _sender_value(name: str) -> Column:
    """Return the intent's value if the previous row is the intent."""
    return F.when(F.col("_intent.record") == INTENT, F.col(f"_intent.{name}")).otherwise(
        F.col(name)
    )


def build_reliability(frames: Frames, context: BuildContext) -> DataFrame:
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
    # _partial: the run of the try applied only some of its steps.
    of_run = Window.partitionBy("lineage", "run")
    good = F.col("_end").isin(*DONE_OUTCOMES)
    # A run that is not in the table `run` is unknown, not cut off.
    cut_off = F.col("_seen") & ~F.coalesce("complete", F.lit(False))
    undone = F.max(~good | F.coalesce(cut_off, F.lit(False))).over(of_run)
    rows = steps.withColumn("_partial", F.max(good).over(of_run) & undone).withColumn(
        "error_code", F.explode(met)
    )
    group = ["day", "cluster", "kind", "error_code"]
    # A step with several tries counts once per group.
    step_order = Window.partitionBy(*group, *STEP).orderBy("seq")
    first = rows.withColumn("_once", F.row_number().over(step_order) == 1)
    is_counted, end = F.col("_once"), F.col("_end")
    clean = F.coalesce(F.col("refused") == 0, F.lit(False))
    this_run = F.struct("lineage", "run")
    return (
        first.groupBy(*group)
        .agg(
            F.count_if(is_counted).alias("steps"),
            *(F.count_if(is_counted & (end == name)).alias(name) for name in _ENDS),
            F.sum(F.when(is_counted, F.col("_tries") - 1).otherwise(0)).alias("retries"),
            F.count_distinct(this_run).alias("runs"),
            F.count_distinct(F.when(F.col("_partial"), this_run)).alias("partial_runs"),
            F.count_if(is_counted & clean & (end == "failed")).alias("validated_then_failed"),
            # Exact, not `approx_percentile`: the same input must give the same table.
            F.round(F.percentile("_measured", 0.5), _DIGITS).alias("p50_ms"),
            F.round(F.percentile("_measured", 0.95), _DIGITS).alias("p95_ms"),
        )
        .select(*TABLES["apply_reliability"].names)
    )


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
