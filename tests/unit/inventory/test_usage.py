"""How far topics go and what groups have read, as brokers tell it, or do not."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from kafkaform.core.landing import flatten_attributes
from kafkaform.core.resource import Coverage, CoverageKind, Depth, Facts, Fault, FaultClass, Sweep
from kafkaform.core.secret import Secret
from kafkaform.core.value import FrozenMap
from kafkaform_kafka.capacity.projection import Disk
from kafkaform_kafka.capacity.readings import DiskReading
from kafkaform_kafka.connection.certificates import Certificate
from kafkaform_kafka.inspect import usage
from kafkaform_kafka.session import KafkaSession
from kafkaform_kafka.wire.client import RequestNotSent
from kafkaform_kafka.wire.cluster import BrokerVersions, ClusterRow
from kafkaform_kafka.wire.security import TokenRow, TokenRows
from kafkaform_kafka.wire.topics import TopicRow
from kafkaform_kafka.wire.usage import (
    CommittedOffset,
    GroupMembers,
    GroupOffsets,
    GroupRow,
    GroupRows,
    parse_assignment,
)

DOWN = Fault("UNREACHABLE", "connection refused", FaultClass.NOT_APPLIED)
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
        self.tls = True
        self.own: str | None = None
        self.tokens = TokenRows(61)
        self.failed: dict[int, tuple[str, ...]] = {}
        self.asked: list[tuple[str, Mapping[str, Sequence[int]]]] = []
        self.groups = {"1": [GroupRow("g", "consumer", "Stable"), GroupRow("c", "connect", None)]}
        self.committed = {"g": GroupOffsets(0, {("a", 0): CommittedOffset(4, None)})}
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

    def read_disks(self, _: Any, brokers: Iterable[int]) -> DiskReading:
        """Broker 1 has an old volume that tells no room, broker 2 two directories on one."""
        replicas = {("a", 0): 100, ("a", 1): 40, ("b", 0): 60}
        assert list(brokers) == [1, 2]
        disks = (
            Disk(1, ("/d",), None, None, replicas, {}),
            Disk(2, ("/x", "/y"), 1000, 300, replicas, {("b", 0): 5}),
        )
        faults = {} if self.sizes else {1: DOWN}
        return DiskReading(disks if self.sizes else disks[1:], faults, self.failed)

    def describe(self, _: Any, __: float) -> ClusterRow:
        hosts = {"1": ("kafka-1", 9093), "2": ("kafka-2", 9093)}
        return ClusterRow(0, None, "c", {"1": None, "2": None}, frozenset(), hosts)

    def certificate(self, _: Any, host: str, port: int) -> Certificate | None:
        assert port == 9093
        return Certificate(f"CN={host}", 1000, 2000) if host == "kafka-1" else None

    def read_versions(self, _: Any, __: float, node: str) -> BrokerVersions:
        self.answer(node)
        return BrokerVersions({}, {}, {"1": 25, "2": 21}[node])

    def list_groups(self, _: Any, node: str, __: float) -> GroupRows:
        self.answer(node)
        return GroupRows(0, tuple(self.groups.get(node, ())))

    def rows(
        self,
        *,
        rights: Sequence[str] = ("Describe",),
        listed: str = "complete",
        acls: Sweep | None = None,
    ) -> dict[str, Any]:
        """Kind -> (coverage, key -> attributes)."""
        facts = Facts("c", ("1", "2"), values=FrozenMap(rights=tuple(rights)))
        settings = SimpleNamespace(tls=self.tls, certificate=self.own, principal="User:fleet")
        context = SimpleNamespace(
            wire=None, timeout=1.0, facts=facts, instance="eu", settings=settings
        )
        session = cast(KafkaSession, SimpleNamespace(context=context, sweep=None))
        return {
            sweep.kind: (
                sweep.coverage.kind.value,
                {item.identity.key: dict(item.attributes) for item in sweep.items},
            )
            for sweep in usage.read_usage(
                session, replace(SEEN, coverage=Coverage(CoverageKind(listed))), acls
            )
        }


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Brokers:
    made = Brokers()
    monkeypatch.setattr(usage, "list_topics", made.list_topics)
    monkeypatch.setattr(usage, "read_disks", made.read_disks)
    monkeypatch.setattr(usage, "read_versions", made.read_versions)
    monkeypatch.setattr(usage, "describe_cluster", made.describe)
    monkeypatch.setattr(usage, "read_certificate", made.certificate)
    monkeypatch.setattr(usage, "describe_tokens", lambda *_: made.tokens)
    monkeypatch.setattr(usage, "describe_configs", lambda *_, **__: {})
    monkeypatch.setattr(usage.wire, "list_offsets", made.offsets)
    monkeypatch.setattr(usage.wire, "list_groups", made.list_groups)
    monkeypatch.setattr(usage.wire, "fetch_offsets", lambda *_: made.committed)
    monkeypatch.setattr(usage.wire, "describe_members", lambda *_: made.members)
    return made


def test_a_cluster_without_an_authorizer_is_not_one_without_acls(brokers: Brokers) -> None:
    """Both show no ACLs, and only one of them can deny anything."""
    off = Fault(usage.SWITCHED_OFF, "no authorizer", FaultClass.DEFINITE)
    landed = []
    for fault in (off, None):
        listed = Sweep(
            "kafka_acl", Depth.FULL, (), Coverage(CoverageKind.FAILED, fault), whole=True
        )
        (sharpened,) = usage.sharpen_sweeps(cast(KafkaSession, None), [listed])
        (cluster,) = brokers.rows(acls=sharpened)["cluster"][1].values()
        landed.append(flatten_attributes(FrozenMap(cluster)).get("has_authorizer"))
    assert landed == ["false", None]


def test_what_expires(brokers: Brokers) -> None:
    """The certificates of brokers that show one, and the tokens that may be seen, without their
    secrets."""
    (cluster,) = brokers.rows()["cluster"][1].values()
    assert cluster["certificates"] == {"1": {"subject": "CN=kafka-1", "begins": 1000, "ends": 2000}}
    assert cluster["delegation_tokens"] == {}
    secret = Secret("c2VjcmV0")
    token = TokenRow("t1", "User:a", "User:b", (), 5, 7, 9, secret)
    brokers.tokens, brokers.tls = TokenRows(0, (token,)), False
    (cluster,) = brokers.rows()["cluster"][1].values()
    assert cluster["certificates"] == {}
    assert cluster["delegation_tokens"] == {"t1": {"owner": "User:a", "begins": 5, "ends": 7}}
    assert "c2VjcmV0" not in str(flatten_attributes(FrozenMap(cluster)))


def test_our_own_certificate_expires_too(brokers: Brokers, tmp_path: Path) -> None:
    """It lands beside those of the brokers, with the principal that we are, and without the key
    in its file."""
    from ...kit.kafka import doors

    certificate, key = doors.authority("test authority").issue("fleet", host=None)
    (tmp_path / "own.pem").write_text(key + certificate)
    brokers.own = str(tmp_path / "own.pem")
    (cluster,) = brokers.rows()["cluster"][1].values()
    assert cluster["certificates"].keys() == {"1", "login"}
    landed = flatten_attributes(FrozenMap({"certificates": cluster["certificates"]}))
    own = {k.rpartition(".")[2]: v for k, v in landed.items() if ".login." in k}
    assert own.keys() == {"subject", "begins", "ends", "owner"}
    assert (own["subject"], own["owner"]) == ("CN=fleet", "User:fleet")
    assert int(own["begins"]) < int(own["ends"])


def test_sums_over_partitions(brokers: Brokers) -> None:
    """Each partition is asked for at its leader; bytes are those of all replicas; a topic that may
    not be seen has no row."""
    how, rows = brokers.rows()["topic_usage"]
    assert how == "complete"
    assert rows == {
        "a": {
            **{"end_offsets_sum": 12, "start_offsets_sum": 2, "bytes": 280},
            **{"partition_bytes_max": 100, "partition_bytes_min": 40},
            **{"partition_records_max": 6, "partition_records_min": 4},
        },
        "b": {
            **{"end_offsets_sum": 3, "start_offsets_sum": 1, "bytes": 125},
            **{"partition_bytes_max": 60, "partition_bytes_min": 60},
            **{"partition_records_max": 2, "partition_records_min": 2},
        },
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
    assert (rows["a"]["bytes"], rows["b"]["bytes"]) == (None, 125)
    assert rows["a"]["partition_bytes_max"] is None and rows["a"]["end_offsets_sum"] == 12


def test_disks(brokers: Brokers) -> None:
    """One row for each volume, with the room on it if the broker tells it; a directory that failed
    has one that says so, and then no size of a topic is known."""
    how, rows = brokers.rows()["disk_usage"]
    room = {"total_bytes": None, "usable_bytes": None, "log_bytes": 200, "replicas": 3}
    wide = {**room, "total_bytes": 1000, "usable_bytes": 300, "log_bytes": 205}
    disks = {
        "1 /d": {"broker": 1, "log_dirs": ("/d",), "failed": False, **room},
        "2 /x,/y": {"broker": 2, "log_dirs": ("/x", "/y"), "failed": False, **wide},
    }
    assert (how, rows) == ("complete", disks)
    brokers.failed = {2: ("/z",)}
    found = brokers.rows()
    broken = {"broker": 2, "log_dirs": ("/z",), "failed": True}
    assert found["disk_usage"] == ("complete", {**disks, "2 /z": broken})
    assert found["topic_usage"][1]["a"]["bytes"] is None
    brokers.failed, brokers.sizes = {}, False
    assert brokers.rows()["disk_usage"][0] == "visible_only"


def test_disks_that_no_broker_tells(brokers: Brokers, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal has failed; brokers that do not know the request have no disks to be read."""
    for code, how in (("CLUSTER_AUTHORIZATION_FAILED", "failed"), ("UNSUPPORTED_VERSION", None)):
        faults = dict.fromkeys((1, 2), Fault(code, "no", FaultClass.NOT_APPLIED))
        monkeypatch.setattr(usage, "read_disks", lambda *_, f=faults: DiskReading((), f, {}))
        found = brokers.rows()
        assert found.get("disk_usage", (None,))[0] == how
        assert found["topic_usage"][1]["a"]["bytes"] is None


