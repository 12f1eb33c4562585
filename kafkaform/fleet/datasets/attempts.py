"""Pair each intent in the audit log with the record that ends it."""

from __future__ import annotations

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, Window

OUTCOME, RECOVER, INTENT = "outcome", "recover", "intent"
UNKNOWN = "unknown"
_SENDER = ("ts", "run", "actor", "commit")


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
