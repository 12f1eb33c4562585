"""Select ACLs, resources and principals from live rows, and match names with patterns."""

from __future__ import annotations

from functools import reduce

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

from kafkaform_kafka.protocol.acl import ALLOW, CLUSTER, DENY, EVERYTHING, LITERAL, PREFIXED

from ...core.landing import GROUP_USAGE
from .permission_rows import BITS, SUPPORTED_OPERATIONS

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


def select_acls(live: DataFrame) -> DataFrame:
    """Return cluster, key, owner and the columns of `_ATTRIBUTES`, unique by (cluster, key). As in
    `authorizer.index_acls`, ACLs with words that this version does not know are left out."""
    columns = [F.col("attrs")[attribute].alias(name) for name, attribute in _ATTRIBUTES.items()]
    rows = live.where(F.col("kind") == ACL).select("cluster", "key", "owner", *columns)
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
