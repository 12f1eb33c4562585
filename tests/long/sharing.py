"""All tests that use a broker of the run, again and again: in random order, with few processes and
with many, alone and beside a program that takes a core. No test may disturb another one."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path

from .figures import Figures

RUNS = 10
ROOT = Path(__file__).resolve().parents[2]
WAYS = ((2, False), (3, False), (6, False), (3, True), (6, True))
"""Processes, and whether another program takes a core meanwhile."""
BUSY = [sys.executable, "-c", "while True: pass"]
COUNT = re.compile(r"(\d+) (passed|failed|error|skipped)")


def run(scale: float) -> Figures:
    """scale: of the number of runs. The seeds are 1, 2, 3 …; a violation names its own."""
    begun = time.monotonic()
    ways = list(islice(cycle(WAYS), max(1, round(RUNS * scale))))
    passed, violations = 0, []
    for seed, (processes, beside) in enumerate(ways, 1):
        with busy() if beside else idle():
            ended = subprocess.run(
                command(processes, seed), cwd=ROOT, capture_output=True, text=True
            )
        counts = {what: int(number) for number, what in COUNT.findall(ended.stdout)}
        passed += counts.get("passed", 0)
        how = f"{processes} processes{', a busy core' if beside else ''}, --shuffle {seed}"
        print(f"  {how}: {ended.stdout.strip().rpartition(chr(10))[2]}", flush=True)
        if ended.returncode != 0:
            report = Path(tempfile.mkdtemp(prefix="kafkaform-sharing-"), "pytest.txt")
            report.write_text(ended.stdout + ended.stderr, encoding="utf-8")
            print(f"    see {report}", flush=True)
            wrong = [line for line in ended.stdout.splitlines() if line[:5] in ("FAILE", "ERROR")]
            violations.append(f"{how}: {'; '.join(wrong) or ended.stderr or ended.stdout}")
    seconds = time.monotonic() - begun
    return Figures("sharing", {"runs": len(ways), "passed": passed}, tuple(violations), seconds)


def command(processes: int, seed: int) -> list[str]:
    words = f"-q -m shared_broker -n {processes} --dist loadfile --shuffle {seed}"
    return [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words.split()]


@contextmanager
def busy() -> Iterator[None]:
    """Another program takes a core."""
    with subprocess.Popen(BUSY) as process:
        try:
            yield
        finally:
            process.kill()


@contextmanager
def idle() -> Iterator[None]:
    yield
