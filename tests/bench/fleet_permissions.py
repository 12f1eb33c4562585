"""What resolving ACLs costs, in ratios of one run: `python -m tests.bench.fleet_permissions
[CLUSTERS]`.

- the permissions of every topic, by sorted names in arrays, and by joining names with ACLs;
- the same of twice as many clusters, which should cost twice as much;
- the table about patterns, which is what a build makes.

Clusters are seeded and alike: 2,000 topics and 10,000 ACLs each, of which 60 % are for one topic,
30 % for an application's prefix, 9.8 % for a team's and 0.2 % for all; 3 % are DENYs. Input is
Parquet, results are thrown away, of ROUNDS the best counts. Needs the fleet extra.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import chain
from random import Random

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, SparkSession

from kafkaform.fleet.access.permission_rows import (
    BITS,
    SUPPORTED_OPERATIONS,
    PermissionFilter,
    make_decided_mask,
    make_supported_mask,
)
from kafkaform.fleet.access.permissions import build, expand_permissions, select_acls, select_topics
from kafkaform.fleet.landed.register import Register
from kafkaform.fleet.spark.session import SparkSetup, build_session
from kafkaform.fleet.tables.definitions import BuildContext
from kafkaform.sandbox.record import get_cache_folder
from kafkaform.workflow.fleet.runs import add_jars
from kafkaform_kafka.kinds.acl.resource_type import Acl

from ..kit.fleet.access_worlds import World
from ..kit.fleet.frames import frame

CLUSTERS, TOPICS, ACLS, TEAMS, APPS, PRINCIPALS = 8, 2_000, 10_000, 20, 10, 500
ROUNDS, SEED = 2, 11
CONTEXT = BuildContext(Register(), datetime(2026, 3, 1, tzinfo=UTC), "bench")
Frames = dict[str, DataFrame]


def world() -> World:
    chance = Random(SEED)
    names = [
        f"team{number % TEAMS:02}.app{number // TEAMS % APPS}.topic{number:04}"
        for number in range(TOPICS)
    ]
    rules: dict[Acl, None] = {}
    while len(rules) < ACLS:
        rules[_acl(chance, chance.choice(names))] = None
    return World("c", tuple(rules), (), False, tuple(names), ())


def _acl(chance: Random, topic: str) -> Acl:
    team, app, _ = topic.split(".")
    patterns = ((topic, "Literal"), (f"{team}.{app}.", "Prefixed"), (f"{team}.", "Prefixed"))
    weights = (60, 30, 9.8, 0.2)
    (pattern,) = chance.choices((*patterns, ("*", "Literal")), weights)
    everybody = chance.random() < 0.01
    return Acl(
        "User:*" if everybody else f"User:p{chance.randrange(PRINCIPALS)}",
        "*",
        chance.choice(SUPPORTED_OPERATIONS["Topic"]),
        "Deny" if chance.random() < 0.03 else "Allow",
        "Topic",
        *pattern,
    )


def inputs(spark: SparkSession, folder: str, clusters: int) -> Frames:
    """One world as many clusters, in files."""
    one, found = world(), {}
    copies = spark.range(clusters).select(F.format_string("c%04d", "id").alias("cluster"))
    for table, rows in {"live": one.live(), "cluster": [one.cluster()]}.items():
        path = f"{folder}/{table}-{clusters}"
        data = frame(spark, table, rows).drop("cluster").crossJoin(copies)
        data.repartition(2).write.parquet(path)
        found[table] = spark.read.parquet(path)
    return found


def joined(frames: Frames) -> DataFrame:
    """All topics by their ACLs as one would write it down: for each topic and principal what the
    ACLs say that match, and what they say to everybody."""
    rules = select_acls(frames["live"]).withColumnRenamed("name", "pattern")
    literal = F.col("pattern_type") == "Literal"
    prefixed = ~literal & F.startswith("name", "pattern")
    fits = prefixed | (literal & F.col("pattern").isin(F.col("name"), F.lit("*")))
    found = select_topics(frames["live"]).alias("t").join(rules, "cluster", how="inner").where(fits)
    masks = [
        F.bit_or(F.when(F.col("permission") == word, _given(word)).otherwise(F.lit(0))).alias(word)
        for word in ("Allow", "Deny")
    ]
    each = found.groupBy("cluster", "name", "principal").agg(*masks)
    every = each.where(F.col("principal") == "User:*").drop("principal")
    every = every.withColumnsRenamed({"Allow": "all_allow", "Deny": "all_deny"})
    rows = each.join(every, ["cluster", "name"], how="left")
    allow, deny = (
        F.col(word).bitwiseOR(F.coalesce(f"all_{word.lower()}", F.lit(0)))
        for word in ("Allow", "Deny")
    )
    effective = allow.bitwiseAND(F.bitwise_not(deny)).bitwiseAND(
        F.lit(make_supported_mask("Topic"))
    )
    return rows.select("cluster", "name", "principal", effective.alias("effective_mask"))


def _given(permission: str) -> Column:
    pairs = ((F.lit(name), F.lit(make_decided_mask(name, permission))) for name in BITS)
    return F.element_at(F.create_map(*chain.from_iterable(pairs)), F.col("operation"))


def in_arrays(frames: Frames) -> DataFrame:
    """The same rows, and one for everybody of each topic."""
    return expand_permissions(frames, PermissionFilter()).where(F.col("resource_type") == "Topic")


def digest(rows: DataFrame) -> tuple[int, int]:
    """Of the rows that give somebody something: how many, and their masks' sum."""
    some = rows.where((F.col("effective_mask") != 0) & (F.col("principal") != "User:*"))
    count, total = some.agg(F.count("*"), F.sum("effective_mask")).first() or (0, 0)
    return count, total


def seconds(rows: DataFrame) -> float:
    """Of a run whose rows go nowhere, the best one."""
    return min(_timed(rows) for _ in range(ROUNDS))


def _timed(rows: DataFrame) -> float:
    begun = time.perf_counter()
    rows.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - begun


def show(what: str, took: float, base: float) -> None:
    print(f"  {what:<38} {took:7.1f} s = {took / base:5.2f} x the first", flush=True)


def measure(spark: SparkSession, folder: str, clusters: int) -> Iterator[tuple[str, float]]:
    frames, twice = (inputs(spark, folder, n) for n in (clusters, clusters * 2))
    assert digest(in_arrays(frames)) == digest(joined(frames)), "the two ways differ"
    yield "every topic, sorted names in arrays", seconds(in_arrays(frames))
    yield "every topic, names joined with ACLs", seconds(joined(frames))
    yield "twice the clusters, in arrays", seconds(in_arrays(twice))
    yield "about patterns, as a build does", seconds(build(frames, CONTEXT))


def main(clusters: int = CLUSTERS) -> None:
    print(
        f"permissions of {clusters} clusters of {TOPICS} topics and {ACLS} ACLs, "
        f"best of {ROUNDS}, 2 threads"
    )
    spark = build_session(add_jars(SparkSetup("local[2]", get_cache_folder())))
    with tempfile.TemporaryDirectory(prefix=f"bench-{os.getpid()}-") as folder:
        base = 0.0
        for what, took in measure(spark, folder, clusters):
            base = base or took
            show(what, took, base)
    spark.stop()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
