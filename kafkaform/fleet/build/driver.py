"""Run one build: read what has landed, recompute the tables that it changes, publish the manifest.
`DATASETS` has every computed table, with its inputs and the function that computes it.

Readers see the previous build until the manifest is published. What a dead build has written is
taken back by the next one. `prune` forgets old builds and removes the files that only they needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import pyspark.sql.functions as F
from msgspec import Struct
from msgspec.structs import replace
from pyspark.sql import DataFrame

from ...core.landing import AUDIT, LIVE, REGISTER, SOURCES
from ...core.objects import Objects
from ...core.progress import Progress, Reporter, ignore_event
from ..access import grants, permissions
from ..datasets import (
    capacity,
    consistency,
    drift,
    growth,
    history,
    policy,
    quotas,
    resources,
    runs,
    unused_topics,
)
from ..landed.register import Register
from ..spark.session import LandedBytes
from ..spark.store import Start, TableStore, vacuum
from ..tables import manifest
from ..tables.definitions import SCHEMA_VERSION, TABLES, BuildContext, Dataset, RebuildScope
from ..tables.manifest import ALL_CLUSTERS, Clusters, Manifest
from . import intake
from .intake import EVERYTHING, ChangedClusters, find_changed_clusters
from .workspace import (
    SCOPE_TABLES,
    BuildWorkspace,
    explain_errors,
    make_table,
    make_together,
    select_datasets,
    take_rows,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NO_CLUSTERS: Clusters = frozenset()
"""No clusters."""

Follow = Callable[[TableStore, str], None]
"""Appends what is new in a topic to `audit_raw`. It gets the store and the name of the build."""
_SOURCES: Mapping[str, Sequence[str]] = {
    "audit_raw": (AUDIT,),
    "register_raw": (REGISTER,),
    "snapshot": SOURCES,
    "snapshot_raw": SOURCES,
}
"""Bronze table -> the landing folders that it is read from."""


class BuildOptions(Struct, frozen=True):
    """What a run was asked for."""

    code: str
    """The version of kafkaform."""
    only: tuple[str, ...] = ()
    """Tables to make, with their inputs. Empty: all."""
    max_corrupt: float | None = None
    """Overrides the register's."""
    follow: Follow | None = None
    """Reads a topic first."""
    ensure_lock: Callable[[], None] = lambda: None
    """Raises Locked if this build no longer holds the root's lock."""


class BuildResult(Struct, frozen=True):
    """What a run has done."""

    manifest: Manifest
    """Of the build that is current now."""
    tables: tuple[str, ...] = ()
    """The tables that this run wrote. Empty: there was nothing to do."""
    clusters: Clusters = NO_CLUSTERS
    """The clusters that were recomputed."""


