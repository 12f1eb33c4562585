"""What the KIPs say of a command line, and what they left for later, as a user meets it
(docs/kip-map.md)."""

from __future__ import annotations

from ...kit.commands.bare import Bare
from ...kit.commands.folder import Folder
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
    assert "To keep both, give the new object a block of its own" in said
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
