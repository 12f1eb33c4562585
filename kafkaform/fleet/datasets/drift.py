"""Declared, recorded and live, object by object: what differs, in which way, since when.

The class of an object follows from who has it, where all three have it from which of them are
equal. Who has it is three-valued: a live object is absent only where a complete sweep of its kind
did not show it, and unmanaged only if no state or configuration that could not be read may hold
it. Everything else is `unknown`, which is never counted as in sync or as gone.

An attribute is compared where both sides show it: blocks have switches that no cluster shows
(`config_mode`), and clusters do not show all that was sent. Where one side is silent, the other
speaks for it. Entries of `config` are always compared: an empty map leaves no trace in a row.
What a block's lifecycle leaves to others is not in the tables, so it counts as any attribute.

If several states have an object, it is judged by one of them: by one that declares and records
it, else one that declares it, else one whose configuration is known; by name among equals.
"""

from __future__ import annotations

from functools import reduce

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, Window

from ...core.landing import CLUSTER, GROUP_USAGE, TOPIC_USAGE
from ..landed.register import Register
from ..tables.dataset import BuildContext, Frames
from ..tables.definitions import TABLES
from .attribution import INTERNAL
from .owners import owner_by_name

KEY = ("cluster", "kind", "key")
PRESENT, ABSENT = "present", "absent"
"""desired, state and live of the row that is about the object as a whole; null: unknown."""

NEVER_DECLARED = (CLUSTER, TOPIC_USAGE, GROUP_USAGE)
READ = ("read", "partial")
"""Status of clusters whose rows tell how things are now."""

IN_SYNC, UNKNOWN, UNDECLARED = "in_sync", "unknown", "undeclared_override"
BY_PRESENCE = {
    (True, False, False): "pending_create",
    (True, False, True): "unadopted",
    (True, True, False): "deleted_out_of_band",
    (False, True, True): "pending_delete",
    (False, False, True): "unmanaged",
    (False, True, False): "stale_state",
}
"""(declared, recorded, live) -> class. All three: `_classify_values`; none of them: no object."""

_ROWS = "array<struct<path:string,desired:string,state:string,live:string,drift_class:string>>"
_JUDGED = (
    "array<struct<path:string,desired:string,state:string,live:string,"
    "ds:boolean,dl:boolean,sl:boolean>>"
)


def build(frames: Frames, context: BuildContext) -> DataFrame:
    """The rows of `drift`: one of each object (path ""), one of each path that differs, and one of
    each live override outside of its block.

    Inputs: desired, recorded, live, cluster, lineage, and drift as the build before made it, whose
    first_seen lasts as long as the class does; a build with `unknown` between is a break. as_of:
    the newest capture that the row rests on; of a cluster that is not readable now, the build's.
    """
    objects = _join_objects(frames, context).withColumn("_paths", _find_differing())
    rows = objects.withColumn("drift_class", _classify_object()).withColumn(
        "_row", F.explode(F.concat(_make_object_rows(), _make_path_rows(), _make_undeclared_rows()))
    )
    rows = rows.drop("drift_class").select("*", "_row.*")
    before = frames["drift"].select(*KEY, "path", "drift_class", F.col("first_seen").alias("_was"))
    dated = rows.join(before, [*KEY, "path", "drift_class"], how="left")
    return dated.withColumn("first_seen", F.coalesce("_was", "as_of")).select(
        *TABLES["drift"].names
    )


def build_daily(frames: Frames, context: BuildContext) -> DataFrame:
    """The rows of `drift_daily` for the day of as_of, from `drift`: objects of each class, and
    objects with undeclared overrides. oldest: the first first_seen among them.

    Given the drift of all clusters, it counts them all, whichever something new is about; a
    second build on the same day replaces the rows of that day.
    """
    is_object, is_override = F.col("path") == "", F.col("drift_class") == UNDECLARED
    # An object has one row of its own, but may have several overrides.
    overridden = F.count_distinct(F.when(is_override, F.col("key")))
    return (
        frames["drift"]
        .where(is_object | is_override)
        .groupBy("cluster", "kind", "drift_class")
        .agg(
            (F.count_if(is_object) + overridden).alias("objects"),
            F.min("first_seen").alias("oldest"),
        )
        .withColumn("day", F.lit(context.as_of.date()))
        .select(*TABLES["drift_daily"].names)
    )


# ── who has it ──────────────────────────────────────────────────────────────────────────


