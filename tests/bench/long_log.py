"""Plan, apply and `audit show` with a log of years beside the same with an empty one, in a file and
in a store.

`python -m tests.bench.long_log [RUNS] [LATENCY_MS] [PLACE ...]`; places are `file`, `sealed-file`
and `sealed-store`. Each command is a process of its own on a simulated cluster, whose answers cost
nothing. The store is the tests' own, which waits before each answer. Prints ratios of medians that
were measured in one run, requests to the store, and peak resident memory.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from kafkaform.workflow.stores import open_folder_store

from ..kit.long_logs import grow_store
from ..kit.stores import s3
from .startup import keeping_bytecode

RUNS, LATENCY_MS, ROUNDS, TOPICS = 109_500, 20, 9, 50
PATIENCE = 1800.0
MODULE = "tests.bench.long_log"
CONFIGURATION = """
provider "kafka" {{ bootstrap_servers = ["localhost:9092"] }}
resource "kafka_topic" "t" {{
  for_each   = toset([for n in range({topics}) : "t${{n}}"])
  name       = each.key
  partitions = 3
  config     = {{ "retention.ms" = each.key == "t0" ? "{retention}" : "1000" }}
}}
"""


class Ended(Struct, frozen=True):
    """What a command took."""

    seconds: float
    """Wall time."""
    work: float
    """Processor time in seconds."""
    peak: float
    """Resident memory in MB."""
    requests: int
    """To the store."""


class Place(Struct):
    """A folder with its state and log."""

    folder: Path
    variables: Mapping[str, str]
    count: Callable[[], int]
    live: str = "1000"
    """The retention of the first topic on the cluster."""
    seals: bool = True

    def run(self, *words: str, retention: str) -> Ended:
        """Run a command with this retention declared."""
        text = CONFIGURATION.format(topics=TOPICS, retention=retention)
        (self.folder / "main.kf.hcl").write_text(text.lstrip(), "utf-8")
        command = [sys.executable, "-m", MODULE, "child", self.live, str(int(self.seals)), *words]
        paths = str(Path(__file__).parent.parent.parent)
        variables = {**os.environ, **self.variables, "PYTHONPATH": paths}
        before, begin = self.count(), time.perf_counter()
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=variables,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        seconds = time.perf_counter() - begin
        if done.returncode:
            raise SystemExit(f"{words}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        peak, work = map(float, done.stderr.splitlines()[-1].split())
        return Ended(seconds, work, peak / 1024, self.count() - before)

    def apply(self, retention: str) -> Ended:
        ended = self.run("apply", "--auto-approve", retention=retention)
        self.live = retention
        return ended


def run_child(live: str, seals: str, words: list[str]) -> None:
    """Run the command line; a plan and an apply on a simulated cluster of which the first topic has
    this retention."""
    import resource

    from kafkaform.cli.app import main

    # `audit show` asks no cluster, and what makes one takes longer to import than the command.
    if words[0] != "audit":
        simulate_cluster(live, seals=seals == "1")
    sys.argv = ["kafkaform", *words]
    try:
        main()
    finally:
        sys.stdout.flush()
        # Not ru_maxrss, which a process takes over from the one that started it.
        status = Path("/proc/self/status").read_text("ascii")
        peak = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
        used = resource.getrusage(resource.RUSAGE_SELF)
        print(peak.split()[1], used.ru_utime + used.ru_stime, file=sys.stderr)


def simulate_cluster(live: str, *, seals: bool) -> None:
    """Let the commands of this process find a simulated cluster."""
    from kafkaform.provider.registry import Registry
    from kafkaform.workflow import applying
    from kafkaform_kafka.memory import MemoryProvider

    from ..test_cases import cluster_of

    config = {f"t{n}": {"retention.ms": live if n == 0 else "1000"} for n in range(TOPICS)}
    topics = {name: {"partitions": 3, "config": configs} for name, configs in config.items()}
    provider = MemoryProvider(cluster_of(topics=topics))
    Registry.load = lambda self, name: provider  # type: ignore[method-assign,assignment]
    if not seals:
        applying.seal_log = lambda *_: None


@contextmanager
def open_local() -> Iterator[Place]:
    with tempfile.TemporaryDirectory() as name:
        yield Place(Path(name), {}, lambda: 0)


@contextmanager
def open_remote(latency: float) -> Iterator[Place]:
    bucket = s3.Bucket()
    with tempfile.TemporaryDirectory() as name, s3.serving(bucket) as address:
        query = f"endpoint={address}&region=us-east-1&use_path_style=true&timeout=30s"
        place = f"s3://{s3.BUCKET}/prod?{query}"
        variables = {**s3.ENVIRONMENT, "KAFKAFORM_STATE": place}
        made = Place(Path(name), variables, lambda: bucket.requests.total())
        bucket.always.append(lambda bucket, request: time.sleep(latency))
        yield made


def prepare(place: Place, runs: int, *, sealed: bool) -> int:
    """Adopt all topics, change one, and repeat that until the log has so many runs; then one real
    apply, which reads all of it."""
    place.run("apply", "--auto-approve", "--adopt=*", retention="1000")
    place.apply("2000")
    if not runs:
        return 0
    os.environ.update(place.variables)
    store = open_folder_store(place.folder, place.variables.get("KAFKAFORM_STATE"), None)
    records = grow_store(store, runs, sealed=sealed)
    ended = place.apply("3000")
    print(f"    the first apply, which reads {records:,} records: {ended.seconds:.0f} s")
    return records


def compare(empty: Place, long: Place) -> None:
    """Print what plans and applies take with both."""
    for label, act in (
        ("plan", lambda place, _: place.run("plan", retention=place.live)),
        ("apply", lambda place, number: place.apply(str(10_000 + number))),
        ("audit show", lambda place, _: place.run("audit", "show", retention=place.live)),
    ):
        figures: dict[str, list[Ended]] = {"empty": [], "long": []}
        for number in range(ROUNDS):
            for name, place in (("empty", empty), ("long", long)):
                figures[name].append(act(place, number))
        base, much = (statistics.median(item.seconds for item in figures[name]) for name in figures)
        fastest = [min(item.seconds for item in figures[name]) for name in figures]
        least, most = (statistics.median(item.work for item in figures[name]) for name in figures)
        peaks = [max(item.peak for item in figures[name]) for name in figures]
        requests = [max(item.requests for item in figures[name]) for name in figures]
        print(
            f"    {label:<10} {much:.2f} s = {much / base:.2f} x an empty log, the fastest "
            f"{fastest[1] / fastest[0]:.2f} x; processor time "
            f"{most:.2f} s = {most / least:.2f} x; requests {requests[1]} and {requests[0]}; "
            f"peak memory {peaks[1]:.0f} and {peaks[0]:.0f} MB",
            flush=True,
        )


def main(runs: int = RUNS, latency: int = LATENCY_MS, *names: str) -> None:
    print(f"logs of {runs:,} runs of one change each, {TOPICS} topics, {latency} ms a request")
    for name, opened, sealed in (
        ("file", open_local, False),
        ("sealed-file", open_local, True),
        ("sealed-store", lambda: open_remote(latency / 1000), True),
    ):
        if names and name not in names:
            continue
        print(f"  {name}", flush=True)
        with keeping_bytecode(), opened() as empty, opened() as long:
            empty.seals = long.seals = sealed
            prepare(empty, 0, sealed=sealed)
            prepare(long, runs, sealed=sealed)
            compare(empty, long)


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        run_child(*sys.argv[2:4], sys.argv[4:])
    else:
        main(*map(int, sys.argv[1:3]), *sys.argv[3:])
