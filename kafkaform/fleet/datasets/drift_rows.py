"""Classify objects by what is declared, recorded and live, and list the paths that differ.

The class of an object follows from who has it and, if all three have it, from which of them are
equal.

An attribute is compared where both sides show it: blocks have switches that no cluster shows
(`config_mode`), and clusters do not show everything that was sent. Where one side does not show it,
the other's value is used. Entries of `config` are always compared, because an empty map leaves no
trace in a row. The tables do not say which attributes a block's lifecycle ignores; a snapshot lands
those with their live value (`workflow.fleet.states`).
"""

from __future__ import annotations

from functools import reduce

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

PRESENT, ABSENT = "present", "absent"
"""Values of desired, state and live in the row about the whole object. Null: unknown."""

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


def has_side(side: str, is_absence_known: Column) -> Column:
    """True: it has the object; false: it certainly has not; null: unknown."""
    return F.when(F.col(side).isNotNull(), F.lit(True)).when(is_absence_known, F.lit(False))


def list_rows(objects: DataFrame) -> DataFrame:
    """Add path, desired, state, live and drift_class: a row for each object and each path that
    tells something. objects: has_d, has_s, has_l, d, s, l whether each side has the object (null:
    unknown), and its attributes there."""
    # Null where one side is unknown, which counts as false.
    has_all = (F.col("has_d") & F.col("has_s") & F.col("has_l")).eqNullSafe(F.lit(True))
    # Each step is a column of its own: what a step uses twice would be planned twice as text.
    judged = (
        objects.withColumns({f"_{side}_keys": _list_keys(side) for side in "dsl"})
        .withColumns({f"_{side}_heads": F.transform(f"_{side}_keys", _get_head) for side in "sl"})
        .withColumn("_paths", _find_differing())
        .withColumn("drift_class", _classify_object(has_all))
    )
    rows = F.array(_make_object_rows(), _make_path_rows(has_all), _make_undeclared_rows())
    # `flatten`: Sail's `concat` rejects arrays that differ in what may be null.
    return (
        judged.withColumn("_rows", rows)
        .withColumn("_row", F.explode(F.flatten("_rows")))
        .drop("drift_class")
        .select("*", "_row.*")
    )


def _find_differing() -> Column:
    """Return the paths on which two sides differ, with the three values and whether they count as
    equal.

    Objects that are written alike on all sides are skipped: searching maps costs a hundred times as
    much as comparing whole arrays, and almost all objects are in sync.
    """
    of_declared = F.filter("_d_keys", lambda p: _is_unlike("d", "s", p) | _is_unlike("d", "l", p))
    of_others = F.filter(F.array_union("_s_keys", "_l_keys"), lambda p: _is_unlike("s", "l", p))
    paths = F.when(F.col("d").isNotNull(), of_declared).otherwise(of_others)
    judged = F.transform(F.transform(paths, _list_values), _judge_values)
    differing = F.filter(judged, lambda it: ~(it["ds"] & it["dl"]))
    is_alike = _is_alike("d", "s") & _is_alike("d", "l") & _is_alike("s", "l")
    return F.when(is_alike, F.array().cast(_JUDGED_PATHS)).otherwise(differing)


def _is_alike(first_side: str, second_side: str) -> Column:
    """True if one side lacks the object, or both have the same attributes in the same order."""
    keys = F.map_keys(first_side) == F.map_keys(second_side)
    values = F.map_values(first_side) == F.map_values(second_side)
    return ~(keys & values).eqNullSafe(F.lit(False))


def _is_unlike(first_side: str, second_side: str, path: Column) -> Column:
    """True if both sides have the object but not the same text at this path."""
    # Unset on both sides is equal; `=` would give null and hide it in the filter.
    is_equal = F.try_element_at(first_side, path).eqNullSafe(F.try_element_at(second_side, path))
    return F.col(first_side).isNotNull() & F.col(second_side).isNotNull() & ~is_equal


def _list_values(path: Column) -> Column:
    """Return the values of a path, and those that its state and the cluster count as having."""
    declared, recorded, live = (F.try_element_at(side, path) for side in "dsl")
    shows_s, shows_l = _shows("s", path), _shows("l", path)
    return F.struct(
        path.alias("path"),
        declared.alias("desired"),
        recorded.alias("state"),
        live.alias("live"),
        F.when(shows_s, recorded).when(shows_l, live).otherwise(declared).alias("in_state"),
        F.when(shows_l, live).when(shows_s, recorded).otherwise(declared).alias("on_cluster"),
    )


def _judge_values(values: Column) -> Column:
    in_state, on_cluster = values["in_state"], values["on_cluster"]
    configured = F.when(F.col("d").isNotNull(), values["desired"]).otherwise(in_state)
    return F.struct(
        *(values[name].alias(name) for name in ("path", "desired", "state", "live")),
        configured.eqNullSafe(in_state).alias("ds"),
        configured.eqNullSafe(on_cluster).alias("dl"),
        in_state.eqNullSafe(on_cluster).alias("sl"),
    )


def _list_keys(side: str) -> Column:
    return F.coalesce(F.map_keys(side), F.array().cast("array<string>"))


def _shows(side: str, path: Column) -> Column:
    """True if this side has the object and shows the path's attribute."""
    head = _get_head(path)
    is_shown = (head == "config") | F.array_contains(f"_{side}_heads", head)
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
        "_l_keys",
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
