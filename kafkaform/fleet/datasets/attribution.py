"""Which change was ours: what the snapshots show to have changed, against what the logs say.

A change lies somewhere between two snapshots. It is ours if something of the same effect was sent
in that window, give or take the skew of the clocks. Work that goes on after its answer, and
intents that only a later run closed, count for the first change that shows their effect.

What was applied and no later snapshot shows had no effect, or was undone before anybody looked:
snapshots cannot tell these two apart. Nor can they tell who made a change that another one of the
same effect followed in the same window, or what was there before the first snapshot.
"""

from __future__ import annotations

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, Window

from ...core.landing import LIVE
from ..tables.dataset import BuildContext, Frames
from ..tables.definitions import TABLES
from .attempts import UNKNOWN, select_tries

KEY = ("cluster", "kind", "key")
PRESENT, ABSENT = "present", "absent"
"""before and after of a change at the empty path. Both present: another object of that name."""

APPLIED, OUT_OF_BAND, UNCLEAR = "applied", "out_of_band", "unclear"
NOT_EFFECTIVE = "not_effective"
VERDICTS = {"applied": APPLIED, "started": APPLIED, UNKNOWN: UNCLEAR}
"""Outcome -> verdict on a change that it fits; the others changed nothing."""

INTERNAL = "details.internal"
"""Attribute of Kafka's own objects."""

_DETAILS = "details."
"""Attributes that are shown and never compared begin so."""

_EFFECT = "array<struct<path:string,before:string,after:string,sensitive:boolean>>"
_CHANGE = (
    "array<struct<path:string,before:string,after:string,"
    "window_start:timestamp,window_end:timestamp>>"
)
_SENDER = ("event_id", "run", "actor", "commit")


def build(frames: Frames, context: BuildContext) -> DataFrame:
    """The rows of `change_attribution`: one of each change that snapshots show, but for what the
    first one shows and nobody says to have made; and one of each effect that was applied and is
    not to be seen.

    Inputs: history, event, snapshot.
    """
    skew = F.make_dt_interval(secs=F.lit(context.register.settings.skew_seconds))
    looks = _list_looks(frames["snapshot"])
    sent = _list_effects(select_tries(frames["event"]))
    shown = _explain_changes(_list_changes(frames["history"], looks), sent, skew)
    missing = _find_missing(sent, frames["history"], looks, skew)
    return shown.unionByName(missing).select(*TABLES["change_attribution"].names)


# ── what snapshots show ─────────────────────────────────────────────────────────────────


def _list_looks(snapshot: DataFrame) -> DataFrame:
    """cluster, kind, started_at, captured_at and `previous` of each snapshot that shows all of
    that kind; previous: captured_at of the one before."""
    order = Window.partitionBy("cluster", "kind").orderBy("captured_at")
    return (
        snapshot.where(F.col("source") == LIVE)
        .select(
            F.col("subject").alias("cluster"),
            "started_at",
            "captured_at",
            F.explode("coverage").alias("kind", "coverage"),
        )
        .where(F.col("coverage") == "complete")
        .groupBy("cluster", "kind", "captured_at")
        .agg(F.min("started_at").alias("started_at"))
        .withColumn("previous", F.lag("captured_at").over(order))
    )


def _list_changes(history: DataFrame, looks: DataFrame) -> DataFrame:
    """KEY, is_kafkas, path, before, after and window of each change. An object that went was last
    seen in the snapshot before, or at least in the one that first showed it so."""
    order = Window.partitionBy(*KEY).orderBy("valid_from")
    last = F.lag(F.struct("attrs", "valid_to", "incarnation")).over(order)
    previous = looks.select("cluster", "kind", F.col("captured_at").alias("valid_to"), "previous")
    found = (
        history.withColumn("_last", last)
        .join(previous, ["cluster", "kind", "valid_to"], how="left")
        .withColumn("_follows", F.col("_last.valid_to").eqNullSafe(F.col("valid_from")))
    )
    rows = F.concat(_arrival_rows(), _replacement_rows(), _value_rows(), _departure_rows())
    is_kafkas = F.coalesce(F.try_element_at("attrs", F.lit(INTERNAL)) == "true", F.lit(False))
    return found.select(*KEY, is_kafkas.alias("is_kafkas"), F.inline(rows))


def _arrival_rows() -> Column:
    change = _make_change(F.lit(""), F.lit(ABSENT), F.lit(PRESENT))
    return _rows_if(~F.col("_follows"), F.array(change))


