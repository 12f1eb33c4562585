"""What stops an `alter`: guards, blocks of rules, and policies. The cluster is simulated."""

from __future__ import annotations

import pytest

from kafkaform.cli.commands import alter
from kafkaform.provider.registry import Registry
from kafkaform.workflow.configuration.policies import VARIABLE
from kafkaform_kafka.memory import MemoryProvider, SimulatedCluster

from ...kit.commands.here import Here

PROVIDER = 'provider "kafka" {\n  bootstrap_servers = ["localhost:9092"]\n}\n'
NO_LOSS = """
policy "no_data_loss" {
  condition = !contains(change.harms, "data-loss")
  message   = "${change.key} would lose data"
%s}
"""
WAIVER = """
  waiver {
    addresses = ["kafka_topic.alter*"]
    reason    = "agreed"
    until     = "2999-12-31"
%s  }
"""
MANY = [f"t{number}" for number in range(12)]
CUT = ("--add-config", "retention.ms=1000", "--auto-approve")


@pytest.fixture
def cluster() -> SimulatedCluster:
    """It has twelve topics that nothing manages."""
    cluster = SimulatedCluster()
    for name in MANY:
        cluster.outside.create(name)
    return cluster


@pytest.fixture
def at(here: Here, cluster: SimulatedCluster) -> Here:
    """The current folder, whose configuration reaches the cluster."""
    here.monkeypatch.setattr(Registry, "load", lambda self, name: MemoryProvider(cluster))
    here.monkeypatch.delenv(VARIABLE, raising=False)
    here.monkeypatch.setenv("XDG_STATE_HOME", str(here.path / "home"))
    # The simulated cluster cannot be described.
    here.monkeypatch.setattr(alter, "_show_documents", lambda *_, **__: None)
    here.write("main.kf.hcl", PROVIDER)
    return here


def is_cut(cluster: SimulatedCluster, name: str = "t0") -> bool:
    """Whether the topic has the lower retention."""
    return cluster.topics[name].config.get("retention.ms") == "1000"


def refuse(at: Here, cluster: SimulatedCluster, *arguments: str) -> str:
    """What an `alter` says that ends with 8; nothing is sent or recorded."""
    said = at.fails("alter", "topic", *arguments, code=8)
    assert not any(is_cut(cluster, name) for name in MANY)
    assert not (at.path / "kafkaform.state.json").exists()
    return said


def test_the_guard_against_loss_counts_the_named_objects(
    at: Here, cluster: SimulatedCluster
) -> None:
    """Twelve objects are too many, whether a folder or a flag names the cluster; nine are not."""
    said = refuse(at, cluster, *MANY, *CUT)
    refuse(at, cluster, *MANY, *CUT, "--bootstrap-server", "localhost:9092")
    assert "could destroy data of 12 of 12 kafka_topic objects" in " ".join(said.split())
    assert "--accept guard-data-loss" in said
    at.done("alter", "topic", *MANY[:9], *CUT)
    assert is_cut(cluster)


def test_what_the_guard_blocks_is_accepted(at: Here, cluster: SimulatedCluster) -> None:
    """All of it, or that of an address; an address that the plan has not is a typing error."""
    accept = ("--accept", "guard-data-loss")
    assert "matches no object" in at.fails(
        "alter", "topic", *MANY, *CUT, "--accept", "guard-data-loss=kafka_topic.alter.tt*"
    )
    at.done("alter", "topic", *MANY, *CUT, *accept)
    assert is_cut(cluster)


def test_only_what_can_be_lifted_is_accepted(at: Here) -> None:
    """A misspelt rule, and one whose blocks stay, are errors before anything is read."""
    for name, told in (("guard-data", "is not a rule"), ("object-missing", "cannot be accepted")):
        assert told in at.fails("alter", "topic", "t0", *CUT, "--accept", name)


def test_a_policy_of_the_folder_blocks(at: Here, cluster: SimulatedCluster) -> None:
    """The change of a single object, too; the rehearsal ends in the same way."""
    at.write("policies.kf.hcl", NO_LOSS % "")
    assert "policy no_data_loss: t0 would lose data" in refuse(at, cluster, "t0", *CUT)
    refuse(at, cluster, "t0", "--add-config", "retention.ms=1000", "--validate")
    at.done("alter", "topic", "t0", "--add-config", "retention.ms=90d", "--auto-approve")


def test_a_waiver_lets_it_through(at: Here, cluster: SimulatedCluster) -> None:
    """Of the policy, and of the guard."""
    waivers = WAIVER % "" + WAIVER % '    rule      = "guard-data-loss"\n'
    at.write("policies.kf.hcl", NO_LOSS % waivers)
    said = at.done("alter", "topic", *MANY, *CUT)
    assert "waived until 2999-12-31: agreed" in " ".join(said.text.split())
    assert is_cut(cluster)


@pytest.mark.parametrize("way", ["flag", "variable"])
def test_policies_from_outside_block_without_a_configuration(
    at: Here, cluster: SimulatedCluster, way: str
) -> None:
    """With --bootstrap-server no configuration is read, but these policies count."""
    at.write("rules/all.kfpolicy.hcl", NO_LOSS % "")
    direct = ("--bootstrap-server", "localhost:9092")
    flags = ("--policy", "rules") if way == "flag" else ()
    if way == "variable":
        at.monkeypatch.setenv(VARIABLE, "rules")
    refuse(at, cluster, "t0", *CUT, *direct, *flags, "--validate")
    assert not (at.path / "home").exists()
    said = refuse(at, cluster, "t0", *CUT, *direct, *flags)
    assert "policy no_data_loss: t0 would lose data" in said
    at.monkeypatch.delenv(VARIABLE, raising=False)
    at.done("alter", "topic", "t0", *CUT, *direct)
    assert is_cut(cluster)
