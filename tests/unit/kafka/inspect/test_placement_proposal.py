"""Proposals of placements: who may move, what is said, and what blocks get."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafkaform.core.address import parse_address
from kafkaform.core.errors import UsageError
from kafkaform.core.resource import Declared
from kafkaform.core.value import FrozenMap
from kafkaform.render.text import render_page
from kafkaform.workflow.configuration.evaluation import Inputs, read_configuration
from kafkaform_kafka.commands.propose import placement_page
from kafkaform_kafka.placement.proposal import (
    ClusterLayout,
    PlacementQuery,
    Proposal,
    TopicLayout,
    propose_placement,
)

GIB = 1 << 30
PROVIDER = 'provider "kafka" {\n  bootstrap_servers = ["b:1"]\n}\n'


def topic(name: str, *rows: tuple[int, ...], size: int | None = GIB, **more: Any) -> TopicLayout:
    known = {"internal": False, "moving": 0, **more}
    return TopicLayout(name=name, rows=rows, sizes=(size,) * len(rows), **known)


def layout(*topics: TopicLayout, brokers: int = 3) -> ClusterLayout:
    return ClusterLayout("c1", {b: f"r{b}" for b in range(1, brokers + 1)}, topics)


def declare(folder: Path, text: str) -> tuple[Declared, ...]:
    """The objects of a configuration."""
    (folder / "main.kf.hcl").write_text(PROVIDER + text, "utf-8")
    desired = read_configuration(folder, Inputs(environment={}, variables={})).evaluate().desired
    assert not desired.diagnostics, desired.diagnostics
    return desired.declared


def block(name: str, more: str = "", label: str = "it") -> str:
    return f'resource "kafka_topic" "{label}" {{\n  name = "{name}"\n{more}\n}}\n'


def show(found: Proposal) -> str:
    return "\n".join(render_page(placement_page(found.document)))


CROWDED = topic("orders", *[(1, 2)] * 6)
"""Broker 3 has nothing."""


def test_a_declared_topic_gets_an_assignment(tmp_path: Path) -> None:
    """Both numbers become null, since an assignment says them; the document has every partition
    that changes, and what each broker has."""
    declared = declare(tmp_path, block("orders", "partitions = 6\nreplication_factor = 2"))
    found = propose_placement(layout(CROWDED), declared, PlacementQuery())
    [(address, new)] = found.arguments.items()
    assert str(address) == "kafka_topic.it"
    assert (new["partitions"], new["replication_factor"]) == (None, None)
    rows = new["replica_assignment"]
    assert len(rows) == 6 and all(len(set(row)) == 2 for row in rows)
    changed = {row["partition"]: row for row in found.document["partitions"]}
    assert {n: row["replicas"] for n, row in changed.items()} == {
        n: row for n, row in enumerate(rows) if row != (1, 2)
    }
    assert all(row["declared"] == "kafka_topic.it" for row in changed.values())
    brokers = {row["id"]: row for row in found.document["brokers"]}
    assert brokers[3]["replicas"] == FrozenMap(before=0, after=4)
    assert found.document["bytes_copied"] == 4 * GIB
    assert found.document["evenness"]["replicas"] == FrozenMap(before=50, after=0)


def test_the_page_says_what_it_costs(tmp_path: Path) -> None:
    """Moves, bytes, leaders, a row for each broker and each topic."""
    declared = declare(tmp_path, block("orders", "partitions = 6\nreplication_factor = 2"))
    said = show(propose_placement(layout(CROWDED), declared, PlacementQuery()))
    assert "Moves 4 partitions and copies 4 GiB, 33.3 % of the bytes of all replicas." in said
    assert "kafka_topic.it" in said
    lines = [line.split() for line in said.splitlines()]
    assert ["3", "r3", "0", "→", "4", "0", "→", "2", "0", "B", "→", "4", "GiB"] in lines


def test_a_balanced_cluster_needs_nothing(tmp_path: Path) -> None:
    """No partition, no argument, and a sentence that says so."""
    even = topic("orders", (1, 2), (2, 3), (3, 1))
    declared = declare(tmp_path, block("orders", "partitions = 3"))
    found = propose_placement(layout(even), declared, PlacementQuery())
    assert not found.arguments and not found.document["partitions"]
    assert "already balanced" in show(found)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ("partitions = 12", "pending"),
        ("replication_factor = 3", "pending"),
        ("managed_replication_factor = true", "left_to_cluster"),
        ("lifecycle {\nignore_changes = [replica_assignment]\n}", "left_to_cluster"),
        ("lifecycle {\nignore_changes = all\n}", "left_to_cluster"),
        ("lifecycle {\nignore_changes_except = [config]\n}", "left_to_cluster"),
    ],
)
def test_some_blocks_cannot_take_an_assignment(tmp_path: Path, more: str, reason: str) -> None:
    """The topic is weighed and stays, and the reason is said."""
    found = propose_placement(
        layout(CROWDED), declare(tmp_path, block("orders", more)), PlacementQuery()
    )
    assert not found.arguments and not found.document["partitions"]
    [staying] = found.document["staying"]
    assert (staying["reason"], staying["topics"]) == (reason, ("orders",))
    assert "Weighed, but not moved: 1 topic that" in show(found)


@pytest.mark.parametrize(
    "more",
    ["partitions = 6", "replication_factor = -1", "lifecycle {\nignore_changes = [config]\n}"],
)
def test_other_blocks_can(tmp_path: Path, more: str) -> None:
    """What says nothing against the placement does not stop it."""
    found = propose_placement(
        layout(CROWDED), declare(tmp_path, block("orders", more)), PlacementQuery()
    )
    assert len(found.arguments) == 1


def test_topics_of_others_are_weighed_and_stay(tmp_path: Path) -> None:
    """A crowded broker gives declared replicas away to make up for what cannot move; with
    --undeclared, everything moves, and nothing is declared about it."""
    other = topic("theirs", *[(1,)] * 4)
    internal = topic("__consumer_offsets", (1,), (1,), internal=True)
    mine = topic("mine", *[(1,), (2,), (3,)] * 2)
    declared = declare(tmp_path, block("mine", "partitions = 6"))
    found = propose_placement(layout(mine, other, internal), declared, PlacementQuery())
    assert {row["topic"] for row in found.document["partitions"]} == {"mine"}
    assert {row["reason"] for row in found.document["staying"]} == {"undeclared", "internal"}
    whole = propose_placement(
        layout(mine, other, internal), declared, PlacementQuery(undeclared=True)
    )
    moved = {row["topic"]: row["declared"] for row in whole.document["partitions"]}
    assert moved["theirs"] is None
    assert "kafka-reassign-partitions.sh" in show(whole)


def test_a_block_in_a_module_is_not_reached(tmp_path: Path) -> None:
    """An override file is merged into the files of its own folder only."""
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "main.kf.hcl").write_text(block("orders"), "utf-8")
    declared = declare(tmp_path, 'module "shop" {\n  source = "./shop"\n}\n')
    found = propose_placement(layout(CROWDED), declared, PlacementQuery())
    assert [row["reason"] for row in found.document["staying"]] == ["in_module"]


def test_without_a_configuration_all_topics_move() -> None:
    """Nothing is declared, and Kafka's tool is named."""
    found = propose_placement(layout(CROWDED), None, PlacementQuery())
    assert len(found.document["partitions"]) == 4 + len(
        [r for r in found.document["partitions"] if set(r["replicas"]) == {1, 2}]
    )
    assert not found.arguments and "kafka-reassign-partitions.sh" in show(found)


