"""Compare what is declared, recorded and live, object by object: what differs, how, since when.

Having is three-valued: a live object is absent only if a complete sweep of its kind did not show
it, and unmanaged only if no unread state or configuration may own it. Everything else is `unknown`,
which never counts as in sync or as deleted. The classes are in `drift_rows`.

If several states have an object, one of them decides: first one that declares and records it, then
one that declares it, then one whose configuration is known; by name among equals.
"""

from __future__ import annotations

from collections.abc import Callable

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, Window

from ...core.landing import DESIRED, LIVE, MEASURED, STATE
from ..landed.register import Register
from ..landed.snapshots import CHECKSUM_COLUMN, add_cluster_names, keep_apart, select_newest
from ..tables.definitions import TABLES, BuildContext, Frames
from .drift_rows import UNDECLARED, UNKNOWN, has_side, list_rows
from .history import is_internal, make_runs, select_good
from .resources import owner_by_name

KEY = ("cluster", "kind", "key")
READ_STATUSES = ("read", "partial")
"""Status of clusters whose rows tell how they are now."""
SHOWN = ("complete", "visible_only")
"""Coverage of a kind whose objects were listed."""
GROUP, NOBODY = ("cluster", "kind", "group_lineage"), ""
"""Objects that become unknown together: those of one kind and one deciding state, or of nobody."""


def build(frames: Frames, context: BuildContext) -> DataFrame:
    """Return the rows of `drift`: one per object (path ""), one per path that differs, and one per
    live override that its block does not declare.

    Inputs: desired, recorded, live, and those of `_list_past_rows`. first_seen follows from all
    snapshots that ever landed. as_of: the newest capture or failed try that the row rests on.
    """
    rows = list_rows(_join_objects(frames, context))
    runs = make_runs(_list_past_rows(frames), [*KEY, "path", "drift_class"])
    now = runs.where(F.col("until").isNull()).drop("until", "island")
    unread = _list_unread(frames, context).where(F.col("until").isNull())
    reasons = unread.groupBy(*GROUP).agg(F.min("since").alias("unread_since"))
    dated = rows.withColumn("group_lineage", F.coalesce("lineage", F.lit(NOBODY)))
    dated = dated.join(now, [*KEY, "path", "drift_class"], how="left").join(
        F.broadcast(reasons), list(GROUP), how="left"
    )
    # as_of: no snapshot tells since when a partial look hides the object.
    since = F.when(F.col("drift_class") == UNKNOWN, F.col("unread_since")).otherwise(F.col("since"))
    return dated.withColumn("first_seen", F.coalesce(since, "as_of")).select(*TABLES["drift"].names)


def build_daily(frames: Frames, context: BuildContext) -> DataFrame:
    """Return the rows of `drift_daily`: objects per class at the end of each day, and objects with
    undeclared overrides. Days end with the newest try to read the cluster.

    Inputs: those of `_list_past_rows`. A kind, or a configuration, that could not be read at the
    end of a day makes its objects unknown on that day.
    """
    last_day = F.broadcast(_list_tries(frames).groupBy("cluster").agg(_last_day("at")))
    counts = _count_days(_list_past_rows(frames), last_day)
    unread_from, unread_until = F.to_date("since"), F.date_sub(F.to_date("until"), 1)
    unread = (
        _list_unread(frames, context)
        .join(last_day, "cluster", how="inner")
        .select(*GROUP, _list_days(unread_from, unread_until))
        .distinct()
        .withColumn("unread", F.lit(True))
    )
    judged = counts.join(unread, [*GROUP, "day"], how="left").where(
        F.col("unread").isNull() | (F.col("drift_class") != UNDECLARED)
    )
    drift_class = F.when(F.col("unread"), UNKNOWN).otherwise(F.col("drift_class"))
    return (
        judged.groupBy("day", "cluster", "kind", drift_class.alias("drift_class"))
        .agg(F.sum("objects").alias("objects"))
        .select(*TABLES["drift_daily"].names)
    )


