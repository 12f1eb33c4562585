"""Commands that need a connection take a cluster of the repository file, without a folder."""

from __future__ import annotations

import pytest

from kafkaform.provider.registry import Registry
from kafkaform_kafka.memory import MemoryProvider, SimulatedCluster

from ...kit.commands.here import Here

FILE = """repository {
  name = "acme"
}

cluster "prod" {
  provider          = "kafka"
  bootstrap_servers = ["prod:9093"]
}
"""
MORE = 'cluster "dr" {\n  provider          = "kafka"\n  bootstrap_servers = ["dr:9093"]\n}\n'


@pytest.fixture
def top(here: Here, monkeypatch: pytest.MonkeyPatch) -> Here:
    """The top of a repository whose clusters are simulated."""
    cluster = SimulatedCluster()
    load = Registry.load
    monkeypatch.setattr(
        Registry,
        "load",
        lambda self, name: MemoryProvider(cluster) if name == "kafka" else load(self, name),
    )
    monkeypatch.setenv("XDG_STATE_HOME", str(here.path / "home"))
    here.write("kafkaform.hcl", FILE)
    return here


def test_errors_list_the_names(top: Here) -> None:
    """A wrong name, and none although there are several."""
    top.write("kafkaform.hcl", FILE + MORE)
    several = top.run("describe", "topics")
    assert several.code == 1
    assert "the repository acme has 2 clusters of the provider kafka" in several.err
    assert "Choose one with --provider: cluster.dr, cluster.prod." in several.err
    wrong = top.run("explain", "access", "cluster", "--provider", "cluster.test")
    assert "kafkaform.hcl has no cluster.test" in wrong.err
    assert "There are: cluster.dr, cluster.prod." in wrong.err
    both = top.run(
        "describe", "topics", "--provider", "cluster.dr", "--bootstrap-server", "localhost:9092"
    )
    assert "--provider names a block of the configuration or a cluster" in both.err


def test_a_change_needs_the_name(top: Here) -> None:
    """Also of the only cluster: nothing is changed by being in a certain folder."""
    change = (
        "alter",
        "user",
        "app",
        "--add-config",
        "producer_byte_rate=1048576",
        "--auto-approve",
    )
    refused = top.run(*change)
    assert refused.code == 1
    assert "alter at the top of a repository needs the name of the cluster" in refused.err
    # A simulated cluster is changed, and cannot be described afterwards.
    assert "Apply complete: 1 added" in top.run(*change, "--provider", "cluster.prod").out


def test_what_a_folder_manages_is_not_altered(top: Here) -> None:
    """By the states of the folders; one that cannot be read is named."""
    top.write("kafkaform.hcl", FILE + 'folders "teams/*" {\n  uses = { kafka = cluster.prod }\n}\n')
    block = 'resource "kafka_topic" "a" {\n  name       = "a"\n  partitions = 1\n}\n'
    for name in ("pay", "shop"):
        top.write(f"teams/{name}/main.kf.hcl", block.replace('"a"', f'"{name}"'))
    top.monkeypatch.chdir(top.path / "teams/shop")
    top.done("apply", "--auto-approve")
    top.write("teams/pay/kafkaform.state.json", "{}")
    top.monkeypatch.chdir(top.path)
    change = ("--add-config", "retention.ms=1000000", "--auto-approve")
    refused = top.run("alter", "topic", "shop", *change, "--provider", "cluster.prod")
    assert refused.code == 8
    assert "is managed: the state of teams/shop has it as kafka_topic.shop" in refused.text
    assert "Whether teams/pay manages this is unknown" in refused.text
    quota = ("alter", "user", "app", "--add-config", "producer_byte_rate=1048576")
    said = top.run(*quota, "--auto-approve", "--provider", "cluster.prod")
    assert "No state of the repository that could be read has this object" in said.text
