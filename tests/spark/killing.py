"""`fleet run` in a process of its own, killed at a moment that the files of its root show."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from kafkaform import __version__
from kafkaform.core.objects import Folder
from kafkaform.fleet.build.driver import DATASETS, BuildOptions, BuildResult, run_build
from kafkaform.fleet.tables.definitions import TABLES, Layer
from kafkaform.fleet.tables.manifest import FOLDER
from kafkaform.fleet.tables.reader import Gold, read_current

from ..kit.fleet.landings import Landing, log, row, step

MADE = ("effective_quotas",)
"""The table whose inputs and itself are made, so that a build has few."""
PATIENCE = 300.0
"""Seconds after which a run that has not come to the moment is given up."""
NAMES = "ab"
PIECE = 3
"""Records of a log that land at a time."""


def landed(root: Path, hour: int) -> None:
    """What a snapshot of two clusters and a state's log leaves; each hour it is something else."""
    landing = Landing(root / "landing")
    landing.register(0, clusters=[{"name": name} for name in NAMES])
    for name in NAMES:
        quota = {"entity.user": "ci", "config.producer_byte_rate": str(hour)}
        objects = [
            row("kafka_topic", f"{name}{hour}", {"partitions": str(hour)}),
            row("kafka_quota", "user=ci", quota),
        ]
        covered = {"kafka_topic": "complete", "kafka_quota": "complete"}
        landing.snapshot(*("live", name, hour, objects), scope_id=f"scope-{name}", coverage=covered)
    steps = [("intent", f"r{n}", step(f"t{n}")) for n in range(PIECE * hour)]
    lines = log("lineage", steps)
    landing.audit("lineage", PIECE * (hour - 1) + 1, lines[-PIECE:])


def built(spark: SparkSession, root: Path, made: Sequence[str] = MADE) -> BuildResult:
    """What `fleet run` does, in this process."""
    options = BuildOptions(__version__, only=tuple(made))
    return run_build(lambda _: spark, Folder(root), str(root), DATASETS, options)


Rows = Mapping[str, list[str]]


def rows(root: Path) -> Rows:
    """What readers see: all rows of the current build but those of bronze tables, which say when
    they were taken in."""
    gold = Gold(read_current(str(root)))
    names = (name for name in gold.build.tables if TABLES[name].layer is not Layer.BRONZE)
    return {name: sorted(map(_text, gold.read_rows(f"select * from {name}"))) for name in names}


def _text(found: dict[str, Any]) -> str:
    return json.dumps(found, default=str, sort_keys=True)


# ── moments ─────────────────────────────────────────────────────────────────────────────


def _files(pattern: str) -> Callable[[Path], int]:
    return lambda root: sum(1 for _ in root.glob(pattern))


MOMENTS: Mapping[str, Callable[[Path], int]] = {
    "bronze": _files("tables/bronze/audit_raw/_delta_log/*.json"),
    "silver": _files("tables/silver/live/_delta_log/*.json"),
    "gold": _files("tables/gold/effective_quotas/_delta_log/*.json"),
    "manifest": _files(f"{FOLDER}/*.json"),
}
"""Name -> how many files there are; the moment has come when there are more than before."""


def at(root: Path, moment: str) -> Callable[[], bool]:
    """Tells whether something was written there from now on."""
    count = MOMENTS[moment]
    before = count(root)
    return lambda: count(root) > before


def after(seconds: float) -> Callable[[], bool]:
    ends = time.monotonic() + seconds
    return lambda: time.monotonic() >= ends


def killed(root: Path, come: Callable[[], bool], made: Sequence[str] = MADE) -> bool:
    """Start `fleet run` and kill it, with all that it has started, when the moment has come.
    False: it had ended before. Raises AssertionError: it failed by itself."""
    code, said = struck(root, come, signal.SIGKILL, made)
    assert code in (0, -signal.SIGKILL), said
    return code != 0


def struck(
    root: Path, come: Callable[[], bool], number: int, made: Sequence[str] = MADE
) -> tuple[int, str]:
    """Start `fleet run` and send a signal to it and all that it has started, as a terminal does,
    when the moment has come. Its exit code and what it said; none of it is left."""
    words = ("fleet", "run", "--root", str(root), "--quiet", "--master", "local[2]")
    only = [word for name in made for word in ("--only", name)]
    # What Java cannot remove any more is not to stay in the folder of all programs.
    own = {**os.environ, "JDK_JAVA_OPTIONS": f"-Djava.io.tmpdir={root.parent}"}
    with (root.parent / f"{root.name}.txt").open("w+") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "kafkaform", *words, *only],
            stdout=said,
            stderr=said,
            env=own,
            start_new_session=True,
        )
        ends = time.monotonic() + PATIENCE
        try:
            while process.poll() is None and not come() and time.monotonic() < ends:
                time.sleep(0.01)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            code = process.wait(PATIENCE)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        said.seek(0)
        return code, said.read()
