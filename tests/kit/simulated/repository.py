"""A repository of many folders, whose configurations reach a simulated cluster."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kafkaform.core.value import FrozenMap
from kafkaform.provider.contract import Provider, Secrets, Session
from kafkaform.provider.registry import Registry
from kafkaform_kafka.memory import MemoryProvider, SimulatedCluster

FILE = """repository {
  name = "acme"
}

cluster "prod" {
  provider          = "kafka"
  bootstrap_servers = ["prod:9093"]
}

folders "teams/*" {
  owner = folder.name
  uses  = { kafka = cluster.prod }
}
"""


def write_repository(top: Path, *names: str, file: str = FILE) -> None:
    """A folder for each of these teams, which declares one topic."""
    (top / "kafkaform.hcl").write_text(file)
    for name in names:
        write_topics(top, name, f"{name}.a")


def write_topics(top: Path, name: str, *topics: str, more: str = "") -> Path:
    """Let the folder of this team declare exactly these topics."""
    folder = top / "teams" / name
    folder.mkdir(parents=True, exist_ok=True)
    blocks = (
        f'resource "kafka_topic" "{topic.rpartition(".")[2]}" {{\n  name       = "{topic}"\n'
        f"  partitions = 1\n  {more}\n}}\n"
        for topic in topics
    )
    (folder / "main.kf.hcl").write_text("\n".join(blocks))
    return folder


class CountingProvider(MemoryProvider, frozen=True):
    """Counts the logins by instance and user."""

    opened: list[tuple[str, FrozenMap]] = []

    def open(self, instance: str, config: FrozenMap, secrets: Secrets) -> Session:
        self.opened.append((instance, config))
        return super().open(instance, config, secrets)


def simulate_kafka(
    monkeypatch: pytest.MonkeyPatch, make: Callable[[], Provider] | None = None
) -> CountingProvider:
    """Let every `kafka` provider of this test reach one simulated cluster. make: another provider
    instead."""
    provider = CountingProvider(SimulatedCluster(), opened=[])
    load = Registry.load
    monkeypatch.setattr(
        Registry,
        "load",
        lambda self, name: (
            load(self, name) if name != "kafka" else make() if make is not None else provider
        ),
    )
    return provider
