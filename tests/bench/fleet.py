"""What a build of the fleet's tables costs as fleets grow, in ratios of one run:
`python -m tests.bench.fleet [SIZE [CLUSTERS …]] [--master MASTER …] [--folder FOLDER]
[--gold ROOT [--copies N …]]`.

- a session, from the start of the process to the first row, on each master;
- `fleet run` from landing files to the manifest, and `fleet report`, each in a process of its own,
  for each number of clusters and each master, with the memory and processor time of the build and
  all that it started, and what a build takes when one cluster of a hundred has a new snapshot;
- gold alone, from silver tables that are there: those of 200 clusters, once and copied under
  other names 4 and 16 times.

SIZE 1 is a cluster of 2,000 topics, 10,000 ACLs and 25,000 audit records in each of live, state
and configuration; SIZE 0.05 a twentieth of that. Clusters are seeded (`tests.kit.fleet.world`).
--folder keeps what lands and the tables, a root for each number of clusters; --gold measures gold
alone of such a root, since large fleets take hours. Needs the fleet extra.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, SparkSession

from kafkaform.core.objects import Folder
from kafkaform.fleet.build.driver import DATASETS
from kafkaform.fleet.build.workspace import order_datasets
from kafkaform.fleet.landed.register import Register
from kafkaform.fleet.spark.session import (
    EMBEDDED,
    LARGE_BYTES,
    LandedBytes,
    SparkSetup,
    build_session,
)
from kafkaform.fleet.spark.store import TableStore
from kafkaform.fleet.tables import manifest
from kafkaform.fleet.tables.definitions import TABLES, BuildContext, Dataset, Layer
from kafkaform.sandbox.record import get_cache_folder
from kafkaform.workflow.fleet.runs import add_jars

from ..kit.fleet.world import Size, World
from .peers.process_tree import Sampler

SIZE, CLUSTERS = 0.05, (50, 200, 800)
COPIED, COPIES = 200, (1, 4, 16)
SHARE = 100
"""One cluster of so many has something new."""
ROWS = ("audit_raw", "snapshot_raw")
MASTERS = ("local[2]", EMBEDDED)
FIRST_ROW = """
import sys

from kafkaform.fleet.spark.session import SparkSetup, build_session
from kafkaform.sandbox.record import get_cache_folder
from kafkaform.workflow.fleet.runs import add_jars

