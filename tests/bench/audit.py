"""`audit verify` of a long log: how long it takes, how much of it is read, how much memory.

`python -m tests.bench.audit [RECORDS]`. The log is written with the product's own seal; the
command runs in a process of its own, as users run it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from kafkaform.audit.journal import Subject, make_outcome_body
from kafkaform.audit.records import RecordKind, encode, render_time, seal_record
from kafkaform.audit.sinks.local import LocalSink
from kafkaform.core.change import PathChange
from kafkaform.core.head import GENESIS, Head
from kafkaform.core.resource import Identity
from kafkaform.core.value import FrozenMap

RECORDS, AT_ONCE = 1_000_000, 5_000
LOG = "kafkaform.audit.jsonl"
PATIENCE = 900.0
CHILD = """
import resource
from kafkaform.cli.app import main
try:
    main()
finally:
    read = next(line for line in open("/proc/self/io") if line.startswith("rchar"))
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, read.split()[1])
"""
"""Runs the command line, then tells its peak in KB and the bytes that it has read."""


@dataclass(frozen=True)
class Verified:
    """code: how the command ended; told: what it said; seconds: that it took; peak: resident
    memory in MB; read: bytes that it read of anything."""

    code: int
    told: str
    seconds: float
    peak: int
    read: int


def body(number: int) -> FrozenMap:
    """The outcome of a small step, as most records are."""
    name = f"orders-{number:07}"
    subject = Subject(
        lineage="bench",
        scope_id="cluster",
        step=f"kafka_topic.{name}/1",
        address=f"kafka_topic.{name}",
        identity=Identity("kafka", "kafka_topic", name),
        action="update",
        adopts=False,
        incarnation=None,
        paths=(PathChange(("config", "retention.ms"), "1000", "2000"),),
        plan="0" * 64,
        approval="0" * 64,
        phase="part 1, round 1, phase 30",
        owners=(f"kafka_topic.{name}",),
    )
    return make_outcome_body(subject, "applied", duration_ms=3)


def write(path: Path, records: int) -> Head:
    """A log of so many records; its head."""
    sink, head = LocalSink(path), GENESIS
    for begin in range(0, records, AT_ONCE):
        lines = []
        for number in range(begin, min(begin + AT_ONCE, records)):
            record = seal_record(
                head,
                time=render_time(number),
                run="bench",
                actor="bench",
                kind=RecordKind.OUTCOME,
                body=body(number),
            )
            lines.append(encode(record))
            head = Head(record.seq, record.hash)
        sink.append(lines)
    return head


def verified(folder: Path, *anchors: Head) -> Verified:
    """`audit verify` in this folder, with these heads that are known from elsewhere."""
    words = [word for anchor in anchors for word in ("--anchor", str(anchor))]
    command = [sys.executable, "-c", CHILD, "audit", "verify", *words]
    begun = time.perf_counter()
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    took = time.perf_counter() - begun
    *told, figures = done.stdout.splitlines()
    peak, read = map(int, figures.split())
    return Verified(done.returncode, "\n".join(told) + done.stderr, took, peak // 1024, read)


def main(records: int = RECORDS) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        begun = time.perf_counter()
        head = write(folder / LOG, records)
        size = (folder / LOG).stat().st_size
        took = time.perf_counter() - begun
        print(f"{records:,} records of {size // records} bytes, written in {took:.0f} s")
        found = verified(folder, head)
    if found.code:
        raise SystemExit(found.told)
    pace = f"{records / found.seconds:,.0f} records a second"
    print(f"  audit verify  {found.seconds:8.1f} s = {pace}")
    print(f"  read          {found.read / size:8.2f} x the log; peak memory {found.peak} MB")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
