"""Run `fleet run`, `fleet prepare` and `fleet doctor`: the lock, the session, findings, results.

Delta Lake's jars are pinned files, whatever Java Spark starts on.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

import kafkaform_kafka.connection

from ...audit.records import render_time
from ...core import landing
from ...core.clock import SystemClock
from ...core.errors import Blocked, UsageError
from ...core.installation import render_extra_command
from ...core.objects import Folder, Objects
from ...core.progress import Reporter, ignore_event
from ...fleet import answers, build, landed, tables
from ...fleet.spark import doctor
from ...fleet.spark.session import (
    CONNECT,
    EMBEDDED,
    LOCAL,
    NOTHING_LANDED,
    Engine,
    LandedBytes,
    SparkSetup,
    build_session,
    choose_master,
    is_submitted,
    need_spark,
    prepare,
)
from ...fleet.tables.definitions import SOON_DAYS, quote_text
from ...fleet.tables.manifest import ALL_CLUSTERS, FOLDER
from ...inventory.landing import open_remote
from ...render.text import inline, render_count
from ...sandbox import record
from ...sandbox.jars import Jar, ensure_jars, open_repository
from ...state.backends.local import LocalBackend
from ...state.backends.objects import ObjectBackend
from ...state.backends.obstores import is_remote
from ...state.model import Backend, Lease
from ...version import VERSION
from ..connection import Connection
from ..outside_changes import TABLE_PACKAGES, can_read_tables
from ..workspace import make_lock_info

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ...fleet.build.driver import BuildResult, Follow
    from ...fleet.spark.store import Start


_JARS = re.compile(r"^[ \t]*spark\.jars(?:[ \t]*[=:][ \t]*|[ \t]+)(\S.*)$", re.MULTILINE)
"""`spark.jars` in spark-defaults.conf."""
DELTA = (
    Jar(
        "io.delta",
        "delta-spark_4.2_2.13",
        "4.4.0",
        "",
        "27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead",
        9_515_916,
    ),
    Jar(
        "io.delta",
        "delta-storage",
        "4.4.0",
        "",
        "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
        113_863,
    ),
)
"""The jars, with checksum and size."""
PACKAGES = ("pyspark", "pandas", *TABLE_PACKAGES)
"""What makes builds, which the extras `fleet` and `fleet-small` have."""
_PLAIN_PATH = re.compile(r"[A-Za-z0-9./_-]+")
_MARKS = {True: "ok", False: "bad", None: "?"}
LEASE_SECONDS = 60.0
"""How long the lock must still be ours before a table is written."""
LOCK = "lock"
"""The folder of the lock in a store, where it is an object, as builds are."""
_TOKENS = "OAUTHBEARER"


def add_jars(setup: SparkSetup, report: Reporter = ignore_event) -> SparkSetup:
    """Return the place with the paths of Delta's jars, each of them verified.

    Ivy would accept whatever a repository answers, and does not know this computer's certificates.
    If the user names jars or a mirror, or Spark's server has its own jars, those are used. Raises
    ConnectError: they cannot be downloaded; KafkaformError: a file is not the pinned one;
    UsageError: this place needs Spark, which is not installed.
    """
    need_spark(setup)
    if setup.jars or setup.ivy or setup.connect or setup.embedded or is_submitted():
        return setup
    jars = ensure_jars(DELTA, report, open_repository, "Delta Lake")
    return replace(setup, jars=(*map(str, jars), *_read_default_jars()))


def _read_default_jars() -> tuple[str, ...]:
    """Return the jars of `spark-defaults.conf`, such as those for a store. Jars that are set in the
    session replace that setting, so they are passed on."""
    folder = os.environ.get("SPARK_CONF_DIR", "")
    file = Path(folder, "spark-defaults.conf")
    if not folder or not file.is_file():
        return ()
    matches = _JARS.findall(file.read_text("utf-8"))
    return tuple(name.strip() for name in matches[-1].split(",")) if matches else ()


class SparkOptions(Struct, frozen=True):
    """As on the command line; see `session.SparkSetup`."""

    master: str = ""
    """Empty: by what is installed and has landed."""
    jars: tuple[str, ...] = ()
    ivy: Path | None = None

    def choose_engine(
        self, root: str, landed: LandedBytes = NOTHING_LANDED, wish: str = ""
    ) -> Engine:
        """Return where Spark's code runs, and why there.

        wish: the flag of something that only Spark can do; empty: none. Raises UsageError: Sail is
        named for it.
        """
        beyond = f"{wish} needs Spark" if wish else _find_spark_need(root)
        if self.master == EMBEDDED and beyond:
            raise UsageError(
                f"--master {EMBEDDED} cannot be used: {beyond}",
                "Leave out --master, or name that of a Spark.",
            )
        if self.master:
            return Engine(self.master, "--master names it")
        if is_submitted():
            return Engine(LOCAL, "spark-submit started it")
        if self.jars or self.ivy:
            return Engine(LOCAL, "its jars are named")
        if beyond:
            return Engine(LOCAL, beyond)
        return choose_master(landed, record.get_cache_folder())

    def make_setup(self, master: str, landed: LandedBytes = NOTHING_LANDED) -> SparkSetup:
        """Return how a session is started on this master."""
        return SparkSetup(master, record.get_cache_folder(), self.jars, self.ivy, landed)


def _find_spark_need(root: str) -> str:
    """Return why only Spark can use a root; empty: Sail can, too."""
    if is_remote(root):
        return f"Sail uses folders of this computer only, and not {root}"
    path = str(Path(root).absolute())
    # Sail cannot read paths with signs of globs, and writes others percent-encoded.
    if root and not _PLAIN_PATH.fullmatch(path):
        return f"Sail cannot use the path {path}: it has other signs than letters, digits and ./_-"
    return ""


class BuildRequest(Struct, frozen=True):
    """What `fleet run` was asked for."""

    root: str
    only: tuple[str, ...] = ()
    """Tables."""
    max_corrupt: float | None = None
    topic: str | None = None
    """The topic to read first."""
    fail_on: tuple[str, ...] = ()
    """Names in FINDINGS."""
    keep: int | None = None
    """How many builds to keep. None: all."""
    patience: float = 0.0
    """How many seconds to wait for the lock."""

    @property
    def wish(self) -> str:
        """As in `SparkOptions.choose_engine`."""
        return "--from-topic" if self.topic else ""


def read_spark_options(master: str, jars: str, ivy: Path | None) -> SparkOptions:
    """Parse the flags. jars: paths separated by commas."""
    named = tuple(jar for jar in (piece.strip() for piece in jars.split(",")) if jar)
    return SparkOptions(master, named, ivy)


def _make_severity_findings(table: str) -> Mapping[str, tuple[str, str]]:
    return {name: (table, f"severity = '{name}'") for name in ("high", "medium", "low")}


FINDINGS: Mapping[str, tuple[str, str]] = {
    **{
        name: ("drift", f"path = '' AND drift_class = '{name}'")
        for name in (
            *("drifted", "deleted_out_of_band", "conflict", "state_behind", "stale_state"),
            *("unmanaged", "unadopted", "pending_create", "pending_update", "pending_delete"),
            "unknown",
        )
    },
    "undeclared_override": ("drift", "drift_class = 'undeclared_override'"),
    **{
        name: ("change_attribution", f"verdict = '{name}'")
        for name in ("out_of_band", "not_effective", "unclear")
    },
    **{
        f"policy_{name}": (table, f"{where} AND NOT waived")
        for name, (table, where) in _make_severity_findings("policy_findings").items()
    },
    **{
        f"grants_{name}": found for name, found in _make_severity_findings("grant_findings").items()
    },
    **{
        name: ("fleet_consistency", f"finding = '{name}'")
        for name in (
            *("chain_broken", "chain_gap", "two_owners", "conflicting_event", "unlike"),
            *("naming", "unregistered", "renamed", "mixed_releases"),
            *("subject_without_topic", "topic_without_schema"),
        )
    },
    "stuck": ("group_progress", "verdict = 'stuck'"),
    "disk_failed": ("disks", "failed"),
    "expires_soon": ("credentials", f"days_left < {SOON_DAYS}"),
    "corrupt": ("quarantine", "true"),
}
"""What --fail-on can name -> the table, and SQL for the rows."""


def need_reader() -> None:
    """Raises UsageError: what reads the tables is not installed."""
    if not can_read_tables():
        raise UsageError(
            "what reads the fleet's tables is not installed",
            f"Run `{render_extra_command('fleet-read')}`, or with [fleet] if this computer also "
            "makes the tables.",
        )


def need_packages() -> None:
    """Raises UsageError: the pipeline is not installed."""
    if not all(map(find_spec, PACKAGES)):
        raise UsageError(
            "the fleet pipeline is not installed",
            f"Run `{render_extra_command('fleet')}`. For small fleets, [fleet-small] is enough for "
            "`fleet run`: it has neither Java nor Spark.",
        )


def open_root(root: str) -> Objects:
    """Open a root. Raises UsageError: it is not a place for a fleet."""
    return open_remote(root) if is_remote(root) else Folder(Path(root).absolute(), shared=True)


def measure_landed(root: str) -> LandedBytes:
    """Return how much has landed in a root."""
    entries = open_root(root).names(f"{landing.ROOT}/")
    return LandedBytes(sum(entry.size for entry in entries))


def make_build(
    request: BuildRequest, spark: SparkOptions, connect: Callable[[], Connection], report: Reporter
) -> BuildResult:
    """Make a build. Raises KafkaformError; UsageError before anything is started."""
    need_packages()
    check_findings(request.fail_on)
    # The root as a text for Spark and delta-rs, and as objects for everything else.
    objects = open_root(request.root)
    root = request.root if is_remote(request.root) else str(Path(request.root).absolute())
    # Before the lock: what is named wrongly is refused before anything starts.
    master = spark.choose_engine(root, wish=request.wish).master
    with _lock_root(root, request.patience) as lease, _prepare_session(spark, request) as start:
        follow = _make_follower(request.topic, connect, master) if request.topic else None
        options = build.driver.BuildOptions(
            VERSION,
            request.only,
            request.max_corrupt,
            follow,
            # A lease can be lost while Spark works; a build without the lock must not publish.
            lambda: lease.ensure(LEASE_SECONDS),
        )
        result = build.driver.run_build(
            start, objects, root, build.driver.DATASETS, options, report
        )
        if request.keep is not None:
            build.driver.prune(objects, root, request.keep)
    return result


@contextmanager
def _prepare_session(spark: SparkOptions, request: BuildRequest) -> Iterator[Start]:
    """Yield a function that starts Spark when it is needed. Spark is stopped at the end."""
    with ExitStack() as stack:
        sessions: list[SparkSession] = []

        def start(size: LandedBytes) -> SparkSession:
            if not sessions:
                # One session for all of the run: starting a JVM takes seconds.
                engine = spark.choose_engine(request.root, size, request.wish)
                sessions.append(build_session(add_jars(spark.make_setup(engine.master, size))))
                stack.callback(sessions[0].stop)
            return sessions[0]

        yield start


@contextmanager
def _lock_root(root: str, patience: float) -> Iterator[Lease]:
    """Hold the root's lock: one build at a time. Raises Locked after `patience` seconds."""
    backend: Backend
    if is_remote(root):
        # A lease: that of a dead build expires after two minutes, so no command has to break it.
        backend = ObjectBackend(open_remote(f"{root.rstrip('/')}/{LOCK}"), by_hand="")
    else:
        folder = Path(root) / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        backend = LocalBackend(folder / "fleet")
    clock = SystemClock()
    started = render_time(clock.now())
    info = make_lock_info(f"fleet-{os.getpid()}", "fleet run", started)
    with backend.lock(info, patience, clock) as lease:
        yield lease


