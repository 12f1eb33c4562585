"""Find ACLs that allow more than was probably meant, or nothing, unknown principals, and quotas of
users that do not exist.

`_find_broad` defines what is broad, `_RISK` how bad an operation is. `matches_nothing`,
`unknown_principal`, `no_login` and `quota_of_nobody` say that something does not exist, so they are
found only if all of its kind were seen.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

from kafkaform_kafka.authority.authorizer import ALL, EVERYBODY
from kafkaform_kafka.protocol.acl import ALLOW, EVERY_TOPIC, EVERYTHING, LITERAL, PREFIXED

from ...core.landing import GROUP_USAGE
from ..landed.register import Register
from ..tables.definitions import TABLES, BuildContext, Frames
from . import acl_masks
from .permission_rows import SPELLED
from .permissions import (
    SCRAM,
    TOPIC,
    match_patterns,
    render_pattern,
    select_acls,
    select_groups,
    select_topics,
    select_users,
)

if TYPE_CHECKING:
    import pyarrow as pa

HIGH, MEDIUM, LOW = "high", "medium", "low"
_RISK = {
    "Read": MEDIUM,
    "IdempotentWrite": MEDIUM,
    "TwoPhaseCommit": MEDIUM,
    "Describe": LOW,
    "DescribeConfigs": LOW,
    "DescribeTokens": LOW,
}
"""Operation -> how bad it is if too many can do it. All others: HIGH."""
_ACL, _QUOTA = "kafka_acl", "kafka_quota"
_SEEN_BY = {"Topic": TOPIC, "Group": GROUP_USAGE}
"""Resource type -> the kind of live rows that lists its resources."""
_REASONS = {
    "given": "another ACL already says this: ",
    "denied": "it allows nothing, because of ",
}
_SHADOWS = (
    "cluster string, key string, resource string, principal string, owner string, "
    "reason string, by string"
)
_CASE = "struct<finding:string,severity:string,detail:string>"
_COLUMNS = ("cluster", "finding", "severity", "subject", "resource", "principal", "detail", "owner")


def build(frames: Frames, context: BuildContext) -> DataFrame:
    """Return the rows of `grant_findings`. Inputs: live, cluster."""
    live, clusters, register = frames["live"], frames["cluster"], context.register
    rules = _describe_acls(select_acls(live), register)
    facts = _collect_facts(clusters, rules, live)
    findings = (
        _find_broad(rules, facts, register.settings.short_prefix),
        _find_shadowed(rules),
        _find_unmatched(rules, live, clusters),
        _find_strangers(rules, facts, register),
        _find_ownerless_quotas(live, facts, register),
        _find_open_clusters(clusters),
    )
    return reduce(DataFrame.unionByName, findings).select(*TABLES["grant_findings"].names)


def _collect_facts(clusters: DataFrame, rules: DataFrame, live: DataFrame) -> DataFrame:
    """Return a row per cluster: super_users; logins, the principals with a SCRAM credential, and
    named, those of ACLs, each null if not all were seen; held, the principals with ALLOWs for
    single hosts."""
    logins = select_users(live).groupBy("cluster").agg(F.collect_set("principal").alias("logins"))
    single = (F.col("permission") == ALLOW) & (F.col("host") != EVERYTHING)
    restricted = (
        rules.where(single).groupBy("cluster").agg(F.collect_set("principal").alias("held"))
    )
    named = rules.groupBy("cluster").agg(F.collect_set("principal").alias("named"))
    rows = clusters
    for facts in (logins, restricted, named):
        rows = rows.join(facts, "cluster", how="left")
    no_names = F.array().cast("array<string>")
    return rows.select(
        "cluster",
        F.coalesce("super_users", no_names).alias("super_users"),
        F.when(_is_complete(SCRAM), F.coalesce("logins", no_names)).alias("logins"),
        F.when(_is_complete(_ACL), F.coalesce("named", no_names)).alias("named"),
        F.coalesce("held", no_names).alias("held"),
    )


def _describe_acls(rules: DataFrame, register: Register) -> DataFrame:
    """Add `resource`, as people write it, and the owner of the principal."""
    words = {kind: word for word, kind in SPELLED.items()}
    resource = F.concat(_choose_value("resource_type", words), F.lit("/"), render_pattern())
    owner = F.coalesce(_owner_of(register), "owner")
    return rules.withColumns({"resource": resource, "owner": owner})


def _owner_of(register: Register) -> Column:
    """Return the owner of a principal: the first one in fleet.hcl that names it."""
    owners = {
        principal: owner.name
        for owner in reversed(register.owners)
        for principal in owner.principals
    }
    return _choose_value("principal", owners)


def _choose_value(column: str, values: dict[str, str]) -> Column:
    """Look the column up in a dictionary; null if it is not there."""
    literals = [F.lit(text) for text in chain.from_iterable(values.items())]
    if not literals:
        return F.lit(None).cast("string")
    return F.try_element_at(F.create_map(*literals), F.col(column))


def _explode_cases(rows: DataFrame, subject: str, cases: Iterable[Column]) -> DataFrame:
    """Return each row once per case that applies. rows: cluster, resource, principal, owner."""
    exploded = rows.withColumn("found", F.explode(F.array_compact(F.array(*cases))))
    return exploded.select("*", "found.*").withColumn("subject", F.col(subject)).select(*_COLUMNS)


def _make_case(
    finding: str, condition: Column, severity: Column | str, detail: Column | str
) -> Column:
    """Return the finding if the condition is true, else null."""
    words = {"finding": finding, "severity": severity, "detail": detail}
    columns = {k: F.lit(v) if isinstance(v, str) else v for k, v in words.items()}
    case = F.struct(*(value.alias(name) for name, value in columns.items()))
    # cast: Sail rejects arrays of structs that differ in what may be null.
    return F.when(condition, case.cast(_CASE))


# ── too much ────────────────────────────────────────────────────────────────────────────


def _find_broad(rules: DataFrame, facts: DataFrame, short: int) -> DataFrame:
    """Return ALLOWs for everybody, of everything, on everything, on short prefixes, or from
    everywhere. An empty prefix is everything. `any_host` is found only for principals that other
    ALLOWs restrict to single hosts: otherwise it would be found for every ACL."""
    operation, name, principal = F.col("operation"), F.col("name"), F.col("principal")
    prefixed, width = F.col("pattern_type") == PREFIXED, F.length("name")
    risk = F.coalesce(_choose_value("operation", _RISK), F.lit(HIGH))
    cluster = F.when(F.col("resource_type") == "Cluster", HIGH).otherwise(MEDIUM)
    everybody = principal == EVERYBODY
    everything = F.when(prefixed, width == 0).otherwise(name == EVERYTHING)
    # Everybody on everything is as bad as it gets, even if a single right is harmless.
    of_everybody = F.when(risk == LOW, MEDIUM).otherwise(HIGH)
    risk = F.when(everybody & everything, of_everybody).otherwise(risk)
    loose = (F.col("host") == EVERYTHING) & ~everybody & F.array_contains("held", principal)
    is_for = F.concat(operation, F.lit(" is for every"))
    topics = (F.col("resource_type") == "Cluster") & operation.isin(sorted(EVERY_TOPIC))
    prefix_detail = F.concat(F.lit("the prefix has "), width.cast("string"), F.lit(" characters"))
    cases = (
        _make_case("any_principal", everybody, risk, F.concat(is_for, F.lit("body"))),
        _make_case("any_operation", operation == ALL, cluster, "every operation is allowed"),
        _make_case(
            "any_resource", everything, risk, F.concat(is_for, F.lit(" resource of the type"))
        ),
        _make_case("any_resource", ~everything & topics, risk, F.concat(is_for, F.lit(" topic"))),
        _make_case("short_prefix", prefixed & width.between(1, short), MEDIUM, prefix_detail),
        _make_case("any_host", loose, LOW, "other ACLs hold the principal to single hosts"),
    )
    rows = rules.where(F.col("permission") == ALLOW).join(facts, "cluster", how="inner")
    return _explode_cases(rows, "key", cases)


# ── nothing ─────────────────────────────────────────────────────────────────────────────


def _find_shadowed(rules: DataFrame) -> DataFrame:
    """Return ACLs that change nothing."""
    # One cluster per call: Arrow's batch size does not bound a group, so a cluster must fit into a
    # worker.
    rows = rules.groupBy("cluster").applyInArrow(_list_shadows, _SHADOWS)
    detail = F.concat(_choose_value("reason", _REASONS), F.col("by"))
    return _explode_cases(rows, "key", [_make_case("shadowed", F.lit(True), LOW, detail)])


def _list_shadows(rules: pa.Table) -> pa.Table:
    """Return the shadowed ACLs as rows of _SHADOWS."""
    shadows = acl_masks.find_shadows(rules)
    rows = rules.take(pc.index_in(shadows["key"], rules["key"]))
    for name in ("reason", "by"):
        rows = rows.append_column(name, shadows[name])
    return rows.select([column.split()[0] for column in _SHADOWS.split(", ")])


def _find_unmatched(rules: DataFrame, live: DataFrame, clusters: DataFrame) -> DataFrame:
    """Return ACLs about topics or groups that do not exist. The right to create a topic comes
    before the topic, so Create is exempt."""
    everything = F.when(F.col("pattern_type") == LITERAL, EVERYTHING).otherwise("")
    useful = (F.col("name") != everything) & (F.col("operation") != "Create")
    type_key = ["cluster", "resource_type"]
    # An unread list of topics must not turn every ACL into "matches nothing".
    judged = rules.where(useful).join(_list_seen_types(clusters), type_key, how="left_semi")
    patterns = judged.select(*type_key, "pattern_type", F.col("name").alias("pattern")).distinct()
    names = _add_type("Topic", select_topics(live)).unionByName(
        _add_type("Group", select_groups(live))
    )
    used = match_patterns(patterns, names).drop("name").withColumnRenamed("pattern", "name")
    # left_anti after an equality join: patterns that matched no name.
    unmatched = judged.join(used, [*type_key, "pattern_type", "name"], how="left_anti")
    kind = F.lower("resource_type")
    detail = F.concat(F.lit("there is no "), kind, F.lit(" that it is about"))
    return _explode_cases(
        unmatched, "key", [_make_case("matches_nothing", F.lit(True), LOW, detail)]
    )


def _add_type(resource_type: str, names: DataFrame) -> DataFrame:
    return names.select("cluster", F.lit(resource_type).alias("resource_type"), "name")


def _list_seen_types(clusters: DataFrame) -> DataFrame:
    """Return cluster and resource_type of what was read completely."""
    types = F.array(
        *(
            F.when(_is_complete(kind), F.lit(resource_type))
            for resource_type, kind in _SEEN_BY.items()
        )
    )
    return clusters.select("cluster", F.explode(F.array_compact(types)).alias("resource_type"))


def _is_complete(kind: str) -> Column:
    return F.coalesce(F.try_element_at("coverage", F.lit(kind)) == "complete", F.lit(False))


# ── who ─────────────────────────────────────────────────────────────────────────────────


def _find_strangers(rules: DataFrame, facts: DataFrame, register: Register) -> DataFrame:
    """Return principals of ACLs that nobody declares and that have no SCRAM credential, and those
    that an owner declares but that cannot log in.

    In a cluster without SCRAM users, nobody is unknown if the register names no principals, because
    nothing tells who is known. There, `no_login` is not found either: clients log in otherwise.
    """
    owned = {name for owner in register.owners for name in owner.principals}
    declared = {*owned, *register.principals}
    principal, scram = F.col("principal"), F.size("logins") > 0
    is_declared = principal.isin(sorted(declared)) | F.array_contains("super_users", principal)
    judged = scram | F.lit(bool(declared))
    user = principal.isin(sorted(owned)) & principal.startswith("User:")
    cases = (
        _make_case(
            "unknown_principal",
            judged & ~is_declared,
            MEDIUM,
            "it has ACLs, and nobody declares it",
        ),
        _make_case("no_login", scram & user, LOW, "it has ACLs, and no SCRAM user"),
    )
    named = rules.where(principal != EVERYBODY).select("cluster", "principal").distinct()
    # array_contains is null for null logins, and `~null` drops the row: not all logins were seen.
    rows = named.join(facts, "cluster", how="inner").where(~F.array_contains("logins", principal))
    columns = {"owner": _owner_of(register), "resource": F.lit("")}
    return _explode_cases(rows.withColumns(columns), "principal", cases)


def _find_ownerless_quotas(live: DataFrame, facts: DataFrame, register: Register) -> DataFrame:
    """Return quotas of a user that has no SCRAM credential and no ACL, and that nobody declares.
    Nothing tells which client ids exist, so quotas of client ids alone are never found."""
    declared = {
        *(name for owner in register.owners for name in owner.principals),
        *register.principals,
    }
    user = F.col("attrs")["entity.user"]
    quotas = live.where((F.col("kind") == _QUOTA) & user.isNotNull()).select(
        *("cluster", "key", "owner"),
        F.concat(F.lit("User:"), user).alias("principal"),
        F.lit("").alias("resource"),
    )
    principal = F.col("principal")
    is_declared = principal.isin(sorted(declared)) | F.array_contains("super_users", principal)
    exists = F.array_contains("logins", principal) | F.array_contains("named", principal)
    # As for strangers: without users and declarations, clients log in otherwise. `~null` is null:
    # not all logins or ACLs were seen.
    judged = (F.size("logins") > 0) | F.lit(bool(declared))
    case = _make_case(
        "quota_of_nobody",
        judged & ~is_declared & ~exists,
        LOW,
        "its user has no SCRAM credential and no ACL, and nobody declares it",
    )
    return _explode_cases(quotas.join(facts, "cluster", how="inner"), "key", [case])


def _find_open_clusters(clusters: DataFrame) -> DataFrame:
    """Return clusters in which everybody may use what has no ACL."""
    detail = "everybody can do everything with what has no ACL"
    case = _make_case("open_by_default", F.col("allow_if_no_acl"), HIGH, detail)
    about = {"principal": F.lit(EVERYBODY), "resource": F.lit("")}
    return _explode_cases(clusters.withColumns(about), "principal", [case])
