"""Whom dangerous changes hit: what a plan says of the answers of brokers."""

from __future__ import annotations

import time
from typing import Any

import pytest

from kafkaform.core import progress
from kafkaform.core.change import Action, Change, PathChange, add_findings
from kafkaform.core.errors import KafkaformError
from kafkaform.core.finding import AccessRow, Breadth, Finding, Harm, Level
from kafkaform.core.resource import Identity
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform.plan.model import Extent
from kafkaform.plan.observe import BOUNDS
from kafkaform.provider.contract import LookBounds
from kafkaform.render.text import render_page
from kafkaform_kafka.impact.inquiry import date_positions
from kafkaform_kafka.impact.looks import ask_disks, ask_topics, find_consequences
from kafkaform_kafka.inspect.source import DescribeSource
from kafkaform_kafka.rules import looks as look_rules
from kafkaform_kafka.rules.topics.config_rows import RETENTION_CUT, SIZE_CUT
from kafkaform_kafka.rules.topics.life import DELETED, REPLICAS_REMOVED

from ....kit.kafka.busy_cluster import BusyGroup, BusyLog, BusySession

HOUR = 3_600_000


def cut(name: str = "orders", key: str = "retention.ms", value: str = str(HOUR)) -> Change:
    """A shorter retention of this topic."""
    before, after = (
        FrozenMap(name=name, partitions=1, config=FrozenMap({key: text}))
        for text in ("999999999999", value)
    )
    path = PathChange(("config", key), "999999999999", value)
    change = Change(
        Identity("kafka", "kafka_topic", name), name, Action.UPDATE, before, after, (path,)
    )
    rule = RETENTION_CUT if key == "retention.ms" else SIZE_CUT
    return add_findings(change, rule.find("less is kept", path.path))


def deletion(name: str = "orders") -> Change:
    before = FrozenMap(name=name, partitions=1, config=FrozenMap())
    change = Change(Identity("kafka", "kafka_topic", name), name, Action.DELETE, before)
    return add_findings(change, DELETED.find("all records are deleted"))


def look(
    session: BusySession, *changes: Change, extent: Extent = Extent.FAST
) -> dict[str, Finding]:
    """Rule -> its finding, of changes of which each rule finds one thing only."""
    anyone: Any = session
    rows = find_consequences(anyone, changes, BOUNDS[extent])
    assert len({finding.rule for _, finding in rows}) == len(rows), rows
    return {finding.rule: finding for _, finding in rows}


def test_a_slow_group_loses_what_is_older_than_the_new_retention() -> None:
    """10,000 records, one a second; the group is 7,810 s behind, and 3,600 s are kept."""
    session = BusySession(
        {("orders", 0): BusyLog(0, 10_000, age=500)},
        [BusyGroup("billing", {("orders", 0): 2_190}, ("app",), ("orders",))],
    )
    found = look(session, cut())
    lost = found["topic-unread-lost"]
    assert lost.level is Level.DANGER and lost.harm is Harm.DATA_LOSS
    assert lost.text == (
        "billing is about 2 h 10 min behind: retention of 1 h deletes about 1 h 10 min, 4,210 "
        "records that it has not read"
    )
    assert lost.figures == {
        "groups": ("billing",),
        "unread_records": ("billing=4210",),
        "most_unread_records": 4210,
    }
    readers = found["topic-readers"]
    assert readers.text == (
        "1 group reads it: billing (1 member, 7,810 records and about 2 h 10 min behind)"
    )
    assert readers.figures["lag_records"] == 7810 and readers.figures["members"] == 1
    assert readers.figures["lag_seconds"] == pytest.approx(7809, rel=0.005)
    assert session.proofs == 1


