"""What was sent, and what came of it: each intent together with the record that ends it."""

from __future__ import annotations

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, Window

OUTCOME, RECOVER, INTENT = "outcome", "recover", "intent"
UNKNOWN = "unknown"
_SENDER = ("ts", "run", "actor", "commit")


def select_tries(event: DataFrame) -> DataFrame:
    """The rows of `event` that end an intent, and the intents that nothing ended yet.

    run, actor, commit: of whoever sent it, which is not who recovered it later; since: when it
    was sent; until: when its end was recorded, null: it has none; outcome: `unknown` for an open
    intent, because what is unknown gets no outcome record.
    """
    order = Window.partitionBy("lineage", "plan", "step", "attempt").orderBy("seq", "event_id")
    before = F.lag(F.struct("record", *_SENDER)).over(order)
    paired = event.withColumns({"_intent": before, "_next": F.lead("record").over(order)})
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
    """The intent's value, if an intent came right before."""
    return F.when(F.col("_intent.record") == INTENT, F.col(f"_intent.{name}")).otherwise(
        F.col(name)
    )
