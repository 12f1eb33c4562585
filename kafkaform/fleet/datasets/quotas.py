"""Compute which quota limits whom: Kafka's eight levels, for every known user and client id.

The provider's `kinds.quota.levels` defines the order of the levels and who shares a limit. Quotas
of `ip` are not included: they limit connections, whoever makes them.
"""

from __future__ import annotations

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

from kafkaform_kafka.kinds.quota.limits import CLIENT_ID, LEVELS, USER, EntityPart, Level

from ..tables.dataset import BuildContext, Frames
from ..tables.definitions import TABLES

_ACL, _QUOTA, _SCRAM = "kafka_acl", "kafka_quota", "kafka_user_scram_credential"
_CONFIG = "config."
_PRINCIPAL = "User:"
_NOBODY = ""
"""As a user or client id: any that no row names."""
_SIDES = {USER: "user", CLIENT_ID: "client_id"}
"""Part of an entity -> column."""
_ASKED = ("cluster", "user", "client_id", "quota_key")


def build(frames: Frames, _: BuildContext) -> DataFrame:
    """Return the rows of `effective_quotas`, from `live` and `cluster`.

    One row for each user (of a SCRAM credential, a quota or an ACL), each client id (of a quota)
    and each quota key that some quota of the cluster sets. An empty name stands for any other user
    or client id. `entity` and `shared_scope` are empty if nothing limits, and if a callback in the
    brokers decides; then value and level are null, too.
    """
    live = frames["live"]
    quotas = _select_quotas(live)
    # Users by client ids by keys: within one cluster these are few, so the product stays small.
    pairs = _select_users(live, quotas).join(_select_client_ids(quotas), ["cluster"], "inner")
    asked = pairs.join(_select_keys(quotas), ["cluster"], "inner")
    callbacks = frames["cluster"].select("cluster", "quota_callback")
    rows = asked.join(_find_applying(pairs, quotas), list(_ASKED), "left")
    judged = rows.join(callbacks, ["cluster"], "left")
    return _describe_rows(judged).select(*TABLES["effective_quotas"].names)


def _select_quotas(live: DataFrame) -> DataFrame:
    """Return cluster, key, user, client_id and limits (quota key -> value), one row per entity.
    Names are attributes; default parts appear in the key only."""
    key, attrs = F.col("key"), F.col("attrs")
    address = (key == "ip") | key.startswith("ip=")
    return live.where((F.col("kind") == _QUOTA) & ~address).select(
        "cluster",
        "key",
        attrs["entity.user"].alias("user"),
        attrs["entity.client-id"].alias("client_id"),
        _select_limits(attrs).alias("limits"),
    )


def _select_limits(attrs: Column) -> Column:
    kept = F.map_filter(attrs, lambda name, _: name.startswith(_CONFIG))
    short = F.transform_keys(kept, lambda name, _: F.substring(name, len(_CONFIG) + 1, 1_000))
    # try_cast: a value that is no number limits nobody, and must not fail the build.
    return F.transform_values(short, lambda _, value: value.try_cast("double"))


def _select_users(live: DataFrame, quotas: DataFrame) -> DataFrame:
    """Return cluster and user, each once, and the one that stands for any other."""
    attrs, kind = F.col("attrs"), F.col("kind")
    principal = F.when(kind == _ACL, attrs["acl_principal"])
    name = F.when(kind == _SCRAM, attrs["username"]).when(
        # `User:*` is no user: quotas of everybody are the default entity.
        principal.startswith(_PRINCIPAL) & (principal != f"{_PRINCIPAL}*"),
        F.substring(principal, len(_PRINCIPAL) + 1, 1_000_000),
    )
    seen = live.where(kind.isin(_ACL, _SCRAM)).select("cluster", name.alias("user"))
    return _add_nobody(seen.unionByName(quotas.select("cluster", "user")), quotas, "user")


def _select_client_ids(quotas: DataFrame) -> DataFrame:
    return _add_nobody(quotas.select("cluster", "client_id"), quotas, "client_id")


def _add_nobody(names: DataFrame, quotas: DataFrame, column: str) -> DataFrame:
    nobody = quotas.select("cluster", F.lit(_NOBODY).alias(column))
    return names.where(F.col(column).isNotNull()).unionByName(nobody).distinct()


