"""The history of objects: since when each has been as it is, and the apply that made each change.

Intervals lie between snapshots (SCD type 2). An object exists as long as snapshots show it with the
same attributes and incarnation. It is deleted at the first snapshot that read its kind completely
and does not show it. A snapshot that could not see everything proves what it shows, and nothing
about what it does not show.

A change lies between two snapshots. It is ours if a request with the same effect was sent in that
window, give or take the skew of the clocks. Work that continues after its answer, and intents that
a later run closed, count for the first change that shows their effect.

What was applied and is in no later snapshot had no effect or was undone before anybody looked:
snapshots cannot tell which. Nor can they tell who made a change that another one with the same
effect followed in the same window, or what existed before the first snapshot.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyspark.sql.functions as F
from msgspec import Struct
from pyspark.sql import Column, DataFrame, Window

from ...core.landing import LIVE, MEASURED
from ..landed.snapshots import CHECKSUM_COLUMN, select_newest
from ..tables.definitions import TABLES, BuildContext, Frames
from .runs import UNKNOWN, select_tries

KEY = ("cluster", "kind", "key")
PRESENT, ABSENT = "present", "absent"
"""Values of `before` and `after` at the empty path. Both present: another object of the same
name."""

APPLIED, OUT_OF_BAND, UNCLEAR = "applied", "out_of_band", "unclear"
NOT_EFFECTIVE = "not_effective"
VERDICTS = {"applied": APPLIED, "started": APPLIED, UNKNOWN: UNCLEAR}
"""Outcome -> verdict on a change that it fits. Other outcomes changed nothing."""

INTERNAL = "details.internal"
"""Attribute of Kafka's own objects."""

_DETAILS = "details."
"""Prefix of attributes that are shown but never compared."""

_EFFECT = "array<struct<path:string,before:string,after:string,sensitive:boolean>>"
_CHANGE = (
    "array<struct<path:string,before:string,after:string,"
    "window_start:timestamp,window_end:timestamp>>"
)
_SENDER = ("event_id", "run", "actor", "commit")
_COMPLETE, _FAILED = "complete", "failed"
_INTERVAL_COLUMNS = (
    "incarnation",
    "attrs",
    "seen_before",
    "valid_from",
    "valid_to",
    "deleted",
)


class _Layout(Struct, frozen=True):
    """By which columns snapshots of a sort are told apart."""

    subject: tuple[str, ...]
    """What a snapshot is of."""
    sweep: tuple[str, ...]
    """What a snapshot reads completely or not."""
    object: tuple[str, ...]
    """What it shows at most once."""


_LIVE = _Layout(("cluster",), ("cluster", "kind"), KEY)
_DECLARED = _Layout(
    ("lineage", "source"),
    ("lineage", "source"),
    ("lineage", "source", "scope_id", "kind", "key"),
)


def build(frames: Frames, context: BuildContext) -> DataFrame:
    """Return the rows of `change_attribution`: one per change that snapshots show, except what the
    first snapshot shows and no apply made; and one per effect that was applied and that no snapshot
    shows.

    Inputs: history, event, snapshot.
    """
    # Clocks of runners and of brokers differ; too small a skew turns applies into out-of-band
    # changes.
    skew = F.make_dt_interval(secs=F.lit(context.register.settings.skew_seconds))
    # `previous`: captured_at of the look before. One row per snapshot that read all of the kind.
    order = Window.partitionBy("cluster", "kind").orderBy("captured_at")
    looks = (
        frames["snapshot"]
        .where(F.col("source") == LIVE)
        .select(
            F.col("subject").alias("cluster"),
            "started_at",
            "captured_at",
            F.explode("coverage").alias("kind", "coverage"),
        )
        # A partial look proves nothing about what it does not show, so it cannot end a window.
        .where(F.col("coverage") == "complete")
        # A file that was read twice has two rows; one moment must be one look.
        .groupBy("cluster", "kind", "captured_at")
        .agg(F.min("started_at").alias("started_at"))
        .withColumn("previous", F.lag("captured_at").over(order))
    )
    effects = _list_effects(select_tries(frames["event"]))
    explained = _explain_changes(_list_changes(frames["history"], looks), effects, skew)
    missing = _find_missing(effects, frames["history"], looks, skew)
    return explained.unionByName(missing).select(*TABLES["change_attribution"].names)


