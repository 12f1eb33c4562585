"""`describe groups` shows what Kafka's own tools show, and says what it cannot see."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, ShareConsumer, TopicPartition
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from kafkaform_kafka.connection.settings import make_librdkafka_config

from ...kit.commands.bare import Bare
from ...kit.kafka.jar_messages import define_messages
from ...kit.kafka.java_tools import (
    CONSUMER_GROUPS,
    GROUPS,
    SHARE_GROUPS,
    STREAMS_GROUPS,
    Row,
    read_tables,
    run_tool,
)
from ...kit.kafka.logins import Login
from ...kit.kafka.sessions import eventually, grant, login, produce
from ...kit.kafka.streams_members import open_streams_member
from ...kit.kafka.versions import get_choice

RECORDS = 40
PATIENCE = 240.0
"""Seconds, for questions that start a Java process each time."""


@pytest.fixture
def topic(bare: Bare) -> str:
    """A topic with two partitions and some records."""
    bare.folder.create("orders", partitions=2)
    name = f"{bare.folder.prefix}orders"
    produce(bare.folder.broker, name, RECORDS)
    return name


@contextmanager
def member(bare: Bare, topic: str, group: str, **more: Any) -> Iterator[Consumer]:
    """A member of a group to which both partitions are assigned."""
    config = make_librdkafka_config(login(bare.folder.broker))
    settings = {"group.id": group, "enable.auto.commit": False, "auto.offset.reset": "earliest"}
    consumer = Consumer({**config, **settings, "client.id": "reader-1", **more})
    consumer.subscribe([topic])

    def ask() -> int:
        consumer.poll(0.2)
        return len(consumer.assignment())

    eventually(ask, lambda count: count == 2)
    yield consumer
    consumer.close()


def commit(consumer: Consumer, topic: str, **offsets: int) -> None:
    """Commit these offsets: p0 of partition 0, p1 of partition 1."""
    wanted = [TopicPartition(topic, int(name[1:]), offset) for name, offset in offsets.items()]
    consumer.commit(offsets=wanted, asynchronous=False)


def theirs(config: Path, group: str) -> tuple[set[tuple[str, ...]], dict[str, str], set[Any]]:
    """What Kafka's tool says about a group: its offsets, its state, its members."""
    (state,) = ask_tool(config, group, "--state")
    told = ask_tool(config, group, "--members")
    members = {(row["CONSUMER-ID"], row["HOST"], row["CLIENT-ID"]) for row in told}
    return their_offsets(config, group), state, members


def their_offsets(config: Path, group: str) -> set[tuple[str, ...]]:
    columns = ("TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG")
    told = ask_tool(config, group, "--offsets")
    return {tuple(row[name] for name in columns) for row in told}


def ask_tool(config: Path, group: str, flag: str) -> list[Row]:
    """The rows that one Java process prints."""
    return list(
        read_tables(run_tool(config, CONSUMER_GROUPS, "--describe", "--group", group, flag))
    )


def ours(group: dict[str, Any]) -> set[tuple[str, ...]]:
    """The offsets as Kafka's tool writes them."""
    columns = ("topic", "partition", "committed_offset", "end_offset", "lag")
    return {
        tuple("-" if row[name] is None else str(row[name]) for name in columns)
        for row in group["offsets"]
    }


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_is_as_kafkas_own_tool_shows_it(bare: Bare, topic: str, protocol: str) -> None:
    """Offsets, ends, lag, state, coordinator, assignor and live members, of both protocols; and
    after the members have left."""
    group = f"{topic}-{protocol}"
    with member(bare, topic, group, **{"group.protocol": protocol}) as consumer:
        commit(consumer, topic, p0=3)
        found = bare.document("groups", group)["groups"][0]
        offsets, state, members = theirs(bare.config, group)
    assert found["type"] == protocol and found["error"] is None
    assert ours(found) == offsets
    assert (found["state"], str(found["member_count"])) == (state["STATE"], state["#MEMBERS"])
    assert f"({found['coordinator']})" == state["(ID)"]
    assert found["assignor"] == state["ASSIGNMENT-STRATEGY"]
    assert {
        (each["member_id"], f"/{each['host']}", each["client_id"]) for each in found["members"]
    } == members
    assert found["members"][0]["assignment"] == [{"topic": topic, "partitions": [0, 1]}]
    assert found["lag_complete"] is False

    left = eventually(
        lambda: bare.document("groups", group)["groups"][0], lambda row: row["state"] == "Empty"
    )
    offsets, state, members = theirs(bare.config, group)
    assert (left["member_count"], left["members"], members) == (0, [], set())
    assert ours(left) == offsets and left["lag"] == sum(int(row[4]) for row in offsets)
    assert left["lag_complete"] is True