def _select_keys(quotas: DataFrame) -> DataFrame:
    """Return cluster and quota_key, each once."""
    key = F.explode(F.map_keys("limits")).alias("quota_key")
    return quotas.select("cluster", key).distinct()


# -- levels


def _find_applying(pairs: DataFrame, quotas: DataFrame) -> DataFrame:
    """Return _ASKED and `win`, the level that applies: one row each, none if nothing limits. An
    entity is one object with one key, so a level is found at most once."""
    level = F.explode(F.array(*map(_make_level, LEVELS))).alias("level")
    limits = quotas.select("cluster", "key", F.explode("limits").alias("quota_key", "value"))
    found = (
        pairs.select("*", level)
        .withColumn("key", F.col("level.key"))
        # Eight keys are computed per pair and joined by equality. Eight left joins, one per level,
        # would read the quotas eight times.
        .join(limits.where(F.col("value").isNotNull()), ["cluster", "key"], "inner")
    )
    # The minimum of a struct goes by its first field: the lowest level wins, as in Kafka.
    first = F.min(F.struct("level.level", "value", "level.entity", "level.shared_scope"))
    return found.groupBy(*_ASKED).agg(first.alias("win"))


def _make_level(level: Level) -> Column:
    return F.struct(
        F.lit(level.number).alias("level"),
        _make_key(level).alias("key"),
        _describe_entity(level).alias("entity"),
        _describe_sharers(level).alias("shared_scope"),
    )


def _list_parts(level: Level) -> list[tuple[str, EntityPart]]:
    parts = ((USER, level.user), (CLIENT_ID, level.client_id))
    return [(kind, part) for kind, part in parts if part is not EntityPart.NONE]


def _make_key(level: Level) -> Column:
    """Return the key of this level's entity, as the provider writes it: `user=ci|client-id`."""
    words = [
        F.lit(kind)
        if part is EntityPart.DEFAULT
        else F.concat(F.lit(f"{kind}="), _escape_name(kind))
        for kind, part in _list_parts(level)
    ]
    return F.concat_ws("|", *words)


def _escape_name(kind: str) -> Column:
    # Keys escape `\` and `|` as the provider does, or users with such names would never match.
    doubled = F.replace(F.col(_SIDES[kind]), F.lit("\\"), F.lit("\\\\"))
    return F.replace(doubled, F.lit("|"), F.lit("\\|"))


def _describe_entity(level: Level) -> Column:
    """Worded like `levels.entity_text`."""
    words = [
        F.lit(f"default {kind}")
        if part is EntityPart.DEFAULT
        else F.concat(F.lit(f"{kind} "), F.col(_SIDES[kind]))
        for kind, part in _list_parts(level)
    ]
    return F.concat_ws(", ", *words)


def _describe_sharers(level: Level) -> Column:
    """Worded like `levels.sharers_text`. A default entity is a template: each name that it stands
    for has a limit of its own."""
    user, client_id = _describe_one(USER), _describe_one(CLIENT_ID)
    if level.user is EntityPart.NONE:
        return F.concat(F.lit("anybody with "), client_id)
    if level.client_id is EntityPart.NONE:
        return F.concat(F.lit("any client of "), user)
    return F.concat(user, F.lit(" with "), client_id)


def _describe_one(kind: str) -> Column:
    name = F.col(_SIDES[kind])
    other = F.lit(f"one other {kind}")
    return F.when(name == _NOBODY, other).otherwise(F.concat(F.lit(f"{kind} "), name))


def _describe_rows(rows: DataFrame) -> DataFrame:
    """Add what is said about the level that won."""
    evaluable = F.col("quota_callback").isNull()
    # A callback replaces Kafka's rules altogether; a limit computed by them would be wrong.
    judged = rows.withColumn("win", F.when(evaluable, F.col("win")))
    return judged.select(
        *(*_ASKED, "win.value", "win.level"),
        F.coalesce("win.entity", F.lit("")).alias("entity"),
        F.coalesce("win.shared_scope", F.lit("")).alias("shared_scope"),
        evaluable.alias("evaluable"),
    )
