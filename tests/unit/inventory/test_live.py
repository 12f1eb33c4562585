"""What lands of a cluster: all of it, as drift compares it, and never emptiness for a failure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pytest

from kafkaform.core.landing import LandedRow, Meta
from kafkaform.core.progress import Event, Progress
from kafkaform.core.resource import (
    Absent,
    Coverage,
    CoverageKind,
    Depth,
    Facts,
    Failed,
    Fault,
    FaultClass,
    Hidden,
    Identity,
    Observed,
    Reading,
    Sweep,
)
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform.inventory.live import (
    INTERNAL,
    Captured,
    ClusterReader,
    Named,
    capture_cluster,
    make_meta,
)
from kafkaform.provider.contract import Session
from kafkaform_kafka.inspect import usage
from kafkaform_kafka.kinds.simulation import not_sent, refused_items
from kafkaform_kafka.memory import MemoryProvider, SimulatedCluster
from kafkaform_kafka.protocol.acl import Acl
from kafkaform_kafka.provider import TYPES

TOPIC, TOPIC_CONFIG, ACL = "kafka_topic", "kafka_topic_config", "kafka_acl"
READER = ClusterReader(TYPES, frozenset({TOPIC_CONFIG}), usage.sharpen_sweeps)
LISTED = {name for name, kind in TYPES.items() if kind.expand is None}
DENIED = Fault(
    "CLUSTER_AUTHORIZATION_FAILED", "Describe on Cluster is missing", FaultClass.PERMISSION
)


def seen(
    cluster: SimulatedCluster,
    user: str = "admin",
    named: Named = EMPTY,
    reader: ClusterReader = READER,
) -> Captured:
    session = MemoryProvider(cluster, user).open("eu", EMPTY, {})
    return capture_cluster(session, reader, named, "eu")


def rows(captured: Captured, kind: str) -> dict[str, LandedRow]:
    return {row.key: row for row in captured.rows or () if row.kind == kind}


@pytest.fixture
def cluster() -> SimulatedCluster:
    made = SimulatedCluster(brokers=3)
    made.outside.create("orders", 2, 3, {"retention.ms": "1000", "cleanup.policy": "compact"})
    made.outside.create("plain")
    return made


def test_everything_is_there(cluster: SimulatedCluster) -> None:
    """Each topic with its attributes as flat text, its id and its cluster; every kind that can be
    listed is covered whole for who sees all."""
    captured = seen(cluster)
    orders = rows(captured, TOPIC)["orders"]
    assert orders.scope_id == "simulated" and orders.incarnation == cluster.topics["orders"].id
    assert orders.attrs == {
        "name": "orders",
        "partitions": "2",
        "replication_factor": "3",
        "replica_assignment": "[[1,2,3],[2,3,1]]",
        "config.retention.ms": "1000",
        "config.cleanup.policy": "compact",
    }
    assert set(captured.coverage) == LISTED
    partial = {kind for kind, how in captured.coverage.items() if how != "complete"}
    assert partial == {"kafka_broker_config"} and captured.error is None


def test_a_move_counts_as_made(cluster: SimulatedCluster) -> None:
    """Like drift, which would else show what a running reassignment has yet to do."""
    session = MemoryProvider(cluster).open("eu", EMPTY, {})
    moving = FrozenMap(replica_assignment=((2,),), replication_factor=1)
    item = Observed(Identity("eu", TOPIC, "plain"), FrozenMap(name="plain"), moving=moving)
    only = ClusterReader(TYPES, frozenset(LISTED - {TOPIC}), lambda _, s: _with(s, TOPIC, item))
    row = rows(capture_cluster(session, only, EMPTY, "eu"), TOPIC)["plain"]
    assert row.attrs["replica_assignment"] == "[[2]]"


def test_internal_topics_say_so(cluster: SimulatedCluster) -> None:
    """The system's own objects are told apart from what somebody forgot to declare."""
    cluster.outside.create("__consumer_offsets")
    found = rows(seen(cluster), TOPIC)
    assert found["__consumer_offsets"].attrs[INTERNAL] == "true"
    assert INTERNAL not in found["orders"].attrs