def _replacement_rows() -> Column:
    change = _make_change(F.lit(""), F.lit(PRESENT), F.lit(PRESENT))
    return _rows_if(
        F.col("_follows") & (F.col("incarnation") != F.col("_last.incarnation")), F.array(change)
    )


def _value_rows() -> Column:
    before, after = F.col("_last.attrs"), F.col("attrs")
    paths = F.filter(
        F.array_union(F.map_keys(before), F.map_keys(after)), lambda p: ~p.startswith(_DETAILS)
    )
    differing = F.filter(
        paths, lambda p: ~F.try_element_at(before, p).eqNullSafe(F.try_element_at(after, p))
    )
    changes = F.transform(
        differing,
        lambda p: _make_change(p, F.try_element_at(before, p), F.try_element_at(after, p)),
    )
    return _rows_if(F.col("_follows"), changes)


def _departure_rows() -> Column:
    change = F.struct(
        F.lit(""),
        F.lit(PRESENT),
        F.lit(ABSENT),
        F.greatest("previous", "valid_from"),
        F.col("valid_to"),
    )
    return _rows_if(F.col("deleted"), F.array(change))


def _make_change(path: Column, before: Column, after: Column) -> Column:
    return F.struct(path, before, after, F.col("seen_before"), F.col("valid_from"))


def _rows_if(condition: Column, rows: Column) -> Column:
    return F.when(condition, rows.cast(_CHANGE)).otherwise(F.array().cast(_CHANGE))


# ── what was sent ───────────────────────────────────────────────────────────────────────


def _list_effects(sent: DataFrame) -> DataFrame:
    """One row per try and path: KEY, path, before, after, sensitive, verdict, since, until and
    who sent it. An object that is made or deleted is an effect at the empty path."""
    whole = {"create": (ABSENT, PRESENT), "delete": (PRESENT, ABSENT)}
    made = F.array().cast(_EFFECT)
    for action, (before, after) in whole.items():
        one = F.struct(F.lit(""), F.lit(before), F.lit(after), F.lit(False))
        made = F.when(F.col("action") == action, F.array(one).cast(_EFFECT)).otherwise(made)
    removes = F.col("action").isin("delete", "forget")
    values = F.when(removes, F.array().cast(_EFFECT)).otherwise(F.col("changes").cast(_EFFECT))
    is_long = F.col("outcome").isin("started", UNKNOWN) | (F.col("record") == "recover")
    return sent.where(F.col("outcome").isin(*VERDICTS)).select(
        *KEY,
        "lineage",
        "seq",
        "incarnation",
        "since",
        "until",
        F.when(~is_long, F.col("until")).alias("lands_by"),
        F.when(F.col("outcome") == UNKNOWN, UNCLEAR).otherwise(APPLIED).alias("verdict"),
        (F.col("outcome") == "applied").alias("is_done"),
        *_SENDER,
        F.inline(F.concat(made, values)),
    )


# ── one against the other ───────────────────────────────────────────────────────────────


def _explain_changes(changes: DataFrame, sent: DataFrame, skew: Column) -> DataFrame:
    """Each change with what explains it best: what was applied before what is unclear, the last
    one first."""
    about = [*KEY, "path", "window_end"]
    effects = sent.select(
        *KEY,
        "path",
        F.col("after").alias("_after"),
        "sensitive",
        "verdict",
        "since",
        "lands_by",
        *_SENDER,
    )
    fits = F.col("sensitive") | F.col("after").eqNullSafe(F.col("_after"))
    fits &= F.col("since") <= F.col("window_end") + skew
    started = F.col("window_start").isNull() | F.col("lands_by").isNull()
    fits &= started | (F.col("lands_by") > F.col("window_start") - skew)
    first = Window.partitionBy(*KEY, "path", "event_id").orderBy("window_end")
    best = Window.partitionBy(*about).orderBy("verdict", F.col("since").desc(), "event_id")
    found = (
        changes.join(effects, [*KEY, "path"], how="inner")
        .where(fits)
        .withColumn("_rank", F.row_number().over(first))
        .where(F.col("_rank") == 1)
        .withColumn("_rank", F.row_number().over(best))
        .where(F.col("_rank") == 1)
        .select(*about, "verdict", *_SENDER)
    )
    # Kafka's own topics come by themselves.
    is_news = F.col("window_start").isNotNull() & ~F.col("is_kafkas")
    unexplained = F.when(is_news, F.lit(OUT_OF_BAND))
    return (
        changes.join(found, about, how="left")
        .withColumn("verdict", F.coalesce("verdict", unexplained))
        .where(F.col("verdict").isNotNull())
        .withColumn("event_id", F.coalesce("event_id", F.lit("")))
        .select(*TABLES["change_attribution"].names)
    )