class _Plan(Struct, frozen=True):
    """What a run has to do."""

    previous: Manifest | None
    """The current build, if any."""
    files: Mapping[str, int]
    """Path below the landing folder -> size, of every landing file that is complete."""
    new_files: tuple[str, ...]
    """Files that the previous build does not know."""
    dead_builds: tuple[str, ...]
    """Builds since then that died."""
    datasets: tuple[Dataset, ...]
    register: Register
    stale: bool
    """Nothing of the previous build can be kept: there is none, or another version made it."""
    register_changed: bool
    """fleet.hcl has changed, so every cluster is judged again."""

    @property
    def landed(self) -> LandedBytes:
        """How much this build computes its tables from, by which Spark is tuned."""
        everything = sum(self.files.values())
        is_full = self.stale or self.register_changed
        return LandedBytes(
            everything, everything if is_full else sum(self.files[n] for n in self.new_files)
        )

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to compute."""
        outdated = self.previous.owed.keys() if self.previous else ()
        return not (self.stale or self.new_files or any(d.table in outdated for d in self.datasets))


def run_build(
    start: Start,
    objects: Objects,
    root: str,
    datasets: Sequence[Dataset],
    options: BuildOptions,
    report: Reporter = ignore_event,
) -> BuildResult:
    """Make the tables of what has landed.

    start: starts Spark; it is not called if there is nothing to do. objects: those of the root,
    whose lock the caller holds.

    Raises UsageError: nothing has landed, or `only` names no table; KafkaformError: too many lines
    are bad; StorageError: a table cannot be made or breaks its own rules, or a later version has
    written the root.
    """
    plan = _make_plan(objects, datasets, options)
    if plan.previous and plan.is_empty and not (options.follow or plan.dead_builds):
        return BuildResult(plan.previous)
    started = datetime.now(UTC)
    report(Progress("fleet", "starting the engine", 0, None))
    store = TableStore(start(plan.landed), root)
    fingerprint = intake.compute_fingerprint(plan.files, (options.code, *sorted(options.only)))
    # A topic's records are in no file, so the files alone would give two builds the same name.
    timed = options.follow or plan.is_empty
    build = f"{started:%Y%m%dT%H%M%S}-{fingerprint[:12]}" if timed else fingerprint[:16]
    work = BuildWorkspace(store, build, plan.previous)
    if plan.previous:
        work.versions.update({name: w.version for name, w in plan.previous.tables.items()})
    # Before the first write: a build that dies must be known as dead, or its rows would stay.
    if manifest.begin_build(objects, build):
        _take_back_dead_builds(objects, work, plan)
    has_topic_lines = _follow_topic(work, plan, options.follow)
    if plan.previous and plan.is_empty and not has_topic_lines:
        manifest.end_build(objects)
        return BuildResult(plan.previous)
    _take_in_files(work, plan, started, has_topic_lines)
    context = BuildContext(plan.register, _find_as_of(work), build)
    clusters, outdated = _make_all(work, plan, datasets, context, options.ensure_lock, report)
    # A lease may have been lost while Spark worked. Without this check, two builds could publish.
    options.ensure_lock()
    new_manifest = Manifest(
        build,
        {**(plan.previous.tables if plan.previous else {}), **work.written},
        started.isoformat(),
        datetime.now(UTC).isoformat(),
        context.as_of.isoformat(),
        fingerprint,
        options.code,
        outdated,
    )
    # The only step that readers notice. Everything before it can be repeated.
    manifest.publish(objects, new_manifest, plan.files)
    manifest.end_build(objects)
    return BuildResult(
        new_manifest, tuple(name for name in TABLES if name in work.written), clusters
    )


def _take_back_dead_builds(objects: Objects, work: BuildWorkspace, plan: _Plan) -> None:
    """Restore the tables that dead builds have written. Raises StorageError."""
    # A build may have died between its manifest and `current`: that manifest names versions that
    # are about to be taken back.
    for name in plan.dead_builds:
        manifest.forget_build(objects, name)
    with explain_errors("the tables of a dead build cannot be restored"):
        work.versions.update(work.store.recover(plan.previous, plan.dead_builds))


def _make_plan(objects: Objects, datasets: Sequence[Dataset], options: BuildOptions) -> _Plan:
    previous = manifest.read_current(objects)
    listed = intake.list_inputs(objects)
    # Rows without their `.meta.json` are left out, so that the next run finds them as new.
    files = {name: listed[name] for name in intake.list_ready(listed, ())}
    register = intake.read_current_register(objects, files)
    known_files = manifest.read_inputs(objects, previous.build) if previous else frozenset()
    # A new version of kafkaform may compute other rows from the same input.
    stale = previous is None or (previous.code, previous.schema_version) != (
        options.code,
        SCHEMA_VERSION,
    )
    new = intake.list_ready(listed, known_files)
    settings = register.settings
    if options.max_corrupt is not None:
        settings = replace(settings, max_corrupt=options.max_corrupt)
    has_register = any(intake.get_source(name) == REGISTER for name in new)
    return _Plan(
        previous,
        files,
        new,
        manifest.list_died(objects, previous.build if previous else None),
        select_datasets(datasets, options.only),
        replace(register, settings=settings),
        stale,
        has_register and intake.read_newest_register(objects, known_files) != register,
    )


def _follow_topic(work: BuildWorkspace, plan: _Plan, follow: Follow | None) -> bool:
    """True if `audit_raw` has lines of a topic that no build has: from now, or from a build that
    died."""
    if follow is None and not plan.dead_builds:
        return False
    with explain_errors("new lines of the topic cannot be read"):
        if follow is not None:
            follow(work.store, work.build)
        latest = work.store.latest("audit_raw")
        # Compare rows, not versions: a stream that brings nothing may commit an empty version.
        if latest is None or work.store.has_same_rows(
            "audit_raw", latest, work.versions.get("audit_raw")
        ):
            return False
    work.versions["audit_raw"] = latest
    return True


def _take_in_files(
    work: BuildWorkspace, plan: _Plan, started: datetime, has_topic_lines: bool
) -> None:
    """Read new landing files into the bronze tables, and judge bad lines of topics."""
    # Read before the new files are appended: only lines of topics are judged again here.
    earlier_rows = (
        {name: work.read(name) for name in ("audit_raw", "quarantine")} if has_topic_lines else {}
    )

    def write(table: str, rows: DataFrame) -> DataFrame:
        # Any file can have bad lines.
        sources = _SOURCES.get(table)
        may_have = sources is None or any(intake.get_source(n) in sources for n in plan.new_files)
        # An empty append is a commit and a job; without a table, it creates one.
        if table not in work.versions or has_topic_lines or may_have:
            take_rows(work, table, rows)
        # What was written is read back: Spark would otherwise compute the files' rows again for
        # each use.
        return work.read(table, {"_build": [work.build]}).where(F.col("_build") == work.build)

    stamp = intake.BuildStamp(work.build, started)
    limit, store = plan.register.settings.max_corrupt, work.store
    with explain_errors("landing files cannot be read"):
        intake.take_in(
            store.spark, store.landing, plan.new_files, stamp, limit, earlier_rows, write
        )


def _find_as_of(work: BuildWorkspace) -> datetime:
    """Return the newest time of a snapshot or register: of this build, or of the previous one."""
    is_new = F.col("_build") == work.build
    snapshots = work.read("snapshot").where(is_new).select(F.col("captured_at").alias("at"))
    registers = work.read("register_raw").where(is_new).select(F.col("taken").alias("at"))
    # As a number: how Python would take a timestamp depends on the machine's time zone.
    # The build's now is a capture, never the clock: the same files give the same tables on any day.
    captures = snapshots.unionByName(registers).agg(F.max(F.unix_micros("at")).alias("at"))
    newest = EPOCH + timedelta(microseconds=captures.collect()[0]["at"] or 0)
    return max(newest, datetime.fromisoformat(work.previous.as_of)) if work.previous else newest


def _make_all(
    work: BuildWorkspace,
    plan: _Plan,
    datasets: Sequence[Dataset],
    context: BuildContext,
    ensure_lock: Callable[[], None],
    report: Reporter,
) -> tuple[Clusters, Mapping[str, Clusters]]:
    """Make the tables. Return the clusters that were recomputed, and the clusters that each table
    left out by `--only` still needs."""
    # Before `cluster` and `lineage` are made: those two depend on `run`, which is made by lineage.
    lineages = ALL_CLUSTERS if plan.stale else _find_lineages(work, plan)
    outdated = dict(plan.previous.owed if plan.previous else {})
    early, total = _count_early(plan.datasets), len(plan.datasets)

    def make_all(batch: Sequence[Dataset], changes: ChangedClusters, offset: int) -> None:
        targets = {
            d.table: _unite_clusters(
                _select_clusters(d, changes, lineages), outdated.pop(d.table, NO_CLUSTERS)
            )
            for d in batch
        }

        def make_one(dataset: Dataset) -> None:
            target = targets[dataset.table]
            if target is ALL_CLUSTERS or target:
                make_table(work, dataset, target, context)

        def report_start(tables: Sequence[str], finished: int) -> None:
            ensure_lock()
            label = f"making {', '.join(tables)}"
            report(Progress("fleet", label, offset + finished, total, "tables", even=False))

        make_together(batch, make_one, report_start, work.store.spark.interruptAll)

    # `cluster` and `lineage` come first, for all clusters: only their difference from the previous
    # build tells which clusters the others are recomputed for.
    make_all(plan.datasets[:early], EVERYTHING, 0)
    changes = EVERYTHING if plan.stale else _find_changed_clusters(work, plan, context)
    make_all(plan.datasets[early:], changes, early)
    report(Progress("fleet", "tables made", total, total, "tables", finished=True))
    made_tables = {dataset.table for dataset in plan.datasets}
    # A table that `--only` leaves out owes its readers these clusters. The debt is in the manifest,
    # so that the next full run pays it even if nothing new lands.
    for skipped in (dataset for dataset in datasets if dataset.table not in made_tables):
        outdated[skipped.table] = _unite_clusters(
            _select_clusters(skipped, changes, lineages), outdated.get(skipped.table, NO_CLUSTERS)
        )
    left_out = {name: names for name, names in outdated.items() if names is ALL_CLUSTERS or names}
    return changes.clusters, left_out


def _count_early(datasets: Sequence[Dataset]) -> int:
    """Return how many datasets come before the changed clusters can be determined."""
    return max(
        (n for n, dataset in enumerate(datasets, 1) if dataset.table in SCOPE_TABLES), default=0
    )


def _select_clusters(dataset: Dataset, changes: ChangedClusters, lineages: Clusters) -> Clusters:
    """Return the clusters or lineages of a table that are recomputed."""
    # Such a table says what logs say, under the names of clusters.
    if dataset.of_records and not (lineages is ALL_CLUSTERS or lineages or changes.renamed):
        return NO_CLUSTERS
    scope = TABLES[dataset.table].scope
    return (
        changes.clusters
        if scope is RebuildScope.CLUSTER
        else (lineages if dataset.of_records else changes.lineages)
        if scope is RebuildScope.LINEAGE
        else ALL_CLUSTERS
    )


def _find_lineages(work: BuildWorkspace, plan: _Plan) -> Clusters:
    """Return the lineages of logs that have new lines."""
    lines = _select_new_lines(work, plan).select("lineage").where(F.col("lineage").isNotNull())
    return frozenset(row["lineage"] for row in lines.distinct().collect())


def _select_new_lines(work: BuildWorkspace, plan: _Plan) -> DataFrame:
    """Return the lines that no published build has."""
    builds = (work.build, *plan.dead_builds)
    return work.read("audit_raw", {"_build": builds}).where(F.col("_build").isin(*builds))


def _find_changed_clusters(
    work: BuildWorkspace, plan: _Plan, context: BuildContext
) -> ChangedClusters:
    if plan.register_changed:
        return EVERYTHING
    views = {name: (work.read_previous(name), work.read(name)) for name in SCOPE_TABLES}
    lines = _select_new_lines(work, plan)
    today = F.lit(context.as_of.date())
    # A waiver that ended changes findings without any new file.
    ended = work.read_previous("policy_findings").where(F.col("waived_until") < today)
    with explain_errors("the clusters with new input cannot be determined"):
        return find_changed_clusters(
            plan.new_files, views["cluster"], views["lineage"], lines, _select_scopes(work), ended
        )


def _select_scopes(work: BuildWorkspace) -> DataFrame:
    """Return lineage and scope of the new snapshots of states and configurations."""
    new = work.read("snapshot", {"_build": [work.build]}).where(F.col("_build") == work.build)
    declared = new.where(F.col("source") != LIVE)
    scope = F.explode_outer(F.map_values("scopes")).alias("scope")
    return declared.select(F.col("subject").alias("lineage"), scope)


def _unite_clusters(first: Clusters, second: Clusters) -> Clusters:
    return ALL_CLUSTERS if first is ALL_CLUSTERS or second is ALL_CLUSTERS else first | second


def prune(objects: Objects, root: str, keep: int) -> int:
    """Keep the newest builds and the current one; return how many were forgotten.

    keep: at least 1. The caller holds the root's lock. Raises StorageError.
    """
    current = manifest.read_current(objects)
    builds = manifest.list_builds(objects)
    newest = builds[-keep:]
    old = [
        manifest_of_build
        for manifest_of_build in builds
        if manifest_of_build not in newest
        and (current is None or manifest_of_build.build != current.build)
    ]
    if not old or current is None:
        return 0
    # Manifests first: a manifest whose files are gone is an error for readers, while a file without
    # a manifest only takes space.
    for manifest_of_build in old:
        manifest.forget_build(objects, manifest_of_build.build)
    # Vacuum works by age: everything since the start of the oldest build that is kept must stay.
    first = min((*newest, current), key=lambda manifest_of_build: manifest_of_build.started)
    with explain_errors("old files cannot be removed"):
        vacuum(root, first)
    return len(old)


_OWNED = ("desired", "recorded")
"""Tables that name the owner of an object."""
_LANDED = ("snapshot", "snapshot_raw")
"""What snapshots bring."""
_OVER_TIME = ("cluster", "declared_history", "history", "lineage", "snapshot")
"""Tables that tell how what is declared, recorded and live has changed."""

DATASETS = (
    Dataset("run", ("audit_raw",), runs.build_run, of_records=True),
    Dataset(
        "cluster",
        ("run", "snapshot", "snapshot_raw"),
        resources.build_cluster,
        resources.find_newest_builds,
    ),
    Dataset("lineage", ("audit_raw", "snapshot"), resources.build_lineage),
    Dataset("live", _LANDED, resources.build_live, resources.find_live_builds),
    Dataset(
        "recorded", ("cluster", *_LANDED), resources.build_recorded, resources.find_recorded_builds
    ),
    Dataset(
        "desired", ("cluster", *_LANDED), resources.build_desired, resources.find_desired_builds
    ),
    Dataset("history", ("history", *_LANDED), history.build_history, history.find_new_builds),
    Dataset(
        "declared_history",
        ("declared_history", *_LANDED),
        history.build_declared_history,
        history.find_new_declared_builds,
    ),
    Dataset("measured", ("measured", *_LANDED), growth.build_measured, growth.find_measured_builds),
    Dataset("event_conflict", ("audit_raw",), runs.build_event_conflict, of_records=True),
    Dataset(
        "event",
        ("audit_raw", "cluster", "event_conflict", "run"),
        runs.build_event,
        of_records=True,
    ),
    Dataset("drift", ("live", *_OVER_TIME, *_OWNED), drift.build),
    Dataset("drift_daily", _OVER_TIME, drift.build_daily),
    Dataset("credentials", ("cluster", "event", "history", "live"), resources.build_credentials),
    Dataset("change_attribution", ("event", "history", "snapshot"), history.build),
    Dataset("effective_permissions", ("cluster", "live"), permissions.build),
    Dataset("grant_findings", ("cluster", "live"), grants.build),
    Dataset("effective_quotas", ("cluster", "live"), quotas.build),
    Dataset(
        "unused_topics",
        ("cluster", "history", "live", "snapshot", "snapshot_raw", "unused_topics", *_OWNED),
        unused_topics.build,
        unused_topics.find_new_builds,
    ),
    Dataset(
        "policy_findings",
        ("cluster", "declared_history", "history", "live", *_OWNED),
        policy.build,
    ),
    Dataset(
        "topic_growth", ("cluster", "live", "measured", "snapshot", *_OWNED), growth.build_topics
    ),
    Dataset("disks", ("live", "measured"), growth.build_disks),
    Dataset("group_progress", ("live", "measured", *_OWNED), growth.build_groups),
    Dataset("capacity", ("cluster", "history", "live", "topic_growth", *_OWNED), capacity.build),
    Dataset("apply_reliability", ("event", "run"), runs.build_reliability, of_records=True),
    Dataset(
        "fleet_consistency",
        ("cluster", "event_conflict", "lineage", "live", "run", *_OWNED),
        consistency.build,
    ),
)
