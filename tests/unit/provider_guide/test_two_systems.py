"""Kafka and the store in one configuration: one plan, and nothing of the one in the other."""

from __future__ import annotations

import json

import pytest

from kafkaform_kafka import provider as kafka
from kafkaform_kafka.memory import MemoryProvider, SimulatedCluster
from kafkaform_textstore.server import Item, User

from .conftest import Folder

KAFKA = 'provider "kafka" {\n  bootstrap_servers = ["simulated:9092"]\n}\n'
TOPIC_AND_FILE = """
resource "kafka_topic" "orders" {
  name       = "orders"
  partitions = 2
}

resource "textstore_file" "orders" {
  name    = "orders"
  content = "${kafka_topic.orders.partitions} partitions"
}
"""


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> SimulatedCluster:
    """A simulated cluster where the Kafka provider would connect to a real one."""
    made = SimulatedCluster()
    monkeypatch.setattr(kafka, "PROVIDER", MemoryProvider(made))
    return made


@pytest.fixture
def both(folder: Folder, cluster: SimulatedCluster) -> Folder:
    """A topic and a file of one name, declared and applied."""
    folder.write(KAFKA + folder.connect() + TOPIC_AND_FILE)
    folder.run("apply", "-auto-approve")
    return folder


def test_one_plan_for_both(both: Folder, cluster: SimulatedCluster) -> None:
    """Each system has its own object, and the state says which is whose."""
    assert list(cluster.topics) == ["orders"]
    assert both.store.files["orders"]["content"] == "2 partitions"
    assert "No changes" in both.run("plan")
    state = json.loads((both.path / "kafkaform.state.json").read_text())
    assert {row["instance"] for row in state["objects"]} == {"kafka", "textstore"}
    assert state["providers"] == {"kafka": cluster.id, "textstore": both.store.id}


def test_each_system_is_called_what_its_users_call_it(
    both: Folder, cluster: SimulatedCluster
) -> None:
    """In one plan, of one file, and when the plan is shown again."""
    both.write(KAFKA + both.connect() + TOPIC_AND_FILE.replace("partitions = 2", "partitions = 3"))
    planned = both.run("plan", "-out=saved")
    for said in (planned, both.run("show", "saved")):
        assert f"Cluster kafka: {cluster.id} at simulated:9092" in said
        assert f"Store textstore: {both.store.id} at {both.server.url}" in said
        assert said.count("(the broker will check)") == said.count("(the server will check)") == 1


def test_a_change_of_one_sends_nothing_to_the_other(
    both: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While Kafka is changed the store gets no write."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("written")

    monkeypatch.setattr(both.store, "write", refuse)
    more = 'config = { "retention.ms" = "3600000" }\n  partitions = 2'
    both.write(KAFKA + both.connect() + TOPIC_AND_FILE.replace("partitions = 2", more))
    assert "1 changed" in both.run("apply", "-auto-approve")


def test_a_failure_of_one_stops_what_needs_it(
    folder: Folder, cluster: SimulatedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The topic waits for the file across the systems: without the file it is not created."""
    folder.write(
        KAFKA
        + folder.connect()
        + 'resource "textstore_file" "name" {\n  name = "n"\n  content = "orders"\n}\n'
        + 'resource "kafka_topic" "orders" {\n  name = textstore_file.name.content\n}\n'
        + 'resource "kafka_topic" "others" {\n  name = "others"\n}\n'
    )
    write = folder.store.write

    def full(user: User, operations: list[Item], *, validate_only: bool = False) -> list[Item]:
        if validate_only:
            return write(user, operations, validate_only=True)
        return [{"code": "invalid", "message": "the store is full"} for _ in operations]

    monkeypatch.setattr(folder.store, "write", full)
    said = folder.run("apply", "-auto-approve", code=5)
    assert "the store is full" in said
    assert "it depends on textstore_file.name, which was not applied" in said
    assert list(cluster.topics) == ["others"]


def test_import_all_of_both(folder: Folder, cluster: SimulatedCluster) -> None:
    """Each object is written under the type of its own system."""
    cluster.outside.create("payments", 1, 1, {})
    folder.put("create", "file", "payments", content="", headers={})
    folder.write(KAFKA + folder.connect())
    folder.run("import", "--all", "--out", "all.kf.hcl")
    said = folder.run("apply", "-auto-approve")
    assert "2 imported" in said
    assert "kafka_topic.payments" in said and "textstore_file.payments" in said


def test_commands_for_kafka_choose_kafka(both: Folder, cluster: SimulatedCluster) -> None:
    """They need no --provider beside another system, and refuse that one."""
    cluster.outside.create("payments", 1, 1, {})
    cluster.outside.create("refunds", 1, 1, {})
    change = ("--add-config", "retention.ms=3600000", "--validate")
    assert "IncrementalAlterConfigs" in both.run("alter", "topic", "payments", *change)
    refused = both.run("alter", "topic", "refunds", *change, "--provider", "textstore", code=1)
    assert (
        "provider instance 'textstore' has the provider textstore, and this command needs kafka"
        in refused
    )
    both.write(both.connect())
    for words in (
        ("describe", "topics"),
        ("alter", "topic", "refunds", *change),
        ("explain", "access", "--topic", "refunds"),
    ):
        assert "no provider instance of the configuration has the provider kafka" in both.run(
            *words, code=1
        )