def _count_days(rows: DataFrame, last_day: DataFrame) -> DataFrame:
    """Return GROUP, drift_class, day, objects. rows: of `_list_past_rows`."""
    group = [*GROUP, "drift_class"]
    counted = (F.col("path") == "") | (F.col("drift_class") == UNDECLARED)
    ends = F.explode(F.array(F.lit(1), F.lit(-1))).alias("change")
    time = F.when(F.col("change") > 0, F.col("valid_from")).otherwise(F.col("valid_to"))
    steps = rows.where(counted).select("*", ends).withColumn("day", F.to_date(time))
    # What begins and ends on the same day is not there at its end.
    by_day = steps.where(F.col("day").isNotNull()).groupBy(*group, "key", "day")
    of_object = Window.partitionBy(*group, "key").orderBy("day")
    # An object has one row about itself but maybe several overrides: count it once.
    is_there = (F.sum("change").over(of_object) > 0).cast("int")
    days = by_day.agg(F.sum("change").alias("change")).withColumn("there", is_there)
    change = F.col("there") - F.coalesce(F.lag("there").over(of_object), F.lit(0))
    moved = days.withColumn("change", change).where(F.col("change") != 0)
    of_group = Window.partitionBy(*group).orderBy("day")
    numbers = {
        "objects": F.sum("change").over(of_group),
        "until": F.date_sub(F.lead("day").over(of_group), 1),
    }
    counts = moved.groupBy(*group, "day").agg(F.sum("change").alias("change")).withColumns(numbers)
    spans = counts.where(F.col("objects") > 0).withColumnRenamed("day", "begin")
    return spans.join(last_day, "cluster", how="inner").select(
        *group, "objects", _list_days(F.col("begin"), F.col("until"))
    )


def _last_day(time: str) -> Column:
    return F.to_date(F.max(time)).alias("last_day")


def _list_days(begin: Column, end: Column) -> Column:
    """Return a row for each day from begin to end, and none after last_day. end null: last_day."""
    last = F.least(end, F.col("last_day"))
    # `sequence` counts backwards if its end comes first.
    days = F.when(begin <= last, F.sequence(begin, last))
    return F.explode(days).alias("day")


# ── what it was before ──────────────────────────────────────────────────────────────────


def _list_past_rows(frames: Frames) -> DataFrame:
    """Return KEY, group_lineage, path, drift_class of all rows that `drift` ever had, with n,
    valid_from and valid_to as `make_runs` takes them.

    Inputs: history, declared_history, cluster, lineage, snapshot. Each side counts as it was last
    read: a look that failed, or that did not show everything, is no change. Before a side was read
    for the first time, nothing is said about objects that it lacks.
    """
    rows = list_rows(_list_intervals(frames))
    lineage = F.coalesce("lineage", F.lit(NOBODY)).alias("group_lineage")
    past = rows.where(F.col("drift_class") != UNKNOWN)
    return past.select(*KEY, lineage, "path", "drift_class", "n", "valid_from", "valid_to")


def _list_intervals(frames: Frames) -> DataFrame:
    """Return KEY, n, valid_from, valid_to, and what `_list_rows` takes: one row per object and time
    in which no side changed."""
    live = frames["history"].where(~F.col("kind").isin(*MEASURED))
    no_time, no_text = F.lit(None).cast("timestamp"), F.lit(None).cast("string")
    about = {"source": F.lit(LIVE), "lineage": no_text, "first_d": no_time, "first_s": no_time}
    columns = (*about, "attrs", "valid_from", "valid_to")
    sides = (
        live.withColumns(about)
        .select(*KEY, *columns)
        .unionByName(_place_declared(frames).select(*KEY, *columns))
    )
    objects = sides.groupBy(*KEY).agg(F.collect_list(F.struct(*columns)).alias("sides"))
    times = F.array_compact(F.concat("sides.valid_from", "sides.valid_to"))
    cuts = objects.withColumn("times", F.array_sort(F.array_distinct(times)))
    intervals = cuts.select(
        *KEY, "sides", "times", F.posexplode("times").alias("n", "valid_from")
    ).withColumn("valid_to", F.get("times", F.col("n") + 1))
    at = F.col("valid_from")
    is_then = F.filter(
        "sides",
        lambda it: (it["valid_from"] <= at) & (it["valid_to"].isNull() | (it["valid_to"] > at)),
    )
    return _add_sides(intervals.withColumn("sides", is_then), frames)