def _make_follower(topic: str, connect: Callable[[], Connection], master: str) -> Follow:
    """Return the reader of a topic. The connection goes into the environment, where Spark's workers
    find it; workers of a Connect server have an environment of their own."""
    variable = landed.topic_source.SETTINGS
    if variable not in os.environ and not master.startswith(CONNECT):
        connection = connect()
        settings = kafkaform_kafka.connection.settings.read_settings(
            connection.settings.instance, connection.settings.config, connection.secrets
        )
        if settings.mechanism == _TOKENS:
            raise UsageError(
                f"the topic {topic} cannot be read with a token login ({_TOKENS}): Spark's "
                "workers read it, and they cannot renew tokens",
                "Use a SCRAM login or a client certificate for the topic, or land the logs "
                "themselves with `kafkaform fleet snapshot`.",
            )
        # Never a Spark setting: those show in logs, on its web page and in query plans.
        os.environ[variable] = json.dumps(
            kafkaform_kafka.connection.settings.make_librdkafka_config(settings)
        )
    return build.intake.make_follower(topic)


# ── what came of it ─────────────────────────────────────────────────────────────────────


def render_result(result: BuildResult) -> Iterator[str]:
    """Yield the result for people."""
    if not result.tables:
        yield f"Nothing new: build {result.manifest.build} is current."
        return
    scope = (
        "all clusters"
        if result.clusters is ALL_CLUSTERS
        else render_count(len(result.clusters), "cluster")
    )
    yield f"Build {result.manifest.build}: {render_count(len(result.tables), 'table')} for {scope}."
    for name in result.manifest.owed:
        yield f"{name} was left out; the next run without --only will update it."


