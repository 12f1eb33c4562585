"""Compute which quota limits whom: Kafka's eight levels, for every known user and client id.

The provider's `kinds.quota.levels` defines the order of the levels and who shares a limit. Quotas
of `ip` are not included: they limit connections, whoever makes them.
"""

from __future__ import annotations

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

from kafkaform_kafka.kinds.quota.limits import CLIENT_ID, LEVELS, USER, EntityPart, Level

from ..tables.definitions import TABLES, BuildContext, Frames

_ACL, _QUOTA, _SCRAM = "kafka_acl", "kafka_quota", "kafka_user_scram_credential"
_CONFIG = "config."
_PRINCIPAL = "User:"
_ANY_OTHER = ""
"""As a user or client id: any that no row names."""
_SIDES = {USER: "user", CLIENT_ID: "client_id"}
"""Part of an entity -> column."""
_WIN = ("value", "level", "entity", "shared_scope")
"""The members of `win`, the level that applies."""
_QUOTA_KEY = ("cluster", "user", "client_id", "quota_key")


def build(frames: Frames, _: BuildContext) -> DataFrame:
    """Return the rows of `effective_quotas`, from `live` and `cluster`.

    One row for each user (of a SCRAM credential, a quota or an ACL), each client id (of a quota)
    and each quota key that some quota of the cluster sets. An empty name means any other user or
    client id. `entity` and `shared_scope` are empty if nothing limits, and if a callback in the
    brokers decides; then value and level are null, too.
    """
    live = frames["live"]
    quotas = _select_quotas(live)
    attrs, kind = F.col("attrs"), F.col("kind")
    principal = F.when(kind == _ACL, attrs["acl_principal"])
    name = F.when(kind == _SCRAM, attrs["username"]).when(
        # `User:*` is not a user: quotas of everybody are the default entity.
        principal.startswith(_PRINCIPAL) & (principal != f"{_PRINCIPAL}*"),
        F.substring(principal, len(_PRINCIPAL) + 1, 1_000_000),
    )
    live_users = live.where(kind.isin(_ACL, _SCRAM)).select("cluster", name.alias("user"))
    all_users = live_users.unionByName(quotas.select("cluster", "user"))
    client_ids = _add_any_other(quotas.select("cluster", "client_id"), quotas, "client_id")
    # Users by client ids by keys: within one cluster these are few, so the product stays small.
    users = _add_any_other(all_users, quotas, "user").join(client_ids, ["cluster"], "inner")
    limits = _list_limits(quotas)
    user_keys = users.join(limits.select("cluster", "quota_key").distinct(), ["cluster"], "inner")
    callbacks = frames["cluster"].select("cluster", "quota_callback")
    rows = user_keys.join(_find_applying(users, limits), list(_QUOTA_KEY), "left")
    judged = rows.join(callbacks, ["cluster"], "left")
    evaluable = F.col("quota_callback").isNull()
    # A callback replaces Kafka's rules altogether; a limit computed by them would be wrong.
    # By member: Sail finds the members of a struct that `when` has made null.
    win = {name: F.when(evaluable, F.col(f"win.{name}")) for name in _WIN}
    texts = {name: F.coalesce(win[name], F.lit("")) for name in ("entity", "shared_scope")}
    return judged.withColumns({**win, **texts, "evaluable": evaluable}).select(
        *TABLES["effective_quotas"].names
    )


def _select_quotas(live: DataFrame) -> DataFrame:
    """Return cluster, key, user, client_id and attrs, one row per entity. Names are attributes;
    default parts appear in the key only."""
    object_key, attrs = F.col("key"), F.col("attrs")
    address = (object_key == "ip") | object_key.startswith("ip=")
    return live.where((F.col("kind") == _QUOTA) & ~address).select(
        "cluster",
        "key",
        attrs["entity.user"].alias("user"),
        attrs["entity.client-id"].alias("client_id"),
        "attrs",
    )


