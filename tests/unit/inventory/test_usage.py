"""How far topics go and what groups have read, as brokers tell it, or do not."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kafkaform.core.resource import Coverage, CoverageKind, Depth, Facts, Sweep
from kafkaform.core.value import FrozenMap
from kafkaform_kafka.inspect import usage
from kafkaform_kafka.session import KafkaSession
from kafkaform_kafka.wire.client import RequestNotSent
from kafkaform_kafka.wire.cluster import LogSize
from kafkaform_kafka.wire.topics import TopicRow
from kafkaform_kafka.wire.usage import (
    CommittedOffsets,
    GroupMembers,
    GroupRow,
    GroupRows,
    parse_assignment,
)

SEEN = Sweep("kafka_topic", Depth.FULL, (), Coverage(CoverageKind.COMPLETE))


class Brokers:
    """Two brokers that answer from tables; down: one that does not."""

    def __init__(self) -> None:
        self.topics = [
            TopicRow("a", 0, leaders=(1, 2), replicas=((1, 2), (2, 1))),
            TopicRow("b", 0, leaders=(1,), replicas=((1, 2),)),
            TopicRow("hidden", 29),
        ]
        self.ends = {("a", 0): 5, ("a", 1): 7, ("b", 0): 3}
        self.down = ""
        self.later: dict[str, TopicRow] = {}
        self.later_fails = False
        self.sizes = True
        self.asked: list[tuple[str, Mapping[str, Sequence[int]]]] = []
        self.groups = {"1": [GroupRow("g", "consumer", "Stable"), GroupRow("c", "connect", None)]}
        self.committed = {"g": CommittedOffsets(0, {"a": 4})}
        self.members = {"g": GroupMembers(0, "Stable", 2, frozenset({"b"}))}

    def answer(self, node: str) -> None:
        if node == self.down:
            raise RequestNotSent("connection refused")

    def offsets(
        self, _: Any, places: Mapping[str, Sequence[int]], time: int, node: str, __: float
    ) -> Mapping[tuple[str, int], int]:
        self.answer(node)
        self.asked.append((node, places))
        keys = [(name, n) for name, numbers in places.items() for n in numbers]
        known = [key for key in keys if key in self.ends]
        return {key: self.ends[key] if time == -1 else 1 for key in known}

    def list_topics(self, _: Any, names: Sequence[str] | None, __: float) -> tuple[TopicRow, ...]:
        if names is None:
            return tuple(self.topics)
        if self.later_fails:
            raise RequestNotSent("connection refused")
        now = {row.name: row for row in self.topics} | self.later
        return tuple(now[name] for name in names)

    def log_sizes(
        self, _: Any, topics: Mapping[str, int], node: str, __: float
    ) -> list[LogSize] | None:
        return [LogSize(name, 0, node, 100) for name in topics] if self.sizes else None

    def list_groups(self, _: Any, node: str, __: float) -> GroupRows:
        self.answer(node)
        return GroupRows(0, tuple(self.groups.get(node, ())))

    def rows(self, *, rights: Sequence[str] = ("Describe",)) -> dict[str, Any]:
        """Kind -> (coverage, key -> attributes)."""
        facts = Facts("c", ("1", "2"), values=FrozenMap(rights=tuple(rights)))
        context = SimpleNamespace(wire=None, timeout=1.0, facts=facts, instance="eu")
        session = cast(KafkaSession, SimpleNamespace(context=context))
        return {
            sweep.kind: (
                sweep.coverage.kind.value,
                {item.identity.key: dict(item.attributes) for item in sweep.items},
            )
            for sweep in usage.read_usage(session, SEEN)
        }


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Brokers:
    made = Brokers()
    monkeypatch.setattr(usage, "list_topics", made.list_topics)
    monkeypatch.setattr(usage, "read_log_sizes", made.log_sizes)
    monkeypatch.setattr(usage, "describe_configs", lambda *_, **__: {})
    monkeypatch.setattr(usage.wire, "list_offsets", made.offsets)
    monkeypatch.setattr(usage.wire, "list_groups", made.list_groups)
    monkeypatch.setattr(usage.wire, "fetch_committed", lambda *_: made.committed)
    monkeypatch.setattr(usage.wire, "describe_members", lambda *_: made.members)
    return made


def test_sums_over_partitions(brokers: Brokers) -> None:
    """Each partition is asked for at its leader; bytes are those of all replicas; a topic that may
    not be seen has no row."""
    how, rows = brokers.rows()["topic_usage"]
    assert how == "complete"
    assert rows == {
        "a": {"end_offsets_sum": 12, "start_offsets_sum": 2, "bytes": 200},
        "b": {"end_offsets_sum": 3, "start_offsets_sum": 1, "bytes": 200},
    }
    assert ("1", {"a": [0], "b": [0]}) in brokers.asked and ("2", {"a": [1]}) in brokers.asked


def test_requests_are_bounded(brokers: Brokers, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request names so many partitions and no more; the sums are the same."""
    monkeypatch.setattr(usage.wire, "PARTITIONS_AT_ONCE", 1)
    monkeypatch.setattr(usage, "TOPICS_AT_ONCE", 1)
    assert brokers.rows()["topic_usage"][1]["a"]["end_offsets_sum"] == 12
    assert {sum(map(len, places.values())) for _, places in brokers.asked} == {1}