def test_what_is_asked_for_by_name(cluster: SimulatedCluster) -> None:
    """Overrides of a topic are objects of their own where a block says so: they are read by name,
    and what has none is missing."""
    captured = seen(cluster, named={TOPIC_CONFIG: ["orders", "plain", "none"]})
    assert set(rows(captured, TOPIC_CONFIG)) == {"orders"}
    assert captured.coverage[TOPIC_CONFIG] == "complete"
    cluster.grant("ci", ("Describe", "topic:*"))
    hidden = seen(cluster, "ci", {TOPIC_CONFIG: ["orders"]})
    assert hidden.coverage[TOPIC_CONFIG] == "visible_only"


def test_who_may_not_see_all(cluster: SimulatedCluster) -> None:
    """Somebody with rights on some topics sees these, and nothing claims that they are all."""
    cluster.grant("ci", ("Describe", "topic:or*"), ("DescribeConfigs", "topic:or*"))
    captured = seen(cluster, "ci")
    assert set(rows(captured, TOPIC)) == {"orders"}
    assert captured.coverage[TOPIC] == "visible_only"
    assert not captured.complete


def test_configs_that_may_not_be_seen(cluster: SimulatedCluster) -> None:
    """Who may describe every topic but not its configs gets no rows, and no completeness."""
    cluster.grant("ci", ("Describe", "topic:*"), ("Describe", "cluster"))
    captured = seen(cluster, "ci")
    assert rows(captured, TOPIC) == {} and captured.coverage[TOPIC] == "visible_only"


def test_one_kind_fails(cluster: SimulatedCluster) -> None:
    """The others land; the failed one has no rows and its cause stands in the error."""
    cluster.faults.schedule(refused_items(31), "DescribeAcls")
    captured = seen(cluster)
    assert captured.coverage[ACL] == "failed" and captured.coverage[TOPIC] == "visible_only"
    assert rows(captured, TOPIC) and captured.error and captured.error.startswith("kafka_acl: ")


def test_half_a_listing_is_none(cluster: SimulatedCluster) -> None:
    """A kind whose listing failed in the middle keeps what it had seen to itself."""

    def half(_: Session, sweeps: Iterable[Sweep]) -> tuple[Sweep, ...]:
        return tuple(_failed(s) if s.kind == TOPIC else s for s in sweeps)

    captured = seen(cluster, reader=ClusterReader(TYPES, READER.named, half))
    assert captured.coverage[TOPIC] == "failed" and rows(captured, TOPIC) == {}


def test_a_cluster_that_does_not_answer(cluster: SimulatedCluster) -> None:
    """All listings fail: there are no rows, which is another thing than an empty cluster."""
    session = MemoryProvider(cluster).open("eu", EMPTY, {})
    cluster.faults.schedule(not_sent(), times=1000)
    captured = capture_cluster(session, READER, EMPTY, "eu")
    assert captured.rows is None and captured.error and not captured.complete
    meta = make_meta(captured, "eu", "s", "t0", "t1")
    assert (meta.complete, meta.rows, meta.sha256, meta.scope_id) == (False, 0, None, "simulated")


def test_an_empty_cluster() -> None:
    """Has rows, namely none, and says that this is all."""
    captured = seen(SimulatedCluster())
    assert captured.rows == () and captured.coverage[TOPIC] == "complete"


def test_progress_is_told(cluster: SimulatedCluster) -> None:
    """It ends, and every step is within the whole."""
    events: list[Event] = []
    session = MemoryProvider(cluster).open("eu", EMPTY, {})
    capture_cluster(session, READER, EMPTY, "eu", events.append)
    told = [event for event in events if isinstance(event, Progress)]
    assert told[-1].finished and all(e.done <= (e.total or 0) for e in told)


