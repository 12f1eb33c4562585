"""Compute effective_permissions: who may do what, as the authorizer of each cluster would decide.

The table is about patterns: a row per pattern, principal and host that ACLs name, with what applies
to everything that the pattern covers and no narrower pattern names; DENYs of broader patterns are
included. `expand_permissions` computes the same per resource, which is many times as many rows. A
principal without a row has what `User:*` has; a host without a row has what `*` has.

Super users have a row for all resources of a type (the empty prefix), without ACLs. What applies
where there is no ACL belongs to no pattern: `grant_findings` has it, as `open_by_default`.
Everything rests on the ACLs that were seen; `cluster` tells whether these are all.

A build computes one cluster at a time in a worker's memory. An expansion cuts large clusters by
principal.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

from kafkaform_kafka.authority.authorizer import ALL, EVERYBODY, SOME_TOPIC
from kafkaform_kafka.protocol.acl import ALLOW, EVERYTHING, LITERAL, PREFIXED

from ..landed.globs import matches
from ..tables.dataset import BuildContext, Frames
from ..tables.definitions import TABLES
from . import acl_masks
from .idempotent_producers import GIVEN, IF_OPEN, SOME_BEGUN, WRITES, add_producers
from .operation_bits import (
    ABOVE,
    ASKED,
    BITS,
    CLUSTER,
    EVERY_TOPIC,
    MASKS,
    ON_CLUSTER,
    make_asked_mask,
    make_mask,
    parse_resource,
)
from .patterns import render_pattern, select_acls, select_resources
from .permission_rows import KEPT, PermissionFilter, get_stem

if TYPE_CHECKING:
    import pyarrow as pa

_RULE = (
    "cluster",
    "resource_type",
    "name",
    "pattern_type",
    "principal",
    "host",
    "operation",
    "permission",
    "key",
)
_PATTERN = ("cluster", "resource_type", "name", "pattern_type")
_PART = ("cluster", "part")
_MASKS = (
    "cluster string, resource_type string, name string, pattern_type string, principal string, "
    "host string, allow int, deny int, covered boolean, via array<string>"
)


def build(frames: Frames, _: BuildContext) -> DataFrame:
    """Return the rows of `effective_permissions`. Inputs: live, cluster."""
    rules = select_acls(frames["live"]).select(*_RULE)
    clusters = _add_closed_flags(frames["cluster"], rules)
    asking = _make_asking_rules(clusters, _list_super_users())
    if_open = (
        _make_asking_rules(
            clusters.where(F.col("allow_if_no_acl") & ~F.col(closed)), _list_names(EVERYBODY)
        ).where(F.col("resource_type") == kind)
        for closed, kind in (("closed", "Topic"), ("shut", "Cluster"))
    )
    every = reduce(
        DataFrame.unionByName,
        (_add_cluster_rules(rules), asking, _make_producer_rules(rules), *if_open),
    )
    # Arrow instead of joins: three to four times as fast, as most work is array look-ups. One call
    # gets a whole cluster; maxRecordsPerBatch does not bound groups.
    found = every.groupBy("cluster").applyInArrow(_compute_patterns, _MASKS)
    return _decide_rows(found, clusters, pattern_level=True)


def expand_permissions(
    frames: Frames, only: PermissionFilter, most: int = acl_masks.PAIRS
) -> DataFrame:
    """Return a row per resource with each principal and host that matter there.

    Inputs: live, cluster. most: how many pairs of an ACL and a resource a worker computes at a
    time; a cluster with more is split by principal. Raises UsageError: `only` is no resource.
    """
    live, clusters = frames["live"], frames["cluster"]
    if only.cluster is not None:
        live, clusters = (f.where(F.col("cluster") == only.cluster) for f in (live, clusters))
    rules = select_acls(live).select(*_RULE)
    names, clusters = select_resources(live, rules, clusters), _add_closed_flags(clusters, rules)
    rules, names = _select_about(_add_cluster_rules(rules), names, clusters, only.resource)
    own = F.count_if(~F.col("operation").startswith(ON_CLUSTER)).alias("own")
    patterns = rules.groupBy(*_PATTERN).agg(F.count("*").alias("acls"), own)
    asking = _make_asking_rules(clusters, _list_super_users(EVERYBODY))
    if only.principal is not None:
        mine = F.col("principal").isin(only.principal, EVERYBODY)
        rules = rules.where(mine)
        asking = _make_asking_rules(clusters, _list_names(EVERYBODY, only.principal))
        # The other principals' ACLs are in no part; closing rows stand for all of them.
        parts = clusters.select("cluster", F.lit(1).alias("parts"))
        others = patterns
    else:
        # Skew: one huge cluster would be one long task, and might not fit into a worker.
        parts = _count_parts(patterns, names, most)
        others = patterns.join(parts.where(F.col("parts") > 1), "cluster", how="left_semi")
    more = _make_producer_rules(rules)
    every = rules.unionByName(asking).unionByName(more).unionByName(_make_closing_rules(others))
    left = _spread_rules(every, parts).groupBy(*_PART)
    right = _repeat_names(names, parts).groupBy(*_PART)
    # Workers import kafkaform to run the function, which travels by name: they need the same
    # version of it (docs/fleet/running.md).
    found = left.cogroup(right).applyInArrow(_make_resource_reader(only.principal), _MASKS)
    return _decide_rows(found, clusters, pattern_level=False)


def _select_about(
    rules: DataFrame, names: DataFrame, clusters: DataFrame, resource: str | None
) -> tuple[DataFrame, DataFrame]:
    """Return the ACLs and resources that are asked about, and maybe more ACLs."""
    if resource is None:
        return rules, names
    kind, glob = parse_resource(resource)
    about = (F.col("resource_type") == kind) & _may_cover(get_stem(glob))
    if kind == "Cluster":
        about = about | (F.col("resource_type") == "Topic") & (_is_write() | _is_of_some_topic())
    rules = rules.where(about)
    if get_stem(glob) != glob:
        return rules, names.where((F.col("resource_type") == kind) & matches(F.col("name"), glob))
    columns = (F.lit(kind).alias("resource_type"), F.lit(glob).alias("name"))
    return rules, clusters.select("cluster", *columns)


def _may_cover(begin: str) -> Column:
    """True if an ACL can be about a name that begins like this."""
    pattern = F.col("name")
    literal = (F.col("pattern_type") == LITERAL) & (
        (pattern == EVERYTHING) | pattern.startswith(begin)
    )
    begun = F.startswith(F.lit(begin), pattern) | pattern.startswith(begin)
    fits: Column = literal | ((F.col("pattern_type") == PREFIXED) & begun)
    return fits


# ── the cluster is asked before a topic ─────────────────────────────────────────────────


def _add_cluster_rules(rules: DataFrame) -> DataFrame:
    """Repeat the cluster's ACLs that decide about topics among the topics' own."""
    decides = F.col("operation").isin(ALL, *sorted(EVERY_TOPIC))
    more = rules.where(_is_of_cluster() & decides).withColumns(
        {
            "resource_type": F.lit("Topic"),
            "name": F.lit(""),
            "pattern_type": F.lit(PREFIXED),
            "operation": F.concat(F.lit(ON_CLUSTER), "operation"),
        }
    )
    return rules.unionByName(more)


def _add_closed_flags(clusters: DataFrame, rules: DataFrame) -> DataFrame:
    """Add `closed`, whether the cluster itself has an ACL, and `shut`, whether the topic has one
    that brokers ask for on behalf of idempotent producers."""
    flags = {"closed": _is_of_cluster(), "shut": _is_of_some_topic()}
    found = rules.groupBy("cluster").agg(
        *(F.coalesce(F.bool_or(flag), F.lit(False)).alias(name) for name, flag in flags.items())
    )
    joined = clusters.join(found, "cluster", how="left")
    return joined.withColumns({name: F.coalesce(name, F.lit(False)) for name in flags})


def _is_of_cluster() -> Column:
    literal = (F.col("pattern_type") == LITERAL) & F.col("name").isin(CLUSTER, EVERYTHING)
    begun = (F.col("pattern_type") == PREFIXED) & F.startswith(F.lit(CLUSTER), F.col("name"))
    covers: Column = (F.col("resource_type") == "Cluster") & (literal | begun)
    return covers


def _is_of_some_topic() -> Column:
    literal = (F.col("pattern_type") == LITERAL) & F.col("name").isin(SOME_TOPIC, EVERYTHING)
    begun = (F.col("pattern_type") == PREFIXED) & F.col("name").isin(*SOME_BEGUN)
    covers: Column = (F.col("resource_type") == "Topic") & (literal | begun)
    return covers


def _is_write() -> Column:
    return F.col("operation").isin(*WRITES)


def _make_producer_rules(rules: DataFrame) -> DataFrame:
    """Return a row about the cluster, which allows nothing, for each principal whose right to write
    to a topic some ACL decides."""
    nothing = {name: F.lit(None).cast("string") for name in ("operation", "permission", "key")}
    every = {"name": F.lit(""), "pattern_type": F.lit(PREFIXED), "resource_type": F.lit("Cluster")}
    writers = rules.where((F.col("resource_type") == "Topic") & _is_write())
    who = writers.select("cluster", "principal", "host").distinct()
    return who.withColumns(every | nothing).select(*_RULE)


# ── parts of a cluster ──────────────────────────────────────────────────────────────────


def _count_parts(patterns: DataFrame, names: DataFrame, most: int) -> DataFrame:
    """Return cluster and parts: into how many parts a cluster is split."""
    both = patterns.groupBy("cluster").cogroup(names.groupBy("cluster"))
    return both.applyInArrow(_make_part_counter(most), "cluster string, parts int")


def _make_closing_rules(patterns: DataFrame) -> DataFrame:
    """Return rows that stand for ACLs in other parts: a resource with ACLs is closed to everybody
    whom they do not name."""
    nothing = {name: F.lit(None).cast("string") for name in ("operation", "key")}
    anybody = {"principal": EVERYBODY, "host": EVERYTHING, "permission": ALLOW}
    own = patterns.where(F.col("own") > 0)
    rows = own.withColumns({name: F.lit(word) for name, word in anybody.items()} | nothing)
    return rows.select(*_RULE)


def _spread_rules(rules: DataFrame, parts: DataFrame) -> DataFrame:
    """Put all rows of a principal into one part, and those of everybody into each."""
    # By hash, so that each worker gets its principals' rows without a shuffle of names.
    one = F.array(F.pmod(F.xxhash64("principal"), "parts").cast("int"))
    every = F.sequence(F.lit(0), F.col("parts") - 1)
    part = F.when(F.col("principal") == EVERYBODY, every).otherwise(one)
    joined = rules.join(F.broadcast(parts), "cluster", how="inner")
    return joined.select(*_RULE, F.explode(part).alias("part"))


def _repeat_names(names: DataFrame, parts: DataFrame) -> DataFrame:
    part = F.explode(F.sequence(F.lit(0), F.col("parts") - 1)).alias("part")
    # A new alias: both sides of the cogroup come from `live`, and Spark confuses their columns.
    cluster = F.col("cluster").alias("cluster")
    joined = names.join(F.broadcast(parts), "cluster", how="inner")
    return joined.select(cluster, "resource_type", "name", part)


# ── rows that are no ACLs ───────────────────────────────────────────────────────────────


def _list_super_users(*others: str) -> Column:
    """Return the super users of a cluster, and these principals."""
    declared = F.coalesce("super_users", F.array().cast("array<string>"))
    return F.array_union(declared, _list_names(*others)) if others else declared


def _list_names(*principals: str | None) -> Column:
    return F.array_distinct(F.array(*(F.lit(one) for one in principals if one is not None)))


def _make_asking_rules(clusters: DataFrame, principals: Column) -> DataFrame:
    """Return a row per resource type that allows nothing, so that these principals get an answer
    about every resource."""
    nothing = {name: F.lit(None).cast("string") for name in ("operation", "permission", "key")}
    every = {"name": F.lit(""), "pattern_type": F.lit(PREFIXED), "host": F.lit(EVERYTHING)}
    types = F.explode(F.array(*(F.lit(kind) for kind in ASKED))).alias("resource_type")
    rows = clusters.select("cluster", F.explode(principals).alias("principal"))
    return rows.select("*", types).withColumns(every | nothing).select(*_RULE)


# ── on the workers ──────────────────────────────────────────────────────────────────────


def _compute_patterns(key: tuple[Any, ...], rules: pa.Table) -> pa.Table:
    return acl_masks.add_cluster(
        key[0], add_producers(rules, acl_masks.compute_pattern_masks(rules))
    )


def _make_resource_reader(principal: str | None) -> Callable[[Any, pa.Table, pa.Table], pa.Table]:
    def rows(key: tuple[Any, ...], rules: pa.Table, names: pa.Table) -> pa.Table:
        import pyarrow.compute as pc  # noqa: PLC0415  # the fleet extra has it, and it is slow to load

        cluster, part = key
        found = add_producers(rules, acl_masks.compute_resource_masks(rules, names))
        if principal is not None:
            found = found.filter(pc.equal(found["principal"], principal))
        elif part.as_py():  # only the first part keeps the rows of everybody
            found = found.filter(pc.not_equal(found["principal"], EVERYBODY))
        return acl_masks.add_cluster(cluster, found)

    return rows


def _make_part_counter(most: int) -> Callable[[Any, pa.Table, pa.Table], pa.Table]:
    def rows(key: tuple[Any, ...], patterns: pa.Table, names: pa.Table) -> pa.Table:
        import pyarrow as pa  # noqa: PLC0415  # the fleet extra has it, and it is slow to load

        number = pa.array([1 + acl_masks.count_pairs(patterns, names) // most], pa.int32())
        return acl_masks.add_cluster(key[0], pa.table({"parts": number}))

    return rows


# ── words ───────────────────────────────────────────────────────────────────────────────


def add_words(rows: DataFrame) -> DataFrame:
    """Return KEPT of the rows: each mask also as a list of operations."""
    return rows.withColumns({name: _list_words(mask) for mask, name in MASKS.items()}).select(*KEPT)


def _list_words(mask: str) -> Column:
    """Like `operation_bits.list_operations`."""
    some = (
        F.when(F.col(mask).bitwiseAND(F.lit(1 << bit)) != 0, F.lit(name))
        for name, bit in BITS.items()
    )
    return F.array_compact(F.array(*some))


# ── decisions ───────────────────────────────────────────────────────────────────────────


def _decide_rows(found: DataFrame, clusters: DataFrame, *, pattern_level: bool) -> DataFrame:
    """Turn masks into rows of the table: `authorizer.decide` for every operation at once."""
    # Three values throughout: undeclared super users or rules make an operation unknown, never
    # denied.
    declared = clusters.select("cluster", "super_users", "allow_if_no_acl", "closed")
    asked = F.element_at(_map_asked_masks(), F.col("resource_type"))
    root = F.array_contains("super_users", F.col("principal"))
    # null if the rule is undeclared: `when` takes null for false, and `unknown_mask` gets the rest.
    open_ = ~F.col("covered") & F.col("allow_if_no_acl")
    of_topic, of_cluster = (F.col("resource_type") == kind for kind in ("Topic", "Cluster"))
    every = F.when(of_topic, make_mask(EVERY_TOPIC)).when(of_cluster, GIVEN >> ABOVE).otherwise(0)
    # Without an ACL, the rule decides about every topic and about idempotent producers, too.
    no_acl = F.when(of_topic, ~F.col("closed")).otherwise(
        of_cluster & (F.col("allow").bitwiseAND(F.lit(IF_OPEN)) != 0)
    )
    all_open = F.when(no_acl & F.col("allow_if_no_acl"), every).otherwise(0)
    elsewhere = F.shiftright(F.col("allow").bitwiseAND(F.bitwise_not("deny")), ABOVE)
    first = elsewhere.bitwiseAND(every).bitwiseOR(all_open)
    given = F.col("allow_mask").bitwiseAND(F.bitwise_not("deny_mask")).bitwiseOR(first)
    effective = F.when(root, asked).when(open_, asked).otherwise(given)
    undeclared = F.col("allow_if_no_acl").isNull()
    # If super users are undeclared, anybody may be one.
    unsure = F.col("super_users").isNull() | (~root & undeclared & ~F.col("covered"))
    unsure_first = ~root & undeclared & no_acl
    rest = asked.bitwiseAND(F.bitwise_not("effective_mask"))
    unknown = F.when(unsure, rest).when(unsure_first, rest.bitwiseAND(every)).otherwise(F.lit(0))
    rows = (
        found.join(F.broadcast(declared), "cluster", how="inner")
        .withColumn("allow_mask", F.col("allow").bitwiseAND(asked))
        .withColumn("deny_mask", F.col("deny").bitwiseAND(asked))
        .withColumn("effective_mask", effective)
        .withColumn("unknown_mask", unknown)
    )
    resource = render_pattern() if pattern_level else F.col("name")
    named = rows.withColumn("resource", resource).withColumn("pattern_level", F.lit(pattern_level))
    return named.select(*TABLES["effective_permissions"].names)


def _map_asked_masks() -> Column:
    """Return resource type -> everything that Kafka ever asks of it."""
    pairs = ((F.lit(kind), F.lit(make_asked_mask(kind))) for kind in ASKED)
    return F.create_map(*chain.from_iterable(pairs))