def test_a_partition_without_a_leader(brokers: Brokers) -> None:
    """Its topic has no sums, which would be too small; the others have."""
    brokers.topics[0] = TopicRow("a", 0, leaders=(1, -1))
    how, rows = brokers.rows()["topic_usage"]
    assert how == "visible_only" and rows["a"]["end_offsets_sum"] is None
    assert rows["b"]["end_offsets_sum"] == 3


def test_a_topic_that_is_deleted_meanwhile(brokers: Brokers) -> None:
    """It has no row, and the others are still all there are."""
    brokers.later["b"] = TopicRow("b", 3)
    del brokers.ends["b", 0]
    how, rows = brokers.rows()["topic_usage"]
    assert how == "complete" and rows.keys() == {"a"}


@pytest.mark.parametrize(("leader", "how"), [(2, "complete"), (-1, "visible_only")])
def test_a_leader_that_changes_meanwhile(brokers: Brokers, leader: int, how: str) -> None:
    """Whoever leads now is asked."""
    brokers.topics[1] = TopicRow("b", 0, leaders=(3,), replicas=((1, 2),))
    brokers.later["b"] = TopicRow("b", 0, leaders=(leader,), replicas=((1, 2),))
    brokers.down = "3"
    found, rows = brokers.rows()["topic_usage"]
    assert found == how and rows["b"]["end_offsets_sum"] == (3 if leader == 2 else None)