def test_more_listings_join(cluster: SimulatedCluster) -> None:
    """Usage comes from whoever knows the system, and decides about completeness too."""
    item = Observed(Identity("eu", "topic_usage", "orders"), FrozenMap(end_offsets_sum=7))
    more = Sweep("topic_usage", Depth.FULL, (item,), Coverage(CoverageKind.VISIBLE_ONLY))
    reader = ClusterReader(TYPES, READER.named, READER.sharpen, lambda *_: (more,))
    captured = seen(cluster, reader=reader)
    assert rows(captured, "topic_usage")["orders"].attrs == {"end_offsets_sum": "7"}
    assert captured.coverage["topic_usage"] == "visible_only" and not captured.complete


# ── what is proven of listings ──────────────────────────────────────────────────────────


class Fake:
    """A session that hides topics as an authorizer would. hidden: says whether a name is."""

    facts = Facts("c")

    def __init__(self, hidden: Mapping[str, bool], topics: Iterable[str] = ()) -> None:
        self.hidden, self.topics, self.asked = hidden, tuple(topics), list[str]()

    def read(self, ids: Iterable[Identity]) -> dict[Identity, Reading]:
        self.asked = [identity.key for identity in ids]
        found = {i: max((p for p in self.hidden if i.key.startswith(p)), key=len) for i in ids}
        return {i: Hidden(i, "x") if self.hidden[p] else Absent(i) for i, p in found.items()}

    def sweep(self, kind: str, depth: Depth, *, full: Sequence[Identity] = ()) -> Sweep:
        return listing(TOPIC, *(Observed(Identity("", TOPIC, t), EMPTY) for t in self.topics))


def listing(kind: str, *items: Observed, fault: Fault | None = None) -> Sweep:
    how = CoverageKind.FAILED if fault else CoverageKind.VISIBLE_ONLY
    if kind == ACL and not fault:
        how = CoverageKind.COMPLETE
    return Sweep(kind, Depth.FULL, items, Coverage(how, fault))


def acl(name: str, pattern: str = "Prefixed", resource: str = "Topic") -> Observed:
    made = Acl("User:x", "*", "Read", "Allow", resource, name, pattern)
    return Observed(Identity("", ACL, made.key), made.attributes)


@pytest.mark.parametrize(
    ("hidden", "acls", "proven"),
    [
        ({"": False}, [], True),
        ({"": True}, [], False),
        ({"": False}, [acl("*", "Literal"), acl("pay")], True),
        ({"": False, "pay": True}, [acl("pay")], False),
        ({"": False, "pay": True}, [acl("pay.x", "Literal")], False),
        ({"": False, "pay": True}, [acl("pay", resource="Group")], True),
        ({"": True, "pay": False}, [acl("pay")], False),
        ({"": False}, [acl("no topic!"), acl("x" * 300)], True),
    ],
)
def test_all_topics_are_seen(hidden: dict[str, bool], acls: list[Observed], proven: bool) -> None:
    """One name for each pattern tells how all names are answered: a wildcard, a prefix that is
    denied, a literal; patterns of other resources, or that no topic can fit, do not matter."""
    fake = Fake(hidden)
    sweeps = usage.sharpen_sweeps(fake, [listing(TOPIC), listing(ACL, *acls)])  # type: ignore[arg-type]
    how = CoverageKind.COMPLETE if proven else CoverageKind.VISIBLE_ONLY
    assert {s.kind: s.coverage.kind for s in sweeps}[TOPIC] is how


