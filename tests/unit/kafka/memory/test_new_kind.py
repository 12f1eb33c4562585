"""A new kind of object is a folder and a line: nothing else has to know its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkaform.core.change import Action
from kafkaform.core.finding import Block
from kafkaform.core.resource import Identity, Observed
from kafkaform.core.value import EMPTY
from kafkaform.provider.registry import Registry
from kafkaform_kafka.inspect.documents import describe_objects
from kafkaform_kafka.inspect.source import DescribeQuery
from kafkaform_kafka.memory import MemoryProvider, SimulatedCluster
from kafkaform_kafka.protocol.apis import APIS
from kafkaform_kafka.provider import make_provider
from kafkaform_kafka.resource_kinds import KINDS
from tests.kit.commands.stocks import Desk, desk

from . import toggle_kind
from .toggle_kind import NAME, UPDATE_TOGGLES

TOPIC = """
resource "kafka_topic" "orders" {
  name = "orders"
}
"""
TOGGLES = f"""
resource "kafka_toggle" "metadata" {{
  toggle = "metadata.version"
  level  = 5
}}
{TOPIC}"""
AUTHORIZED = """
provider "kafka" {
  bootstrap_servers = ["localhost:9092"]
  authorizer {
    super_users     = ["User:admin"]
    allow_if_no_acl = false
  }
}
"""


def rule(permission: str, operation: str) -> str:
    """The block of an ACL on the cluster for the user `ci`."""
    return f"""
resource "kafka_acl" "{permission.lower()}" {{
  resource_name       = "kafka-cluster"
  resource_type       = "Cluster"
  acl_principal       = "User:ci"
  acl_host            = "*"
  acl_operation       = "{operation}"
  acl_permission_type = "{permission}"
}}
"""


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> SimulatedCluster:
    """One that knows the new kind, by its line in the list and its row of the API table."""
    monkeypatch.setitem(APIS, UPDATE_TOGGLES.name, UPDATE_TOGGLES)
    cluster = SimulatedCluster(provider=make_provider((*KINDS, *toggle_kind.KINDS)))
    monkeypatch.setattr(Registry, "load", lambda *_: cluster.provider)
    return cluster


@pytest.fixture
def folder(tmp_path: Path, cluster: SimulatedCluster) -> Desk:
    """A configuration with an object of the new kind, and a topic."""
    made = desk(tmp_path, cluster)
    made.write("toggles.kf.hcl", TOGGLES)
    return made


def level(cluster: SimulatedCluster) -> int | None:
    """As a session reads it; None without an object."""
    session = MemoryProvider(cluster).open("kafka", EMPTY, {})
    identity = Identity("kafka", NAME, "metadata.version")
    reading = session.read([identity])[identity]
    return reading.attributes["level"] if isinstance(reading, Observed) else None


def test_it_is_planned_sent_and_read_back(folder: Desk, cluster: SimulatedCluster) -> None:
    """Made, changed and deleted as any other object, in its place of the order."""
    done = folder.apply()
    assert [(c.identity.kind, c.action) for c in done.changes] == [
        (NAME, Action.CREATE),
        ("kafka_topic", Action.CREATE),
    ]
    assert [api for api in cluster.requests if api in APIS and APIS[api].limits] == [
        "CreateTopics",
        "UpdateToggles",
    ]
    assert level(cluster) == 5
    assert folder.plan().changes == ()
    folder.write("toggles.kf.hcl", TOGGLES.replace("5", "6"))
    folder.apply()
    assert level(cluster) == 6
    folder.write("toggles.kf.hcl", TOPIC)
    folder.apply()
    assert level(cluster) is None


def test_it_is_imported_and_described(folder: Desk, cluster: SimulatedCluster) -> None:
    """What is there is written as a block, and shown as a document."""
    folder.apply()
    folder.lose_state()
    folder.write("toggles.kf.hcl", "")
    assert 'resource "kafka_toggle"' in folder.generate()
    session = MemoryProvider(cluster).open("kafka", EMPTY, {})
    (kind,) = toggle_kind.KINDS
    document = describe_objects(kind, "simulated", session.sweep, DescribeQuery())
    assert [dict(row) for row in document["toggles"]] == [
        {"toggle": "metadata.version", "level": 5}
    ]
    assert document["complete"] and document["hidden"] is None
    none = DescribeQuery(fields=document["toggles"][0].with_items({"level": "4"}))
    assert describe_objects(kind, "simulated", session.sweep, none)["toggles"] == ()


def test_its_right_is_missed_before_anything_is_sent(
    folder: Desk, cluster: SimulatedCluster
) -> None:
    """The row of the API table names it."""
    cluster.grant("ci", ("Create", "cluster"), ("Describe", "cluster"))
    session = MemoryProvider(cluster, "ci").open("kafka", EMPTY, {})
    (change,) = (c for c in folder.plan().changes if c.identity.kind == NAME)
    steps = toggle_kind.TYPE.steps(change, session.facts)
    (verdict,) = session.examine(steps)
    assert verdict.fault is not None
    assert verdict.fault.message == "User:ci lacks Alter on Cluster"
    assert cluster.requests["UpdateToggles"] == 0


def test_the_guard_against_lock_outs_looks_after_it(
    folder: Desk, cluster: SimulatedCluster
) -> None:
    """A rule that would hide it from later plans is blocked, and names it."""
    rights = ("Alter", "AlterConfigs", "Create", "Describe", "DescribeConfigs")
    cluster.grant("ci", *((right, "cluster") for right in rights), ("Describe", "topic:*"))
    folder.write("main.kf.hcl", AUTHORIZED)
    allowed = TOGGLES + rule("Allow", "All")
    folder.write("toggles.kf.hcl", allowed)
    folder.apply()
    folder.user = "ci"
    folder.write("toggles.kf.hcl", allowed + rule("Deny", "DescribeConfigs"))
    (change,) = (c for c in folder.plan().changes if c.action is Action.CREATE)
    assert change.blocked is not None and change.blocked.block is Block.GUARD
    assert "no later plan could see kafka_toggle.metadata" in change.blocked.text