print(build_session(add_jars(SparkSetup(sys.argv[1], get_cache_folder()))).range(1).collect())
"""


@dataclass(frozen=True)
class Run:
    """seconds: of the whole process; cpu: processor time of it and all that it started, in seconds;
    rows, landed: that have landed so far, and the bytes of their files; peak: bytes of resident
    memory of the process and all that it started; report: the seconds of `fleet report`
    afterwards."""

    seconds: float
    cpu: float
    rows: int
    landed: int
    peak: int
    report: float


def fleet_run(root: Path, master: str) -> Run:
    begun = time.perf_counter()
    command = [sys.executable, "-m", "kafkaform", "fleet"]
    with subprocess.Popen(
        [*command, "run", "--root", str(root), "--json", "--master", master],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        sampler = Sampler(child.pid)
        sampler.start()
        _, errors = child.communicate()
    took, peak = time.perf_counter() - begun, sampler.stop()
    assert child.returncode in (0, 5), errors[-3000:]
    found = manifest.read_current(Folder(root))
    assert found is not None
    begun = time.perf_counter()
    report = [*command, "report", "--root", str(root), "--out", str(root / "report.html")]
    subprocess.run(report, capture_output=True, check=True)
    rows = sum(found.tables[name].rows for name in ROWS)
    landed = sum(file.stat().st_size for file in (root / "landing").rglob("*") if file.is_file())
    return Run(took, sampler.cpu, rows, landed, peak, time.perf_counter() - begun)


def first_row(master: str) -> float:
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", FIRST_ROW, master], capture_output=True, check=True)
    return time.perf_counter() - begun


def end_to_end(root: Path, size: Size, clusters: int, master: str) -> tuple[Run, Run]:
    """A whole build, and the next one."""
    world = World(root, size=size)
    world.register(clusters)
    with ProcessPoolExecutor() as pool:
        list(pool.map(world.write, ([number] for number in range(clusters))))
    whole = fleet_run(root, master)
    world.register(clusters, day=1)
    world.write(range(max(1, clusters // SHARE)), days=(1,))
    return whole, fleet_run(root, master)


# ── gold alone ──────────────────────────────────────────────────────────────────────────


@contextmanager
def session() -> Iterator[SparkSession]:
    made = build_session(
        add_jars(
            SparkSetup("local[2]", get_cache_folder(), landed=LandedBytes(LARGE_BYTES, LARGE_BYTES))
        )
    )
    try:
        yield made
    finally:
        made.stop()


def gold() -> Sequence[Dataset]:
    return [each for each in order_datasets(DATASETS) if TABLES[each.table].layer is Layer.GOLD]


def copied(store: TableStore, found: manifest.Manifest, table: str, times: int, folder: str) -> Any:
    """A table, its clusters and logs so many times under other names, in files."""
    rows = store.read(table, found.tables[table].version)
    path = f"{folder}/{table}-{times}"
    copies = store.spark.range(times).select(F.concat(F.lit("-"), "id").alias("copy"))
    renamed: dict[str, Column] = {
        name: F.concat(name, "copy")
        for name in ("cluster", "lineage", "cluster_id")
        if name in rows.columns
    }
    made = rows.crossJoin(copies).withColumns(renamed).drop("copy") if renamed else rows
    made.select(*rows.columns).write.parquet(path)
    return store.spark.read.parquet(path)


def gold_alone(
    store: TableStore, found: manifest.Manifest, folder: str, copies: Sequence[int]
) -> Iterator[tuple[int, float]]:
    """How often the fleet was copied, and the seconds that all gold tables took."""
    context = BuildContext(Register(), datetime.fromisoformat(found.as_of), "bench")
    for times in copies:
        names = {i for each in gold() for i in each.inputs if TABLES[i].layer is not Layer.GOLD}
        frames = {name: copied(store, found, name, times, folder) for name in names}
        begun = time.perf_counter()
        for each in gold():
            own = {name: _input(store, frames, name) for name in each.inputs}
            made = each.build(own, context)
            path = f"{folder}/{each.table}-{times}"
            made.write.parquet(path)
            frames[each.table] = store.spark.read.parquet(path)
        yield times, time.perf_counter() - begun


def _input(store: TableStore, frames: dict[str, DataFrame], name: str) -> DataFrame:
    """What the build before made: nothing."""
    return frames[name] if name in frames else store.read(name, None)


# ── the table ───────────────────────────────────────────────────────────────────────────


def main(words: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.fleet")
    parser.add_argument("size", type=float, nargs="?", default=SIZE)
    parser.add_argument("clusters", type=int, nargs="*", default=CLUSTERS)
    parser.add_argument("--master", nargs="+", default=MASTERS)
    parser.add_argument("--folder", type=Path, help="an empty one, which is kept")
    parser.add_argument("--gold", type=Path, help="the root of a fleet that was kept")
    parser.add_argument("--copies", type=int, nargs="+", default=COPIES, help="of its clusters")
    asked = parser.parse_args(words)
    with _folder(asked.folder) as folder:
        if asked.gold:
            print("2 threads, one run each")
            _gold_table(asked.gold, folder, asked.copies)
        else:
            print(f"clusters of size {asked.size:g}, one run each, load {os.getloadavg()[0]:.1f}")
            for master in asked.master:
                print(f"{master}, load {os.getloadavg()[0]:.1f}")
                print(f"  a session, to its first row {first_row(master):7.1f} s", flush=True)
                place = Path(folder, master.partition("[")[0])
                _growth(asked.size, asked.clusters, place, master)


def _folder(kept: Path | None) -> AbstractContextManager[str]:
    if kept is None:
        return tempfile.TemporaryDirectory(prefix=f"bench-{os.getpid()}-")
    kept.mkdir(parents=True, exist_ok=True)
    assert not any(kept.iterdir()), f"{kept} is not empty"
    return nullcontext(str(kept))


def _growth(size: float, counts: Sequence[int], folder: Path, master: str) -> None:
    base: Run | None = None
    for count in counts:
        root = folder / str(count)
        whole, more = end_to_end(root, Size.scaled(size), count, master)
        base = base or whole
        print(
            f"  {count:5} clusters, {whole.rows:11,} rows, {whole.landed / 1e6:7.1f} MB landed  "
            f"{whole.seconds:7.1f} s, {whole.cpu:7.1f} s of processor time = "
            f"{whole.cpu / base.cpu:5.2f} x the first, for "
            f"{whole.rows / base.rows:5.2f} x the rows; "
            f"1 of {SHARE} new: {more.seconds:6.1f} s, {more.cpu:6.1f} s; "
            f"{whole.peak / 1e6:6.0f} MB, report {whole.report:4.1f} s",
            flush=True,
        )
        if size == SIZE and count == COPIED and master != EMBEDDED:
            _gold_table(root, str(folder))


def _gold_table(root: Path, folder: str, copies: Sequence[int] = COPIES) -> None:
    found = manifest.read_current(Folder(root))
    assert found is not None, f"there is no build in {root}"
    clusters = found.tables["cluster"].rows
    with session() as spark:
        first = 0.0
        for times, took in gold_alone(TableStore(spark, str(root)), found, folder, copies):
            first = first or took
            print(
                f"  {clusters * times:5} clusters, gold alone from silver  {took:7.1f} s = "
                f"{took / first:5.2f} x the first, for {times / copies[0]:g} x the rows",
                flush=True,
            )


if __name__ == "__main__":
    main(sys.argv[1:])