# ── what snapshots show ─────────────────────────────────────────────────────────────────


def _list_changes(history: DataFrame, looks: DataFrame) -> DataFrame:
    """Return KEY, is_kafkas, path, before, after and the window of each change. A deleted object
    was last seen in the snapshot before, or at the earliest in the one that first showed it like
    this."""
    # An object has one interval per valid_from, so this order is total.
    order = Window.partitionBy(*KEY).orderBy("valid_from")
    last = F.lag(F.struct("attrs", "valid_to", "incarnation")).over(order)
    previous = looks.select("cluster", "kind", F.col("captured_at").alias("valid_to"), "previous")
    intervals = (
        history.withColumn("_last", last)
        .join(previous, ["cluster", "kind", "valid_to"], how="left")
        # Null-safe: an open interval has no valid_to, and the first one has no predecessor.
        .withColumn("_follows", F.col("_last.valid_to").eqNullSafe(F.col("valid_from")))
    )
    # The object appeared.
    arrival = _make_change(F.lit(""), F.lit(ABSENT), F.lit(PRESENT))
    # The object was deleted and created again between two snapshots: its incarnation differs.
    replacement = _make_change(F.lit(""), F.lit(PRESENT), F.lit(PRESENT))
    # The object was deleted.
    departure = F.struct(
        F.lit(""),
        F.lit(PRESENT),
        F.lit(ABSENT),
        F.greatest("previous", "valid_from"),
        F.col("valid_to"),
    )
    # Attributes that changed.
    before, after = F.col("_last.attrs"), F.col("attrs")
    paths = F.filter(
        F.array_union(F.map_keys(before), F.map_keys(after)), lambda p: ~p.startswith(_DETAILS)
    )
    differing = F.filter(
        # A missing attribute is null, and so is a removed one: only the null-safe comparison sees a
        # removal.
        paths,
        lambda p: ~F.try_element_at(before, p).eqNullSafe(F.try_element_at(after, p)),
    )
    changes = F.transform(
        differing,
        lambda p: _make_change(p, F.try_element_at(before, p), F.try_element_at(after, p)),
    )
    rows = F.concat(
        _rows_if(~F.col("_follows"), F.array(arrival)),
        _rows_if(
            F.col("_follows") & (F.col("incarnation") != F.col("_last.incarnation")),
            F.array(replacement),
        ),
        _rows_if(F.col("_follows"), changes),
        _rows_if(F.col("deleted"), F.array(departure)),
    )
    # As a column first: Sail plans what `inline` is of once for each member.
    changed = intervals.withColumn("_rows", rows)
    return changed.select(*KEY, is_internal("attrs").alias("is_kafkas"), F.inline("_rows"))


def is_internal(attributes: str) -> Column:
    """Whether the object of a row belongs to Kafka. attributes: the column with its attributes."""
    return F.coalesce(F.try_element_at(attributes, F.lit(INTERNAL)) == "true", F.lit(False))


def _make_change(path: Column, before: Column, after: Column) -> Column:
    return F.struct(path, before, after, F.col("seen_before"), F.col("valid_from"))


def _rows_if(condition: Column, rows: Column) -> Column:
    return F.when(condition, rows.cast(_CHANGE)).otherwise(F.array().cast(_CHANGE))


# ── what was sent ───────────────────────────────────────────────────────────────────────