def test_a_group_that_reads_along_loses_nothing() -> None:
    """Its position is within the new retention."""
    session = BusySession(
        {("orders", 0): BusyLog(0, 10_000)},
        [BusyGroup("billing", {("orders", 0): 10_000}, ("app",), ("orders",))],
    )
    found = look(session, cut())
    assert "topic-unread-lost" not in found
    assert found["topic-readers"].text == "1 group reads it: billing (1 member, 0 records behind)"


def test_what_is_gone_already_is_not_lost_again() -> None:
    """A group that stands before the first record of the log loses only what is still there."""
    session = BusySession(
        {("orders", 0): BusyLog(5_000, 10_000, age=500)}, [BusyGroup("old", {("orders", 0): 10})]
    )
    found = look(session, cut())
    lost = found["topic-unread-lost"]
    assert lost.figures["most_unread_records"] == 10_000 - 3_600 - 5_000
    # Nobody runs this group now.
    assert lost.level is Level.CAUTION
    assert found["topic-readers"].text.startswith("1 group has offsets in it: old (no members, ")


def test_a_lower_default_names_the_topic() -> None:
    """The change is about the cluster, and the groups read one of its topics."""
    session = BusySession(
        {("orders", 0): BusyLog(0, 10_000), ("books", 0): BusyLog(0, 0)},
        [BusyGroup("billing", {("orders", 0): 2_190}, ("app",), ("orders",))],
    )
    path = PathChange(("config", "log.retention.ms"), None, str(HOUR))
    identity = Identity("kafka", "kafka_cluster_config", "default")
    change = Change(identity, "x", Action.UPDATE, EMPTY, EMPTY, (path,))
    figures = FrozenMap(topics=("books", "orders"))
    change = add_findings(change, RETENTION_CUT.find("text", path.path, figures=figures))
    found = look(session, change)
    assert found["topic-unread-lost"].text.startswith("orders: billing is about 2 h 10 min behind")
    assert found["topic-readers"].text.startswith("orders: 1 group reads it: billing")


def test_a_risk_of_durability_names_readers_and_nothing_that_goes() -> None:
    """Nothing is deleted by it now."""
    session = BusySession(
        {("orders", 0): BusyLog(0, 100)},
        [BusyGroup("billing", {("orders", 0): 10}, ("app",), ("orders",))],
    )
    whole = FrozenMap(name="orders", partitions=1, config=EMPTY)
    change = Change(Identity("kafka", "kafka_topic", "orders"), "x", Action.UPDATE, whole, whole)
    change = add_findings(change, REPLICAS_REMOVED.find("fewer replicas"))
    found = look(session, change)
    assert "topic-unread-lost" not in found
    assert found["topic-readers"].level is Level.NOTE


def test_a_size_deletes_a_share_of_the_records() -> None:
    """1,000 bytes are kept of 4,000: three quarters of the records go."""
    session = BusySession(
        {("orders", 0): BusyLog(0, 400, bytes=4_000)},
        [BusyGroup("billing", {("orders", 0): 100}, ("app",), ("orders",))],
    )
    lost = look(session, cut(key="retention.bytes", value="1000"))["topic-unread-lost"]
    assert lost.figures["most_unread_records"] == 200
    assert "retention of 1000 B deletes 200 records that" in lost.text


def test_a_deletion_names_readers_and_writers() -> None:
    """The worst group first, those with members before those without, and three by name."""
    groups = [
        BusyGroup("billing", {("orders", 0): 90}, ("a", "b"), ("orders",)),
        BusyGroup("idle", {("orders", 0): 50}),
        BusyGroup("new", {}, ("c",), ("orders",), type="Consumer"),
        BusyGroup("elsewhere", {("other", 0): 1}, ("d",), ("other",)),
        *(BusyGroup(f"even{n}", {("orders", 0): 100}) for n in range(3)),
    ]
    log = BusyLog(0, 100, age=3000, producers=(2_000, 5_000, 2 * HOUR))
    found = look(BusySession({("orders", 0): log}, groups), deletion())
    lost = found["topic-unread-lost"]
    assert lost.figures["groups"] == ("idle", "billing")
    assert "idle is about 52 s behind: the deletion takes 50 records" in lost.text
    readers = found["topic-readers"]
    assert readers.level is Level.CAUTION
    assert readers.text == (
        "6 groups read it: idle (no members, 50 records and about 52 s behind), "
        "billing (2 members, 10 records and about 12 s behind), "
        "new (1 member, lag unknown), and 3 more"
    )
    writers = found["topic-writers"]
    assert writers.level is Level.CAUTION
    assert writers.text == "2 producers wrote to it in the last hour, its newest record is 3 s old"
    assert writers.figures == {"producers": 2, "newest_record_seconds": 3}