def test_the_cluster(brokers: Brokers) -> None:
    """The release of each broker, and how many partitions it leads; a broker that does not answer
    has no release, and a listing of topics that may lack some counts no leaders."""
    (cluster,) = brokers.rows()["cluster"][1].values()
    assert cluster["versions"] == {"1": "4.0", "2": "3.9"}
    assert cluster["leaders"] == {"1": 2, "2": 1}
    brokers.down = "2"
    (cluster,) = brokers.rows()["cluster"][1].values()
    assert cluster["versions"] == {"1": "4.0", "2": None}
    (cluster,) = brokers.rows(listed="visible_only")["cluster"][1].values()
    assert cluster["leaders"] is None


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
        "g a": {"committed_sum": 4, "lag": 1, "members": 2, "state": "Stable"},
        "g b": {"committed_sum": None, "lag": None, "members": 2, "state": "Stable"},
    }
    brokers.committed["g"] = GroupOffsets(0, {("a", 0): CommittedOffset(9, None)})
    assert brokers.rows()["group_usage"][1]["g a"]["lag"] == 0
    brokers.committed["g"] = GroupOffsets(0, {("a", 5): CommittedOffset(9, None)})
    assert brokers.rows()["group_usage"][1]["g a"]["lag"] is None


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
    brokers.committed = {"g": GroupOffsets(30, {})}
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