def test_the_list_has_the_types_that_kafka_lists(bare: Bare, topic: str) -> None:
    """One line for each group; filters by name, type, state and topic."""
    with ExitStack() as stack:
        for protocol in ("classic", "consumer"):
            consumer = stack.enter_context(
                member(bare, topic, f"{topic}-{protocol}", **{"group.protocol": protocol})
            )
            commit(consumer, topic, p0=1, p1=1)
        listed = {
            row["GROUP"]: row["TYPE"].lower()
            for row in read_tables(run_tool(bare.config, GROUPS, "--list"))
            if row["GROUP"].startswith(topic)
        }
        found = bare.document("groups", "--name", f"{topic}*")["groups"]
        assert {row["name"]: row["type"] for row in found} == listed
        assert len(found) == 2 and all("members" not in row for row in found)
        total = [row["lag"] for row in found]
        assert total == [RECORDS - 2] * 2
        only = ("groups", "--topic", topic, "--type", "consumer", "--state", "stable")
        assert [row["name"] for row in bare.document(*only)["groups"]] == [f"{topic}-consumer"]
        assert bare.document("groups", "--name", f"{topic}*", "--state", "Empty")["groups"] == []
        text = bare.done("describe", "groups", "--name", f"{topic}-classic", "--offsets").out
    assert f"Offsets of {topic}-classic" in text and "Members of" not in text
    assert "reader-1" in text and "1 group." in text


def test_a_share_group_is_as_kafkas_own_tool_shows_it(bare: Bare, topic: str) -> None:
    """Where its share partitions start, the cluster's count of the lag, and its members."""
    group = f"{topic}-share"
    earliest = ConfigEntry(
        "share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET
    )
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=[earliest])
    for future in bare.folder.admin.incremental_alter_configs([resource]).values():
        future.result(60)
    config = make_librdkafka_config(login(bare.folder.broker))
    with ShareConsumer({**config, "group.id": group, "client.id": "sharer"}) as consumer:
        consumer.subscribe([topic])

        def ask() -> dict[str, Any]:
            # A share partition begins when a member first asks for its records.
            consumer.poll(1.0)
            found: dict[str, Any] = bare.document("groups", group)["groups"][0]
            return found

        eventually(
            ask, lambda row: len(row["offsets"]) == 2 and row["lag_complete"], patience=PATIENCE
        )
        found, told = eventually(
            lambda: (bare.document("groups", group)["groups"][0], share_offsets(bare, group)),
            lambda both: share_rows(both[0]) == both[1],
            patience=PATIENCE,
        )
        flags = ("--describe", "--group", group, "--members")
        members = {
            row["CONSUMER-ID"] for row in read_tables(run_tool(bare.config, SHARE_GROUPS, *flags))
        }
        text = bare.done("describe", "groups", group).out
    assert len(told) == 2 and found["error"] is None
    assert (found["type"], found["state"], found["topics"]) == ("share", "Stable", [topic])
    assert {each["member_id"] for each in found["members"]} == members
    assert "Start" in text and "sharer" in text


def share_rows(group: dict[str, Any]) -> set[tuple[str, ...]]:
    """The offsets of a share group as Kafka's tool writes them."""
    names = ("topic", "partition", "start_offset", "lag")
    return {tuple(str(row[name]) for name in names) for row in group["offsets"]}


def share_offsets(bare: Bare, group: str) -> set[tuple[str, ...]]:
    """What Kafka's tool says about the offsets of a share group."""
    rows = read_tables(run_tool(bare.config, SHARE_GROUPS, "--describe", "--group", group))
    return {(row["TOPIC"], row["PARTITION"], row["START-OFFSET"], row["LAG"]) for row in rows}


