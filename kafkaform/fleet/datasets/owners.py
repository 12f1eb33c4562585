"""Determine the owner of an object: from its row, from a configuration or state, or from
fleet.hcl."""

from __future__ import annotations

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

from ..landed.globs import matches
from ..landed.register import Register
from ..tables.dataset import Frames

OBJECT = ("cluster", "kind", "key")
DECLARED_IN = ("desired", "recorded")
"""Tables that name owners, the most trusted first."""
_NAMED_AS_TOPIC = ("kafka_topic", "kafka_topic_config", "topic_usage")
"""Kinds whose key is a topic's name."""


def add_owner(rows: DataFrame, frames: Frames, register: Register) -> DataFrame:
    """Fill in `owner` where somebody names one.

    rows: of `live` or a similar table (OBJECT and owner). frames: with DECLARED_IN, of which one
    owner per object is used, so that no row is multiplied.
    """
    declared = _list_declared(frames).withColumnRenamed("owner", "_declared")
    owner = F.coalesce("owner", "_declared", owner_by_name(register))
    return rows.join(declared, list(OBJECT), "left").withColumn("owner", owner).drop("_declared")


def _list_declared(frames: Frames) -> DataFrame:
    """Return OBJECT and owner, one row each. If lineages differ, the first of the first table
    wins."""
    named = [
        frames[name].select(*OBJECT, F.lit(rank).alias("rank"), "lineage", "owner")
        for rank, name in enumerate(DECLARED_IN)
    ]
    # The minimum of a struct compares field by field: the row with the lowest rank, then lineage.
    first = F.min(F.struct("rank", "lineage", "owner")).getField("owner")
    rows = named[0].unionByName(named[1]).where(F.col("owner").isNotNull())
    return rows.groupBy(*OBJECT).agg(first.alias("owner"))


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
