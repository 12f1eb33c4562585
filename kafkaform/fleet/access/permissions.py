"""effective_permissions: who may do what, as the authorizer of each cluster would decide.

The table is about patterns: a row for each pattern, principal and host that ACLs name, with what
holds for whatever the pattern covers and no narrower pattern names, so that DENYs of broader ones
are in it. `expand_permissions` gives the same for each resource, which is many times as much. Who
has no row there has what `User:*` has, and a host without one what `*` has.

Super users have a row for all resources of a type (the prefix that is empty), without ACLs. What
holds where no ACL is belongs to no pattern: `grant_findings` has it, as `open_by_default`. All
rests on the ACLs that were seen; `cluster` tells whether these are all.

A build holds one cluster's patterns in a worker's memory at a time; an expansion, which is of
resources, cuts large clusters by their principals.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

from kafkaform_kafka.authority.authorizer import ALL, EVERYBODY, LITERAL, PREFIXED, SOME_TOPIC
from kafkaform_kafka.kinds.acl.resource_type import ALLOW, EVERYTHING

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
    """Inputs: live, cluster."""
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
    found = every.groupBy("cluster").applyInArrow(_compute_patterns, _MASKS)
    return _decide_rows(found, clusters, pattern_level=True)


def expand_permissions(
    frames: Frames, only: PermissionFilter, most: int = acl_masks.PAIRS
) -> DataFrame:
    """A row for each resource with each principal and host that matter there.

    Inputs: live, cluster. most: pairs of an ACL and a resource that a worker has at a time; of a
    cluster with more each gets some of the principals. Raises UsageError: `only` names no resource.
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
        # All others' ACLs are one part, nobody's.
        parts = clusters.select("cluster", F.lit(1).alias("parts"))
        others = patterns
    else:
        parts = _count_parts(patterns, names, most)
        others = patterns.join(parts.where(F.col("parts") > 1), "cluster", how="left_semi")
    more = _make_producer_rules(rules)
    every = rules.unionByName(asking).unionByName(more).unionByName(_make_closing_rules(others))
    left = _spread_rules(every, parts).groupBy(*_PART)
    right = _repeat_names(names, parts).groupBy(*_PART)
    found = left.cogroup(right).applyInArrow(_make_resource_reader(only.principal), _MASKS)
    return _decide_rows(found, clusters, pattern_level=False)


def _select_about(
    rules: DataFrame, names: DataFrame, clusters: DataFrame, resource: str | None
) -> tuple[DataFrame, DataFrame]:
    """The ACLs and resources that are asked about, and maybe more of the ACLs."""
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
    """Whether an ACL can be about a name that begins so."""
    pattern = F.col("name")
    literal = (F.col("pattern_type") == LITERAL) & (
        (pattern == EVERYTHING) | pattern.startswith(begin)
    )
    begun = F.startswith(F.lit(begin), pattern) | pattern.startswith(begin)
    fits: Column = literal | ((F.col("pattern_type") == PREFIXED) & begun)
    return fits


# ── the cluster is asked before a topic ─────────────────────────────────────────────────


def _add_cluster_rules(rules: DataFrame) -> DataFrame:
    """The ACLs, those of the cluster that decide about topics once more among the topics' own."""
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
    """The clusters with `closed`: whether there is an ACL on the cluster itself; and `shut`:
    whether there is one on the topic that brokers ask for on behalf of idempotent producers."""
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
    """A rule about the cluster, which gives nothing, for everyone of whom an ACL says whether he
    may write to a topic."""
    nothing = {name: F.lit(None).cast("string") for name in ("operation", "permission", "key")}
    every = {"name": F.lit(""), "pattern_type": F.lit(PREFIXED), "resource_type": F.lit("Cluster")}
    writers = rules.where((F.col("resource_type") == "Topic") & _is_write())
    who = writers.select("cluster", "principal", "host").distinct()
    return who.withColumns(every | nothing).select(*_RULE)


# ── parts of a cluster ──────────────────────────────────────────────────────────────────


def _count_parts(patterns: DataFrame, names: DataFrame, most: int) -> DataFrame:
    """cluster, parts: into how many a cluster is cut."""
    both = patterns.groupBy("cluster").cogroup(names.groupBy("cluster"))
    return both.applyInArrow(_make_part_counter(most), "cluster string, parts int")