def test_a_drained_broker_that_keeps_something_is_named(tmp_path: Path) -> None:
    """Topics that do not move keep it in use, so that nobody shuts it down."""
    other = topic("theirs", (3, 1))
    declared = declare(tmp_path, block("mine", "partitions = 2"))
    found = propose_placement(
        layout(topic("mine", (3, 1), (2, 3)), other), declared, PlacementQuery(drain=frozenset({3}))
    )
    [left] = found.document["stranded"]
    assert (left["broker"], left["replicas"], left["topics"]) == (3, 1, ("theirs",))
    assert "Broker 3 keeps 1 replica of theirs." in show(found)
    rows = dict(found.arguments)[parse_address("kafka_topic.it")]["replica_assignment"]
    assert not any(3 in row for row in rows)


def test_a_dead_broker_is_left() -> None:
    """Without being named; a partition that has no live replica stays, and is counted."""
    found = propose_placement(
        layout(topic("orders", (4, 1)), topic("lost", (4,), size=None)), None, PlacementQuery()
    )
    [change] = found.document["partitions"]
    assert change["topic"] == "orders" and 4 not in change["replicas"]
    assert found.document["without_live_replica"] == 1
    [dead] = [row for row in found.document["brokers"] if row["id"] == 4]
    assert (dead["live"], dead["used"]) == (False, False)


def test_a_running_move_counts_as_ended() -> None:
    """The page says that it was taken so."""
    found = propose_placement(layout(topic("orders", (1, 2), moving=1)), None, PlacementQuery())
    assert found.document["moving"] == 1
    assert "Moves run already, of 1 partition." in show(found)


def test_a_limit_that_keeps_a_broker_in_use_is_said() -> None:
    """The drain goes on with the next proposal."""
    wanted = PlacementQuery(drain=frozenset({3}), max_bytes=GIB)
    found = propose_placement(layout(topic("orders", *[(3,)] * 4)), None, wanted)
    assert found.document["limited"] and found.document["bytes_copied"] == GIB
    assert "--max-bytes keeps replicas on brokers that are to be left" in show(found)


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        (PlacementQuery(topics=("order",)), "no topic that this principal can see matches order"),
        (PlacementQuery(drain=frozenset({9})), "--drain: the cluster has no live broker 9"),
        (PlacementQuery(brokers=frozenset({1, 9})), "--brokers: the cluster has no live broker 9"),
        (PlacementQuery(drain=frozenset({1, 2, 3})), "no broker is left that may have replicas"),
        (PlacementQuery(drain=frozenset({1, 2})), "partition 0 of orders has 2 replicas"),
    ],
)
def test_what_cannot_be_is_refused(wanted: PlacementQuery, says: str) -> None:
    """A typing error, or fewer brokers than replicas."""
    with pytest.raises(UsageError, match=says):
        propose_placement(layout(CROWDED), None, wanted)


def test_an_earlier_proposal_that_was_not_applied_is_replaced(tmp_path: Path) -> None:
    """A declared assignment that the cluster does not need is withdrawn."""
    even = topic("orders", (1, 2), (2, 3), (3, 1))
    declared = declare(tmp_path, block("orders", "replica_assignment = [[1, 2], [1, 2], [1, 2]]"))
    found = propose_placement(layout(even), declared, PlacementQuery())
    [new] = found.arguments.values()
    assert new["replica_assignment"] == even.rows
