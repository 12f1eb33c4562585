"""Run `fleet run`, `fleet prepare` and `fleet doctor`: the lock, the session, findings, results."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from ...audit.event import render_time
from ...core.clock import SystemClock
from ...core.errors import Blocked, UsageError
from ...core.installation import render_extra_command
from ...core.objects import Folder, Objects
from ...core.progress import Reporter
from ...fleet.spark import doctor
from ...fleet.spark.session import LOCAL, LandedBytes, SparkPlace, build_session
from ...fleet.tables.manifest import ALL, FOLDER
from ...fleet.tables.reader import Gold, quote_text, read_current
from ...inventory.place import open_remote
from ...render.text import inline, render_count
from ...sandbox import places
from ...state.backend import Backend, Lease
from ...state.backends.local import LocalBackend
from ...state.backends.objects import ObjectBackend
from ...state.backends.obstores import is_remote
from ...version import VERSION
from ..connection import Connection
from ..workspace import make_lock_info
from .jars import add_jars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ...fleet.build.driver import BuildResult, Follow
    from ...fleet.spark.store import Start

PACKAGES = ("pyspark", "delta", "deltalake", "pandas", "pyarrow")
_MARKS = {True: "ok", False: "bad", None: "?"}
LEASE_SECONDS = 60.0
"""How long the lock must still be ours before a table is written."""
LOCK = "lock"
"""The folder of the lock in a store, where it is an object, as builds are."""


class SparkOptions(Struct, frozen=True):
    """As on the command line; see `session.SparkPlace`."""

    master: str = LOCAL
    jars: tuple[str, ...] = ()
    ivy: Path | None = None

    @property
    def place(self) -> SparkPlace:
        return SparkPlace(self.master, places.get_cache_folder(), self.jars, self.ivy)


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


def read_spark_options(master: str, jars: str, ivy: Path | None) -> SparkOptions:
    """Parse the flags. jars: paths separated by commas."""
    named = tuple(part for part in (piece.strip() for piece in jars.split(",")) if part)
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
            *("naming", "unregistered", "renamed"),
        )
    },
    "corrupt": ("quarantine", "true"),
}
"""What --fail-on can name -> the table, and SQL for the rows."""
_TOKENS = "OAUTHBEARER"


def need_packages() -> None:
    """Raises UsageError: the extra is not installed."""
    if any(find_spec(name) is None for name in PACKAGES):
        raise UsageError(
            "the fleet pipeline is not installed", f"Run `{render_extra_command('fleet')}`."
        )


def open_root(root: str) -> Objects:
    """Open a root. Raises UsageError: it is not a place for a fleet."""
    return open_remote(root) if is_remote(root) else Folder(Path(root).absolute(), shared=True)


def make_build(
    ask: BuildRequest, spark: SparkOptions, connect: Callable[[], Connection], report: Reporter
) -> BuildResult:
    """Make a build. Raises KafkaformError; UsageError before anything is started."""
    need_packages()
    check_findings(ask.fail_on)
    from ...fleet.build.datasets import DATASETS  # noqa: PLC0415  # what needs Spark is slow to load
    from ...fleet.build.driver import BuildOptions  # noqa: PLC0415  # what needs Spark is slow to load
    from ...fleet.build.driver import run_build as build  # noqa: PLC0415  # what needs Spark is slow to load
    from ...fleet.build.pruning import prune  # noqa: PLC0415  # what needs Spark is slow to load

    # The root as a text for Spark and delta-rs, and as objects for everything else.
    objects = open_root(ask.root)
    root = ask.root if is_remote(ask.root) else str(Path(ask.root).absolute())
    with _lock_root(root, ask.patience) as lease, _prepare_session(spark) as start:
        follow = _make_follower(ask.topic, connect, spark.place) if ask.topic else None
        options = BuildOptions(
            VERSION,
            ask.only,
            ask.max_corrupt,
            follow,
            # A lease can be lost while Spark works; a build without the lock must not publish.
            lambda: lease.ensure(LEASE_SECONDS),
        )
        done = build(start, objects, root, DATASETS, options, report)
        if ask.keep is not None:
            prune(objects, root, ask.keep)
    return done


@contextmanager
def _prepare_session(spark: SparkOptions) -> Iterator[Start]:
    """Yield a function that starts Spark when it is needed. Spark is stopped at the end."""
    with ExitStack() as stack:
        found: list[SparkSession] = []

        def start(landed: LandedBytes) -> SparkSession:
            if not found:
                # One session for all of the run: starting a JVM takes seconds.
                found.append(build_session(add_jars(replace(spark.place, landed=landed))))
                stack.callback(found[0].stop)
            return found[0]

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


def _make_follower(topic: str, connect: Callable[[], Connection], place: SparkPlace) -> Follow:
    """Return the reader of a topic. The connection goes into the environment, where Spark's workers
    find it; workers of a Connect server have an environment of their own."""
    from kafkaform_kafka.connection.clients import native_config  # noqa: PLC0415  # the clients are slow to load
    from kafkaform_kafka.connection.settings import read_settings  # noqa: PLC0415  # the clients are slow to load

    from ...fleet.build.log_topic import make_follower  # noqa: PLC0415  # what needs Spark is slow to load
    from ...fleet.landed.topic_source import SETTINGS  # noqa: PLC0415  # what needs Spark is slow to load

    if SETTINGS not in os.environ and not place.connect:
        found = connect()
        given = read_settings(found.settings.instance, found.settings.config, found.secrets)
        if given.mechanism == _TOKENS:
            raise UsageError(
                f"the topic {topic} cannot be read with a token login ({_TOKENS}): Spark's "
                "workers read it, and they cannot renew tokens",
                "Use a SCRAM login or a client certificate for the topic, or land the logs "
                "themselves with `kafkaform fleet snapshot`.",
            )
        # Never a Spark setting: those show in logs, on its web page and in query plans.
        os.environ[SETTINGS] = json.dumps(native_config(given))
    return make_follower(topic)


# ── what came of it ─────────────────────────────────────────────────────────────────────


def render_result(done: BuildResult) -> Iterator[str]:
    """Yield the result for people."""
    if not done.made:
        yield f"Nothing new: build {done.manifest.build} is current."
        return
    who = "all clusters" if done.clusters is ALL else render_count(len(done.clusters), "cluster")
    yield f"Build {done.manifest.build}: {render_count(len(done.made), 'table')} for {who}."
    for name in done.manifest.owed:
        yield f"{name} was left out; the next run without --only will update it."


def make_document(done: BuildResult) -> dict[str, Any]:
    """Return the result for programs."""
    made = {name: done.manifest.tables[name] for name in done.made}
    return {
        "format_version": "1.0",
        "build": done.manifest.build,
        "as_of": done.manifest.as_of,
        "skipped": not done.made,
        "clusters": None if done.clusters is ALL else sorted(done.clusters),
        "tables": {n: {"rows": w.rows, "seconds": round(w.seconds, 3)} for n, w in made.items()},
        "owed": sorted(done.manifest.owed),
    }


def check_findings(names: Sequence[str]) -> None:
    """Raises UsageError: one of the names is no finding."""
    for name in names:
        if name not in FINDINGS:
            raise UsageError(
                f"--fail-on {name}: there is no such finding", f"There are {', '.join(FINDINGS)}."
            )


def refuse_findings(root: str, names: Sequence[str]) -> None:
    """Raises Blocked if the current build has any of these findings."""
    gold = Gold(read_current(root))
    found = {name: _count_rows(gold, *FINDINGS[name]) for name in names}
    bad = [f"{name}: {number}" for name, number in found.items() if number]
    if bad:
        raise Blocked(
            f"there are findings that --fail-on names: {', '.join(bad)}",
            "`kafkaform fleet report` or `fleet query` shows them.",
        )


def _count_rows(gold: Gold, table: str, where: str) -> int:
    gold.require(table)
    return int(gold.read_rows(f"SELECT count(*) AS n FROM {table} WHERE {where}")[0]["n"])


def list_unread_clusters(root: str, cluster: str | None = None) -> Iterator[str]:
    """Yield the clusters of fleet.hcl that are not fully known, a line each."""
    which = f" AND cluster = {quote_text(cluster)}" if cluster else ""
    sql = "SELECT cluster, status, error FROM cluster WHERE registered AND status <> 'read'"
    for row in Gold(read_current(root)).read_rows(f"{sql}{which} ORDER BY cluster"):
        why = f": {row['error']}" if row["error"] else ""
        yield inline(f"{row['cluster']}: {row['status']}{why}")


# ── prepare ─────────────────────────────────────────────────────────────────────────────


def prepare_spark(spark: SparkOptions, report: Reporter) -> str:
    """Run `fleet prepare`; return what it did. Raises KafkaformError."""
    need_packages()
    from ...fleet.spark.preparation import prepare  # noqa: PLC0415  # what needs Spark is slow to load

    file = prepare(add_jars(spark.place, report), report)
    size = f"{file.stat().st_size / 1_000_000:.0f} MB"
    return f"Archived Java's classes in {file} ({size}). Spark will start from this archive here."


# ── doctor ──────────────────────────────────────────────────────────────────────────────


def examine_computer(root: str | None, spark: SparkOptions) -> tuple[doctor.DoctorCheck, ...]:
    """Run all checks of `fleet doctor`."""
    folder = Path(root) if root and not is_remote(root) else None
    objects = open_root(root) if root else None
    return tuple(doctor.run_checks(spark.place, objects, folder))


def render_checks(found: Sequence[doctor.DoctorCheck]) -> Iterator[str]:
    """Yield the checks for people, with advice below each."""
    width = max(len(check.name) for check in found)
    for check in found:
        yield f"{_MARKS[check.good]:4}  {check.name:{width}}  {inline(check.found)}"
        if check.advice:
            yield f"      {'':{width}}  {inline(check.advice)}"


def make_checks_document(found: Sequence[doctor.DoctorCheck]) -> dict[str, Any]:
    """Return the checks for programs."""
    checks = [{"name": c.name, "good": c.good, "found": c.found, "advice": c.advice} for c in found]
    return {"format_version": "1.0", "checks": checks}
