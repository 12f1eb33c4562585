"""A repository of many folders on a real broker: its cluster without a folder, the changes of all
folders, and its fleet."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kafkaform.workflow.configuration.evaluation import Inputs
from kafkaform.workflow.fleet.register_file import read_fleet
from kafkaform.workflow.fleet.snapshot import take_snapshot

from ...kit.commands.folder import PROVIDER, Folder
from ...kit.kafka.logins import admin_login

FOLDERS = """
repository {
  name = "acme"
}

folders "teams/*" {
  owner = folder.name
  uses  = { kafka = cluster.prod }
}
"""


@pytest.fixture
def top(folder: Folder) -> Folder:
    """A repository with two teams, each of which has applied a topic; its top is the current
    folder."""
    (folder.path / "provider.kf.hcl").unlink()
    login = admin_login(folder.broker)
    block = PROVIDER.format(
        bootstrap=folder.broker.bootstrap,
        mechanism=login.mechanism,
        user=login.user,
        secret="ADMIN_PASSWORD",
    )
    cluster = block.replace('provider "kafka" {', 'cluster "prod" {\n  provider = "kafka"')
    folder.write("kafkaform.hcl", cluster + FOLDERS)
    for name in ("shop", "pay"):
        path = folder.path / "teams" / name
        path.mkdir(parents=True)
        (path / "main.kf.hcl").write_text(folder.topic(name))
        folder.monkeypatch.chdir(path)
        folder.done("apply", "--auto-approve")
    folder.monkeypatch.chdir(folder.path)
    return folder


def read_topics(folder: Folder, *flags: str) -> set[str]:
    """The topics of this test that `describe` shows."""
    said = folder.done("describe", "topics", "--name", f"{folder.prefix}*", "--json", *flags)
    return {topic["name"] for topic in json.loads(said.out)["topics"]}


def test_its_cluster_is_described_without_a_folder(top: Folder) -> None:
    """By its name from anywhere, and without a name at the top, because it is the only one."""
    topics = {f"{top.prefix}shop", f"{top.prefix}pay"}
    assert read_topics(top) == topics
    for place in (".", "teams", "teams/shop"):
        top.monkeypatch.chdir(top.path / place)
        assert read_topics(top, "--provider", "cluster.prod") == topics
    name = f"{top.prefix}shop"
    explained = top.done("explain", "access", "topic", name, "--provider", "cluster.prod")
    assert name in explained.text
    top.done("check", "--provider", "cluster.prod")


def test_the_changes_of_all_folders_are_listed(top: Folder) -> None:
    """In the order in which they were made."""
    changes = json.loads(top.done("history", "--all", "--json").out)["changes"]
    assert [(item["folder"], item["key"]) for item in changes] == [
        ("teams/shop", f"{top.prefix}shop"),
        ("teams/pay", f"{top.prefix}pay"),
    ]
    found = json.loads(top.done("history", f"topic/{top.prefix}pay", "--all", "--json").out)
    assert [item["folder"] for item in found["changes"]] == ["teams/pay"]


def test_its_fleet_lands(top: Folder) -> None:
    """The cluster and the states of all folders, what they record and what they declare."""
    (top.path / "fleet").mkdir()
    file = Path(top.write("fleet/fleet.hcl", 'fleet {\n  root = "data"\n  repository = ".."\n}\n'))
    summary = take_snapshot(read_fleet(file, Inputs()))
    assert summary.exit_code == 0, summary
    assert [cluster.name for cluster in summary.clusters] == ["prod"]
    assert [(s.name, s.recorded, s.declared, s.errors) for s in summary.states] == [
        ("teams/pay", 1, 1, ()),
        ("teams/shop", 1, 1, ()),
    ]
    register = json.loads(next((top.path / "fleet/data/landing/register").iterdir()).read_text())
    assert {state["owner"] for state in register["states"]} == {"shop", "pay"}
    assert all(state["lineage"] for state in register["states"])