def _add_sides(intervals: DataFrame, frames: Frames) -> DataFrame:
    """Choose the state that decides, as `_join_ours` does, and add what `list_rows` takes."""

    def list_lineages(source: str, is_so: Callable[[Column], Column]) -> Column:
        of_source = F.filter("sides", lambda it: (it["source"] == source) & is_so(it))
        return F.transform(of_source, lambda it: it["lineage"])

    declaring = list_lineages(DESIRED, lambda it: F.lit(True))
    recording = list_lineages(STATE, lambda it: F.lit(True))
    configured = list_lineages(STATE, lambda it: it["first_d"] <= F.col("valid_from"))
    ranked = (F.array_intersect(declaring, recording), declaring, configured, recording)
    chosen = intervals.withColumn("lineage", F.coalesce(*map(F.array_min, ranked)))

    def get_side(source: str) -> Column:
        is_of = F.filter(
            "sides",
            lambda it: (it["source"] == source) & it["lineage"].eqNullSafe(F.col("lineage")),
        )
        return F.get(is_of, F.lit(0))

    live = F.get(F.filter("sides", lambda it: it["source"] == LIVE), F.lit(0))
    first = F.coalesce(get_side(STATE), get_side(DESIRED))
    sides = F.struct(
        get_side(DESIRED)["attrs"].alias("d"),
        get_side(STATE)["attrs"].alias("s"),
        live["attrs"].alias("l"),
        first["first_d"].alias("first_d"),
        first["first_s"].alias("first_s"),
    )
    placed = (
        chosen.withColumn("_side", keep_apart(sides))
        .select("*", "_side.*")
        .drop("_side")
        .join(F.broadcast(_list_first_looks(frames)), ["cluster", "kind"], how="left")
    )
    firsts = {"d": F.col("first_d"), "s": F.col("first_s"), "l": F.col("first_l")}
    is_free = F.col("lineage").isNull()
    # An object that a side lacks was not missed before that side was read.
    begins = (F.when(F.col(side).isNull(), time) for side, time in firsts.items())
    has = {
        "has_d": has_side("d", is_free | F.col("first_d").isNotNull()),
        "has_s": has_side("s", is_free | F.col("first_s").isNotNull()),
        "has_l": has_side("l", F.col("first_l").isNotNull()),
        "valid_from": F.greatest("valid_from", *begins),
    }
    dated = placed.withColumns(has).drop("sides", "times")
    is_there = F.col("d").isNotNull() | F.col("s").isNotNull() | F.col("l").isNotNull()
    is_ours = F.col("lineage").isNotNull() | ~is_internal("l")
    lasts = F.col("valid_to").isNull() | (F.col("valid_to") > F.col("valid_from"))
    return dated.where(is_there & is_ours & lasts)


def _place_declared(frames: Frames) -> DataFrame:
    """Return the intervals of `declared_history` under the names of clusters, with first_d and
    first_s: when a configuration and a state of the lineage were first read.

    What is read together with a cluster counts from the moment at which the cluster was read.
    Otherwise each change that an apply makes would be drift for the seconds in between.
    """
    declared = frames["snapshot"].where(
        (F.col("source") != LIVE) & F.col(CHECKSUM_COLUMN).isNotNull()
    )
    firsts = declared.groupBy(F.col("subject").alias("lineage")).agg(
        F.min(F.when(F.col("source") == DESIRED, F.col("captured_at"))).alias("first_d"),
        F.min(F.when(F.col("source") == STATE, F.col("captured_at"))).alias("first_s"),
    )
    looks = select_good(frames["snapshot"]).groupBy("cluster", "snapshot")
    moments = looks.agg(F.min("at").alias("moment"))
    scope = F.explode(F.map_values("scopes")).alias("scope_id")
    reading = declared.select(
        F.col("subject").alias("lineage"), "snapshot", F.col("captured_at").alias("at"), scope
    )
    placed = add_cluster_names(reading.where(F.col("scope_id").isNotNull()), frames["cluster"])
    pairs = placed.join(moments, ["cluster", "snapshot"], how="inner")
    pairs = pairs.groupBy("lineage", "cluster", "at").agg(F.min("moment").alias("moment"))
    rounds = pairs.groupBy("lineage", "cluster").agg(
        F.map_from_entries(F.collect_list(F.struct("at", "moment"))).alias("moments")
    )
    rows = add_cluster_names(frames["declared_history"], frames["cluster"])
    dated = rows.join(F.broadcast(firsts), "lineage", how="left").join(
        F.broadcast(rounds), ["lineage", "cluster"], how="left"
    )
    times = ("valid_from", "valid_to", "first_d", "first_s")
    return dated.withColumns(
        {name: F.coalesce(F.try_element_at("moments", F.col(name)), name) for name in times}
    )


