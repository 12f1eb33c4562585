"""One build: takes in what has landed, makes the tables that it changes, and publishes them.

Until the last step readers see the build before. A build that dies is taken back by the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import pyspark.sql.functions as F
from msgspec import Struct
from msgspec.structs import replace
from pyspark.sql import DataFrame

from ...core.landing import AUDIT, REGISTER, SOURCES
from ...core.objects import Objects
from ...core.progress import Progress, Reporter, ignore_event
from ..landed.register import Register
from ..spark.session import LandedBytes
from ..spark.store import Start, TableStore
from ..tables import manifest
from ..tables.dataset import BuildContext, Dataset
from ..tables.definitions import SCHEMA_VERSION, TABLES, RebuildScope
from ..tables.manifest import ALL, Clusters, Manifest
from . import inputs, intake
from .changed_clusters import ChangedClusters, find_changed_clusters
from .order import FIRST, select_datasets
from .parallel import make_together
from .workspace import BuildWorkspace, explain_errors, make_table, take_rows

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NOBODY: Clusters = frozenset()

Follow = Callable[[TableStore, str], None]
"""Adds to `audit_raw` what a topic has new, in the name of a build."""


class BuildOptions(Struct, frozen=True):
    """code: the version of kafkaform; only: tables, none: all; max_corrupt: instead of the
    register's; follow: a topic to be read first; held: raises Locked if the root's lock is not
    ours any more."""

    code: str
    only: tuple[str, ...] = ()
    max_corrupt: float | None = None
    follow: Follow | None = None
    held: Callable[[], None] = lambda: None


class BuildResult(Struct, frozen=True):
    """manifest: of the current build; made: the tables that this run has written, empty: there
    was nothing to do; clusters: the touched ones."""

    manifest: Manifest
    made: tuple[str, ...] = ()
    clusters: Clusters = NOBODY


class _Plan(Struct, frozen=True):
    """What there is to do. files: path below the landing folder -> bytes, of all; new: those that
    the build before does not know; died: builds since then that did not end; stale: it knows
    nothing that counts any more; reworded: fleet.hcl says something else than it did then."""

    before: Manifest | None
    files: Mapping[str, int]
    new: tuple[str, ...]
    died: tuple[str, ...]
    chosen: tuple[Dataset, ...]
    register: Register
    stale: bool
    reworded: bool

    @property
    def landed(self) -> LandedBytes:
        """Tables about the whole fleet are made of all there is, others of what is new, unless
        nothing counts any more that was made before."""
        everything = sum(self.files.values())
        anew = self.stale or self.reworded
        return LandedBytes(everything, everything if anew else sum(self.files[n] for n in self.new))

    @property
    def nothing(self) -> bool:
        owed = self.before.owed.keys() if self.before else ()
        return not (self.stale or self.new or any(d.table in owed for d in self.chosen))


def run_build(
    start: Start,
    objects: Objects,
    root: str,
    datasets: Sequence[Dataset],
    options: BuildOptions,
    report: Reporter = ignore_event,
) -> BuildResult:
    """Make the tables of what has landed. start: is not called if there is nothing to do.
    objects: those of the root, whose lock the caller holds.

    Raises UsageError: nothing has landed, or `only` names no table; KafkaformError: too much of
    it is corrupt; StorageError: a table cannot be made or breaks its own rules, or a later
    version has written the root.
    """
    plan = _make_plan(objects, datasets, options)
    if plan.before and plan.nothing and not (options.follow or plan.died):
        return BuildResult(plan.before)
    started = datetime.now(UTC)
    report(Progress("fleet", "starting Spark", 0, None))
    store = TableStore(start(plan.landed), root)
    print_ = inputs.compute_fingerprint(plan.files, (options.code, *sorted(options.only)))
    # What topics bring is no file, so that files alone would give two builds one name.
    timed = options.follow or plan.nothing
    build = f"{started:%Y%m%dT%H%M%S}-{print_[:12]}" if timed else print_[:16]
    work = BuildWorkspace(store, build, plan.before)
    if plan.before:
        work.versions.update({name: w.version for name, w in plan.before.tables.items()})
    if manifest.begin_build(objects, build):
        for name in plan.died:
            manifest.forget_build(objects, name)
        with explain_errors("what an earlier build has left cannot be taken back"):
            work.versions.update(store.recover(plan.before, plan.died))
    brought = _follow_topic(work, plan, options.follow)
    if plan.before and plan.nothing and not brought:
        manifest.end_build(objects)
        return BuildResult(plan.before)
    _take_in_files(work, plan, started, brought)
    context = BuildContext(plan.register, _find_as_of(work), build)
    clusters, owed = _make_all(work, plan, datasets, context, options.held, report)
    options.held()
    made = Manifest(
        build,
        {**(plan.before.tables if plan.before else {}), **work.written},
        started.isoformat(),
        datetime.now(UTC).isoformat(),
        context.as_of.isoformat(),
        print_,
        options.code,
        owed,
    )
    manifest.publish(objects, made, plan.files)
    manifest.end_build(objects)
    return BuildResult(made, tuple(name for name in TABLES if name in work.written), clusters)


def _make_plan(objects: Objects, datasets: Sequence[Dataset], options: BuildOptions) -> _Plan:
    before = manifest.read_current(objects)
    listed = inputs.list_inputs(objects)
    files = {name: listed[name] for name in intake.list_ready(listed, ())}
    register = inputs.read_current_register(objects, files)
    known = manifest.read_inputs(objects, before.build) if before else frozenset()
    stale = before is None or (before.code, before.schema_version) != (options.code, SCHEMA_VERSION)
    new = intake.list_ready(listed, known)
    resaid = any(inputs.get_source(name) == REGISTER for name in new)
    return _Plan(
        before,
        files,
        new,
        manifest.list_died(objects, before.build if before else None),
        select_datasets(datasets, options.only),
        _limit_corrupt(register, options.max_corrupt),
        stale,
        resaid and inputs.read_newest_register(objects, known) != register,
    )


def _limit_corrupt(register: Register, max_corrupt: float | None) -> Register:
    if max_corrupt is None:
        return register
    return replace(register, settings=replace(register.settings, max_corrupt=max_corrupt))


def _follow_topic(work: BuildWorkspace, plan: _Plan, follow: Follow | None) -> bool:
    """Whether a topic has brought lines that are in no build: just now, or to one that died."""
    if follow is None and not plan.died:
        return False
    with explain_errors("what a topic brings cannot be read"):
        if follow is not None:
            follow(work.store, work.build)
        latest = work.store.latest("audit_raw")
        if latest is None or work.store.has_same_rows(
            "audit_raw", latest, work.versions.get("audit_raw")
        ):
            return False
    work.versions["audit_raw"] = latest
    return True


def _take_in_files(work: BuildWorkspace, plan: _Plan, now: datetime, topic: bool) -> None:
    """New landing files, and what is bad of what a topic has brought."""
    seen = {name: work.read(name) for name in ("audit_raw", "quarantine")} if topic else {}

    def write(table: str, rows: DataFrame) -> DataFrame:
        if table not in work.versions or topic or _may_have(table, plan.new):
            take_rows(work, table, rows)
        return work.read(table, {"_build": [work.build]}).where(F.col("_build") == work.build)

    stamp = intake.BuildStamp(work.build, now)
    limit, store = plan.register.settings.max_corrupt, work.store
    with explain_errors("what has landed cannot be taken in"):
        intake.take_in(store.spark, store.landing, plan.new, stamp, limit, seen, write)


def _may_have(table: str, files: Sequence[str]) -> bool:
    """Whether these files can have rows for a bronze table; any file can have bad lines."""
    wanted = _SOURCES.get(table)
    return wanted is None or any(inputs.get_source(name) in wanted for name in files)


_SOURCES: Mapping[str, Sequence[str]] = {
    "audit_raw": (AUDIT,),
    "register_raw": (REGISTER,),
    "snapshot": SOURCES,
    "snapshot_raw": SOURCES,
}


def _find_as_of(work: BuildWorkspace) -> datetime:
    """The newest time at which anything was captured: now, or when the build before was made."""
    mine = F.col("_build") == work.build
    snapshots = work.read("snapshot").where(mine).select(F.col("captured_at").alias("at"))
    taken = work.read("register_raw").where(mine).select(F.col("taken").alias("at"))
    # As a number: how Python would take a timestamp depends on the machine's time zone.
    both = snapshots.unionByName(taken).agg(F.max(F.unix_micros("at")).alias("at"))
    newest = EPOCH + timedelta(microseconds=both.collect()[0]["at"] or 0)
    return max(newest, datetime.fromisoformat(work.before.as_of)) if work.before else newest


def _make_all(
    work: BuildWorkspace,
    plan: _Plan,
    datasets: Sequence[Dataset],
    context: BuildContext,
    held: Callable[[], None],
    report: Reporter,
) -> tuple[Clusters, Mapping[str, Clusters]]:
    """The touched clusters, and what this build owes to the tables that it was told to leave."""
    lineages = ALL if plan.stale else _find_lineages(work, plan)
    owed = dict(plan.before.owed if plan.before else {})
    early, total = _count_early(plan.chosen), len(plan.chosen)

    def make_all(some: Sequence[Dataset], news: ChangedClusters, done: int) -> None:
        due = {
            d.table: _unite_clusters(_select_clusters(d, news, lineages), owed.pop(d.table, NOBODY))
            for d in some
        }

        def one(dataset: Dataset) -> None:
            wanted = due[dataset.table]
            if wanted is ALL or wanted:
                make_table(work, dataset, wanted, context)

        def begins(tables: Sequence[str], more: int) -> None:
            held()
            label = f"making {', '.join(tables)}"
            report(Progress("fleet", label, done + more, total, "tables", even=False))

        make_together(some, one, begins, work.store.spark.interruptAll)

    make_all(plan.chosen[:early], ChangedClusters(ALL, True), 0)
    news = ChangedClusters(ALL, True) if plan.stale else _find_changed_clusters(work, plan, context)
    make_all(plan.chosen[early:], news, early)
    report(Progress("fleet", "tables made", total, total, "tables", finished=True))
    made = {dataset.table for dataset in plan.chosen}
    for left in (dataset for dataset in datasets if dataset.table not in made):
        more = _select_clusters(left, news, lineages)
        owed[left.table] = _unite_clusters(more, owed.get(left.table, NOBODY))
    return news.clusters, {table: who for table, who in owed.items() if who is ALL or who}


def _count_early(chosen: Sequence[Dataset]) -> int:
    """How many come before it can be told which clusters are touched."""
    return max((n for n, each in enumerate(chosen, 1) if each.table in FIRST), default=0)


def _select_clusters(dataset: Dataset, news: ChangedClusters, lineages: Clusters) -> Clusters:
    """What of a table is to be made anew."""
    if dataset.of_records and not (lineages is ALL or lineages or news.renamed):
        return NOBODY
    scope = TABLES[dataset.table].scope
    return (
        news.clusters
        if scope is RebuildScope.CLUSTER
        else lineages
        if scope is RebuildScope.LINEAGE
        else ALL
    )


def _find_lineages(work: BuildWorkspace, plan: _Plan) -> Clusters:
    """The logs that have new lines."""
    found = _select_new_lines(work, plan).select("lineage").where(F.col("lineage").isNotNull())
    return frozenset(row["lineage"] for row in found.distinct().collect())


def _select_new_lines(work: BuildWorkspace, plan: _Plan) -> DataFrame:
    builds = (work.build, *plan.died)
    return work.read("audit_raw", {"_build": builds}).where(F.col("_build").isin(*builds))


def _find_changed_clusters(
    work: BuildWorkspace, plan: _Plan, context: BuildContext
) -> ChangedClusters:
    if plan.reworded:
        return ChangedClusters(ALL, True)
    views = {name: (work.read_before(name), work.read(name)) for name in FIRST}
    lines = _select_new_lines(work, plan)
    today = F.lit(context.as_of.date())
    ended = work.read_before("policy_findings").where(F.col("waived_until") < today)
    with explain_errors("it cannot be told what is new"):
        return find_changed_clusters(plan.new, views["cluster"], views["lineage"], lines, ended)


def _unite_clusters(one: Clusters, other: Clusters) -> Clusters:
    return ALL if one is ALL or other is ALL else one | other
