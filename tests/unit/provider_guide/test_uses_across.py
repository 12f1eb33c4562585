"""Files that describe topics: what one provider's objects use of another's, by the commands."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from kafkaform.core.resource import Use
from kafkaform.core.value import FrozenMap
from kafkaform_kafka import provider as kafka
from kafkaform_kafka.memory import MemoryProvider, SimulatedCluster
from kafkaform_textstore import file
from kafkaform_textstore.server import Item, User

from .conftest import Folder

KAFKA = 'provider "kafka" {\n  bootstrap_servers = ["simulated:9092"]\n}\n'
TOPIC = """
resource "kafka_topic" "orders" {
  name = "orders"
  lifecycle {
    prevent_destroy = false
  }
}
"""
FILE = """
resource "textstore_file" "about" {
  name    = "orders"
  content = "all orders"
  lifecycle {
    prevent_destroy = false
  }
}
"""
KEPT = """
resource "kafka_topic" "kept" {
  name = "kept"
}
"""
SAYS = "textstore_file.about describes it"


def describe(attributes: FrozenMap) -> Sequence[Use]:
    """A file describes the topic that has its name."""
    return [Use("kafka_topic", str(attributes.get("name")), "describes")]


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> SimulatedCluster:
    """A simulated cluster where the Kafka provider would connect to a real one; and files use
    topics."""
    made = SimulatedCluster()
    monkeypatch.setattr(kafka, "PROVIDER", MemoryProvider(made))
    monkeypatch.setattr(file, "TYPE", replace(file.TYPE, uses=describe))
    return made


@pytest.fixture
def both(folder: Folder, cluster: SimulatedCluster) -> Folder:
    """A topic and the file that describes it, applied."""
    folder.write(KAFKA + folder.connect() + KEPT + FILE + TOPIC)
    folder.run("apply", "-auto-approve")
    return folder


def test_one_plan_creates_and_deletes_in_order(
    folder: Folder, cluster: SimulatedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No reference joins them: the topic is there when the file comes, and still there when the
    file goes."""
    seen: list[tuple[str, bool]] = []
    write = folder.store.write

    def watch(user: User, operations: Sequence[Item], **given: Any) -> list[Item]:
        if not given.get("validate_only"):
            seen.append((operations[0]["do"], "orders" in cluster.topics))
        return write(user, operations, **given)

    monkeypatch.setattr(folder.store, "write", watch)
    folder.write(KAFKA + folder.connect() + FILE + TOPIC)
    folder.run("apply", "-auto-approve")
    assert "No changes" in folder.run("plan")
    folder.run("destroy", "--confirm", cluster.id, "--confirm", folder.store.id)
    assert seen == [("create", True), ("delete", True)]
    assert not cluster.topics and not folder.store.files


def test_every_form_of_a_plan_names_who_is_left_without(
    both: Folder, cluster: SimulatedCluster
) -> None:
    """Text, JSON, the comment and the page of a plan that deletes the topic and keeps the file."""
    both.write(KAFKA + both.connect() + KEPT + FILE)
    text = both.run("plan", "-out=saved", "--comment=comment.md", "--html=page.html")
    assert f"availability: {SAYS}" in text
    for name in ("comment.md", "page.html"):
        assert SAYS in (both.path / name).read_text().replace("\\_", "_").replace("`", "")
    shown = json.loads((both.path / "saved").read_text())["plan"]
    (change,) = (one for one in shown["changes"] if one["action"] == "delete")
    harms = [(finding["harm"], finding["text"]) for finding in change["findings"]]
    assert ("availability", SAYS) in harms
    assert SAYS in both.run("show", "-json", "saved")
    assert "availability" in both.run("plan", "--fail-on=availability", code=8)


def test_nothing_is_said_of_what_goes_too(both: Folder) -> None:
    """The file goes in the same plan, before the topic."""
    both.write(KAFKA + both.connect() + KEPT)
    assert "describes it" not in both.run("plan")


def test_a_file_of_somebody_else_is_named(both: Folder) -> None:
    """Nobody manages it, and the store is part of the configuration."""
    both.write(KAFKA + both.connect() + KEPT)
    both.run("apply", "-auto-approve")
    both.write(KAFKA + both.connect() + KEPT + TOPIC)
    both.run("apply", "-auto-approve")
    both.put("create", "file", "orders", content="theirs", headers={})
    both.write(KAFKA + both.connect() + KEPT)
    assert "textstore_file orders (not managed) describes it" in both.run("plan")


def test_a_target_takes_along_what_it_uses(folder: Folder, cluster: SimulatedCluster) -> None:
    """As it does with a reference."""
    folder.write(KAFKA + folder.connect() + FILE + TOPIC)
    assert "kafka_topic.orders" in folder.run("plan", "--target=textstore_file.about")
    assert "textstore_file" not in folder.run("plan", "--target=kafka_topic.orders")


def test_a_store_that_does_not_answer_proves_nothing(both: Folder) -> None:
    """Nothing of it is declared or recorded any more, so the plan goes on; only the deletion waits,
    because something there may use the topic."""
    both.write(KAFKA + both.connect() + KEPT + TOPIC)
    both.run("apply", "-auto-approve")
    both.write(KAFKA + both.connect(url="http://127.0.0.1:1") + KEPT)
    planned = both.run("plan", code=8)
    assert "it waits: whether a textstore_file uses it is not known" in planned
    assert "Connection refused" in planned
    both.write(KAFKA + both.connect(url="http://127.0.0.1:1") + KEPT + TOPIC)
    assert "not known" not in both.run("plan")
