"""Compare what is declared, recorded and live, object by object: what differs, how, since when.

The class of an object follows from who has it and, if all three have it, from which of them are
equal. Having is three-valued: a live object is absent only if a complete sweep of its kind did not
show it, and unmanaged only if no unread state or configuration may own it. Everything else is
`unknown`, which never counts as in sync or as deleted.

An attribute is compared where both sides show it: blocks have switches that no cluster shows
(`config_mode`), and clusters do not show everything that was sent. Where one side does not show it,
the other's value is used. Entries of `config` are always compared, because an empty map leaves no
trace in a row. The tables do not say which attributes a block's lifecycle ignores; a snapshot lands
those with their live value (`workflow.fleet.states`).

If several states have an object, one of them decides: first one that declares and records it, then
one that declares it, then one whose configuration is known; by name among equals.
"""

from __future__ import annotations

from functools import reduce

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, Window

from ...core.landing import CLUSTER, GROUP_USAGE, TOPIC_USAGE
from ..landed.register import Register
from ..tables.definitions import TABLES, BuildContext, Frames
from .history import is_internal
from .resources import owner_by_name

KEY = ("cluster", "kind", "key")
PRESENT, ABSENT = "present", "absent"
"""Values of desired, state and live in the row about the whole object. Null: unknown."""

NEVER_DECLARED = (CLUSTER, TOPIC_USAGE, GROUP_USAGE)
READ_STATUSES = ("read", "partial")
"""Status of clusters whose rows tell how they are now."""

IN_SYNC, UNKNOWN, UNDECLARED = "in_sync", "unknown", "undeclared_override"
BY_PRESENCE = {
    (True, False, False): "pending_create",
    (True, False, True): "unadopted",
    (True, True, False): "deleted_out_of_band",
    (False, True, True): "pending_delete",
    (False, False, True): "unmanaged",
    (False, True, False): "stale_state",
}
"""(declared, recorded, live) -> class. All three: `_classify_values`. None of them: no object."""

_ROWS = "array<struct<path:string,desired:string,state:string,live:string,drift_class:string>>"
_JUDGED_PATHS = (
    "array<struct<path:string,desired:string,state:string,live:string,"
    "ds:boolean,dl:boolean,sl:boolean>>"
)


def build(frames: Frames, context: BuildContext) -> DataFrame:
    """Return the rows of `drift`: one per object (path ""), one per path that differs, and one per
    live override that its block does not declare.

    Inputs: desired, recorded, live, cluster, lineage, and the previous drift. first_seen stays as
    long as the class does; a build with `unknown` in between is a break. as_of: the newest capture
    that the row rests on; for a cluster that is not readable now, the build's.
    """
    objects = _join_objects(frames, context).withColumn("_paths", _find_differing())
    # Null where one side is unknown; `when` takes null for false, but say so.
    has_all = F.coalesce(F.col("has_d") & F.col("has_s") & F.col("has_l"), F.lit(False))
    made = F.array(_make_object_rows(), _make_path_rows(has_all), _make_undeclared_rows())
    # `flatten`: Sail's `concat` rejects arrays that differ in what may be null.
    rows = objects.withColumn("drift_class", _classify_object(has_all)).withColumn(
        "_row", F.explode(F.flatten(made))
    )
    rows = rows.drop("drift_class").select("*", "_row.*")
    # By class: an object that was `unknown` in between starts again, since its drift was not seen.
    before = frames["drift"].select(*KEY, "path", "drift_class", F.col("first_seen").alias("_was"))
    dated = rows.join(before, [*KEY, "path", "drift_class"], how="left")
    return dated.withColumn("first_seen", F.coalesce("_was", "as_of")).select(
        *TABLES["drift"].names
    )


