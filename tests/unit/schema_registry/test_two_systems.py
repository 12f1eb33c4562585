"""Topics and their schemas in one plan: the order of both, and who is left without what."""

from __future__ import annotations

import json

import pytest

from kafkaform_kafka import provider as kafka
from kafkaform_kafka.memory import MemoryProvider, SimulatedCluster

from ...kit.schema_registry.schemas import ORDER
from .conftest import Folder

TOPIC = """
provider "kafka" {
  bootstrap_servers = ["simulated:9092"]
}
resource "kafka_topic" "orders" {
  name       = "orders"
  partitions = 2
}
"""
SCHEMA = """
resource "schema_registry_schema" "order" {
  topic  = "orders"
  schema = file("order.avsc")
}
"""
REMOVED = """
removed {
  from = %s
  lifecycle {
    destroy = true
  }
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
    """A topic and its schema, applied, although neither block names the other."""
    folder.write(ORDER, "order.avsc")
    folder.write(SCHEMA + TOPIC)
    folder.run("apply", "-auto-approve")
    return folder


def sent(folder: Folder) -> list[str]:
    """The kinds of the objects for which requests left, in this order."""
    lines = (folder.path / "kafkaform.audit.jsonl").read_text().splitlines()
    records = map(json.loads, lines)
    return [one["body"]["kind"] for one in records if one["kind"] == "intent"]


def test_the_topic_comes_first(both: Folder, cluster: SimulatedCluster) -> None:
    """And both stay as they are."""
    assert sent(both) == ["kafka_topic", "schema_registry_schema"]
    assert list(cluster.topics) == ["orders"]
    assert both.registry.subjects.list_names() == ["orders-value"]
    assert "No changes" in both.run("plan")


def test_deleting_a_topic_names_its_schema(both: Folder) -> None:
    """As a note: the schema stays of use, since records elsewhere can have it."""
    both.write(SCHEMA + TOPIC.partition("resource")[0] + REMOVED % "kafka_topic.orders")
    said = both.run("plan")
    assert "schema_registry_schema.order describes" in said


def test_both_go_in_one_plan(both: Folder, cluster: SimulatedCluster) -> None:
    """The schema first, and then nobody is left without anything."""
    removed = REMOVED % "kafka_topic.orders" + REMOVED % "schema_registry_schema.order"
    keep = 'resource "kafka_topic" "other" {\n  name = "other"\n  partitions = 1\n}\n'
    both.write(TOPIC.partition("resource")[0] + keep + removed)
    said = both.run("apply", "-auto-approve")
    assert "describes" not in said
    assert sent(both)[-3:] == ["kafka_topic", "schema_registry_schema", "kafka_topic"]
    assert list(cluster.topics) == ["other"]
