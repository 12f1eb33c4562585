"""Who owns an object: as its row says, else as a configuration or state says, else as the register
says by the topic's name."""

from __future__ import annotations

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

from ..landed.globs import matches
from ..landed.register import Register
from ..tables.dataset import Frames

OBJECT = ("cluster", "kind", "key")
DECLARED_IN = ("desired", "recorded")
"""Tables that name owners, the one to be believed first."""
_NAMED_AS_TOPIC = ("kafka_topic", "kafka_topic_config", "topic_usage")
"""Kinds whose key is a topic's name."""


def add_owner(rows: DataFrame, frames: Frames, register: Register) -> DataFrame:
    """The rows with `owner` filled in where somebody names one.

    rows: of `live` or of a table like it (OBJECT and owner). `frames` holds DECLARED_IN, of which
    at most one owner for an object is taken: no row is multiplied.
    """
    declared = _list_declared(frames).withColumnRenamed("owner", "_declared")
    owner = F.coalesce("owner", "_declared", owner_by_name(register))
    return rows.join(declared, list(OBJECT), "left").withColumn("owner", owner).drop("_declared")


def _list_declared(frames: Frames) -> DataFrame:
    """OBJECT and owner, one row each. Where lineages differ, the first of the first table wins."""
    named = [
        frames[name].select(*OBJECT, F.lit(rank).alias("rank"), "lineage", "owner")
        for rank, name in enumerate(DECLARED_IN)
    ]
    first = F.min(F.struct("rank", "lineage", "owner")).getField("owner")
    rows = named[0].unionByName(named[1]).where(F.col("owner").isNotNull())
    return rows.groupBy(*OBJECT).agg(first.alias("owner"))


def owner_by_name(register: Register) -> Column:
    """The owner whose globs match a row's key, the first in the register if several do; null for
    what is no topic."""
    key, topic = F.col("key"), F.col("kind").isin(*_NAMED_AS_TOPIC)
    found = [
        F.when(topic & matches(key, glob), F.lit(owner.name))
        for owner in register.owners
        for glob in owner.topics
    ]
    return F.coalesce(*found, F.lit(None).cast("string"))