def build_daily(frames: Frames, context: BuildContext) -> DataFrame:
    """Return the rows of `drift_daily` for the day of as_of: objects per class, and objects with
    undeclared overrides. oldest: the first first_seen among them.

    `drift` must be that of all clusters, even if few have new input. A second build on the same day
    replaces the day's rows.
    """
    is_object, is_override = F.col("path") == "", F.col("drift_class") == UNDECLARED
    # An object has one row about itself but maybe several overrides: count it once.
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
    """Return one row per object. has_d, has_s, has_l: whether it is declared, recorded, live (null:
    unknown); d, s, l: the attributes on each side that certainly has it."""
    live = frames["live"].where(~F.col("kind").isin(*NEVER_DECLARED))
    live = live.select(*KEY, F.col("attrs").alias("l"), F.col("owner").alias("l_owner"))
    # One row per cluster. left: objects of clusters that no table knows become `unknown`, not lost.
    facts = F.broadcast(_select_clusters(frames, context))
    # full: an object that exists on one side only is exactly what drift looks for. The keys are
    # never null, so the join needs no null-safe comparison.
    joined = _join_ours(frames).join(live, [*KEY], how="full").join(facts, "cluster", how="left")
    # Kafka's own topics are drift only if somebody declares or records them.
    joined = joined.where(F.col("lineage").isNotNull() | ~is_internal("l"))
    # A cluster that was not read is not empty: absence needs a complete sweep.
    is_read, coverage = F.coalesce("is_read", F.lit(False)), F.try_element_at("coverage", "kind")
    is_free = F.col("lineage").isNull() & ~F.coalesce("doubtful", F.lit(False))
    is_shown = is_read & coverage.isin("complete", "visible_only")
    return joined.select(
        *KEY,
        "lineage",
        "address",
        F.coalesce("owner", "l_owner", owner_by_name(context.register)).alias("owner"),
        F.when(is_read, F.greatest("d_at", "s_at", "captured_at"))
        .otherwise(F.lit(context.as_of))
        .alias("as_of"),
        # `unmanaged` says that no state owns the object, so all states that might must be known.
        _has_side("d", F.col("desired_known") | is_free).alias("has_d"),
        _has_side("s", F.col("state_at").isNotNull() | is_free).alias("has_s"),
        F.when(F.col("l").isNotNull(), F.when(is_shown, F.lit(True)))
        # Otherwise null: `visible_only` may hide the object, `failed` says nothing at all.
        .when(is_read & (coverage == "complete"), F.lit(False))
        .alias("has_l"),
        "d",
        "s",
        F.when(is_shown, F.col("l")).alias("l"),
    )


def _has_side(side: str, is_absence_known: Column) -> Column:
    """True: it has the object; false: it certainly has not; null: unknown."""
    return F.when(F.col(side).isNotNull(), F.lit(True)).when(is_absence_known, F.lit(False))