def make_document(result: BuildResult) -> dict[str, Any]:
    """Return the result for programs."""
    entries = {name: result.manifest.tables[name] for name in result.tables}
    return {
        "format_version": "1.0",
        "build": result.manifest.build,
        "as_of": result.manifest.as_of,
        "skipped": not result.tables,
        "clusters": None if result.clusters is ALL_CLUSTERS else sorted(result.clusters),
        "tables": {
            name: {"rows": entry.rows, "seconds": round(entry.seconds, 3)}
            for name, entry in entries.items()
        },
        "owed": sorted(result.manifest.owed),
    }


def check_findings(names: Sequence[str]) -> None:
    """Raises UsageError: one of the names is not a finding."""
    for name in names:
        if name not in FINDINGS:
            raise UsageError(
                f"--fail-on {name}: there is no such finding", f"There are {', '.join(FINDINGS)}."
            )


def refuse_findings(root: str, names: Sequence[str]) -> None:
    """Raises Blocked if the current build has any of these findings."""
    gold = tables.reader.Gold(tables.reader.read_current(root))
    bad = []
    for name in names:
        table, condition = FINDINGS[name]
        gold.require(table)
        (row,) = gold.read_rows(f"SELECT count(*) AS n FROM {table} WHERE {condition}")
        if row["n"]:
            bad.append(f"{name}: {row['n']}")
    if bad:
        raise Blocked(
            f"there are findings that --fail-on names: {', '.join(bad)}",
            "`kafkaform fleet report` or `fleet query` shows them.",
        )


