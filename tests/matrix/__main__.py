"""`python -m tests.matrix [LINE ...] [--part PART]`: run the tests of these lines of
docs/compatibility.md, all by default, one after the other, and write the page. It ends with 1 if a
test failed."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ..kit.kafka.versions import Choice
from .page import update_page
from .results import Result, read_results, summarize, write_results
from .runs import PARTS, list_choices, list_tests


def main(words: Sequence[str]) -> int:
    choices = {choice.title: choice for choice in list_choices()}
    parser = argparse.ArgumentParser(prog="python -m tests.matrix", description=__doc__)
    lines = ", ".join(f'"{title}"' for title in choices)
    parser.add_argument("line", nargs="*", help=f"which of {lines}; all by default")
    parser.add_argument("--part", choices=PARTS, help="run only this part; all by default")
    asked = parser.parse_args(words)
    if unknown := [line for line in asked.line if line not in choices]:
        parser.error(f'there is no line "{unknown[0]}"; lines: {lines}')
    found, failed = read_results(), 0
    for title in asked.line or choices:
        for part in (asked.part,) if asked.part else PARTS:
            print(f"Kafka {title}: {part}", flush=True)
            results = run_tests(choices[title], part)
            failed += sum(len(result.failed) for result in results.values())
            # After each part: all of them take hours, and one can be run again alone.
            found[title] = {**found.get(title, {}), **results}
            found = {known: found.get(known, {}) for known in choices}
            write_results(found)
            update_page(found)
    print(f"docs/compatibility.md is written; {failed} tests failed")
    return 1 if failed else 0


def run_tests(choice: Choice, part: str) -> dict[str, Result]:
    """What became of the tests on this Kafka."""
    options = [f"--kafka-version={choice.kafka_version}", f"--brokers={choice.brokers}"]
    options += ["--zookeeper"] if choice.zookeeper else []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "records")
        file.touch()
        plugin = ["-p", "tests.matrix.recorder", f"--record={file}"]
        command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-m", "broker", "--tb=short"]
        ended = subprocess.run([*command, *plugin, *options, *list_tests(part)], check=False)
        if ended.returncode not in (0, 1):
            # What a crash has left out would look as if it had passed.
            sys.exit(f"pytest ended with {ended.returncode}: nothing is kept of {part}")
        records = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    return summarize(records, part)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