def _join_ours(frames: Frames) -> DataFrame:
    """Return declared and recorded objects, each from one state."""
    desired = frames["desired"].select(*KEY, "lineage", *_rename_columns("d"))
    recorded = frames["recorded"].select(*KEY, "lineage", *_rename_columns("s"))
    lineages = F.broadcast(frames["lineage"].select("lineage", "desired_known", "state_at"))
    # By lineage as well: two states with the same object are two rows here; one decides.
    state_rows = desired.join(recorded, [*KEY, "lineage"], how="full").join(
        lineages, "lineage", how="left"
    )
    has_d, has_s = F.col("d").isNotNull(), F.col("s").isNotNull()
    rank = F.when(has_d & has_s, 0).when(has_d, 1).when(F.col("desired_known"), 2).otherwise(3)
    # The lineage breaks ties, or the row could change from build to build.
    order = Window.partitionBy(*KEY).orderBy(rank, "lineage")
    return (
        state_rows.withColumn("_rank", F.row_number().over(order))
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
    """Return for each cluster: is_read, coverage, captured_at; doubtful: an object without
    a known owner may belong to a state or configuration that could not be read."""
    cluster = frames["cluster"]
    doubtful = _find_doubtful(cluster, frames["lineage"], context.register)
    return cluster.select(
        "cluster", F.col("status").isin(*READ_STATUSES).alias("is_read"), "coverage", "captured_at"
    ).join(doubtful.withColumn("doubtful", F.lit(True)), "cluster", how="left")


def _find_doubtful(cluster: DataFrame, lineage: DataFrame, register: Register) -> DataFrame:
    """Return the clusters that an unread state or configuration may reach. One without scopes may
    reach all of them, and so may a state that was never read."""
    if any(state.lineage is None for state in register.states):
        return cluster.select("cluster")
    unread = lineage.where(~F.col("desired_known") | F.col("state_at").isNull())
    reach = unread.select(F.explode_outer(F.map_values("scopes")).alias("scope")).distinct()
    # A join on `or` is a nested loop; both sides are one row per cluster or scope, so it stays
    # small.
    hit = F.col("scope").isNull() | F.col("cluster_id").isNull()
    hit |= F.col("scope") == F.col("cluster_id")
    return cluster.join(reach, hit, how="left_semi").select("cluster")


# ── what differs ────────────────────────────────────────────────────────────────────────


def _find_differing() -> Column:
    """Return the paths on which two sides differ, with the three values and whether they count as
    equal.

    Objects that are written alike on all sides are skipped: searching maps costs a hundred times as
    much as comparing whole arrays, and almost all objects are in sync.
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
    return F.when(is_alike, F.array().cast(_JUDGED_PATHS)).otherwise(differing)


def _is_alike(first_side: str, second_side: str) -> Column:
    """True if one side lacks the object, or both have the same attributes in the same order."""
    keys = F.map_keys(first_side) == F.map_keys(second_side)
    return F.coalesce(keys & (F.map_values(first_side) == F.map_values(second_side)), F.lit(True))


def _is_unlike(first_side: str, second_side: str, path: Column) -> Column:
    """True if both sides have the object but not the same text at this path."""
    # Unset on both sides is equal; `=` would give null and hide it in the filter.
    is_equal = F.try_element_at(first_side, path).eqNullSafe(F.try_element_at(second_side, path))
    return F.col(first_side).isNotNull() & F.col(second_side).isNotNull() & ~is_equal


def _judge_path(path: Column) -> Column:
    declared, recorded, live = (F.try_element_at(side, path) for side in "dsl")
    shows_s, shows_l = _shows("s", path), _shows("l", path)
    in_state = F.when(shows_s, recorded).when(shows_l, live).otherwise(declared)
    on_cluster = F.when(shows_l, live).when(shows_s, recorded).otherwise(declared)
    configured = F.when(F.col("d").isNotNull(), declared).otherwise(in_state)
    return F.struct(
        path.alias("path"),
        declared.alias("desired"),
        recorded.alias("state"),
        live.alias("live"),
        configured.eqNullSafe(in_state).alias("ds"),
        configured.eqNullSafe(on_cluster).alias("dl"),
        in_state.eqNullSafe(on_cluster).alias("sl"),
    )


def _list_keys(side: str) -> Column:
    return F.coalesce(F.map_keys(side), F.array().cast("array<string>"))


def _shows(side: str, path: Column) -> Column:
    """True if this side has the object and shows the path's attribute."""
    heads = F.transform(_list_keys(side), _get_head)
    is_shown = (_get_head(path) == "config") | F.array_contains(heads, _get_head(path))
    return F.col(side).isNotNull() & is_shown


def _get_head(path: Column) -> Column:
    return F.substring_index(path, ".", 1)


def _classify_object(has_all: Column) -> Column:
    ds, dl, sl = (_holds_everywhere(name) for name in ("ds", "dl", "sl"))
    by_presence = reduce(
        lambda chain, item: chain.when(_is_so(item[0]), F.lit(item[1])),
        BY_PRESENCE.items(),
        F.when(has_all, _classify_values(ds, dl, sl)),
    )
    return by_presence.otherwise(F.lit(UNKNOWN))


def _holds_everywhere(name: str) -> Column:
    return F.forall("_paths", lambda it: it[name])


def _is_so(presence: tuple[bool, bool, bool]) -> Column:
    # eqNullSafe: an unknown side must match neither true nor false, so that the chain ends in
    # UNKNOWN.
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


def _make_path_rows(has_all: Column) -> Column:
    """If all three have the object, each path has the class of its own values."""
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
    """Live overrides of a declared object that its block does not declare."""
    foreign = F.filter(
        _list_keys("l"),
        lambda path: (
            F.col("d").isNotNull() & path.startswith("config.") & ~F.map_contains_key("d", path)
        ),
    )
    undeclared = F.transform(
        foreign,
        lambda path: _make_row(
            path,
            (F.lit(None).cast("string"), F.try_element_at("s", path), F.try_element_at("l", path)),
            F.lit(UNDECLARED),
        ),
    )
    return F.when(_is_alike("d", "l"), F.array().cast(_ROWS)).otherwise(undeclared)


def _make_row(path: Column, values: tuple[Column, Column, Column], drift_class: Column) -> Column:
    """Build the same struct type everywhere: a cast per row takes longer than everything else
    here."""
    desired, state, live = values
    return F.struct(
        path.alias("path"),
        desired.alias("desired"),
        state.alias("state"),
        live.alias("live"),
        drift_class.alias("drift_class"),
    )