def list_unread_clusters(root: str, cluster: str | None = None) -> Iterator[str]:
    """Yield the clusters of fleet.hcl that are not fully known, a line each."""
    cluster_condition = f" AND cluster = {quote_text(cluster)}" if cluster else ""
    sql = (
        "SELECT cluster, status, error, captured_at FROM cluster"
        f" WHERE registered AND status <> 'read'{cluster_condition} ORDER BY cluster"
    )
    gold = tables.reader.Gold(tables.reader.read_current(root))
    for row in gold.read_rows(sql):
        age = answers.query.describe_age(row, gold.build.as_of)
        cause = f": {row['error']}" if row["error"] else ""
        yield inline(f"{row['cluster']}: {row['status']}{age}{cause}")


# ── prepare ─────────────────────────────────────────────────────────────────────────────


def prepare_spark(spark: SparkOptions, report: Reporter) -> str:
    """Run `fleet prepare`; return what it did. Raises KafkaformError."""
    need_packages()
    file = prepare(add_jars(spark.make_setup(spark.master or LOCAL), report), report)
    size = f"{file.stat().st_size / 1_000_000:.0f} MB"
    return f"Archived Java's classes in {file} ({size}). Spark will start from this archive here."


# ── doctor ──────────────────────────────────────────────────────────────────────────────


def examine_computer(root: str | None, spark: SparkOptions) -> tuple[doctor.DoctorCheck, ...]:
    """Run all checks of `fleet doctor`."""
    folder = Path(root) if root and not is_remote(root) else None
    objects = open_root(root) if root else None
    landed = measure_landed(root) if root and folder else NOTHING_LANDED
    engine = spark.choose_engine(root or "", landed)
    return tuple(doctor.run_checks(spark.make_setup(engine.master), engine.reason, objects, folder))


def render_checks(checks: Sequence[doctor.DoctorCheck]) -> Iterator[str]:
    """Yield the checks for people, with advice below each."""
    width = max(len(check.name) for check in checks)
    for check in checks:
        yield f"{_MARKS[check.good]:4}  {check.name:{width}}  {inline(check.finding)}"
        if check.advice:
            yield f"      {'':{width}}  {inline(check.advice)}"


def make_checks_document(checks: Sequence[doctor.DoctorCheck]) -> dict[str, Any]:
    """Return the checks for programs."""
    documents = [
        {"name": c.name, "good": c.good, "found": c.finding, "advice": c.advice} for c in checks
    ]
    return {"format_version": "1.0", "checks": documents}
