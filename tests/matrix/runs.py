"""The lines of docs/compatibility.md, and the tests that are run for each of them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kafkaform.sandbox import list_versions
from kafkaform.sandbox.versions import NO_ZOOKEEPER, find_newest, parse_version

from ..kit.kafka.versions import Choice
from ..test_kip_map import PROOF, ROWS

LIFE_CYCLES, ACCEPTANCE, KIPS, CRASHES = "life cycles", "acceptance suite", "KIPs", "crashes"
CLAIMS, CONNECT = "claims", "Kafka Connect"
ROOT = Path(__file__).parents[2]
PARTS: Mapping[str, tuple[str, ...]] = {
    LIFE_CYCLES: ("tests/cluster/versions/test_life_cycle.py",),
    ACCEPTANCE: (
        "tests/cluster/provider/test_conformance.py",
        "tests/cluster/provider/test_conformance_kinds.py",
    ),
    CRASHES: ("tests/reliability/crash/test_crashes.py",),
    CLAIMS: tuple(
        sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("tests/cluster/claims/test_*.py"))
    ),
    CONNECT: (
        "tests/cluster/connect/test_conformance.py",
        "tests/cluster/connect/test_connectors.py",
    ),
    KIPS: (),
}
"""Part -> its files. The tests of the KIPs are those of the map that have no other part."""
LEFT_OUT = Path(__file__).with_name("left_out.toml")


def list_choices() -> list[Choice]:
    """Each version; the newest of each major also with three brokers, and the last one that has
    ZooKeeper with that."""
    last, newest = find_newest(NO_ZOOKEEPER), list_versions()[-1]
    found: list[Choice] = []
    for version in list_versions():
        found.append(Choice(version))
        if version in (last, newest):
            found.append(Choice(version, brokers=3))
        if version == last:
            found.append(Choice(version, zookeeper=True))
    return found


def list_tests(part: str) -> list[str]:
    """The tests of a part as pytest takes them. Those without a broker prove nothing about a
    version, and `-m broker` leaves them out."""
    if part != KIPS:
        return list(PARTS[part])
    proofs = {f"tests/{file}::{name}" for row in ROWS.values() for file, name in PROOF.findall(row)}
    return sorted(proof for proof in proofs if find_part(proof) == KIPS)


def find_part(test: str) -> str:
    """The part that a test belongs to."""
    file = test.partition("::")[0]
    return next((part for part, files in PARTS.items() if file in files), KIPS)


def list_left_out(choice: Choice) -> Mapping[str, str]:
    """Test -> why it cannot hold on this Kafka."""
    entries = tomllib.loads(LEFT_OUT.read_text("utf-8"))["left_out"]
    return dict(_select_left_out(entries, choice))


def _select_left_out(entries: list[Mapping[str, Any]], choice: Choice) -> Iterator[tuple[str, str]]:
    version = parse_version(choice.kafka_version)
    for entry in entries:
        old = "before" in entry and version < parse_version(entry["before"])
        other = entry.get("zookeeper", False) and choice.zookeeper
        more = entry.get("brokers") == choice.brokers
        if old or other or more:
            for test in entry["tests"]:
                yield f"tests/{test}", entry["reason"]