def _list_effects(sent: DataFrame) -> DataFrame:
    """Return one row per try and path: KEY, path, before, after, sensitive, verdict, since, until
    and the sender. Creating or deleting an object is an effect at the empty path."""
    object_effects = {"create": (ABSENT, PRESENT), "delete": (PRESENT, ABSENT)}
    object_effect = F.array().cast(_EFFECT)
    for action, (before, after) in object_effects.items():
        effect = F.struct(F.lit(""), F.lit(before), F.lit(after), F.lit(False))
        object_effect = F.when(F.col("action") == action, F.array(effect).cast(_EFFECT)).otherwise(
            object_effect
        )
    removes = F.col("action").isin("delete", "forget")
    values = F.when(removes, F.array().cast(_EFFECT)).otherwise(F.col("changes").cast(_EFFECT))
    # These may take effect after their end was recorded, so the window is open to later changes.
    is_long = F.col("outcome").isin("started", UNKNOWN) | (F.col("record") == "recover")
    tries = sent.where(F.col("outcome").isin(*VERDICTS))
    return tries.withColumn("_effects", F.concat(object_effect, values)).select(
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
        F.inline("_effects"),
    )


# ── one against the other ───────────────────────────────────────────────────────────────


def _explain_changes(changes: DataFrame, sent: DataFrame, skew: Column) -> DataFrame:
    """Join each change with the effect that explains it best: applied before unclear, then the
    latest."""
    change_key = [*KEY, "path", "window_end"]
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
    # The log does not contain sensitive values: there, path and time are all there is.
    fits = F.col("sensitive") | F.col("after").eqNullSafe(F.col("_after"))
    fits &= F.col("since") <= F.col("window_end") + skew
    started = F.col("window_start").isNull() | F.col("lands_by").isNull()
    fits &= started | (F.col("lands_by") > F.col("window_start") - skew)
    # One effect explains one change, the earliest that fits. Otherwise a single apply would excuse
    # somebody who makes the same change again later.
    first = Window.partitionBy(*KEY, "path", "event_id").orderBy("window_end")
    # "applied" sorts before "unclear". event_id makes the order total, so that builds agree.
    best = Window.partitionBy(*change_key).orderBy("verdict", F.col("since").desc(), "event_id")
    explanations = (
        # Equality on four columns; the time window is a filter afterwards. As a range join it would
        # compare every change with every effect.
        changes.join(effects, [*KEY, "path"], how="inner")
        .where(fits)
        .withColumn("_rank", F.row_number().over(first))
        .where(F.col("_rank") == 1)
        .withColumn("_rank", F.row_number().over(best))
        .where(F.col("_rank") == 1)
        .select(*change_key, "verdict", *_SENDER)
    )
    # Kafka creates its own topics: no apply has to.
    # Without an earlier look, the object may have existed for years: nothing is out of band.
    is_news = F.col("window_start").isNotNull() & ~F.col("is_kafkas")
    unexplained = F.when(is_news, F.lit(OUT_OF_BAND))
    return (
        changes.join(explanations, change_key, how="left")
        .withColumn("verdict", F.coalesce("verdict", unexplained))
        .where(F.col("verdict").isNotNull())
        .withColumn("event_id", F.coalesce("event_id", F.lit("")))
        .select(*TABLES["change_attribution"].names)
    )