class Busy(Fake):
    """One more topic than the listing had, of which `reading` is told by its name."""

    def __init__(self, reading: type[Absent | Hidden | Failed | Observed]) -> None:
        super().__init__({"": False}, ["new"])
        self.reading = reading

    def read(self, ids: Iterable[Identity]) -> dict[Identity, Reading]:
        return {i: self._told(i) if i.key == "new" else Absent(i) for i in ids}

    def _told(self, new: Identity) -> Reading:
        made: dict[type[Reading], Reading] = {
            Absent: Absent(new),
            Hidden: Hidden(new, "DescribeConfigs"),
            Failed: Failed(new, DENIED),
            Observed: Observed(new, EMPTY),
        }
        return made[self.reading]


@pytest.mark.parametrize(
    ("reading", "proven"), [(Observed, True), (Absent, True), (Hidden, False), (Failed, False)]
)
def test_topics_that_were_made_meanwhile(
    reading: type[Absent | Hidden | Failed | Observed], proven: bool
) -> None:
    """What a listing lacks was made or deleted since, or its configs may not be seen: a look at
    it by name tells which."""
    sweeps = usage.sharpen_sweeps(Busy(reading), [listing(TOPIC), listing(ACL)])  # type: ignore[arg-type]
    assert (sweeps[0].coverage.kind is CoverageKind.COMPLETE) is proven


def test_a_prefix_and_its_own_name_are_two_things() -> None:
    """`pay` can be allowed by its name while all that begins with it is denied: both are asked, and
    a name that fits nothing."""
    fake = Fake({"": False})
    usage.sharpen_sweeps(fake, [listing(TOPIC), listing(ACL, acl("pay"), acl("pay", "Literal"))])  # type: ignore[arg-type]
    assert len(fake.asked) == 3 and "pay" in fake.asked
    assert sum(name.startswith("pay") and len(name) > 3 for name in fake.asked) == 1


def test_without_acls_nothing_is_proven() -> None:
    """Who may not list them cannot know what they hide."""
    sweeps = usage.sharpen_sweeps(Fake({"": False}), [listing(TOPIC), listing(ACL, fault=DENIED)])  # type: ignore[arg-type]
    assert [s.coverage.kind.value for s in sweeps] == ["visible_only", "failed"]


def test_without_an_authorizer_everything_is_seen() -> None:
    """It keeps no ACLs, which is no failure, and hides nothing."""
    off = Fault("SECURITY_DISABLED", "no authorizer", FaultClass.DEFINITE)
    sweeps = usage.sharpen_sweeps(Fake({"": True}), [listing(TOPIC), listing(ACL, fault=off)])  # type: ignore[arg-type]
    assert {s.coverage.kind for s in sweeps} == {CoverageKind.COMPLETE}


@pytest.mark.parametrize("code", ["UNSUPPORTED_VERSION", "FEATURE_MISSING"])
def test_what_brokers_are_too_old_for_is_left_out(code: str) -> None:
    """Nobody has read it, and nothing has failed."""
    old = Fault(code, "too old", FaultClass.DEFINITE)
    kind = "kafka_group_config"
    assert usage.sharpen_sweeps(Fake({"": True}), [listing(kind, fault=old)]) == ()  # type: ignore[arg-type]


def _with(sweeps: Iterable[Sweep], kind: str, item: Observed) -> tuple[Sweep, ...]:
    return tuple(
        Sweep(s.kind, s.depth, (item,), s.coverage) if s.kind == kind else s
        for s in (*sweeps, Sweep(kind, Depth.FULL, (), Coverage(CoverageKind.COMPLETE)))
    )


def _failed(sweep: Sweep) -> Sweep:
    return Sweep(sweep.kind, sweep.depth, sweep.items, Coverage(CoverageKind.FAILED, DENIED))


def test_meta_says_what_was_seen(cluster: SimulatedCluster) -> None:
    """From when to when, of which cluster, and how far each kind can be trusted."""
    meta = make_meta(seen(cluster), "eu", "s", "t0", "t1")
    assert (meta.source, meta.subject, meta.started, meta.ended) == ("live", "eu", "t0", "t1")
    assert isinstance(meta, Meta) and meta.scope_id == "simulated" and TOPIC in meta.coverage
