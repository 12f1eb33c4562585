"""`undo` sets offsets of groups back that `alter group` has changed."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaform.cli.commands import alter as command
from kafkaform.core.value import FrozenMap
from kafkaform.provider.registry import Registry
from kafkaform_kafka.kinds.commanded.group_offsets import GroupMember
from kafkaform_kafka.kinds.commanded.simulation import (
    SimulatedGroup,
    SimulatedLog,
    group_key,
    log_key,
)
from kafkaform_kafka.memory import MemoryProvider, SimulatedCluster

from ...kit.commands.here import Here
from .test_history import PROVIDER, last_run

NAME = "billing"
OFFSETS = {"orders:0": 60, "orders:1": 90}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> SimulatedCluster:
    """A cluster with a topic and a group, which every command reaches."""
    cluster = SimulatedCluster()
    monkeypatch.setattr(Registry, "load", lambda self, name: MemoryProvider(cluster))
    cluster.outside.create("orders", 2)
    logs: dict[Any, Any] = {log_key(("orders", n)): SimulatedLog(0, 100) for n in (0, 1)}
    cluster.commit(logs)
    set_group(cluster, OFFSETS)
    return cluster


@pytest.fixture
def there(here: Here, cluster: SimulatedCluster) -> Here:
    """A folder with a connection to it."""
    here.monkeypatch.setenv("PASSWORD", "hunter2-and-more")
    here.write("provider.kf.hcl", PROVIDER)
    # The simulated cluster cannot be described.
    here.monkeypatch.setattr(command, "_show_documents", lambda *_, **__: None)
    return here


def set_group(cluster: SimulatedCluster, offsets: dict[str, int], **more: Any) -> None:
    cluster.commit({group_key(NAME): SimulatedGroup(offsets=FrozenMap(offsets), **more)})


def read_offsets(cluster: SimulatedCluster) -> dict[str, int] | None:
    group = cluster.world.get(group_key(NAME))
    return None if group is None else dict(group.offsets)


def alter(there: Here, *words: str) -> str:
    """Alter the group with approval; the id of the run."""
    there.done("alter", "group", NAME, *words, "--auto-approve")
    return last_run(there)


@pytest.mark.parametrize(
    "words",
    [
        ("--reset-offsets", "--to-earliest", "--all-topics"),
        ("--reset-offsets", "--to-latest", "--topic", "orders:1"),
        ("--delete-offsets", "--topic", "orders"),
        ("--delete",),
    ],
)
def test_offsets_come_back(there: Here, cluster: SimulatedCluster, words: tuple[str, ...]) -> None:
    """As they were, and nobody is told to change a configuration."""
    run = alter(there, *words)
    assert read_offsets(cluster) != OFFSETS
    ended = there.done("undo", run, "--auto-approve")
    assert read_offsets(cluster) == OFFSETS
    assert "configuration still says otherwise" not in ended.text
    assert "There is nothing to change." in there.done("undo", run, "--auto-approve").text


def test_a_group_that_vanished_without_offsets_comes_back(
    there: Here, cluster: SimulatedCluster
) -> None:
    """A coordinator drops a group that has neither members nor offsets after a while."""
    run = alter(there, "--delete-offsets", "--all-topics")
    cluster.commit({group_key(NAME): None})
    there.done("undo", run, "--auto-approve")
    assert read_offsets(cluster) == OFFSETS


def test_offsets_that_members_moved_since_stay(there: Here, cluster: SimulatedCluster) -> None:
    """They are named, and the others come back."""
    run = alter(there, "--reset-offsets", "--to-earliest", "--all-topics")
    set_group(cluster, {"orders:0": 5, "orders:1": 0})
    text = there.done("undo", run, "--auto-approve").text
    assert "offsets.orders:0: it was changed outside kafkaform" in text
    assert read_offsets(cluster) == {"orders:0": 5, "orders:1": 90}


def test_an_undo_while_the_group_has_members_is_refused(
    there: Here, cluster: SimulatedCluster
) -> None:
    """With who they are."""
    run = alter(there, "--reset-offsets", "--to-earliest", "--all-topics")
    set_group(
        cluster, {"orders:0": 0, "orders:1": 0}, members=(GroupMember("app-1", "app", "10.0.0.7"),)
    )
    ended = there.run("undo", run, "--auto-approve")
    assert "app at 10.0.0.7 (app-1)" in ended.text
    assert read_offsets(cluster) == {"orders:0": 0, "orders:1": 0}


def test_a_group_that_the_run_created_stays(there: Here, cluster: SimulatedCluster) -> None:
    """An undo deletes nothing that no state owns."""
    cluster.commit({group_key(NAME): None})
    run = alter(there, "--reset-offsets", "--to-earliest", "--topic", "orders")
    assert "the run created it" in there.done("undo", run, "--auto-approve").text
    assert read_offsets(cluster) == {"orders:0": 0, "orders:1": 0}


def test_a_share_group_that_was_deleted_comes_back(there: Here, cluster: SimulatedCluster) -> None:
    """As a share group."""
    set_group(cluster, OFFSETS, type="share")
    run = alter(there, "--delete")
    there.done("undo", run, "--auto-approve")
    assert cluster.world.get(group_key(NAME)) == SimulatedGroup("share", FrozenMap(OFFSETS))


def test_one_partition_of_a_share_group_is_not_forgotten(
    there: Here, cluster: SimulatedCluster
) -> None:
    """The request names topics, so that the offset of the other partition would go, too."""
    set_group(cluster, {"orders:0": 60}, type="share")
    run = alter(there, "--reset-offsets", "--to-offset", "50", "--topic", "orders")
    text = there.done("undo", run, "--auto-approve").text
    assert "offsets.orders:1: it cannot come back" in text
    assert read_offsets(cluster) == {"orders:0": 60, "orders:1": 50}