def _join_objects(frames: Frames, context: BuildContext) -> DataFrame:
    """One row per object. has_d, has_s, has_l: declared, recorded, live, null: unknown; d, s, l:
    the attributes of each that certainly has it."""
    live = frames["live"].where(~F.col("kind").isin(*NEVER_DECLARED))
    live = live.select(*KEY, F.col("attrs").alias("l"), F.col("owner").alias("l_owner"))
    facts = F.broadcast(_select_clusters(frames, context))
    joined = _join_ours(frames).join(live, [*KEY], how="full").join(facts, "cluster", how="left")
    own = F.coalesce(F.try_element_at("l", F.lit(INTERNAL)) == "true", F.lit(False))
    joined = joined.where(F.col("lineage").isNotNull() | ~own)
    is_read, coverage = F.coalesce("is_read", F.lit(False)), F.try_element_at("coverage", "kind")
    is_free = F.col("lineage").isNull() & ~F.coalesce("doubtful", F.lit(False))
    shown = is_read & coverage.isin("complete", "visible_only")
    return joined.select(
        *KEY,
        "lineage",
        "address",
        F.coalesce("owner", "l_owner", owner_by_name(context.register)).alias("owner"),
        F.when(is_read, F.greatest("d_at", "s_at", "captured_at"))
        .otherwise(F.lit(context.as_of))
        .alias("as_of"),
        _has_side("d", F.col("desired_known") | is_free).alias("has_d"),
        _has_side("s", F.col("state_at").isNotNull() | is_free).alias("has_s"),
        F.when(F.col("l").isNotNull(), F.when(shown, F.lit(True)))
        .when(is_read & (coverage == "complete"), F.lit(False))
        .alias("has_l"),
        "d",
        "s",
        F.when(shown, F.col("l")).alias("l"),
    )


def _has_side(side: str, known: Column) -> Column:
    return F.when(F.col(side).isNotNull(), F.lit(True)).when(known, F.lit(False))


def _join_ours(frames: Frames) -> DataFrame:
    """Declared and recorded objects, each from one state."""
    desired = frames["desired"].select(*KEY, "lineage", *_rename_columns("d"))
    recorded = frames["recorded"].select(*KEY, "lineage", *_rename_columns("s"))
    known = F.broadcast(frames["lineage"].select("lineage", "desired_known", "state_at"))
    both = desired.join(recorded, [*KEY, "lineage"], how="full").join(known, "lineage", how="left")
    has_d, has_s = F.col("d").isNotNull(), F.col("s").isNotNull()
    rank = F.when(has_d & has_s, 0).when(has_d, 1).when(F.col("desired_known"), 2).otherwise(3)
    order = Window.partitionBy(*KEY).orderBy(rank, "lineage")
    return (
        both.withColumn("_rank", F.row_number().over(order))
        .where(F.col("_rank") == 1)
        .withColumn("address", F.coalesce("d_address", "s_address"))
        .withColumn("owner", F.coalesce("d_owner", "s_owner"))
        .drop("_rank", "d_address", "s_address", "d_owner", "s_owner")
    )


def _rename_columns(side: str) -> tuple[Column, ...]:
    return (
        F.col("attrs").alias(side),
        F.col("address").alias(f"{side}_address"),
        F.col("owner").alias(f"{side}_owner"),
        F.col("captured_at").alias(f"{side}_at"),
    )


def _select_clusters(frames: Frames, context: BuildContext) -> DataFrame:
    """Per cluster: is_read, coverage, captured_at; doubtful: what nobody is seen to hold may be
    held by a state or configuration that could not be read."""
    cluster = frames["cluster"]
    doubtful = _find_doubtful(cluster, frames["lineage"], context.register)
    return cluster.select(
        "cluster", F.col("status").isin(*READ).alias("is_read"), "coverage", "captured_at"
    ).join(doubtful.withColumn("doubtful", F.lit(True)), "cluster", how="left")


def _find_doubtful(cluster: DataFrame, lineage: DataFrame, register: Register) -> DataFrame:
    """Names of the clusters that an unread state or configuration may reach. One without scopes
    may reach all, and so may a state that was never read."""
    if any(state.lineage is None for state in register.states):
        return cluster.select("cluster")
    unread = lineage.where(~F.col("desired_known") | F.col("state_at").isNull())
    reach = unread.select(F.explode_outer(F.map_values("scopes")).alias("scope")).distinct()
    hit = F.col("scope").isNull() | F.col("cluster_id").isNull()
    hit |= F.col("scope") == F.col("cluster_id")
    return cluster.join(reach, hit, how="left_semi").select("cluster")


# ── what differs ────────────────────────────────────────────────────────────────────────


def _find_differing() -> Column:
    """The compared paths on which two sides differ: path, the three values as they are, and
    whether they count as equal.

    What is written alike is not looked at twice: looking into maps costs a hundred times as much
    as comparing whole arrays, and almost all objects are in sync.
    """
    of_declared = F.filter(
        _list_keys("d"), lambda p: _is_unlike("d", "s", p) | _is_unlike("d", "l", p)
    )
    of_others = F.filter(
        F.array_union(_list_keys("s"), _list_keys("l")), lambda p: _is_unlike("s", "l", p)
    )
    judged = F.transform(
        F.when(F.col("d").isNotNull(), of_declared).otherwise(of_others), _judge_path
    )
    differing = F.filter(judged, lambda it: ~(it["ds"] & it["dl"]))
    is_alike = _is_alike("d", "s") & _is_alike("d", "l") & _is_alike("s", "l")
    return F.when(is_alike, F.array().cast(_JUDGED)).otherwise(differing)