def _list_first_looks(frames: Frames) -> DataFrame:
    """Return cluster, kind, first_l: the first look that showed all objects of the kind."""
    kinds = select_good(frames["snapshot"]).select("cluster", "at", F.explode("coverage"))
    whole = kinds.where(F.col("value") == "complete").withColumnRenamed("key", "kind")
    return whole.groupBy("cluster", "kind").agg(F.min("at").alias("first_l"))


# ── what could not be read ──────────────────────────────────────────────────────────────


def _list_tries(frames: Frames) -> DataFrame:
    """Return cluster, at, coverage of all tries to read clusters. coverage null: it failed."""
    live = frames["snapshot"].where(F.col("source") == LIVE)
    order = (F.desc("snapshot"), F.desc("_file"))
    tries = select_newest(live, ["subject", "captured_at"], *order)
    coverage = F.when(F.col(CHECKSUM_COLUMN).isNotNull(), F.col("coverage")).alias("coverage")
    return tries.select(
        F.col("subject").alias("cluster"), F.col("captured_at").alias("at"), coverage
    )


def _list_unread(frames: Frames, context: BuildContext) -> DataFrame:
    """Return GROUP, since, until (null: still): when its objects were unknown, because their kind
    or a configuration that may own them could not be read."""
    tries = _list_tries(frames)
    kinds = tries.select("cluster", F.explode(F.map_keys("coverage")).alias("kind")).distinct()
    reach = _list_reach(frames["lineage"], frames["cluster"])
    of_kinds = _merge_unread(_list_kind_times(tries, kinds, context), ["cluster", "kind"])
    nobody = frames["cluster"].select("cluster", F.lit(NOBODY).alias("group_lineage"))
    names = reach.withColumnRenamed("lineage", "group_lineage").unionByName(nobody)
    configurations = select_newest(
        frames["snapshot"].where(F.col("source") == DESIRED),
        ["subject", "captured_at"],
        *(F.desc("snapshot"), F.desc("_file")),
    )
    order = Window.partitionBy("lineage").orderBy("valid_from")
    times = configurations.select(
        F.col("subject").alias("lineage"),
        F.col("captured_at").alias("valid_from"),
        F.col(CHECKSUM_COLUMN).isNotNull().alias("is_read"),
    ).withColumn("valid_to", F.lead("valid_from").over(order))
    of_lineages = _merge_unread(times, ["lineage"]).join(reach, "lineage", how="inner")
    # Nobody's objects may be declared in a configuration that is unread.
    owners = F.explode(F.array("lineage", F.lit(NOBODY))).alias("group_lineage")
    unread = of_lineages.select("cluster", "since", "until", owners).join(kinds, "cluster", "inner")
    columns = (*GROUP, "since", "until")
    return (
        of_kinds.join(names, "cluster", how="inner")
        .select(*columns)
        .unionByName(unread.select(*columns))
    )