def test_a_topic_that_nobody_uses_says_when_it_was_written_last() -> None:
    """The answer to "can this go?"."""
    found = look(BusySession({("orders", 0): BusyLog(0, 5, age=40 * 24 * HOUR)}), deletion())
    assert found.keys() == {"topic-writers"}
    assert found["topic-writers"].level is Level.NOTE
    assert found["topic-writers"].text == "its newest record is 40 d old"


def test_share_groups_have_the_lag_that_the_cluster_counts() -> None:
    """Records after their start offset may be done with already."""
    group = BusyGroup("jobs", {("orders", 0): 40}, ("a",), ("orders",), type="Share", lag=7)
    readers = look(BusySession({("orders", 0): BusyLog(0, 100)}, [group]), deletion())
    assert "7 records" in readers["topic-readers"].text


def test_what_cannot_be_seen_is_said() -> None:
    """Missing rights, silent brokers and groups without an answer."""
    groups = [
        BusyGroup("billing", {("orders", 0): 90}, ("a",), ("orders",)),
        BusyGroup("secret", {("orders", 0): 1}, ("b",), ("orders",), code=30),
    ]
    session = BusySession(
        {("orders", 0): BusyLog(0, 100)},
        groups,
        nodes=("1", "2"),
        rights=(),
        silent={"ListGroups": lambda node: node == "2"},
        producers_code=29,
    )
    unseen = look(session, deletion())["users-unseen"]
    assert unseen.level is Level.NOTE
    for text in (
        "the groups of broker 2 are missing",
        "the offsets of 1 group",
        "the members of 1 group",
        "groups that this principal may not describe",
        "the producers of orders",
    ):
        assert text in unseen.text, unseen.text


def test_no_group_can_be_listed_and_the_writers_are_still_told() -> None:
    """A look that fails does not take the others with it."""
    log = BusyLog(0, 100, producers=(1_000,))
    session = BusySession({("orders", 0): log}, silent={"ListGroups": lambda _: True})
    found = look(session, deletion())
    assert found.keys() == {"topic-writers", "users-unseen"}
    assert found["users-unseen"].text.startswith("not looked at: readers: ")


def test_a_lost_right_names_clients_and_no_principals() -> None:
    """Brokers do not say who the members are."""
    lost = AccessRow("User:ann", "Topic", "ord", "prefixed", ("Read",), Breadth.PREFIX)
    change = Change(Identity("kafka", "kafka_acl", "x"), "kafka_acl.x", Action.DELETE)
    change = add_findings(
        change, Finding("access-lost", Level.CAUTION, Harm.ACCESS_LOST, "text", access=(lost,))
    )
    groups = [
        BusyGroup("billing", {("orders", 0): 90}, ("app-1",), ("orders",)),
        BusyGroup("other", {("books", 0): 90}, ("app-2",), ("books",)),
        BusyGroup("ended", {("orders", 0): 90}),
    ]
    session = BusySession({("orders", 0): BusyLog(0, 100), ("books", 0): BusyLog(0, 9)}, groups)
    found = look(session, change)
    assert found.keys() == {"access-used-now"}
    assert found["access-used-now"].text == (
        "1 group with members uses what User:ann loses: billing (app-1 at 192.0.2.7); "
        "brokers do not show the principals of members"
    )