def _list_limits(quotas: DataFrame) -> DataFrame:
    """Return cluster, key, quota_key and value, one row per quota key of an entity; value is null
    if it is not a number."""
    settings = quotas.select("cluster", "key", F.explode("attrs").alias("name", "text"))
    return settings.where(F.col("name").startswith(_CONFIG)).select(
        *("cluster", "key", F.substring("name", len(_CONFIG) + 1, 1_000).alias("quota_key")),
        # try_cast: a value that is not a number is no limit, and must not fail the build.
        F.col("text").try_cast("double").alias("value"),
    )


def _add_any_other(names: DataFrame, quotas: DataFrame, column: str) -> DataFrame:
    any_other = quotas.select("cluster", F.lit(_ANY_OTHER).alias(column))
    return names.where(F.col(column).isNotNull()).unionByName(any_other).distinct()


# -- levels


def _find_applying(users: DataFrame, limits: DataFrame) -> DataFrame:
    """Return _QUOTA_KEY and `win`, the level that applies: one row each, none if nothing limits. An
    entity is one object with one key, so a level is found at most once."""
    level = F.explode(F.array(*map(_make_level, LEVELS))).alias("level")
    levels = (
        users.select("*", level)
        .withColumn("key", F.col("level.key"))
        # Eight keys are computed per pair and joined by equality. Eight left joins, one per level,
        # would read the quotas eight times.
        .join(limits.where(F.col("value").isNotNull()), ["cluster", "key"], "inner")
    )
    # The minimum of a struct goes by its first field: the lowest level wins, as in Kafka.
    first = F.min(F.struct("level.level", "value", "level.entity", "level.shared_scope"))
    return levels.groupBy(*_QUOTA_KEY).agg(first.alias("win"))


def _make_level(level: Level) -> Column:
    # The key of this level's entity, as the provider writes it: `user=ci|client-id`. Keys escape
    # `\` and `|` as the provider does, or users with such names would never match.
    names = {
        kind: F.replace(
            F.replace(F.col(column), F.lit("\\"), F.lit("\\\\")), F.lit("|"), F.lit("\\|")
        )
        for kind, column in _SIDES.items()
    }
    words = [
        F.lit(kind)
        if entity_part is EntityPart.DEFAULT
        else F.concat(F.lit(f"{kind}="), names[kind])
        for kind, entity_part in _list_parts(level)
    ]
    # Worded like `levels.entity_text`.
    entity_words = [
        F.lit(f"default {kind}")
        if entity_part is EntityPart.DEFAULT
        else F.concat(F.lit(f"{kind} "), F.col(_SIDES[kind]))
        for kind, entity_part in _list_parts(level)
    ]
    return F.struct(
        F.lit(level.number).alias("level"),
        F.concat_ws("|", *words).alias("key"),
        F.concat_ws(", ", *entity_words).alias("entity"),
        _describe_sharers(level).alias("shared_scope"),
    )


def _list_parts(level: Level) -> list[tuple[str, EntityPart]]:
    entity = ((USER, level.user), (CLIENT_ID, level.client_id))
    return [
        (kind, entity_part) for kind, entity_part in entity if entity_part is not EntityPart.NONE
    ]


def _describe_sharers(level: Level) -> Column:
    """Worded like `levels.sharers_text`. A default entity is a template: each name that it
    covers has a separate limit."""
    user, client_id = _describe_one(USER), _describe_one(CLIENT_ID)
    if level.user is EntityPart.NONE:
        return F.concat(F.lit("anybody with "), client_id)
    if level.client_id is EntityPart.NONE:
        return F.concat(F.lit("any client of "), user)
    return F.concat(user, F.lit(" with "), client_id)


def _describe_one(kind: str) -> Column:
    name = F.col(_SIDES[kind])
    default_text = F.lit(f"one other {kind}")
    return F.when(name == _ANY_OTHER, default_text).otherwise(F.concat(F.lit(f"{kind} "), name))
