"""`history` and `undo` on a real cluster: what a run changed comes back; what cannot is named."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ...kit.commands.folder import Folder

REMOVED = "removed {{\n  from = {}\n  lifecycle {{\n    destroy = true\n  }}\n}}\n"


@pytest.fixture(autouse=True)
def cleaned(folder: Folder) -> Iterator[None]:
    """ACLs and quotas go with the test."""
    yield
    folder.write("topics.kf.hcl", "")
    folder.write("access.kf.hcl", "")
    scope = next(record for record in folder.records("run_begin"))["body"]["scopes"]["kafka"]
    folder.run("destroy", "--confirm", scope)


def config(key: str, value: str) -> str:
    return f'config = {{ "{key}" = "{value}" }}'


def applied(folder: Folder) -> str:
    """Apply; the id of the run."""
    folder.done("apply", "--auto-approve")
    return last_run(folder)


def last_run(folder: Folder) -> str:
    return str(folder.records("run_begin")[-1]["run"])


def undone(folder: Folder, *words: str) -> str:
    """Undo with approval; what was said."""
    return folder.done("undo", *words, "--auto-approve").text


def values_of(folder: Folder, name: str, path: str) -> list[tuple[Any, Any]]:
    """What `history` says about one value: before and after, oldest first."""
    (document,) = folder.done("history", name, "--path", path, "--json").lines
    (item,) = [item for item in document["objects"] if item["kind"] != "kafka_topic_config"]
    return [(v["before"], v["after"]) for change in item["changes"] for v in change["values"]]


def test_a_config_comes_back_and_forth(folder: Folder) -> None:
    """An undo is a run like any other, which can be undone; partitions stay."""
    folder.declare("a", more=config("retention.ms", "1000000"))
    applied(folder)
    folder.declare("a", partitions=2, more=config("retention.ms", "2000000"))
    run = applied(folder)
    said = undone(folder, run)
    assert "Not undone: kafka_topic.a partitions: it cannot come back" in said
    assert folder.config("a")["retention.ms"] == "1000000" and folder.topics() == {"a": 2}
    planned = folder.done("plan").text
    assert f"undone by run {last_run(folder)}" in planned and "revert the configuration" in planned
    undone(folder, "--last")
    assert folder.config("a")["retention.ms"] == "2000000"
    assert "No changes" in folder.done("plan").text
    assert values_of(folder, f"topic/{folder.prefix}a", "retention.ms") == [
        (None, "1000000"),
        ("1000000", "2000000"),
        ("2000000", "1000000"),
        ("1000000", "2000000"),
    ]


def test_topics_go_and_come_back(folder: Folder) -> None:
    """A created one is deleted, a deleted one is created again at its address, and says so."""
    folder.declare("a")
    applied(folder)
    folder.declare("a", "b", partitions=1, more=config("retention.ms", "1000000"))
    undone(folder, applied(folder))
    assert folder.topics() == {"a": 1} and folder.config("a")["retention.ms"] != "1000000"
    applied(folder)
    folder.write("topics.kf.hcl", folder.topic("a") + REMOVED.format("kafka_topic.b"))
    run = applied(folder)
    assert folder.topics() == {"a": 1}
    said = undone(folder, run)
    assert "created again, without the data that it had" in said
    assert folder.topics() == {"a": 1, "b": 1}
    assert folder.config("b")["retention.ms"] == "1000000"
    assert "kafka_topic.b" in folder.done("state", "list").out
    assert "undone by run" in folder.done("plan").text
    actions = [item["action"] for item in folder.done("audit", "show", "topic/"
        f"{folder.prefix}b", "--json").lines]  # fmt: skip
    assert actions == ["create", "delete", "create", "delete", "create"]


def test_what_others_changed_since_stays(folder: Folder) -> None:
    """Nobody knows who it was; the rest comes back."""
    both = 'config = {{ "retention.ms" = "{}", "max.message.bytes" = "{}" }}'
    folder.declare("a", more=both.format(1000000, 1000))
    applied(folder)
    folder.declare("a", more=both.format(2000000, 2000))
    run = applied(folder)
    folder.alter("a", "max.message.bytes", "3000")
    said = undone(folder, run)
    assert "Not undone: kafka_topic.a config.max.message.bytes: it was changed outside" in said
    assert folder.config("a")["retention.ms"] == "1000000"
    assert folder.config("a")["max.message.bytes"] == "3000"
    applied(folder)
    (*_, outside, repaired) = values_of(folder, "kafka_topic.a", "max.message.bytes")
    assert (outside, repaired) == (("2000", "3000"), ("3000", "2000"))


def test_access_and_limits_come_back(folder: Folder) -> None:
    """ACLs and quotas that a run made go, those that it removed or changed are as before; all of
    it is the history of the principal."""
    folder.declare("a")
    user = f"{folder.prefix}app"

    def access(operation: str, rate: int) -> str:
        return f"""
resource "kafka_acl" "app" {{
  acl_principal       = "User:{user}"
  acl_host            = "*"
  acl_operation       = "{operation}"
  acl_permission_type = "Allow"
  resource_type       = "Topic"
  resource_name       = "{folder.prefix}a"
}}

resource "kafka_quota" "app" {{
  user   = "{user}"
  config = {{ producer_byte_rate = {rate} }}
}}
"""

    folder.write("access.kf.hcl", access("Read", 1000))
    applied(folder)
    folder.write("access.kf.hcl", access("Write", 2000))
    run = applied(folder)
    undone(folder, run)
    folder.write("access.kf.hcl", access("Read", 1000))
    assert "No changes" in folder.done("plan").text
    (document,) = folder.done("history", f"principal/{user}", "--json").lines
    changes = [c for item in document["objects"] for c in item["changes"]]
    told = {(c["kind"], c["action"], c["undoes"]) for c in changes}
    assert {
        ("kafka_acl", "create", run),
        ("kafka_acl", "delete", run),
        ("kafka_quota", "update", run),
    } <= told