@pytest.mark.parametrize("step", [1_000, 7, 86_400_000])
@pytest.mark.parametrize("offset", [0, 1, 500, 998, 999])
def test_the_time_of_an_offset_is_found(step: int, offset: int) -> None:
    """Whatever the rate of the records."""
    log = BusyLog(0, 1000, step, age=4_000)
    session = BusySession({("orders", 0): log})
    source = DescribeSource(session.context, lambda *_: None)  # type: ignore[arg-type,return-value]
    position = (("orders", 0), offset)
    ages = date_positions(source, {("orders", 0): 1}, [position], session.now)
    age = log.age + (999 - offset) * step
    if age > 5 * 365 * 24 * HOUR:
        assert ages == {}
    else:
        assert ages[position] == pytest.approx(age, rel=0.005)
    assert session.requests["ListOffsets"] <= 13


@pytest.mark.parametrize(("delay", "slow"), [(0.002, False), (0.7, True)])
def test_thousands_of_topics_and_groups_stay_within_five_seconds(delay: float, slow: bool) -> None:
    """Whatever the brokers need for an answer: what there was no time for is said."""
    logs = {(f"t{n:05}", 0): BusyLog(0, 1_000, producers=(9,)) for n in range(10_000)}
    groups = [
        BusyGroup(f"g{n}", {(f"t{(n + k * 7) % 500:05}", 0): 100 for k in range(5)}, ("a",))
        for n in range(2_000)
    ]
    session = BusySession(logs, groups, delay=delay)
    changes = [cut(f"t{n:05}", value="60000") for n in range(10_000)]
    began = time.monotonic()
    anyone: Any = session
    rows = find_consequences(anyone, changes, BOUNDS[Extent.FAST])
    took = time.monotonic() - began
    print(f"{took:.2f} s, {sum(session.requests.values())} requests, {len(rows)} findings")
    assert took < 7, took
    (unseen,) = (finding for identity, finding in rows if identity is None)
    assert unseen.text.startswith("not looked at: 9,500 of 10,000 topics")
    assert ("there was no time left" in unseen.text or "waited" in unseen.text) is slow
    if not slow:
        assert sum(finding.rule == "topic-unread-lost" for _, finding in rows) == 500


def test_no_look_finds_what_an_approval_covers() -> None:
    """Blocks and lost access are approved, and figures of a moment must not be."""
    for rule in look_rules.USER_RULES:
        assert rule.level is not Level.BLOCK and rule.harm is not Harm.ACCESS_LOST


def test_whoever_waits_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """`--impact full` of a large cluster takes its time."""
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    told: list[Any] = []
    with progress.report_slow_tasks(told.append):
        look(BusySession({("orders", 0): BusyLog(0, 100)}), deletion(), extent=Extent.FULL)
    assert "Asking the brokers: 1 of 1 requests" in [message.text for message in told]


# ── looks without a change ──────────────────────────────────────────────────────────────


def ask(session: BusySession, *topics: str) -> tuple[FrozenMap, list[str]]:
    """The document of a look at topics, and its page line by line."""
    anyone: Any = session
    question = ask_topics(topics, BOUNDS[Extent.FAST])
    document = question.read(anyone).document
    return document, list(render_page(question.page(document)))