def _find_missing(sent: DataFrame, history: DataFrame, looks: DataFrame, skew: Column) -> DataFrame:
    """Return the effects that were applied and that no later snapshot shows. An effect is judged by
    the first complete snapshot that began after it, unless another request of ours changed the same
    path by then, and only if snapshots can show its attribute."""
    judged = _add_next_look(_add_successor(sent), looks, skew)
    is_last = F.col("_successor").isNull()
    is_last |= F.col("_successor") > F.col("window_end") + skew
    candidates = judged.where(
        F.col("is_done") & ~F.col("sensitive") & F.col("window_end").isNotNull() & is_last
    )
    spans = history.select(
        *KEY, "attrs", "valid_from", "valid_to", "deleted", F.col("incarnation").alias("_live")
    )
    is_whole, is_creation = F.col("path") == "", F.col("after") == PRESENT
    has_interval = F.col("valid_from").isNotNull()
    later = has_interval & (
        F.col("valid_to").isNull() | (F.col("valid_to") > F.col("since") - skew)
    )
    at_look = has_interval & (F.col("valid_from") <= F.col("window_end"))
    at_look &= F.col("valid_to").isNull() | (F.col("valid_to") > F.col("window_end"))
    # Only topics have incarnations. Where either is unknown, take it for the same object.
    same_incarnation = F.col("_live").isNull() | F.col("incarnation").isNull()
    same_incarnation |= F.col("_live") == F.col("incarnation")
    value = F.try_element_at("attrs", "path")
    shows = (
        F.when(is_whole & is_creation, later)
        .when(is_whole, (later & F.col("deleted")) | (at_look & ~same_incarnation))
        .otherwise(later & value.eqNullSafe(F.col("after")))
    )
    head = F.substring_index(F.col("path"), ".", 1)
    heads = F.transform(F.map_keys("attrs"), lambda p: F.substring_index(p, ".", 1))
    # The live object shows the path's attribute.
    can_show = is_whole | (head == "config") | F.array_contains(heads, head)
    flags = {"_shown": shows, "_there": at_look & can_show}
    verdicts = (
        candidates.join(spans, [*KEY], how="left")
        .withColumns(flags)
        .groupBy(*KEY, "path", "before", "after", "window_start", "window_end", *_SENDER)
        .agg(*(F.max(F.coalesce(name, F.lit(False))).alias(name) for name in flags))
    )
    is_due = F.col("_there") | (is_whole & is_creation)
    return (
        verdicts.where(is_due & ~F.col("_shown"))
        .withColumn("verdict", F.lit(NOT_EFFECTIVE))
        .select(*TABLES["change_attribution"].names)
    )


def _add_successor(sent: DataFrame) -> DataFrame:
    """Add _successor: when the next request was sent that changes the same path, or creates or
    deletes the object. At the same time, the order of the log decides; the empty path comes first.
    """
    # Descending, so that the successor is a row that the window has already seen.
    newest_first = (F.col("since").desc(), "lineage", F.col("seq").desc(), F.col("path").desc())
    earlier = (Window.unboundedPreceding, -1)
    same_path = Window.partitionBy(*KEY, "path").orderBy(*newest_first)
    same_object = Window.partitionBy(*KEY).orderBy(*newest_first).rowsBetween(*earlier)
    of_whole = F.last(F.when(F.col("path") == "", F.col("since")), ignorenulls=True)
    return sent.withColumn("_same", F.lag("since").over(same_path)).withColumn(
        "_successor", F.least("_same", of_whole.over(same_object))
    )


def _add_next_look(sent: DataFrame, looks: DataFrame, skew: Column) -> DataFrame:
    """Add window_end, captured_at of the first complete snapshot that began after the effect, and
    window_start, that of the snapshot before. Null: there is none yet."""
    marks = looks.select(
        "cluster",
        "kind",
        F.col("started_at").alias("_at"),
        F.struct("captured_at", "previous").alias("_look"),
    )
    # Effects and looks sorted into one sequence: joining each effect with each later look would
    # grow with the product of the two.
    no_look = F.lit(None).cast("struct<captured_at:timestamp,previous:timestamp>")
    effects = sent.withColumns({"_at": F.col("until") + skew, "_look": no_look})
    line = effects.unionByName(marks, allowMissingColumns=True)
    # At the same time, the effect comes first here: a look that began with it may have missed it.
    newest_first = (F.col("_at").desc(), F.col("_look").isNull().desc())
    order = Window.partitionBy("cluster", "kind").orderBy(*newest_first)
    order = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return (
        line.withColumn("_next", F.last("_look", ignorenulls=True).over(order))
        .where(F.col("_look").isNull())
        .withColumn("window_end", F.col("_next.captured_at"))
        .withColumn("window_start", F.col("_next.previous"))
    )