def test_a_topic_that_is_made_meanwhile(brokers: Brokers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its leader learns of it later than the others do: it is waited for, but not long."""
    waited: list[float] = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == led:
            brokers.later["b"] = TopicRow("b", 0, leaders=(1,))

    monkeypatch.setattr(usage.time, "sleep", sleep)
    for led in (2, 3, 4):
        brokers.topics[1] = TopicRow("b", 0, leaders=(-1,))
        brokers.later["b"] = TopicRow("b", 5)
        waited.clear()
        how, rows = brokers.rows()["topic_usage"]
        known = led <= len(usage._PAUSES)
        assert how == ("complete" if known else "visible_only")
        assert rows["b"]["end_offsets_sum"] == (3 if known else None)
        assert waited == list(usage._PAUSES[:led])


def test_nobody_tells_of_it_any_more(brokers: Brokers) -> None:
    """What could not be looked at again is not gone."""
    brokers.later_fails = True
    del brokers.ends["b", 0]
    how, rows = brokers.rows()["topic_usage"]
    assert how == "visible_only" and rows["b"]["end_offsets_sum"] is None


def test_a_broker_that_is_down(brokers: Brokers) -> None:
    """What it leads is not known; its groups are not, so that none of them are."""
    brokers.down = "2"
    found = brokers.rows()
    assert found["topic_usage"][0] == "visible_only"
    assert found["topic_usage"][1]["b"]["end_offsets_sum"] == 3
    assert found["group_usage"] == ("failed", {})


def test_sizes_that_nobody_tells(brokers: Brokers) -> None:
    """Are not known, and not zero; what else is known counts."""
    brokers.sizes = False
    how, rows = brokers.rows()["topic_usage"]
    assert how == "complete" and rows["a"]["bytes"] is None


def test_a_replica_that_is_down(brokers: Brokers) -> None:
    """What the others tell would be too little."""
    brokers.topics[0] = TopicRow("a", 0, leaders=(1, 2), replicas=((1, 3), (2, 1)))
    rows = brokers.rows()["topic_usage"][1]
    assert (rows["a"]["bytes"], rows["b"]["bytes"]) == (None, 200)
    assert rows["a"]["end_offsets_sum"] == 12


def test_groups_that_are_nowhere(brokers: Brokers) -> None:
    """While a part of Kafka's own topic has no leader, nobody knows the groups in it."""
    brokers.topics.append(TopicRow("__consumer_offsets", 0, leaders=(-1,), replicas=((3,),)))
    assert brokers.rows()["group_usage"][0] == "visible_only"


def test_groups(brokers: Brokers) -> None:
    """One row for each topic of a group that it has committed or is assigned; groups that read no
    topics have none."""
    how, rows = brokers.rows()["group_usage"]
    assert how == "complete"
    assert rows == {
        "g a": {"committed_sum": 4, "members": 2, "state": "Stable"},
        "g b": {"committed_sum": None, "members": 2, "state": "Stable"},
    }


@pytest.mark.parametrize(
    ("state", "members", "shown"),
    [
        ("Stable", GroupMembers(0, "Stable", 2, frozenset()), 2),
        ("Stable", GroupMembers(69, "Dead", 0, frozenset()), 1),
        ("Assigning", GroupMembers(0, "Dead", 0, frozenset()), 1),
        ("Empty", GroupMembers(69, "Dead", 0, frozenset()), 0),
        ("Empty", GroupMembers(0, "Empty", 0, frozenset()), 0),
        (None, GroupMembers(30, "", 0, frozenset()), None),
    ],
)
def test_members(
    brokers: Brokers, state: str | None, members: GroupMembers, shown: int | None
) -> None:
    """Of another protocol only whether there are any; not 0 where nobody says so."""
    brokers.groups["1"] = [GroupRow("g", "consumer", state)]
    brokers.members = {"g": members}
    assert brokers.rows()["group_usage"][1]["g a"]["members"] == shown


def test_groups_that_may_be_hidden(brokers: Brokers) -> None:
    """Without Describe on the cluster, or where one keeps its offsets, these are not all."""
    assert brokers.rows(rights=())["group_usage"][0] == "visible_only"
    brokers.committed = {"g": CommittedOffsets(30, {})}
    assert brokers.rows()["group_usage"][0] == "visible_only"


def test_assignments() -> None:
    """The partitions of a member; bytes of other protocols name none, whatever they are."""

    def text(name: bytes) -> bytes:
        return struct.pack(">h", len(name)) + name

    sound = struct.pack(">hi", 1, 2) + text(b"a") + struct.pack(">iii", 2, 0, 1)
    sound += text(b"b") + struct.pack(">i", 0) + b"more"
    assert parse_assignment(sound) == {"a": (0, 1), "b": ()}
    for data in (b"", b"\0", sound[:9], b"\xff" * 40, b'{"json":true,"text":"' + b"x" * 40):
        assert parse_assignment(data) == {}
