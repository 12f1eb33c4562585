"""Configs of every level in a user's hands: declared, explained, and given back."""

from __future__ import annotations

import json
from typing import Any

from ...kit.commands.folder import Folder
from ...kit.kafka.logins import Login


def explained(folder: Folder, *words: str) -> dict[str, Any]:
    """The document about one config."""
    said = folder.run("explain", "config", *words, "--json")
    assert said.code == 0, said.text
    found: dict[str, Any] = json.loads(said.out)
    return found


def test_a_config_says_where_it_comes_from(folder: Folder) -> None:
    """Each level of a topic's config is there, set or not, and one of them wins."""
    folder.create("t")
    folder.alter("t", "retention.ms", "5000")
    found = explained(folder, "topic", f"{folder.prefix}t", "retention.ms")
    levels = {level["source"]: level for level in found["levels"] if level["wins"]}
    assert levels["DYNAMIC_TOPIC_CONFIG"]["value"] == "5000"
    assert (found["value"], found["type"], found["read_only"]) == ("5000", "LONG", False)
    assert "retain a log" in found["documentation"]
    inherited = explained(folder, "topic", f"{folder.prefix}t", "segment.ms")
    assert inherited["value"] == "604800000"
    assert [level["source"] for level in inherited["levels"]] == [
        "DYNAMIC_TOPIC_CONFIG",
        "DYNAMIC_BROKER_CONFIG",
        "DYNAMIC_DEFAULT_BROKER_CONFIG",
        "STATIC_BROKER_CONFIG",
        "DEFAULT_CONFIG",
    ]
    said = folder.run("explain", "config", "topic", f"{folder.prefix}t", "retention.ms")
    assert "→ Dynamic topic config" in said.text


def test_what_brokers_read_at_their_start_is_read_only(folder: Folder) -> None:
    """And says how it can be changed."""
    found = explained(folder, "cluster", "num.partitions")
    assert found["read_only"] is True
    assert "with a restart" in found["changed"]
    assert [level["source"] for level in found["levels"]] == [
        "DYNAMIC_DEFAULT_BROKER_CONFIG",
        "STATIC_BROKER_CONFIG",
        "DEFAULT_CONFIG",
    ]


def test_a_secret_is_masked(folder: Folder) -> None:
    """That it is set can be seen, its value never."""
    key = "listener.name.client.plain.sasl.jaas.config"
    found = explained(folder, "broker", "1", key)
    assert (found["sensitive"], found["value"]) == (True, None)
    assert [level["source"] for level in found["levels"] if level["set"]] == [
        "STATIC_BROKER_CONFIG"
    ]
    said = folder.run("explain", "config", "broker", "1", key)
    assert "(sensitive)" in said.text
    assert folder.broker.admin_password not in said.text


def test_wrong_words_are_corrected(folder: Folder) -> None:
    """An entity, a key, a broker and a topic that do not exist; and too few words."""
    for words, advice in (
        (("brokr", "1", "x"), 'Did you mean "broker"?'),
        (("broker", "1", "num.partition"), 'Did you mean "num.partitions"?'),
        (("broker", "9", "num.partitions"), "The live brokers are 1."),
        (("topic", f"{folder.prefix}none", "retention.ms"), "cannot be read"),
        (("group", "g"), "`group NAME KEY`"),
        (("topic", "", "retention.ms"), "no topic has an empty name"),
        (("broker", "1", ""), "does not say which config"),
    ):
        said = folder.run("explain", "config", *words)
        assert said.code == 1
        assert advice in said.text


def test_an_empty_broker_is_all_of_them(folder: Folder) -> None:
    """As in KIP-248: the levels are those of the cluster's default."""
    asked = ("explain", "config", "--json")
    named = folder.done(*asked, "broker", "", "log.cleaner.threads").lines
    assert named == folder.done(*asked, "cluster", "log.cleaner.threads").lines


def test_who_may_not_see_configs_is_told_the_right(folder: Folder, stranger: Login) -> None:
    """As ACLs name it."""
    folder.connect(stranger)
    said = folder.run("explain", "config", "broker", "1", "num.partitions")
    assert said.code == 1
    assert "DescribeConfigs on Cluster" in said.text


def test_a_group_and_a_subscription_from_block_to_nothing(folder: Folder) -> None:
    """Both are applied, shown as nothing to do, changed, imported elsewhere, and given back."""
    block = """
resource "kafka_group_config" "g" {{
  group  = "{prefix}g"
  config = {{ "share.isolation.level" = "{level}" }}
}}
resource "kafka_client_metrics" "m" {{
  name   = "{prefix}m"
  config = {{ metrics = ["b.", "a."] }}
}}
"""
    name = f"{folder.prefix}g"
    folder.write("main.kf.hcl", block.format(level="read_committed", prefix=folder.prefix))
    folder.done("apply", "--auto-approve")
    assert "No changes." in folder.run("plan").out
    found = explained(folder, "group", name, "share.isolation.level")
    assert found["value"] == "read_committed"
    folder.write("main.kf.hcl", block.format(level="read_uncommitted", prefix=folder.prefix))
    said = folder.done("apply", "--auto-approve")
    assert '"read_committed" → "read_uncommitted"' in said.out
    folder.done("state", "rm", "kafka_group_config.g")
    block = f'import {{\n  to = kafka_group_config.g\n  id = "{name}"\n}}\n'
    folder.write("import.kf.hcl", block)
    assert "1 to import" in folder.done("apply", "--auto-approve").out
    folder.done("destroy", "--confirm", folder.broker.cluster_id)
    (wins,) = (
        level
        for level in explained(folder, "group", name, "share.isolation.level")["levels"]
        if level["wins"]
    )
    assert wins["source"] == "DEFAULT_CONFIG"


def test_a_setting_that_stops_producers_is_drift_and_goes(folder: Folder) -> None:
    """Somebody sets `min.insync.replicas = 3` on a topic with one replica, so that nobody can
    write with acks=all: the next plan shows it, and an apply takes it away."""
    folder.declare("t")
    folder.done("apply", "--auto-approve")
    folder.alter("t", "min.insync.replicas", "3")
    said = folder.done("plan").text
    assert '- "min.insync.replicas" = "3"' in said and "1 to change" in said
    folder.done("apply", "--auto-approve")
    folder.until(lambda: folder.config("t")["min.insync.replicas"] == "1")
    assert "No changes." in folder.done("plan").out
