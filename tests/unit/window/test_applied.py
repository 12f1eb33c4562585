"""The window after real commands: an apply, a change by others, and a plan that finds it."""

from __future__ import annotations

import pytest

from kafkaform.provider.registry import Registry
from kafkaform.window.page import make_id
from kafkaform.window.routes import find_page
from kafkaform_kafka.memory import MemoryProvider, SimulatedCluster

from ...kit.commands.here import Here
from ...kit.markup import Page
from .world import make_sources

CONFIGURATION = """
provider "kafka" { bootstrap_servers = ["localhost:9092"] }
resource "kafka_topic" "orders" {
  name       = "orders"
  partitions = 3
  config     = { "retention.ms" = "RETENTION" }
}
resource "kafka_acl" "readers" {
  resource_name       = "orders"
  resource_type       = "Topic"
  acl_principal       = "User:ci"
  acl_host            = "*"
  acl_operation       = "Read"
  acl_permission_type = "Allow"
}
"""


@pytest.fixture
def folder(here: Here, monkeypatch: pytest.MonkeyPatch) -> Here:
    """A folder from which a topic and an ACL were applied. Afterwards another folder, with a state
    of its own, changed the topic, and a plan was saved here."""
    made = SimulatedCluster()
    monkeypatch.setattr(Registry, "load", lambda self, name: MemoryProvider(made))
    here.write("main.kf.hcl", CONFIGURATION.replace("RETENTION", "86400000"))
    here.done("apply", "--auto-approve")
    here.write("main.kf.hcl", CONFIGURATION.replace("RETENTION", "3600000"))
    here.done("apply", "--auto-approve", "--adopt=*", "--state=other.state.json")
    here.write("main.kf.hcl", CONFIGURATION.replace("RETENTION", "86400000"))
    here.done("plan", "--out", "now.kfplan")
    return here


def read(folder: Here, path: str, query: str = "") -> str:
    found = find_page(make_sources(folder.path), path, query, "/window/")
    assert found is not None, path
    texts = (text for trail, text in Page(found).texts if "body" in trail)
    return " ".join(" ".join(texts).split())


def test_what_was_done_is_shown(folder: Here) -> None:
    """State, log, plan, drift, rights and history say what the commands did."""
    assert "Serial" in read(folder, "") and "complete" in read(folder, "")
    assert "now.kfplan" in read(folder, "plans")
    drift = read(folder, "drift")
    assert "orders" in drift and "86400000 → 3600000" in drift, drift
    assert "last set here" in drift
    assert "Every record is as it was written" in read(folder, "log")
    query = "kind=Topic&name=orders&super_users=User:root&no_acl=no"
    assert 'User:ci Read allowed Allow User:ci Read on topic "orders" from any host' in read(
        folder, "access", query
    )
    plan = read(folder, f"plans/{make_id('now.kfplan')}")
    assert "1 to change" in plan and "retention.ms" in plan


def test_the_history_has_the_apply(folder: Here) -> None:
    """Every record of the object is there: its intent, and what came of it."""
    objects = find_page(make_sources(folder.path), "objects", "q=kafka_topic", "/window/")
    assert objects is not None
    links = [str(a["href"]) for a in Page(objects).all("a")]
    (link,) = [one for one in links if one.startswith("/window/objects/")]
    history = read(folder, link.removeprefix("/window/"))
    assert "intent" in history and "create: applied" in history
    assert "config.retention.ms: (not set)" in history
