"""effective_permissions: who may do what, as the authorizer of each cluster would decide.

The table is about patterns: a row for each pattern, principal and host that ACLs name, with what
holds for whatever the pattern covers and no narrower pattern names, so that DENYs of broader ones
are in it. `expand` gives the same for each resource, which is many times as much. Who has no row
there has what `User:*` has, and a host without one what `*` has.

Super users have a row for all resources of a type (the prefix that is empty), without ACLs. What
holds where no ACL is belongs to no pattern: `grant_findings` has it, as `open_by_default`. All
rests on the ACLs that were seen; `cluster` tells whether these are all.

One cluster's rows must fit a worker's memory.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

from kafkaform_providers.kafka.access import EVERYBODY, EVERYTHING, LITERAL, PREFIXED

from . import masks
from .access_bits import ASKED, asked_of, resource_of
from .dataset import Context, Frames
from .patterns import acls, resources, shown
from .tables import TABLES

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
_MASKS = (
    "cluster string, resource_type string, name string, pattern_type string, principal string, "
    "host string, allow int, deny int, covered boolean, via array<string>"
)


def build(frames: Frames, _: Context) -> DataFrame:
    """Inputs: live, cluster."""
    clusters = frames["cluster"]
    rules = acls(frames["live"]).select(*_RULE).unionByName(_asking(clusters, _super_users()))
    found = rules.groupBy("cluster").applyInArrow(_patterns_of, _MASKS)
    return _decided(found, clusters, pattern_level=True)


def expand(
    frames: Frames,
    principal: str | None = None,
    resource: str | None = None,
    cluster: str | None = None,
) -> DataFrame:
    """A row for each resource with each principal and host that matter there, of all or of one.

    Inputs: live, cluster. resource: like `topic/orders`, which need not be there yet. Raises
    UsageError: it is none.
    """
    live, clusters = frames["live"], frames["cluster"]
    if cluster is not None:
        live, clusters = (f.where(F.col("cluster") == cluster) for f in (live, clusters))
    rules = acls(live).select(*_RULE)
    if resource is None:
        names = resources(live, rules, clusters)
    else:
        kind, name = resource_of(resource)
        rules = rules.where(_covers(kind, name))
        columns = (F.lit(kind).alias("resource_type"), F.lit(name).alias("name"))
        names = clusters.select("cluster", *columns)
    who = _named(EVERYBODY, principal) if principal else _super_users(EVERYBODY)
    left = rules.unionByName(_asking(clusters, who)).groupBy("cluster")
    found = left.cogroup(names.groupBy("cluster")).applyInArrow(_resources_of(principal), _MASKS)
    return _decided(found, clusters, pattern_level=False)


def _covers(resource_type: str, name: str) -> Column:
    """Whether an ACL can be about this resource."""
    pattern = F.col("name")
    literal = (F.col("pattern_type") == LITERAL) & pattern.isin(name, EVERYTHING)
    prefixed = (F.col("pattern_type") == PREFIXED) & F.startswith(F.lit(name), pattern)
    fits: Column = (F.col("resource_type") == resource_type) & (literal | prefixed)
    return fits


# ── rows that are no ACLs ───────────────────────────────────────────────────────────────


def _super_users(*others: str) -> Column:
    """The principals of a cluster who can do everything, and these."""
    declared = F.coalesce("super_users", F.array().cast("array<string>"))
    return F.array_union(declared, _named(*others)) if others else declared


def _named(*principals: str | None) -> Column:
    return F.array_distinct(F.array(*(F.lit(one) for one in principals if one is not None)))


def _asking(clusters: DataFrame, principals: Column) -> DataFrame:
    """What makes sure that somebody gets an answer about every resource: a rule for each type that
    is no ACL and gives nothing."""
    nothing = {name: F.lit(None).cast("string") for name in ("operation", "permission", "key")}
    every = {"name": F.lit(""), "pattern_type": F.lit(PREFIXED), "host": F.lit(EVERYTHING)}
    types = F.explode(F.array(*(F.lit(kind) for kind in ASKED))).alias("resource_type")
    rows = clusters.select("cluster", F.explode(principals).alias("principal"))
    return rows.select("*", types).withColumns(every | nothing).select(*_RULE)


# ── on the workers ──────────────────────────────────────────────────────────────────────


def _patterns_of(key: tuple[Any, ...], rules: pa.Table) -> pa.Table:
    return masks.labelled(key[0], masks.pattern_masks(rules))


def _resources_of(principal: str | None) -> Callable[[Any, pa.Table, pa.Table], pa.Table]:
    def rows(key: tuple[Any, ...], rules: pa.Table, names: pa.Table) -> pa.Table:
        return masks.labelled(key[0], masks.resource_masks(rules, names, principal))

    return rows


# ── decisions ───────────────────────────────────────────────────────────────────────────


def _decided(found: DataFrame, clusters: DataFrame, *, pattern_level: bool) -> DataFrame:
    """Masks as rows of the table: `access.decide` for every operation at once."""
    declared = clusters.select("cluster", "super_users", "allow_if_no_acl")
    asked = F.element_at(_asked(), F.col("resource_type"))
    root = F.array_contains("super_users", F.col("principal"))
    open_ = ~F.col("covered") & F.col("allow_if_no_acl")
    given = F.col("allow_mask").bitwiseAND(F.bitwise_not("deny_mask"))
    effective = F.when(root, asked).when(open_, asked).otherwise(given)
    undeclared = ~F.col("covered") & F.col("allow_if_no_acl").isNull()
    unsure = F.col("super_users").isNull() | (~root & undeclared)
    rest = asked.bitwiseAND(F.bitwise_not("effective_mask"))
    rows = (
        found.join(F.broadcast(declared), "cluster", how="inner")
        .withColumn("allow_mask", F.col("allow").bitwiseAND(asked))
        .withColumn("deny_mask", F.col("deny").bitwiseAND(asked))
        .withColumn("effective_mask", effective)
        .withColumn("unknown_mask", F.when(unsure, rest).otherwise(F.lit(0)))
    )
    resource = shown() if pattern_level else F.col("name")
    named = rows.withColumn("resource", resource).withColumn("pattern_level", F.lit(pattern_level))
    return named.select(*TABLES["effective_permissions"].names)


def _asked() -> Column:
    """Resource type -> everything that is ever asked of it."""
    pairs = ((F.lit(kind), F.lit(asked_of(kind))) for kind in ASKED)
    return F.create_map(*chain.from_iterable(pairs))
