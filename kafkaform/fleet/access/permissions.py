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
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

from kafkaform_kafka.authority.authorizer import ALL, EVERYBODY, SOME_TOPIC
from kafkaform_kafka.protocol.acl import (
    ALLOW,
    CLUSTER,
    DENY,
    EVERY_TOPIC,
    EVERYTHING,
    LITERAL,
    PREFIXED,
)

from ...core.landing import GROUP_USAGE
from ..landed.register import matches
from ..landed.snapshots import keep_apart
from ..tables.definitions import TABLES, BuildContext, Frames
from . import acl_masks
from .acl_masks import SOME_BEGUN, WRITES, WRITES_IF_OPEN, WRITES_SOME_TOPIC, add_producers
from .permission_rows import (
    BITS,
    CLUSTER_SHIFT,
    MASKS,
    ON_CLUSTER,
    SUPPORTED_OPERATIONS,
    PermissionFilter,
    get_stem,
    make_mask,
    make_supported_mask,
    parse_resource,
)

ACL, TOPIC, SCRAM = "kafka_acl", "kafka_topic", "kafka_user_scram_credential"

_KNOWN_WORDS = {
    "resource_type": list(SUPPORTED_OPERATIONS),
    "pattern_type": [LITERAL, PREFIXED],
    "operation": list(BITS),
    "permission": [ALLOW, DENY],
}
_ATTRIBUTES = {
    "resource_type": "resource_type",
    "name": "resource_name",
    "pattern_type": "resource_pattern_type_filter",
    "principal": "acl_principal",
    "host": "acl_host",
    "operation": "acl_operation",
    "permission": "acl_permission_type",
}
"""Column -> attribute of a live ACL."""
_TYPE_KEY = ["cluster", "resource_type"]
_RULE_COLUMNS = (
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
_PATTERN_COLUMNS = ("cluster", "resource_type", "name", "pattern_type")
_SHARE_KEY = ("cluster", "part")
_MASK_COLUMNS = (
    "cluster string, resource_type string, name string, pattern_type string, principal string, "
    "host string, allow int, deny int, covered boolean, via array<string>"
)


def select_acls(live: DataFrame) -> DataFrame:
    """Return cluster, key, owner and the columns of `_ATTRIBUTES`, unique by (cluster, key). As in
    `authorizer.index_acls`, ACLs with words that this version does not know are left out."""
    columns = [F.col("attrs")[attribute].alias(name) for name, attribute in _ATTRIBUTES.items()]
    acl = keep_apart(F.struct(*columns)).alias("_acl")
    rows = live.where(F.col("kind") == ACL).select("cluster", "key", "owner", acl)
    rows = rows.select("cluster", "key", "owner", "_acl.*")
    has_known_words = (F.col(name).isin(words) for name, words in _KNOWN_WORDS.items())
    is_complete = (F.col(name).isNotNull() for name in ("name", "principal", "host"))
    return rows.where(reduce(Column.__and__, (*has_known_words, *is_complete)))


def select_resources(live: DataFrame, rules: DataFrame, clusters: DataFrame) -> DataFrame:
    """Return cluster, resource_type, name of every known resource, each once. rules: from
    `select_acls`; clusters: with a column `cluster`."""
    literal = (F.col("pattern_type") == LITERAL) & (F.col("name") != EVERYTHING)
    named = rules.where(literal & ~F.col("resource_type").isin("Topic", "Cluster"))
    resources = (
        _add_type("Topic", select_topics(live)),
        _add_type("Group", select_groups(live)),
        _add_type("Cluster", clusters.select("cluster", F.lit(CLUSTER).alias("name"))),
        named.select("cluster", "resource_type", "name"),
    )
    return reduce(DataFrame.unionByName, resources).distinct()


def select_topics(live: DataFrame) -> DataFrame:
    """Return cluster and name, each once."""
    return live.where(F.col("kind") == TOPIC).select("cluster", F.col("key").alias("name"))


def select_groups(live: DataFrame) -> DataFrame:
    """Return cluster and name of the groups that have read something, each once. The key of a row
    is `GROUP TOPIC`, and a topic's name contains no space."""
    name = F.regexp_replace("key", " [^ ]*$", "").alias("name")
    return live.where(F.col("kind") == GROUP_USAGE).select("cluster", name).distinct()


def select_users(live: DataFrame) -> DataFrame:
    """Return cluster and principal of everybody with a SCRAM credential, each once."""
    principal = F.concat(F.lit("User:"), F.col("attrs")["username"]).alias("principal")
    users = live.where(F.col("kind") == SCRAM).select("cluster", principal)
    return users.where(F.col("principal").isNotNull()).distinct()


def _add_type(resource_type: str, names: DataFrame) -> DataFrame:
    return names.select("cluster", F.lit(resource_type).alias("resource_type"), "name")


def match_patterns(patterns: DataFrame, names: DataFrame) -> DataFrame:
    """Return cluster, resource_type, pattern_type, pattern, name: every name with every pattern
    that matches it, except the wildcard.

    patterns: cluster, resource_type, pattern_type, pattern, each once; names: cluster,
    resource_type, name, each once. Names are cut to the lengths that prefixes of their cluster
    have, so that everything is an equality join.
    """
    literal = patterns.where(F.col("pattern_type") == LITERAL)
    # Equality joins scale by shuffle. `startswith` in the condition would be a nested loop,
    # quadratic for a large cluster.
    exact = names.withColumn("pattern", F.col("name")).join(
        literal.where(F.col("pattern") != EVERYTHING), [*_TYPE_KEY, "pattern"], how="inner"
    )
    prefixes = patterns.where(F.col("pattern_type") == PREFIXED)
    # Only lengths that occur: cutting at every length multiplied the rows and took six times as
    # long.
    lengths = prefixes.groupBy(*_TYPE_KEY).agg(F.collect_set(F.length("pattern")).alias("lengths"))
    fitting = F.filter("lengths", lambda length: length <= F.length("name"))
    cut = names.join(lengths, _TYPE_KEY, how="inner").select(
        *_TYPE_KEY, "name", F.explode(fitting).alias("length")
    )
    prefixed = cut.withColumn("pattern", F.substr("name", F.lit(1), F.col("length"))).join(
        prefixes, [*_TYPE_KEY, "pattern"], how="inner"
    )
    columns = (*_TYPE_KEY, "pattern_type", "pattern", "name")
    return exact.select(*columns).unionByName(prefixed.select(*columns))


def render_pattern(name: str = "name") -> Column:
    """Return a pattern as the tables show it: a prefix ends with `*`."""
    prefix = F.concat(F.col(name), F.lit(EVERYTHING))
    return F.when(F.col("pattern_type") == PREFIXED, prefix).otherwise(F.col(name))


def build(frames: Frames, _: BuildContext) -> DataFrame:
    """Return the rows of `effective_permissions`. Inputs: live, cluster."""
    rules = select_acls(frames["live"]).select(*_RULE_COLUMNS)
    clusters = _add_closed_flags(frames["cluster"], rules)
    asking = _make_query_rules(clusters, _list_super_users())
    if_open = (
        _make_query_rules(
            clusters.where(F.col("allow_if_no_acl") & ~F.col(closed)), _list_names(EVERYBODY)
        ).where(F.col("resource_type") == kind)
        for closed, kind in (("closed", "Topic"), ("shut", "Cluster"))
    )
    all_rules = reduce(
        DataFrame.unionByName,
        (_add_cluster_rules(rules), asking, _make_producer_rules(rules), *if_open),
    )
    # Arrow instead of joins: three to four times as fast, as most work is array look-ups. One call
    # gets a whole cluster; maxRecordsPerBatch does not bound groups.
    masks = all_rules.groupBy("cluster").applyInArrow(_compute_patterns, _MASK_COLUMNS)
    return _decide_rows(masks, clusters, pattern_level=True)


def expand_permissions(
    frames: Frames, only: PermissionFilter, most: int = acl_masks.PAIRS
) -> DataFrame:
    """Return a row per resource with each principal and host that matter there.

    Inputs: live, cluster. most: how many pairs of an ACL and a resource a worker computes at a
    time; a cluster with more is split by principal. Raises UsageError: `only` is not a resource.
    """
    live, clusters = frames["live"], frames["cluster"]
    if only.cluster is not None:
        live, clusters = (f.where(F.col("cluster") == only.cluster) for f in (live, clusters))
    rules = select_acls(live).select(*_RULE_COLUMNS)
    names, clusters = select_resources(live, rules, clusters), _add_closed_flags(clusters, rules)
    rules, names = _select_about(_add_cluster_rules(rules), names, clusters, only.resource)
    own = F.count_if(~F.col("operation").startswith(ON_CLUSTER)).alias("own")
    patterns = rules.groupBy(*_PATTERN_COLUMNS).agg(F.count("*").alias("acls"), own)
    asking = _make_query_rules(clusters, _list_super_users(EVERYBODY))
    if only.principal is not None:
        is_relevant = F.col("principal").isin(only.principal, EVERYBODY)
        rules = rules.where(is_relevant)
        asking = _make_query_rules(clusters, _list_names(EVERYBODY, only.principal))
        # The other principals' ACLs are in no part; closing rows represent all of them.
        shares = clusters.select("cluster", F.lit(1).alias("parts"))
        other_patterns = patterns
    else:
        # Skew: one huge cluster would be one long task, and might not fit into a worker.
        cogrouped = patterns.groupBy("cluster").cogroup(names.groupBy("cluster"))
        shares = cogrouped.applyInArrow(_make_part_counter(most), "cluster string, parts int")
        other_patterns = patterns.join(shares.where(F.col("parts") > 1), "cluster", how="left_semi")
    producers = _make_producer_rules(rules)
    all_rules = (
        rules.unionByName(asking)
        .unionByName(producers)
        .unionByName(_make_closing_rules(other_patterns))
    )
    rule_groups = _spread_rules(all_rules, shares).groupBy(*_SHARE_KEY)
    name_groups = _repeat_names(names, shares).groupBy(*_SHARE_KEY)
    # Workers import kafkaform to run the function, which travels by name: they need the same
    # version of it (docs/fleet/running.md).
    masks = rule_groups.cogroup(name_groups).applyInArrow(
        _make_resource_reader(only.principal), _MASK_COLUMNS
    )
    return _decide_rows(masks, clusters, pattern_level=False)


def _select_about(
    rules: DataFrame, names: DataFrame, clusters: DataFrame, resource: str | None
) -> tuple[DataFrame, DataFrame]:
    """Return the ACLs and resources that are asked about, and maybe more ACLs."""
    if resource is None:
        return rules, names
    kind, glob = parse_resource(resource)
    # ACLs that can be about a name that begins like this.
    begin = get_stem(glob)
    pattern = F.col("name")
    literal = (F.col("pattern_type") == LITERAL) & (
        (pattern == EVERYTHING) | pattern.startswith(begin)
    )
    prefixed = F.startswith(F.lit(begin), pattern) | pattern.startswith(begin)
    fits: Column = literal | ((F.col("pattern_type") == PREFIXED) & prefixed)
    about = (F.col("resource_type") == kind) & fits
    if kind == "Cluster":
        about = about | (F.col("resource_type") == "Topic") & (_is_write() | _is_of_some_topic())
    rules = rules.where(about)
    if get_stem(glob) != glob:
        return rules, names.where((F.col("resource_type") == kind) & matches(F.col("name"), glob))
    columns = (F.lit(kind).alias("resource_type"), F.lit(glob).alias("name"))
    return rules, clusters.select("cluster", *columns)


# ── the cluster is asked before a topic ─────────────────────────────────────────────────


def _add_cluster_rules(rules: DataFrame) -> DataFrame:
    """Repeat the cluster's ACLs that decide about topics among the topics' own."""
    decides = F.col("operation").isin(ALL, *sorted(EVERY_TOPIC))
    cluster_rules = rules.where(_is_of_cluster() & decides).withColumns(
        {
            "resource_type": F.lit("Topic"),
            "name": F.lit(""),
            "pattern_type": F.lit(PREFIXED),
            "operation": F.concat(F.lit(ON_CLUSTER), "operation"),
        }
    )
    return rules.unionByName(cluster_rules)


def _add_closed_flags(clusters: DataFrame, rules: DataFrame) -> DataFrame:
    """Add `closed`, whether the cluster itself has an ACL, and `shut`, whether the topic has one
    that brokers ask for on behalf of idempotent producers."""
    flags = {"closed": _is_of_cluster(), "shut": _is_of_some_topic()}
    closed = rules.groupBy("cluster").agg(
        *(F.coalesce(F.bool_or(flag), F.lit(False)).alias(name) for name, flag in flags.items())
    )
    joined = clusters.join(closed, "cluster", how="left")
    return joined.withColumns({name: F.coalesce(name, F.lit(False)) for name in flags})


def _is_of_cluster() -> Column:
    literal = (F.col("pattern_type") == LITERAL) & F.col("name").isin(CLUSTER, EVERYTHING)
    prefixed = (F.col("pattern_type") == PREFIXED) & F.startswith(F.lit(CLUSTER), F.col("name"))
    covers: Column = (F.col("resource_type") == "Cluster") & (literal | prefixed)
    return covers


def _is_of_some_topic() -> Column:
    literal = (F.col("pattern_type") == LITERAL) & F.col("name").isin(SOME_TOPIC, EVERYTHING)
    prefixed = (F.col("pattern_type") == PREFIXED) & F.col("name").isin(*SOME_BEGUN)
    covers: Column = (F.col("resource_type") == "Topic") & (literal | prefixed)
    return covers


def _is_write() -> Column:
    return F.col("operation").isin(*WRITES)


def _make_producer_rules(rules: DataFrame) -> DataFrame:
    """Return a row about the cluster, which allows nothing, for each principal whose right to write
    to a topic some ACL decides."""
    nulls = {name: F.lit(None).cast("string") for name in ("operation", "permission", "key")}
    pattern = {
        "name": F.lit(""),
        "pattern_type": F.lit(PREFIXED),
        "resource_type": F.lit("Cluster"),
    }
    writers = rules.where((F.col("resource_type") == "Topic") & _is_write())
    principals = writers.select("cluster", "principal", "host").distinct()
    return principals.withColumns(pattern | nulls).select(*_RULE_COLUMNS)


# ── parts of a cluster ──────────────────────────────────────────────────────────────────


def _make_closing_rules(patterns: DataFrame) -> DataFrame:
    """Return rows that represent ACLs in other parts: a resource with ACLs is closed to everybody
    whom they do not name."""
    nothing = {name: F.lit(None).cast("string") for name in ("operation", "key")}
    anybody = {"principal": EVERYBODY, "host": EVERYTHING, "permission": ALLOW}
    own = patterns.where(F.col("own") > 0)
    rows = own.withColumns({name: F.lit(word) for name, word in anybody.items()} | nothing)
    return rows.select(*_RULE_COLUMNS)


def _spread_rules(rules: DataFrame, shares: DataFrame) -> DataFrame:
    """Put all rows of a principal into one part, and those of everybody into each."""
    # By hash, so that each worker gets its principals' rows without a shuffle of names.
    own_share = F.array(F.pmod(F.xxhash64("principal"), "parts").cast("int"))
    all_shares = F.sequence(F.lit(0), F.col("parts") - 1)
    share = F.when(F.col("principal") == EVERYBODY, all_shares).otherwise(own_share)
    joined = rules.join(F.broadcast(shares), "cluster", how="inner")
    return joined.select(*_RULE_COLUMNS, F.explode(share).alias("part"))


def _repeat_names(names: DataFrame, shares: DataFrame) -> DataFrame:
    share = F.explode(F.sequence(F.lit(0), F.col("parts") - 1)).alias("part")
    # A new alias: both sides of the cogroup come from `live`, and Spark confuses their columns.
    cluster = F.col("cluster").alias("cluster")
    joined = names.join(F.broadcast(shares), "cluster", how="inner")
    return joined.select(cluster, "resource_type", "name", share)


# ── rows that are no ACLs ───────────────────────────────────────────────────────────────


def _list_super_users(*principals: str) -> Column:
    """Return the super users of a cluster, and these principals."""
    declared = F.coalesce("super_users", F.array().cast("array<string>"))
    return F.array_union(declared, _list_names(*principals)) if principals else declared


def _list_names(*principals: str | None) -> Column:
    return F.array_distinct(F.array(*(F.lit(name) for name in principals if name is not None)))


def _make_query_rules(clusters: DataFrame, principals: Column) -> DataFrame:
    """Return a row per resource type that allows nothing, so that these principals get an answer
    about every resource."""
    nulls = {name: F.lit(None).cast("string") for name in ("operation", "permission", "key")}
    pattern = {"name": F.lit(""), "pattern_type": F.lit(PREFIXED), "host": F.lit(EVERYTHING)}
    types = F.explode(F.array(*(F.lit(kind) for kind in SUPPORTED_OPERATIONS))).alias(
        "resource_type"
    )
    rows = clusters.select("cluster", F.explode(principals).alias("principal"))
    return rows.select("*", types).withColumns(pattern | nulls).select(*_RULE_COLUMNS)


# ── on the workers ──────────────────────────────────────────────────────────────────────


def _compute_patterns(key: tuple[Any, ...], rules: pa.Table) -> pa.Table:
    return acl_masks.add_cluster(
        key[0], add_producers(rules, acl_masks.compute_pattern_masks(rules))
    )


def _make_resource_reader(principal: str | None) -> Callable[[Any, pa.Table, pa.Table], pa.Table]:
    def rows(key: tuple[Any, ...], rules: pa.Table, names: pa.Table) -> pa.Table:
        cluster, share = key
        masks = add_producers(rules, acl_masks.compute_resource_masks(rules, names))
        if principal is not None:
            masks = masks.filter(pc.equal(masks["principal"], principal))
        elif share.as_py():  # only the first part keeps the rows of everybody
            masks = masks.filter(pc.not_equal(masks["principal"], EVERYBODY))
        return acl_masks.add_cluster(cluster, masks)

    return rows


def _make_part_counter(most: int) -> Callable[[Any, pa.Table, pa.Table], pa.Table]:
    def rows(key: tuple[Any, ...], patterns: pa.Table, names: pa.Table) -> pa.Table:
        number = pa.array([1 + acl_masks.count_pairs(patterns, names) // most], pa.int32())
        return acl_masks.add_cluster(key[0], pa.table({"parts": number}))

    return rows


# ── words ───────────────────────────────────────────────────────────────────────────────


def _make_words() -> dict[str, Column]:
    """Return each mask as a list of operations, by the name of its column."""
    # Like `permission_rows.list_operations`.
    return {
        name: F.array_compact(
            F.array(
                *(
                    F.when(F.col(mask).bitwiseAND(F.lit(1 << bit)) != 0, F.lit(operation))
                    for operation, bit in BITS.items()
                )
            )
        )
        for mask, name in MASKS.items()
    }


# ── decisions ───────────────────────────────────────────────────────────────────────────


def _decide_rows(masks: DataFrame, clusters: DataFrame, *, pattern_level: bool) -> DataFrame:
    """Turn masks into rows of the table: `authorizer.decide` for every operation at once."""
    # Three values throughout: undeclared super users or rules make an operation unknown, never
    # denied.
    declared = clusters.select("cluster", "super_users", "allow_if_no_acl", "closed")
    entries = ((F.lit(kind), F.lit(make_supported_mask(kind))) for kind in SUPPORTED_OPERATIONS)
    supported = F.element_at(F.create_map(*chain.from_iterable(entries)), F.col("resource_type"))
    is_super_user = F.array_contains("super_users", F.col("principal"))
    # null if the rule is undeclared: `when` takes null for false, and `unknown_mask` gets the rest.
    is_open = ~F.col("covered") & F.col("allow_if_no_acl")
    of_topic, of_cluster = (F.col("resource_type") == kind for kind in ("Topic", "Cluster"))
    on_cluster = (
        F.when(of_topic, make_mask(EVERY_TOPIC))
        .when(of_cluster, WRITES_SOME_TOPIC >> CLUSTER_SHIFT)
        .otherwise(0)
    )
    # Without an ACL, the rule decides about every topic and about idempotent producers, too.
    no_acl = F.when(of_topic, ~F.col("closed")).otherwise(
        of_cluster & (F.col("allow").bitwiseAND(F.lit(WRITES_IF_OPEN)) != 0)
    )
    all_open = F.when(no_acl & F.col("allow_if_no_acl"), on_cluster).otherwise(0)
    cluster_allows = F.shiftright(F.col("allow").bitwiseAND(F.bitwise_not("deny")), CLUSTER_SHIFT)
    cluster_mask = cluster_allows.bitwiseAND(on_cluster).bitwiseOR(all_open)
    by_acls = F.col("allow_mask").bitwiseAND(F.bitwise_not("deny_mask")).bitwiseOR(cluster_mask)
    effective = F.when(is_super_user, supported).when(is_open, supported).otherwise(by_acls)
    undeclared = F.col("allow_if_no_acl").isNull()
    # If super users are undeclared, anybody may be one.
    is_unknown = F.col("super_users").isNull() | (~is_super_user & undeclared & ~F.col("covered"))
    is_cluster_unknown = ~is_super_user & undeclared & no_acl
    undecided = supported.bitwiseAND(F.bitwise_not("effective_mask"))
    unknown = (
        F.when(is_unknown, undecided)
        .when(is_cluster_unknown, undecided.bitwiseAND(on_cluster))
        .otherwise(F.lit(0))
    )
    rows = (
        masks.join(F.broadcast(declared), "cluster", how="inner")
        .withColumn("allow_mask", F.col("allow").bitwiseAND(supported))
        .withColumn("deny_mask", F.col("deny").bitwiseAND(supported))
        .withColumn("effective_mask", effective)
        .withColumn("unknown_mask", unknown)
    )
    resource = render_pattern() if pattern_level else F.col("name")
    named = rows.withColumn("resource", resource).withColumn("pattern_level", F.lit(pattern_level))
    return named.withColumns(_make_words()).select(*TABLES["effective_permissions"].names)