def build_history(frames: Frames, context: BuildContext) -> DataFrame:
    """Return the rows of `history`. Inputs: snapshot, snapshot_raw, and the previous history.

    Only new snapshots are read; open intervals continue from the previous rows. If a snapshot lands
    that is older than one that is known, its cluster's history is computed again. Of two snapshots
    with the same time, the one with the greater name counts.
    """
    good = select_good(frames["snapshot"])
    raw = frames["snapshot_raw"]
    rows = raw.where(F.col("source") == LIVE).withColumn("cluster", F.col("subject"))
    intervals = _extend_intervals(frames["history"], good, _build_timeline(good), rows, _LIVE)
    return intervals.select(*TABLES["history"].names)


def build_declared_history(frames: Frames, context: BuildContext) -> DataFrame:
    """Return the rows of `declared_history`, made like those of `history`: what states record and
    configurations declare. A snapshot that failed changes nothing.

    Inputs: snapshot, snapshot_raw, and the previous declared_history.
    """
    good = _select_declared(frames["snapshot"])
    scopes = good.groupBy(*_DECLARED.subject, "snapshot").agg(F.min_by("scopes", "_file"))
    named = scopes.toDF(*_DECLARED.subject, "snapshot", "scopes")
    scope_id = F.coalesce("scope_id", F.try_element_at("scopes", F.col("instance")))
    rows = (
        frames["snapshot_raw"]
        .where(F.col("source") != LIVE)
        .withColumn("lineage", F.col("subject"))
        .join(F.broadcast(named), [*_DECLARED.subject, "snapshot"], how="inner")
        .withColumn("scope_id", scope_id)
        # Nobody knows which cluster such a row is about: it was never reached.
        .where(F.col("scope_id").isNotNull())
    )
    before, times = frames["declared_history"], _list_declared_looks(good)
    intervals = _extend_intervals(before, good, times, rows, _DECLARED)
    return intervals.select(*TABLES["declared_history"].names)


def _extend_intervals(
    before: DataFrame, good: DataFrame, looks: DataFrame, rows: DataFrame, layout: _Layout
) -> DataFrame:
    """Return the intervals of all objects, with what they cover.

    before: those of the previous build; good: all snapshots; looks: layout.sweep, snapshot and at
    of each, with proof, previous and following as in `_build_timeline`; rows: what snapshots show.
    """
    subject, sweep = list(layout.subject), list(layout.sweep)
    covered = F.broadcast(select_known(before, good, layout.subject))
    # Subjects with late snapshots are not among them: their old intervals may be wrong now.
    continued = before.join(covered.select(*subject), subject, how="left_semi")
    times = select_unread(looks, covered, layout.subject)
    # An open interval counts as if the object had been seen at its start. following: the first new
    # snapshot that could prove its deletion.
    proofs = times.groupBy(*sweep).agg(F.min("proof").alias("following"))
    proven = continued.where(F.col("valid_to").isNull()).join(proofs, sweep, how="left")
    about = {"at": F.col("valid_from"), "carried": F.lit(True)}
    open_intervals = proven.withColumns(about).select(
        *layout.object, "at", "incarnation", "attrs", "following", "seen_before", "carried"
    )
    objects = rows.select(*layout.object, "snapshot", "incarnation", "attrs", "instance", "_file")
    marks = times.select(*sweep, "snapshot", "at", "previous", "following")
    # A file that was read twice has each row twice; and two provider instances may lead to one
    # cluster: the first counts.
    sightings = select_newest(
        objects.join(marks, [*sweep, "snapshot"], how="inner"),
        [*layout.object, "at"],
        *(F.asc_nulls_last("instance"), F.asc("_file")),
    ).drop("snapshot", "instance", "_file")
    intervals = _build_intervals(
        sightings.unionByName(open_intervals, allowMissingColumns=True), layout.object
    )
    closed = continued.where(F.col("valid_to").isNotNull()).select(*intervals.columns)
    # What the new intervals cover, one row per subject.
    covers = F.broadcast(mark_known(good, layout.subject))
    return intervals.unionByName(closed).join(covers, subject, how="inner")