def _list_kind_times(tries: DataFrame, kinds: DataFrame, context: BuildContext) -> DataFrame:
    """Return cluster, kind, valid_from, valid_to, is_read: from each try to the next one. What was
    read becomes unread when it is stale."""
    order = Window.partitionBy("cluster").orderBy("at")
    stale_after = F.make_dt_interval(secs=F.lit(context.register.settings.stale_after_hours * 3600))
    stale_at, following = F.col("at") + stale_after, F.col("following")
    coverage = F.try_element_at("coverage", F.col("kind"))
    is_read = F.coalesce(coverage.isin(*SHOWN), F.lit(False))
    is_stale = is_read & (F.coalesce(following, F.lit(context.as_of)) > stale_at)
    timed = tries.withColumn("following", F.lead("at").over(order)).join(kinds, "cluster", "inner")
    # What becomes stale has two times.
    is_first = F.explode(F.array(F.lit(True), F.lit(False))).alias("is_first")
    times = timed.select("*", is_first).where(F.col("is_first") | is_stale)
    return times.select(
        "cluster",
        "kind",
        F.when(F.col("is_first"), F.col("at")).otherwise(stale_at).alias("valid_from"),
        F.when(F.col("is_first") & is_stale, stale_at).otherwise(following).alias("valid_to"),
        (F.col("is_first") & is_read).alias("is_read"),
    )


def _merge_unread(times: DataFrame, key: list[str]) -> DataFrame:
    order = Window.partitionBy(*key).orderBy("valid_from")
    numbered = times.withColumn("n", F.row_number().over(order))
    return make_runs(numbered.where(~F.col("is_read")), key).select(*key, "since", "until")


# ── who has it ──────────────────────────────────────────────────────────────────────────


def _join_objects(frames: Frames, context: BuildContext) -> DataFrame:
    """Return one row per object. has_d, has_s, has_l: whether it is declared, recorded, live (null:
    unknown); d, s, l: the attributes on each side that certainly has it."""
    live = frames["live"].where(~F.col("kind").isin(*MEASURED))
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
    is_shown = is_read & coverage.isin(*SHOWN)
    return joined.select(
        *KEY,
        "lineage",
        "address",
        F.coalesce("owner", "l_owner", owner_by_name(context.register)).alias("owner"),
        F.greatest("d_at", "s_at", "tried_at").alias("as_of"),
        # `unmanaged` says that no state owns the object, so all states that might must be known.
        has_side("d", F.col("desired_known") | is_free).alias("has_d"),
        has_side("s", F.col("state_at").isNotNull() | is_free).alias("has_s"),
        F.when(F.col("l").isNotNull(), F.when(is_shown, F.lit(True)))
        # Otherwise null: `visible_only` may hide the object, `failed` says nothing at all.
        .when(is_read & (coverage == "complete"), F.lit(False))
        .alias("has_l"),
        "d",
        "s",
        F.when(is_shown, F.col("l")).alias("l"),
    )


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
    """Return for each cluster: is_read, coverage, tried_at; doubtful: an object without
    a known owner may belong to a state or configuration that could not be read."""
    cluster = frames["cluster"]
    doubtful = _find_doubtful(cluster, frames["lineage"], context.register)
    tried = _list_tries(frames).groupBy("cluster").agg(F.max("at").alias("tried_at"))
    is_read = F.col("status").isin(*READ_STATUSES).alias("is_read")
    return (
        cluster.select("cluster", is_read, "coverage")
        .join(doubtful.withColumn("doubtful", F.lit(True)), "cluster", how="left")
        # full: rows may be about a cluster that has another name now.
        .join(tried, "cluster", how="full")
    )


def _find_doubtful(cluster: DataFrame, lineage: DataFrame, register: Register) -> DataFrame:
    """Return the clusters that an unread state or configuration may reach. A state that was never
    read may reach all of them."""
    if any(state.lineage is None for state in register.states):
        return cluster.select("cluster")
    unread = lineage.where(~F.col("desired_known") | F.col("state_at").isNull())
    return _list_reach(unread, cluster).select("cluster").distinct()


def _list_reach(lineage: DataFrame, cluster: DataFrame) -> DataFrame:
    """Return lineage and cluster: which clusters each state or configuration may reach. One without
    scopes may reach all of them."""
    scope = F.explode_outer(F.map_values("scopes")).alias("scope")
    reach = lineage.select("lineage", scope).distinct()
    # A join on `or` is a nested loop; both sides are one row per cluster or scope, so it stays
    # small.
    hit = F.col("scope").isNull() | F.col("cluster_id").isNull()
    hit |= F.col("scope") == F.col("cluster_id")
    return cluster.join(reach, hit, how="inner").select("lineage", "cluster").distinct()