def _find_missing(sent: DataFrame, history: DataFrame, looks: DataFrame, skew: Column) -> DataFrame:
    """The effects that were applied and that no later snapshot shows. They are judged by the
    first complete snapshot that began after them, unless something else of ours touched the same
    path by then; and only at what a snapshot can show."""
    judged = _add_next_look(_add_successor(sent), looks, skew)
    is_last = F.col("_successor").isNull()
    is_last |= F.col("_successor") > F.col("window_end") + skew
    candidates = judged.where(
        F.col("is_done") & ~F.col("sensitive") & F.col("window_end").isNotNull() & is_last
    )
    spans = history.select(
        *KEY, "attrs", "valid_from", "valid_to", "deleted", F.col("incarnation").alias("_live")
    )
    is_whole, made = F.col("path") == "", F.col("after") == PRESENT
    seen = F.col("valid_from").isNotNull()
    later = seen & (F.col("valid_to").isNull() | (F.col("valid_to") > F.col("since") - skew))
    at_look = seen & (F.col("valid_from") <= F.col("window_end"))
    at_look &= F.col("valid_to").isNull() | (F.col("valid_to") > F.col("window_end"))
    same = F.col("_live").isNull() | F.col("incarnation").isNull()
    same |= F.col("_live") == F.col("incarnation")
    value = F.try_element_at("attrs", "path")
    shows = (
        F.when(is_whole & made, later)
        .when(is_whole, (later & F.col("deleted")) | (at_look & ~same))
        .otherwise(later & value.eqNullSafe(F.col("after")))
    )
    can_show = is_whole | _shows(F.col("path"))
    verdicts = (
        candidates.join(spans, [*KEY], how="left")
        .groupBy(*KEY, "path", "before", "after", "window_start", "window_end", *_SENDER)
        .agg(
            F.max(F.coalesce(shows, F.lit(False))).alias("_shown"),
            F.max(F.coalesce(at_look & can_show, F.lit(False))).alias("_there"),
        )
    )
    is_due = F.col("_there") | (is_whole & made)
    return (
        verdicts.where(is_due & ~F.col("_shown"))
        .withColumn("verdict", F.lit(NOT_EFFECTIVE))
        .select(*TABLES["change_attribution"].names)
    )


def _shows(path: Column) -> Column:
    """True if the live object says something about the path's attribute."""
    head = F.substring_index(path, ".", 1)
    heads = F.transform(F.map_keys("attrs"), lambda p: F.substring_index(p, ".", 1))
    return (head == "config") | F.array_contains(heads, head)


def _add_successor(sent: DataFrame) -> DataFrame:
    """_successor: when something was sent next that touches the same path, or makes or deletes
    the object. At one instant the order of the log counts; the empty path comes first."""
    newest_first = (F.col("since").desc(), "lineage", F.col("seq").desc(), F.col("path").desc())
    earlier = (Window.unboundedPreceding, -1)
    same = Window.partitionBy(*KEY, "path").orderBy(*newest_first)
    whole = Window.partitionBy(*KEY).orderBy(*newest_first).rowsBetween(*earlier)
    of_whole = F.last(F.when(F.col("path") == "", F.col("since")), ignorenulls=True)
    return sent.withColumn("_same", F.lag("since").over(same)).withColumn(
        "_successor", F.least("_same", of_whole.over(whole))
    )


def _add_next_look(sent: DataFrame, looks: DataFrame, skew: Column) -> DataFrame:
    """window_end: captured_at of the first snapshot that shows all of the kind and began after
    the effect; window_start: of the one before. Null: there is none yet.

    Both sorted into one line, since joining each effect with each snapshot grows with both.
    """
    marks = looks.select(
        "cluster",
        "kind",
        F.col("started_at").alias("_at"),
        F.struct("captured_at", "previous").alias("_look"),
    )
    line = sent.withColumn("_at", F.col("until") + skew).unionByName(
        marks, allowMissingColumns=True
    )
    newest_first = (F.col("_at").desc(), F.col("_look").isNull().desc())
    order = Window.partitionBy("cluster", "kind").orderBy(*newest_first)
    order = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return (
        line.withColumn("_next", F.last("_look", ignorenulls=True).over(order))
        .where(F.col("_look").isNull())
        .withColumn("window_end", F.col("_next.captured_at"))
        .withColumn("window_start", F.col("_next.previous"))
    )