def test_a_look_at_a_topic_has_the_figures_of_a_plan() -> None:
    """The same group, lag and time that the plan of a shorter retention names, without a change."""
    logs = {("orders", 0): BusyLog(0, 10_000, age=500, bytes=1 << 20, producers=[1_000])}
    groups = [
        BusyGroup("billing", {("orders", 0): 2_190}, ("app",), ("orders",)),
        BusyGroup("other", {("books", 0): 1}),
    ]
    session = BusySession({**logs, ("books", 0): BusyLog(0, 5)}, groups)
    finding = look(session, cut())["topic-readers"]
    session.proofs = 0
    document, lines = ask(session, "orders")
    (topic,) = document["topics"]
    (reader,) = topic["groups"]
    assert reader["group"] == "billing" and reader["members"] == 1
    assert reader["lag_records"] == finding.figures["lag_records"] == 7810
    assert reader["lag_ms"] // 1000 == pytest.approx(finding.figures["lag_seconds"], rel=0.005)
    assert topic["producers"] == 1 and document["gaps"] == ()
    text = "\n".join(lines)
    assert "7,810 records  about 2 h 10 min" in text
    assert "1 producer has written to it in the last hour, its newest record is less than" in text
    assert "1 MiB" in text, "what it takes on the disk"
    assert session.proofs == 1


def test_a_look_says_what_it_could_not_see_and_what_to_do() -> None:
    """A missing topic is not an unused one, and a refused request has its right."""
    session = BusySession({("orders", 0): BusyLog(0, 10)}, rights=(), producers_code=29)
    document, lines = ask(session, "orders", "typo")
    text = "\n".join(lines)
    assert [row["name"] for row in document["topics"]] == ["orders"]
    assert document["unread"][0]["name"] == "typo" and "typo: " in text
    assert "UNKNOWN_TOPIC_OR_PARTITION" in text
    assert "Incomplete: the producers of orders: " in text and "Advice: grant " in text
    assert "There may be groups that this principal may not describe." in text
    assert "No group that could be seen reads it" in text


def test_a_broker_that_is_silent_is_named() -> None:
    """What the others say is shown, and nobody is called absent."""
    logs = {("orders", 0): BusyLog(0, 10), ("orders", 1): BusyLog(0, 10, leader=2)}
    offsets = {("orders", 0): 4, ("orders", 1): 4}
    session = BusySession(
        logs,
        [BusyGroup("billing", offsets, ("app",), ("orders",)), BusyGroup("unseen", node=2)],
        nodes=("1", "2"),
        replicas=(1, 7),
        silent=dict.fromkeys(
            ("ListGroups", "ListOffsets", "DescribeProducers"), lambda node: node == "2"
        ),
    )
    document, lines = ask(session, "orders")
    (reader,) = document["topics"][0]["groups"]
    assert (reader["group"], reader["lag_records"]) == ("billing", None), "a part of it is unknown"
    text = "\n".join(lines)
    assert "Incomplete: the groups of broker 2 are missing: no answer to ListGroups" in text
    assert "Incomplete: the producers of orders: no answer" in text
    assert "Incomplete: the disks of broker 7: it is not live" in text


def test_a_look_at_the_disks_names_brokers_that_do_not_serve() -> None:
    """They are no disks without a problem."""
    session = BusySession({("orders", 0): BusyLog(0, 10, bytes=1 << 20)}, fenced=("3",))
    anyone: Any = session
    question = ask_disks([""], BOUNDS[Extent.FAST])
    lines = list(render_page(question.page(question.read(anyone).document)))
    assert "1 disk." in lines and "1 MiB" in lines[1], lines
    assert "Broker 3 is fenced: it does not serve, and its disks are unknown." in lines
    assert session.proofs == 1


def test_a_look_ends_in_time() -> None:
    """Brokers that are slow cost the five seconds of a plan, and not more."""
    bounds = LookBounds(0.3, 500)
    session = BusySession({("orders", 0): BusyLog(0, 10)}, [BusyGroup("g")], delay=0.2)
    anyone: Any = session
    start = time.monotonic()
    question = ask_topics(["orders"], bounds)
    document = question.read(anyone).document
    assert time.monotonic() - start < 2
    text = "\n".join(render_page(question.page(document)))
    assert "Incomplete: who reads it: no answer to ListGroups" in text and "No group" not in text
    # Nothing at all is a failure, and no empty page.
    with pytest.raises(KafkaformError):
        ask_topics(["orders"], LookBounds(0.0, 500)).read(anyone)