def test_a_streams_group_is_as_kafkas_own_tool_shows_it(
    bare: Bare, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its members with their tasks, the topics that its topology reads, offsets and lag."""
    if get_choice().lacks("4.1", zookeeper=False):
        pytest.skip("streams groups came with Kafka 4.1")
    group, tool = f"{topic}-streams", ("--describe", "--group", f"{topic}-streams")
    kind = define_messages("StreamsGroupHeartbeat", tmp_path, monkeypatch)
    with open_streams_member(bare.folder.broker, kind, group, topic) as streams_member:
        found = eventually(
            lambda: bare.document("groups", "--name", group, "--members")["groups"],
            lambda rows: [row["state"] for row in rows] == ["Stable"],
        )[0]
        streams_member.commit({(topic, 0): 3, (topic, 1): 15})
        text = bare.done("describe", "groups", group).out
        committed = bare.document("groups", group)["groups"][0]
        streams_member.beat()
        (state,) = read_tables(run_tool(bare.config, STREAMS_GROUPS, *tool, "--state"))
        streams_member.beat()
        offsets = read_tables(run_tool(bare.config, STREAMS_GROUPS, *tool, "--offsets"))
        lags = {int(row["PARTITION"]): int(row["OFFSET-LAG"]) for row in offsets}
    assert (found["type"], found["state"]) == ("streams", state["STATE"])
    assert str(found["member_count"]) == state["#MEMBERS"] == "1"
    assert found["topics"] == [topic]
    (mine,) = found["members"]
    assert mine["member_id"] == streams_member.id
    assert {row["partition"]: row["lag"] for row in committed["offsets"]} == lags
    assert committed["lag"] == sum(lags.values()) == RECORDS - 18 and committed["lag_complete"]
    assert mine["tasks"] == {"active": ["0_0", "0_1"], "standby": [], "warmup": []}
    assert f"Members of {group}" in text and "active 0_0,0_1" in text


def test_who_may_not_describe_a_group_is_told_so(bare: Bare, topic: str, stranger: Login) -> None:
    """A hidden group is no group that does not exist, and offsets of a hidden topic are left out
    with a word."""
    group = f"{topic}-hidden"
    with member(bare, topic, group) as consumer:
        commit(consumer, topic, p0=3)
    ask = ("describe", "groups", group)
    assert "grant Describe on Group" in bare.fails(1, *ask, user=stranger)
    told = bare.done("describe", "groups", "--name", group, user=stranger).text
    assert "0 groups." in told and "groups that this principal may not describe" in told

    grant(bare.folder.broker, stranger, "Group", group, "DESCRIBE")
    seen = eventually(lambda: bare.run(*ask, "--json", user=stranger), lambda said: said.code == 0)
    assert '"offsets":[]' in seen.out.replace(" ", "")
    assert "offsets of topics that this principal may not describe" in seen.out
    grant(bare.folder.broker, stranger, "Topic", topic, "DESCRIBE")
    found = eventually(
        lambda: bare.document("groups", group, user=stranger)["groups"][0],
        lambda row: row["lag"] is not None,
    )
    assert ours(found) == their_offsets(bare.config, group)


def test_who_may_describe_the_cluster_sees_the_name_of_each_group(
    bare: Bare, topic: str, stranger: Login
) -> None:
    """And no more: what is unknown is not shown as nothing."""
    group = f"{topic}-named"
    with member(bare, topic, group) as consumer:
        commit(consumer, topic, p0=3)
    grant(bare.folder.broker, stranger, "Cluster", "kafka-cluster", "DESCRIBE")
    said = eventually(
        lambda: bare.run("describe", "groups", "--name", group, user=stranger),
        lambda said: "1 group." in said.out,
    )
    assert said.code == 1
    row = next(line for line in said.out.splitlines() if line.startswith(group))
    assert row.split()[1:] == ["classic", "Empty", "-", "1", "-", "-"]
    assert "a right on the group is missing" in said.text


def test_a_group_that_does_not_exist(bare: Bare, topic: str) -> None:
    """An error, and the others are shown all the same."""
    group = f"{topic}-there"
    with member(bare, topic, group) as consumer:
        commit(consumer, topic, p0=3)
    told = bare.fails(1, "describe", "groups", group, f"{topic}-nope")
    assert f'group "{topic}-nope": there is no such group' in told
    assert f"Offsets of {group}" in told
    near = bare.fails(1, "describe", "groups", f"{group}s")
    assert f'Did you mean "{group}"?' in " ".join(near.split())