def find_new_builds(frames: Frames, table: str = "history") -> DataFrame:
    """Return the builds that read the snapshots of clusters that the table does not cover."""
    return _list_new_builds(frames[table], select_good(frames["snapshot"]), _LIVE)


def find_new_declared_builds(frames: Frames) -> DataFrame:
    """Return the builds that read the new snapshots of states and configurations."""
    good = _select_declared(frames["snapshot"])
    return _list_new_builds(frames["declared_history"], good, _DECLARED)


def _list_new_builds(before: DataFrame, good: DataFrame, layout: _Layout) -> DataFrame:
    covered = F.broadcast(select_known(before, good, layout.subject))
    return select_unread(good, covered, layout.subject).select("_build").distinct()


def select_unread(
    good: DataFrame, covered: DataFrame, subject: Sequence[str] = _LIVE.subject
) -> DataFrame:
    """Return the snapshots that the previous rows do not cover."""
    all_of_them = good.join(covered, list(subject), how="left")
    # null: the subject has no rows yet, or must be computed again.
    unread = F.col("known_until").isNull() | (F.col("at") > F.col("known_until"))
    return all_of_them.where(unread).drop("known_until")


def select_good(snapshot: DataFrame) -> DataFrame:
    """Return the clusters' snapshots that have rows."""
    good = snapshot.where((F.col("source") == LIVE) & F.col(CHECKSUM_COLUMN).isNotNull())
    at = F.col("captured_at").alias("at")
    name = F.col("subject").alias("cluster")
    return good.select(name, "snapshot", at, "coverage", "_file", "_build")


def _select_declared(snapshot: DataFrame) -> DataFrame:
    """Return the snapshots of states and configurations that have rows."""
    good = snapshot.where((F.col("source") != LIVE) & F.col(CHECKSUM_COLUMN).isNotNull())
    at = F.col("captured_at").alias("at")
    name = F.col("subject").alias("lineage")
    return good.select(name, "source", "snapshot", at, "scopes", "_file", "_build")


def mark_known(good: DataFrame, subject: Sequence[str] = _LIVE.subject) -> DataFrame:
    """Return subject, known_until and known_snapshots of what these snapshots cover."""
    return good.groupBy(*subject).agg(
        F.max("at").alias("known_until"), F.count_distinct("snapshot").alias("known_snapshots")
    )


def select_known(
    before: DataFrame, good: DataFrame, subject: Sequence[str] = _LIVE.subject
) -> DataFrame:
    """Return subject and known_until of what nothing landed late for. One row per subject."""
    marks = before.groupBy(*subject).agg(
        F.max("known_until").alias("known_until"), F.max("known_snapshots").alias("_then")
    )
    # The number of snapshots up to the known end tells whether one has landed late.
    covered_snapshots = good.join(marks, list(subject), how="inner").where(
        F.col("at") <= F.col("known_until")
    )
    counted = covered_snapshots.groupBy(*subject, "known_until", "_then").agg(
        F.count_distinct("snapshot").alias("_now")
    )
    return counted.where(F.col("_now") == F.col("_then")).select(*subject, "known_until")


def _build_timeline(good: DataFrame) -> DataFrame:
    """Return cluster, kind, snapshot, at of each snapshot that read the kind, with proof (at, if it
    is complete) and the times of the complete ones around it: previous, following. One row per kind
    and moment."""
    # One snapshot per moment, or an object would have two forms at the same time.
    snapshots = select_newest(good, ["cluster", "at"], F.desc("snapshot"), F.asc("_file"))
    kinds = snapshots.select(
        "cluster", "snapshot", "at", F.explode("coverage").alias("kind", "how")
    )
    read = kinds.where((F.col("how") != _FAILED) & ~F.col("kind").isin(*MEASURED))
    in_time = Window.partitionBy("cluster", "kind").orderBy("at")
    # Only a complete look can prove that something is missing.
    proof = F.when(F.col("how") == _COMPLETE, F.col("at"))
    earlier = in_time.rowsBetween(Window.unboundedPreceding, -1)
    later = in_time.rowsBetween(1, Window.unboundedFollowing)
    neighbours = {
        "proof": proof,
        # Frames are written out: the default one includes the current row, which proves nothing
        # about itself.
        "previous": F.max(proof).over(earlier),
        "following": F.min(proof).over(later),
    }
    return read.withColumns(neighbours).drop("how")