def _make_closing_rules(patterns: DataFrame) -> DataFrame:
    """Rows for ACLs that are elsewhere: what has ACLs is closed to all whom they do not name."""
    nothing = {name: F.lit(None).cast("string") for name in ("operation", "key")}
    anybody = {"principal": EVERYBODY, "host": EVERYTHING, "permission": ALLOW}
    own = patterns.where(F.col("own") > 0)
    rows = own.withColumns({name: F.lit(word) for name, word in anybody.items()} | nothing)
    return rows.select(*_RULE)


def _spread_rules(rules: DataFrame, parts: DataFrame) -> DataFrame:
    """A principal's rows are all in one part; everybody's are in each."""
    one = F.array(F.pmod(F.xxhash64("principal"), "parts").cast("int"))
    every = F.sequence(F.lit(0), F.col("parts") - 1)
    part = F.when(F.col("principal") == EVERYBODY, every).otherwise(one)
    joined = rules.join(F.broadcast(parts), "cluster", how="inner")
    return joined.select(*_RULE, F.explode(part).alias("part"))


def _repeat_names(names: DataFrame, parts: DataFrame) -> DataFrame:
    part = F.explode(F.sequence(F.lit(0), F.col("parts") - 1)).alias("part")
    # Under a new identity: Spark could not tell this column from that of the ACLs.
    cluster = F.col("cluster").alias("cluster")
    joined = names.join(F.broadcast(parts), "cluster", how="inner")
    return joined.select(cluster, "resource_type", "name", part)


# ── rows that are no ACLs ───────────────────────────────────────────────────────────────


def _list_super_users(*others: str) -> Column:
    """The principals of a cluster who can do everything, and these."""
    declared = F.coalesce("super_users", F.array().cast("array<string>"))
    return F.array_union(declared, _list_names(*others)) if others else declared


def _list_names(*principals: str | None) -> Column:
    return F.array_distinct(F.array(*(F.lit(one) for one in principals if one is not None)))


def _make_asking_rules(clusters: DataFrame, principals: Column) -> DataFrame:
    """What makes sure that somebody gets an answer about every resource: a rule for each type that
    is no ACL and gives nothing."""
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
        elif part.as_py():  # the first part has everybody's rows
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
    """KEPT of the rows: each mask also as a list of operations."""
    return rows.withColumns({name: _list_words(mask) for mask, name in MASKS.items()}).select(*KEPT)


def _list_words(mask: str) -> Column:
    """As `access_bits.words`."""
    some = (
        F.when(F.col(mask).bitwiseAND(F.lit(1 << bit)) != 0, F.lit(name))
        for name, bit in BITS.items()
    )
    return F.array_compact(F.array(*some))


# ── decisions ───────────────────────────────────────────────────────────────────────────


def _decide_rows(found: DataFrame, clusters: DataFrame, *, pattern_level: bool) -> DataFrame:
    """Masks as rows of the table: `access.decide` for every operation at once."""
    declared = clusters.select("cluster", "super_users", "allow_if_no_acl", "closed")
    asked = F.element_at(_map_asked_masks(), F.col("resource_type"))
    root = F.array_contains("super_users", F.col("principal"))
    open_ = ~F.col("covered") & F.col("allow_if_no_acl")
    of_topic, of_cluster = (F.col("resource_type") == kind for kind in ("Topic", "Cluster"))
    every = F.when(of_topic, make_mask(EVERY_TOPIC)).when(of_cluster, GIVEN >> ABOVE).otherwise(0)
    # What decides elsewhere where no ACL is: about every topic, and about idempotent producers.
    no_acl = F.when(of_topic, ~F.col("closed")).otherwise(
        of_cluster & (F.col("allow").bitwiseAND(F.lit(IF_OPEN)) != 0)
    )
    all_open = F.when(no_acl & F.col("allow_if_no_acl"), every).otherwise(0)
    elsewhere = F.shiftright(F.col("allow").bitwiseAND(F.bitwise_not("deny")), ABOVE)
    first = elsewhere.bitwiseAND(every).bitwiseOR(all_open)
    given = F.col("allow_mask").bitwiseAND(F.bitwise_not("deny_mask")).bitwiseOR(first)
    effective = F.when(root, asked).when(open_, asked).otherwise(given)
    undeclared = F.col("allow_if_no_acl").isNull()
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
    """Resource type -> everything that is ever asked of it."""
    pairs = ((F.lit(kind), F.lit(make_asked_mask(kind))) for kind in ASKED)
    return F.create_map(*chain.from_iterable(pairs))
