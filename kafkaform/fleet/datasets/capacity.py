"""Compute how much each cluster, broker and owner holds, how it grows, and what it costs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import reduce
from operator import or_

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, Window

from kafkaform_kafka.protocol.rates import Rates

from ...core.landing import CLUSTER, TOPIC_USAGE
from ..landed.register import Register
from ..tables.definitions import TABLES, BuildContext, Frames
from .resources import add_owner

WINDOW_DAYS = 30
"""How many days growth looks back."""
MIN_DAYS = 7
"""With fewer days, growth is unknown."""
HORIZON_DAYS = 5 * 365
"""A breach farther away than this is not reported."""
_TOPIC = "kafka_topic"
_MEASURES = ("bytes", "bytes_per_day", "ingress_per_day", "egress_per_day")
"""What is measured of topics. A sum of which one part is unknown is null."""
_SUBJECT = ("cluster", "as_of", "subject")


def build(frames: Frames, context: BuildContext) -> DataFrame:
    """Return the rows of `capacity`, from `live`, `history`, `cluster`, `topic_growth`, `desired`
    and `recorded`.

    One row for each cluster whose topics were ever read, for each of its owners (`unowned`: topics
    without one) and for each broker that is alive or has a replica. A broker's partitions are those
    whose preferred leader it is; its topics are those with a replica on it. Kafka's own topics
    count.

    _MEASURES are null unless they are known of all topics of the row, `below_rf` if the cluster's
    default is unknown; a broker has neither _MEASURES nor cost, and `leaders` is only for brokers.
    `growth_per_day`, `limit_replicas` and
    `breach_on` are for the cluster only: the slope of the least-squares line through the replicas
    at the end of each of the last WINDOW_DAYS days, null for fewer than MIN_DAYS; and the first
    day on which that line, starting at today's number, exceeds the limit.
    """
    clusters = _select_clusters(frames["cluster"], frames["live"])
    topics = _select_topics(frames, context.register).join(clusters, ["cluster"], "inner")
    # A row for each cluster and broker, so that a cluster without topics is known to hold nothing,
    # and a broker without replicas is in the table.
    names = F.from_json(F.col("attrs")["nodes"], "array<string>")
    broker_rows = (
        frames["live"]
        .where(F.col("kind") == CLUSTER)
        .select("cluster", "attrs", F.explode(names).alias("broker"))
    )
    leaders = F.try_element_at("attrs", F.concat(F.lit("leaders."), F.col("broker")))
    subject = F.concat(F.lit("broker "), F.col("broker"))
    brokers = broker_rows.join(clusters, ["cluster"], "inner").withColumns(
        {"subject": subject, "leaders": leaders.try_cast("bigint")}
    )
    shares = (
        _explode_shares(topics),
        _make_empty_rows(
            clusters.withColumns({"subject": F.lit("cluster"), "leaders": F.lit(None)}), F.lit(0)
        ),
        _make_empty_rows(brokers, F.lit(None)),
    )
    rates = context.register.rates
    rows = (
        reduce(DataFrame.unionByName, shares)
        .groupBy(*_SUBJECT)
        .agg(
            F.sum("partitions").alias("partitions"),
            F.sum("replicas").alias("replicas"),
            F.sum("topics").alias("topics"),
            F.when(_all_known("below"), F.count_if("below")).alias("below_rf"),
            *(F.when(_all_known(name), F.sum(name)).alias(name) for name in _MEASURES),
            F.max("leaders").alias("leaders"),
            *_sum_costs(rates),
        )
    )
    grown = rows.join(_compute_growth(frames["history"], clusters), ["cluster"], "left")
    return _judge_rows(grown, context.register).select(*TABLES["capacity"].names)


# -- what there is


def _select_topics(frames: Frames, register: Register) -> DataFrame:
    """Return one row per topic: cluster, owner, counts, assignment and replication factor."""
    attrs, live = F.col("attrs"), frames["live"]
    sizes = F.transform(_parse_assignment(attrs), lambda replicas: F.size(replicas))
    # Of the partition that has the fewest replicas.
    factor = F.coalesce(F.array_min(sizes), attrs["replication_factor"].try_cast("int"))
    topic_rows = add_owner(live.where(F.col("kind") == _TOPIC), frames, register).select(
        *("cluster", F.col("key").alias("topic"), "owner"),
        _parse_assignment(attrs).alias("assignment"),
        _count_replicas(attrs).alias("replicas"),
        F.coalesce(attrs["partitions"].try_cast("bigint"), F.lit(0)).alias("partitions"),
        factor.alias("factor"),
    )
    measured = live.where(F.col("kind") == TOPIC_USAGE).select(
        *("cluster", F.col("key").alias("topic")),
        # Attributes are text from a file: try_cast, because one odd value must not fail the build.
        attrs["bytes"].try_cast("bigint").alias("bytes"),
    )
    # left: a topic whose size was not measured still counts; its bytes are null, which is not zero.
    growth = frames["topic_growth"].select("cluster", "topic", *_MEASURES[1:])
    return topic_rows.join(measured, ["cluster", "topic"], "left").join(
        growth, ["cluster", "topic"], "left"
    )


def _parse_assignment(attrs: Column) -> Column:
    return F.from_json(attrs["replica_assignment"], "array<array<int>>")


def _count_replicas(attrs: Column) -> Column:
    """Count the assignment, or multiply partitions and replication factor if it is not shown."""
    placed = F.size(F.flatten(_parse_assignment(attrs))).cast("bigint")
    counts = [attrs[name].try_cast("bigint") for name in ("partitions", "replication_factor")]
    assigned = F.when(attrs["replica_assignment"].isNotNull(), placed)
    return F.coalesce(assigned, counts[0] * counts[1], F.lit(0))


def _select_clusters(clusters: DataFrame, live: DataFrame) -> DataFrame:
    """Return cluster, as_of and default (the replication factor of a new topic; null: unknown) of
    the clusters whose topics were ever read."""
    kind = F.col("kind")
    factor = F.col("attrs")["default_replication_factor"].try_cast("int")
    about_clusters = live.where(kind.isin(CLUSTER, _TOPIC)).groupBy("cluster")
    about = about_clusters.agg(
        F.max(F.when(kind == CLUSTER, factor)).alias("default"),
        F.max(kind == _TOPIC).alias("holds"),
    )
    # A cluster whose topics could not be read has no row at all: zeros would look like an empty
    # cluster.
    coverage = F.try_element_at("coverage", F.lit(_TOPIC))
    read = F.coalesce(coverage != "failed", F.lit(False)) | F.coalesce("holds", F.lit(False))
    rows = clusters.where(F.col("captured_at").isNotNull()).join(about, ["cluster"], "left")
    return rows.where(read).select("cluster", F.col("captured_at").alias("as_of"), "default")


# -- who has what of it


def _explode_shares(topics: DataFrame) -> DataFrame:
    """Return each topic once for its cluster, for its owner, and for each of its brokers."""
    flat = F.flatten("assignment")
    # `get`, not `[0]`: an empty array is an error under ANSI.
    first = F.transform("assignment", lambda replicas: F.get(replicas, 0))
    brokers = F.transform(
        F.coalesce(F.array_distinct(flat), F.array().cast("array<int>")),
        lambda broker: _make_share(
            F.concat(F.lit("broker "), broker),
            _count_times(first, broker),
            _count_times(flat, broker),
            *[F.lit(None)] * len(_MEASURES),
        ),
    )
    owner = F.coalesce(F.concat(F.lit("owner "), F.col("owner")), F.lit("unowned"))
    counts = tuple(map(F.col, ("partitions", "replicas", *_MEASURES)))
    cluster_and_owner = F.array(
        *(_make_share(subject, *counts) for subject in (F.lit("cluster"), owner))
    )
    below = (F.col("factor") < F.col("default")).alias("below")
    shares = topics.select(
        # `flatten`: Sail's `concat` rejects arrays that differ in what may be null.
        *("cluster", "as_of", below),
        F.flatten(F.array(cluster_and_owner, brokers)).alias("shares"),
    )
    topic_count = F.lit(1).alias("topics")
    no_leaders = F.lit(None).cast("bigint").alias("leaders")
    return shares.select("cluster", "as_of", topic_count, "below", no_leaders, F.inline("shares"))


def _make_share(subject: Column, partitions: Column, replicas: Column, *measures: Column) -> Column:
    """measures: in the order of _MEASURES."""
    return F.struct(
        subject.alias("subject"),
        partitions.cast("bigint").alias("partitions"),
        replicas.cast("bigint").alias("replicas"),
        *map(_cast_measure, _MEASURES, measures),
    )


def _cast_measure(name: str, value: Column) -> Column:
    return value.cast("double" if name == "bytes_per_day" else "bigint").alias(name)


def _count_times(brokers: Column, broker: Column) -> Column:
    """Count how often the broker is in the array."""
    return F.size(F.filter(brokers, lambda replica: replica == broker))


def _make_empty_rows(rows: DataFrame, size: Column) -> DataFrame:
    nothing = {
        "topics": F.lit(0),
        "below": F.lit(False),
        "leaders": F.col("leaders").cast("bigint"),
    }
    counts = {name: F.lit(0).cast("bigint") for name in ("partitions", "replicas")}
    columns = (value.alias(name) for name, value in {**nothing, **counts}.items())
    return rows.select(*_SUBJECT, *columns, *(_cast_measure(name, size) for name in _MEASURES))


def _all_known(column: str) -> Column:
    # count(column) passes over nulls, so the two are equal only if no value is missing.
    return F.count(column) == F.count(F.lit(1))


# -- where it goes


def _compute_growth(history: DataFrame, clusters: DataFrame) -> DataFrame:
    """Return cluster and growth_per_day; null where there are too few days.

    Each interval adds its replicas on its first day and subtracts them on its last: the work grows
    with the changes, not with topics times days.
    """
    replicas = _count_replicas(F.col("attrs"))
    steps = F.array(
        F.struct(F.to_date("valid_from").alias("day"), replicas.alias("more")),
        F.struct(F.to_date("valid_to").alias("day"), (-replicas).alias("more")),
    )
    changes = history.where(F.col("kind") == _TOPIC).select("cluster", F.inline(steps))
    last, day = F.to_date("as_of"), F.col("day")
    # Everything before the window starts on its first day, so the line begins at the right height.
    first = F.date_sub(last, WINDOW_DAYS - 1)
    dated_changes = changes.where(day.isNotNull()).join(clusters, ["cluster"], "inner")
    daily = dated_changes.groupBy(
        "cluster", last.alias("last"), F.greatest(day, first).alias("day")
    ).agg(F.sum("more").alias("more"))
    # daily: cluster, day, more (replicas added on that day), last (the day of the capture).
    begins = daily.groupBy("cluster", "last").agg(F.min("day").alias("first"))
    # Days without changes are points of the line, too; joining only the days of changes would tilt
    # it.
    days = begins.select(
        "cluster", "first", F.explode(F.sequence("first", F.greatest("first", "last"))).alias("day")
    )
    counted = (
        Window.partitionBy("cluster")
        .orderBy("day")
        # `rows`, written out: the default frame is `range`, which also includes later rows of equal
        # order.
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    added = F.coalesce("more", F.lit(0))
    rows = days.join(daily.drop("last"), ["cluster", "day"], "left").select(
        "cluster",
        F.sum(added).over(counted).cast("double").alias("y"),
        F.datediff("day", "first").cast("double").alias("x"),
    )
    slope = F.when(F.count(F.lit(1)) >= MIN_DAYS, F.regr_slope("y", "x"))
    return rows.groupBy("cluster").agg(slope.alias("growth"))


def _judge_rows(rows: DataFrame, register: Register) -> DataFrame:
    """Add growth, limit, breach, and cost: only if all that has a rate is known of all topics."""
    is_cluster = F.col("subject") == "cluster"
    # The limits travel as one JSON literal: thousands of literals make a plan that takes longer
    # than the query.
    limits = {c.name: c.limit_replicas for c in register.clusters if c.limit_replicas is not None}
    limit_map = F.from_json(F.lit(json.dumps(limits)), "map<string,bigint>")
    rates = register.rates
    growth = F.when(is_cluster, F.col("growth"))
    limit = F.when(is_cluster, F.try_element_at(limit_map, F.col("cluster")))
    costs = {
        # A broker has no cost of its own.
        name: F.when(~F.col("subject").startswith("broker "), F.col(name))
        for name in ("cost_at_least", "cost_unknown", "unpriced_topics")
    }
    # The first day that exceeds the limit, counted from today's number, not from the fitted one: a
    # cluster over its limit must be reported today.
    remaining = F.col("limit_replicas") - F.col("replicas")
    days = F.when(remaining < 0, F.lit(0.0)).when(
        F.col("growth_per_day") > 0, F.floor(remaining / F.col("growth_per_day")) + 1
    )
    # Compare before the cast: a tiny slope gives more days than an int holds, an error under ANSI.
    breach = F.when(days <= HORIZON_DAYS, F.date_add(F.to_date("as_of"), days.cast("int")))
    return (
        rows.withColumn("growth_per_day", growth)
        .withColumn("limit_replicas", limit)
        .withColumn("breach_on", breach)
        .withColumns(costs)
        .withColumn("cost", F.when(F.col("unpriced_topics") == 0, F.col("cost_at_least")))
        .withColumn("currency", F.lit(rates.currency if rates else None).cast("string"))
    )


_PARTS: Mapping[str, str] = {
    "bytes": "bytes",
    "ingress_per_day": "ingress",
    "egress_per_day": "egress",
}
"""What has a price and may be unknown of a topic -> its name in `cost_unknown`."""


def _sum_costs(rates: Rates | None) -> Iterator[Column]:
    """Sum up the cost a month of what is known, rounded to cents, and say what is not; all null
    without rates."""
    prices = rates.prices if rates else {}
    words = {name: word for name, word in _PARTS.items() if name in prices}
    amounts = (F.coalesce(F.sum(name), F.lit(0)) * F.lit(price) for name, price in prices.items())
    at_least = F.round(sum(amounts, F.lit(0.0)), 2)
    gaps = (F.when(~_all_known(name), F.lit(word)) for name, word in words.items())
    unknown = F.array_compact(F.array(*gaps, F.lit(None).cast("string")))
    unpriced = F.count_if(reduce(or_, map(F.isnull, words), F.lit(False)))
    values = {"cost_at_least": at_least, "cost_unknown": unknown, "unpriced_topics": unpriced}
    for name, value in values.items():
        yield F.when(F.lit(rates is not None), value).alias(name)
