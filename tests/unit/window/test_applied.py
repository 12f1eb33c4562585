"""The window after real commands: an apply, a change by others, and a plan that finds it."""

from __future__ import annotations

import json

import pytest

from kafkaform.provider.registry import Registry
from kafkaform.window.page import make_id
from kafkaform.window.server import find_page
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


RULES = """
provider "kafka" {
  bootstrap_servers = ["localhost:9092"]
  authorizer {
    super_users     = ["User:root"]
    allow_if_no_acl = ALLOWED
  }
}
"""
QUESTIONS = {
    "--topic=orders": "kind=Topic&name=orders",
    "--topic=other": "kind=Topic&name=other",
    "--topic=orders --principal=User:ci": "kind=Topic&name=orders&principal=User:ci",
    "--topic=orders --host=::1": "kind=Topic&name=orders&host=::1",
    "--topic=orders --operation=read": "kind=Topic&name=orders&right=Read",
    "--group=g": "kind=Group&name=g",
    "--cluster": "kind=Cluster",
}


@pytest.mark.parametrize("allowed", ["false", "true"])
def test_the_page_of_rights_answers_as_the_command(folder: Here, allowed: str) -> None:
    """With the authorizer block of the folder, each answer of `explain access` is the same, word
    for word, and none is unknown."""
    text = CONFIGURATION.replace("RETENTION", "86400000").split("\n", 2)[2]
    folder.write("main.kf.hcl", RULES.replace("ALLOWED", allowed) + text)
    for flags, query in QUESTIONS.items():
        said = folder.done("explain", "access", *flags.split(), "--json")
        answers = json.loads(said.out)["answers"]
        page = find_page(make_sources(folder.path), "access", query, "/window/")
        assert page is not None
        cells = [text for trail, text in Page(page).texts if "td" in trail and "a" not in trail]
        expected = [
            part
            for answer in answers
            for part in (
                answer["principal"] or "anybody else",
                *(answer["operation"], answer["verdict"], answer["why"]),
            )
        ]
        assert cells[: len(expected)] == expected, flags
        assert "unknown" not in expected


def test_the_history_has_the_apply(folder: Here) -> None:
    """Every record of the object is there: its intent, and what came of it."""
    objects = find_page(make_sources(folder.path), "objects", "q=kafka_topic", "/window/")
    assert objects is not None
    links = [str(a["href"]) for a in Page(objects).all("a")]
    (link,) = [one for one in links if one.startswith("/window/objects/")]
    history = read(folder, link.removeprefix("/window/"))
    assert "intent" in history and "create: applied" in history
    assert "config.retention.ms = 1 d (86400000)" in history