def _is_alike(one: str, other: str) -> Column:
    """True if one of them does not have the object, or both have the same in the same order."""
    keys = F.map_keys(one) == F.map_keys(other)
    return F.coalesce(keys & (F.map_values(one) == F.map_values(other)), F.lit(True))


def _is_unlike(one: str, other: str, path: Column) -> Column:
    """True if both have the object, with another text at this path."""
    same = F.try_element_at(one, path).eqNullSafe(F.try_element_at(other, path))
    return F.col(one).isNotNull() & F.col(other).isNotNull() & ~same


def _judge_path(path: Column) -> Column:
    declared, recorded, live = (F.try_element_at(side, path) for side in "dsl")
    shows_s, shows_l = _shows("s", path), _shows("l", path)
    state = F.when(shows_s, recorded).when(shows_l, live).otherwise(declared)
    there = F.when(shows_l, live).when(shows_s, recorded).otherwise(declared)
    code = F.when(F.col("d").isNotNull(), declared).otherwise(state)
    return F.struct(
        path.alias("path"),
        declared.alias("desired"),
        recorded.alias("state"),
        live.alias("live"),
        code.eqNullSafe(state).alias("ds"),
        code.eqNullSafe(there).alias("dl"),
        state.eqNullSafe(there).alias("sl"),
    )


def _list_keys(side: str) -> Column:
    return F.coalesce(F.map_keys(side), F.array().cast("array<string>"))


def _shows(side: str, path: Column) -> Column:
    """True if this side has the object and says something about the path's attribute."""
    heads = F.transform(_list_keys(side), _get_head)
    is_shown = (_get_head(path) == "config") | F.array_contains(heads, _get_head(path))
    return F.col(side).isNotNull() & is_shown


def _get_head(path: Column) -> Column:
    return F.substring_index(path, ".", 1)


def _classify_object() -> Column:
    all_three = F.col("has_d") & F.col("has_s") & F.col("has_l")
    ds, dl, sl = (_holds_everywhere(name) for name in ("ds", "dl", "sl"))
    by_values = F.when(F.coalesce(all_three, F.lit(False)), _classify_values(ds, dl, sl))
    return reduce(
        lambda chain, item: chain.when(_is_so(item[0]), F.lit(item[1])),
        BY_PRESENCE.items(),
        by_values,
    ).otherwise(F.lit(UNKNOWN))


def _holds_everywhere(name: str) -> Column:
    return F.forall("_paths", lambda it: it[name])


def _is_so(presence: tuple[bool, bool, bool]) -> Column:
    sides = zip(("has_d", "has_s", "has_l"), presence, strict=True)
    return reduce(Column.__and__, (F.col(side).eqNullSafe(F.lit(has)) for side, has in sides))


def _classify_values(ds: Column, dl: Column, sl: Column) -> Column:
    return (
        F.when(ds & dl, F.lit(IN_SYNC))
        .when(ds, F.lit("drifted"))
        .when(dl, F.lit("state_behind"))
        .when(sl, F.lit("pending_update"))
        .otherwise(F.lit("conflict"))
    )


# ── the rows ────────────────────────────────────────────────────────────────────────────


def _make_object_rows() -> Column:
    words = (_presence_word("has_d"), _presence_word("has_s"), _presence_word("has_l"))
    return F.array(_make_row(F.lit(""), words, F.col("drift_class")))


def _presence_word(has: str) -> Column:
    return F.when(F.col(has), F.lit(PRESENT)).when(~F.col(has), F.lit(ABSENT))


def _make_path_rows() -> Column:
    """Where all three have the object, each path has the class of its own values."""
    has_all = F.coalesce(F.col("has_d") & F.col("has_s") & F.col("has_l"), F.lit(False))
    return F.transform(
        "_paths",
        lambda it: _make_row(
            it["path"],
            (it["desired"], it["state"], it["live"]),
            F.when(has_all, _classify_values(it["ds"], it["dl"], it["sl"])).otherwise(
                F.col("drift_class")
            ),
        ),
    )


def _make_undeclared_rows() -> Column:
    """Live overrides of a declared object that its block does not name."""
    foreign = F.filter(
        _list_keys("l"),
        lambda path: (
            F.col("d").isNotNull() & path.startswith("config.") & ~F.map_contains_key("d", path)
        ),
    )
    rows = F.transform(
        foreign,
        lambda path: _make_row(
            path,
            (F.lit(None).cast("string"), F.try_element_at("s", path), F.try_element_at("l", path)),
            F.lit(UNDECLARED),
        ),
    )
    return F.when(_is_alike("d", "l"), F.array().cast(_ROWS)).otherwise(rows)


def _make_row(path: Column, values: tuple[Column, Column, Column], drift_class: Column) -> Column:
    """All of one type: a cast of each row would take longer than all the rest."""
    desired, state, live = values
    return F.struct(
        path.alias("path"),
        desired.alias("desired"),
        state.alias("state"),
        live.alias("live"),
        drift_class.alias("drift_class"),
    )