def _list_declared_looks(good: DataFrame) -> DataFrame:
    """Return the same of states and configurations, which are always read as a whole."""
    moment = (*_DECLARED.subject, "at")
    looks = select_newest(good, moment, F.desc("snapshot"), F.asc("_file"))
    in_time = Window.partitionBy(*_DECLARED.subject).orderBy("at")
    neighbours = {
        "proof": F.col("at"),
        "previous": F.lag("at").over(in_time),
        "following": F.lead("at").over(in_time),
    }
    return looks.select(*moment, "snapshot").withColumns(neighbours)


def _build_intervals(sightings: DataFrame, key: Sequence[str]) -> DataFrame:
    """Merge sightings into intervals (gaps and islands). sightings: unique by key and at."""
    of_object = Window.partitionBy(*key)
    by_time = of_object.orderBy("at")
    formed = sightings.withColumn("form", F.struct("incarnation", sort_entries(F.col("attrs"))))
    # Only topics have an incarnation: a plain comparison of nulls would begin an interval every
    # time.
    is_same_form = F.col("form").eqNullSafe(F.lag("form").over(by_time))
    # A complete look between two sightings did not show it: it was deleted and came back the same.
    was_gone = F.coalesce(F.lag("following").over(by_time) < F.col("at"), F.lit(False))
    begins = F.lag("at").over(by_time).isNull() | ~is_same_form | was_gone
    numbered = formed.withColumn("begins", begins.cast("int")).withColumn(
        "island", F.sum("begins").over(by_time)
    )
    first = ("incarnation", "attrs", "previous", "seen_before", "carried")
    # min_by and max_by take the value of the first or last sighting; `first` would depend on row
    # order.
    islands = numbered.groupBy(*key, "island").agg(
        F.min("at").alias("valid_from"),
        F.max_by("following", "at").alias("gone"),
        *(F.min_by(name, "at").alias(name) for name in first),
    )
    in_order = of_object.orderBy("valid_from")
    with_next = islands.withColumns(
        {
            "next_from": F.lead("valid_from").over(in_order),
            "last_from": F.lag("valid_from").over(in_order),
        }
    )
    # A snapshot that already shows the next form does not prove that the object was deleted in
    # between.
    deleted = F.col("gone").isNotNull() & (
        F.col("next_from").isNull() | (F.col("gone") < F.col("next_from"))
    )
    end_columns = {
        "deleted": deleted,
        "valid_to": F.when(deleted, F.col("gone")).otherwise(F.col("next_from")),
        "seen_before": F.when(F.col("carried"), F.col("seen_before")).otherwise(
            F.greatest("previous", "last_from")
        ),
    }
    return with_next.withColumns(end_columns).select(*key, *_INTERVAL_COLUMNS)


def make_runs(rows: DataFrame, key: Sequence[str]) -> DataFrame:
    """Merge rows that follow each other: return key, since, until (null: it goes on).

    rows: key, valid_from, valid_to, and n, which grows by one from each interval of an object to
    the one that follows it without a gap. A key has at most one row for each n.
    """
    in_order = Window.partitionBy(*key).orderBy("n")
    islands = rows.withColumn("island", F.col("n") - F.row_number().over(in_order))
    return islands.groupBy(*key, "island").agg(
        F.min("valid_from").alias("since"), F.max_by("valid_to", "n").alias("until")
    )


def sort_entries(attrs: Column) -> Column:
    """Return a map as a sorted array, which can be compared: map order is the order of writing."""
    return F.array_sort(F.map_entries(attrs))
