"""How long a command takes from its start to its end, as a multiple of Python's own start."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROUNDS = 20
CONFIGURATION = """
provider "kafka" {
  bootstrap_servers = ["localhost:9092"]
}

locals {
  topics = { orders = 12, clicks = 6 }
}

resource "kafka_topic" "events" {
  for_each   = local.topics
  name       = "shop.${each.key}"
  partitions = each.value
  config     = { "cleanup.policy" = "compact" }
}
"""
COMMANDS = ("validate", "fmt -check", "output", "version", "plan -help")


@contextmanager
def keeping_bytecode() -> Iterator[None]:
    """Let the commands that this process starts keep compiled modules, as an installation does."""
    before = os.environ.copy()
    with tempfile.TemporaryDirectory() as cache:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = cache
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


def seconds(words: Sequence[str], folder: str) -> float:
    """One process, from its start to its end."""
    begun = time.perf_counter()
    subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, check=True)
    return time.perf_counter() - begun


def medians(commands: Sequence[str]) -> dict[str, float]:
    """Seconds of each command, and of `python -c pass` under "". They take turns, so that
    whatever else the machine does meets all of them; the first turn fills the caches."""
    lines = {"": ["-c", "pass"], **{line: ["-m", "kafkaform", *line.split()] for line in commands}}
    with keeping_bytecode(), tempfile.TemporaryDirectory() as folder:
        Path(folder, "main.kf.hcl").write_text(CONFIGURATION.lstrip(), "utf-8")
        turns = [
            {name: seconds(words, folder) for name, words in lines.items()}
            for _ in range(ROUNDS + 1)
        ]
    return {name: statistics.median(turn[name] for turn in turns[1:]) for name in lines}


def main() -> None:
    found = medians(COMMANDS)
    base = found.pop("")
    print(f"start-up, medians of {ROUNDS} processes; `python -c pass` takes {base * 1000:.0f} ms")
    for command, time_taken in found.items():
        print(f"kafkaform {command:<12} {time_taken * 1000:5.0f} ms = {time_taken / base:5.2f} x")


if __name__ == "__main__":
    main()
