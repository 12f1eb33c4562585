"""What proposals are computed from: everything, or nothing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kafkaform.core.errors import KafkaformError
from kafkaform_kafka.capacity import readings
from kafkaform_kafka.capacity.projection import Disk
from kafkaform_kafka.inspect.source import DescribeSource
from kafkaform_kafka.placement import proposal as module
from kafkaform_kafka.placement.proposal import ClusterLayout, TopicLayout, read_layout
from kafkaform_kafka.protocol.faults import not_sent_fault
from kafkaform_kafka.wire.client import RequestNotSent
from kafkaform_kafka.wire.cluster import ClusterRow, LogDirectories, LogDirectory, LogSize
from kafkaform_kafka.wire.topics import Move, TopicRow

CONTEXT: Any = SimpleNamespace(wire=None, timeout=1.0)
SOURCE = DescribeSource(CONTEXT, lambda *_: None)  # type: ignore[arg-type]
ORDERS = TopicRow("orders", 0, replicas=((1, 2), (2, 3)), leaders=(1, 2))
SIZES = {("orders", 0, "1"): 70, ("orders", 0, "2"): 80, ("orders", 1, "2"): 5}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Brokers 1 and 2 are live; broker 3 is not."""
    row = ClusterRow(0, None, "c1", {"1": "a", "2": None}, frozenset(), {})
    monkeypatch.setattr(module, "describe_cluster", lambda *_: row)
    monkeypatch.setattr(module, "list_moves", lambda _: {})
    monkeypatch.setattr(module, "list_topics", lambda *_: (ORDERS,))

    def read(wire: object, topics: None, node: str, timeout: float) -> LogDirectories:
        logs = [LogSize(t, n, b, size) for (t, n, b), size in SIZES.items() if b == node]
        return LogDirectories(0, (LogDirectory("/data", 0, 1000, 400, False, tuple(logs)),))

    monkeypatch.setattr(readings, "read_log_directories", read)
    return monkeypatch


def test_a_partition_is_as_large_as_its_largest_replica(cluster: pytest.MonkeyPatch) -> None:
    """A replica that lags is copied from the leader, so that its own size says little."""
    disks = (
        Disk(1, ("/data",), 1000, 400, {("orders", 0): 70}),
        Disk(2, ("/data",), 1000, 400, {("orders", 0): 80, ("orders", 1): 5}),
    )
    assert read_layout(SOURCE) == ClusterLayout(
        "c1", {1: "a", 2: None}, (TopicLayout("orders", False, ORDERS.replicas, 0, (80, 5)),), disks
    )


def test_a_partition_that_no_live_broker_has_is_of_unknown_size(
    cluster: pytest.MonkeyPatch,
) -> None:
    """Unknown is not empty: nothing can be copied from it."""
    lost = TopicRow("orders", 0, replicas=((1,), (3,)), leaders=(1, -1))
    cluster.setattr(module, "list_topics", lambda *_: (lost,))
    cluster.delitem(SIZES, ("orders", 1, "2"))
    [topic] = read_layout(SOURCE).topics
    assert topic.sizes == (80, None)


def test_a_move_that_runs_counts_as_ended(cluster: pytest.MonkeyPatch) -> None:
    """Otherwise a proposal would move its replicas back."""
    moves = {"orders": {0: Move((3, 2, 1), adding=(3,), removing=(1,))}}
    cluster.setattr(module, "list_moves", lambda _: moves)
    [topic] = read_layout(SOURCE).topics
    assert (topic.rows, topic.moving) == (((3, 2), (2, 3)), 1)


def test_a_topic_that_cannot_be_read_is_left_out(cluster: pytest.MonkeyPatch) -> None:
    """A listing has it with an error code while it is being created or deleted."""
    cluster.setattr(module, "list_topics", lambda *_: (TopicRow("gone", 3), ORDERS))
    assert [topic.name for topic in read_layout(SOURCE).topics] == ["orders"]


def test_sizes_are_needed_of_every_broker(cluster: pytest.MonkeyPatch) -> None:
    """One broker that is silent is named, and so is the right that an empty answer lacks, and a
    disk that failed."""
    hidden = LogDirectories(31, ())
    cluster.setattr(readings, "read_log_directories", lambda *_, timeout: hidden)
    with pytest.raises(KafkaformError, match=r"broker \d does not report the sizes") as refused:
        read_layout(SOURCE)
    assert "Cluster" in (refused.value.advice or "")
    failed = LogDirectories(0, (LogDirectory("/data", 56, None, None, False, ()),))
    cluster.setattr(readings, "read_log_directories", lambda *_, timeout: failed)
    with pytest.raises(KafkaformError, match=r"broker \d cannot use /data"):
        read_layout(SOURCE)

    def refuse(*_: object, timeout: float) -> None:
        raise RequestNotSent("connection refused")

    cluster.setattr(readings, "read_log_directories", refuse)
    with pytest.raises(KafkaformError, match="connection refused"):
        read_layout(SOURCE)


@pytest.mark.parametrize("name", ["list_moves", "list_topics", "describe_cluster"])
def test_a_request_that_fails_is_no_empty_answer(cluster: pytest.MonkeyPatch, name: str) -> None:
    """Nothing is computed from a part of the cluster."""
    fault = not_sent_fault("Metadata", "connection refused", "")

    def refuse(*_: object) -> object:
        if name == "list_moves":
            return fault
        raise RequestNotSent("connection refused")

    cluster.setattr(module, name, refuse)
    with pytest.raises(KafkaformError, match="connection refused"):
        read_layout(SOURCE)
