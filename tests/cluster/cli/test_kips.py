"""What the KIPs say of a command line, and what they left for later, as a user meets it
(docs/kip-map.md)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from ...kit.commands.bare import Bare
from ...kit.commands.folder import Folder
from ...kit.kafka.java_tools import CONFIGS, run_tool
from ...kit.kafka.versions import get_choice


def test_another_name_is_another_topic(folder: Folder) -> None:
    """KIP-4 put renaming off, and Kafka cannot do it: a block that names another topic is refused
    with what to do about both, and nothing is made or deleted."""
    folder.declare("a")
    folder.done("apply", "-auto-approve")
    text = folder.topic("a").replace(f'"{folder.prefix}a"', f'"{folder.prefix}b"')
    folder.write("topics.kf.hcl", text)
    said = folder.fails(8, "apply", "-auto-approve")
    assert "kafkaform never renames or replaces an object" in said
    assert "To keep both, give the new object its own block" in said
    assert set(folder.topics()) == {"a"}


def test_the_clients_of_a_user_are_listed(bare: Bare) -> None:
    """KIP-248's ConfigEntityList for quotas: all clients of a user, without the user himself and
    without clients of others."""
    user, key = f"{bare.folder.prefix}u", "request_percentage"
    entities = ([user], [user, "--client-id=a"], [user, "--client-id=b"])
    try:
        for entity in entities:
            bare.done("alter", "user", *entity, "--auto-approve", "--add-config", f"{key}=50")
        found = bare.document("quotas", "--user", user, "--client-id", "*")["quotas"]
        assert [quota["entity"] for quota in found] == [
            {"user": user, "client-id": "a"},
            {"user": user, "client-id": "b"},
        ]
    finally:
        for entity in entities:
            bare.done("alter", "user", *entity, "--auto-approve", "--delete-config", key)


def test_entities_with_configs_are_listed(bare: Bare) -> None:
    """The same for groups and subscriptions (KIP-1142), also for a group that has no members. What
    the cluster does not have is refused by name, and so is what it has and cannot list."""
    name = f"{bare.folder.prefix}g"
    changes = (
        ("4.0", "group", "groups", "consumer.session.timeout.ms=50000"),
        ("3.7", "client-metrics", "client-metrics", "interval.ms=10000"),
    )
    for since, entity, kind, config in changes:
        if get_choice().lacks(since, zookeeper=False):
            said = bare.run("alter", entity, name, "--auto-approve", "--add-config", config)
            assert said.code != 0
            assert f"exist since Kafka {since}" in said.text or "only with KRaft" in said.text
            continue
        bare.done("alter", entity, name, "--auto-approve", "--add-config", config)
        try:
            found = bare.document("configs", "--entity-type", kind, "--name", name)
            if entity == "group" and get_choice().lacks("4.1", zookeeper=False):
                assert "listings of groups with configs exist since Kafka 4.1" in found["hidden"]
                continue
            assert [item["name"] for item in found["entities"]] == [name]
        finally:
            key = config.partition("=")[0]
            bare.done("alter", entity, name, "--auto-approve", "--delete-config", key)


TOLD = re.compile(r"^Quota configs for (.+) are (.+)$", re.MULTILINE)
PART = re.compile(r"(?:the default )?(user-principal|client-id)(?: '([^']*)')?")


@pytest.fixture
def limited(bare: Bare) -> Iterator[str]:
    """The name of a user with quotas of every level, beside those of another user."""
    user, key = f"{bare.folder.prefix}u", "request_percentage"
    # Other tests use the cluster at the same time, so the defaults of everybody stay as they are.
    entities = (
        ["user", user],
        ["user", user, "--client-default"],
        ["user", user, "--client-id=a"],
        ["user", f"{user}2", "--client-id=a"],
        ["client", f"{user}c"],
    )
    for entity in entities:
        bare.done("alter", *entity, "--auto-approve", "--add-config", f"{key}=9000")
    yield user
    for entity in entities:
        bare.done("alter", *entity, "--auto-approve", "--delete-config", key)


def _read_tool(text: str) -> set[tuple[tuple[str, str | None], ...]]:
    """The entities of Kafka's tool: parts with their names, None for the default."""
    return {
        tuple(sorted((part.split("-")[0], name or None) for part, name in PART.findall(entity)))
        for entity, _ in TOLD.findall(text)
    }


def _read_ours(quotas: Any) -> set[tuple[tuple[str, str | None], ...]]:
    return {
        tuple(sorted((part.split("-")[0], name) for part, name in quota["entity"].items()))
        for quota in quotas
    }


@pytest.mark.parametrize(
    "entity",
    [
        "--entity-type clients --entity-default",
        "--entity-type clients --entity-name {0}c",
        "--entity-type users --entity-name {0}",
        "--entity-type users --entity-name {0} --entity-type clients",
        "--entity-type users --entity-name {0} --entity-type clients --entity-default",
        "--entity-type users --entity-name {0} --entity-type clients --entity-name a",
        "--entity-type users --entity-type clients --entity-default",
    ],
)
def test_quotas_are_those_that_kafkas_tool_shows(bare: Bare, limited: str, entity: str) -> None:
    """`--entity-type clients --entity-default` showed two quotas of users as well, and all clients
    of a user were refused."""
    words = entity.format(limited).split()
    theirs = _read_tool(run_tool(bare.config, CONFIGS, "--describe", *words))
    said = bare.done("describe", *words, "--json")
    (document,) = (json.loads(line) for line in said.out.splitlines() if '"quotas"' in line)
    assert _read_ours(document["quotas"]) == theirs
    assert theirs or "{0}" not in entity


def test_the_old_command_is_not_deprecated(bare: Bare) -> None:
    """KIP-248 wanted it to say so: Kafka still ships it, and no other one."""
    said = run_tool(bare.config, CONFIGS, "--describe", "--entity-type", "clients")
    assert "deprecat" not in said.lower()
