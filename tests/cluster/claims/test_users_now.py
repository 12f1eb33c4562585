"""What a plan says about those whom a dangerous change hits, held against Kafka's own tools and
against what a slow consumer then really misses."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import NewTopic
from msgspec.structs import replace

from kafkaform.core.change import Action, Change, add_findings
from kafkaform.core.finding import AccessRow, Breadth, Finding, Harm, Level
from kafkaform.core.resource import Identity
from kafkaform.core.text import render_span
from kafkaform.plan.model import Extent
from kafkaform.plan.observe import BOUNDS
from kafkaform.sandbox import Sandbox
from kafkaform.window.page import make_id
from kafkaform.workflow.configuration.evaluation import Inputs
from kafkaform.workflow.live_looks import LiveLooks
from kafkaform_kafka.impact.looks import find_consequences
from kafkaform_kafka.rules.topics.config_rows import SIZE_CUT
from kafkaform_kafka.rules.topics.life import PARTITIONS_ADDED
from kafkaform_kafka.session import KafkaSession
from kafkaform_kafka.wire.client import RequestNotSent, RequestUnanswered
from kafkaform_kafka.wire.groups import commit_offsets, find_coordinator

from ...kit.commands.process_folder import Folder
from ...kit.commands.server import Ended
from ...kit.editor import Editor
from ...kit.kafka.changes import change as make_change
from ...kit.kafka.changes import topic
from ...kit.kafka.clusters import own_sandbox
from ...kit.kafka.jar_messages import define_messages
from ...kit.kafka.java_tools import (
    CONSUMER_GROUPS,
    SHARE_GROUPS,
    STREAMS_GROUPS,
    read_tables,
    run_tool,
    write_admin_properties,
)
from ...kit.kafka.logins import new_login
from ...kit.kafka.sessions import connect, eventually, gone, grant
from ...kit.kafka.share_members import open_consumer, poll_records
from ...kit.kafka.streams_members import open_streams_member
from ...kit.kafka.topic_clients import Clients, wait_for
from ...kit.kafka.versions import get_choice
from ...kit.markup import Page
from ...kit.proxy.proxy import proxying
from ...unit.window.test_live import press
from ...unit.window.world import Window, make_sources, open_window
from .broker_configs import GROUP, alter

QUICK = (("log.initial.task.delay.ms", "200"), ("log.retention.check.interval.ms", "300"))
"""A broker that looks for old records at once."""
SECONDS = 15.0
MINUTE = 60_000
AGES = (*range(130, 70, -1), *range(30, 0, -1))
"""How many minutes ago the records of each partition were written: 60 of them go with a retention
of an hour. The pause between the two parts ends a segment."""
SLOW = "billing"
TOPIC = """
resource "kafka_topic" "orders" {{
  name               = "orders"
  partitions         = 2
  replication_factor = 1
  config = {{
    "retention.ms" = retention("{retention}")
    "segment.ms"   = retention("10m")
  }}
}}
"""


@pytest.fixture(scope="module")
def box(own_brokers: None) -> Iterator[Sandbox]:
    """One broker for this file alone."""
    with own_sandbox(f"tests-users-{os.getpid()}", config=QUICK) as box:
        yield box


@pytest.fixture(scope="module")
def clients(box: Sandbox) -> Clients:
    return Clients(box.bootstrap, box.admin_password)


@pytest.fixture(scope="module")
def session(box: Sandbox) -> Iterator[KafkaSession]:
    session = connect(box)
    yield session
    session.close()


@contextmanager
def slow_member(
    clients: Clients, topic: str, group: str, read: int, **more: str
) -> Iterator[Consumer]:
    """A member of a group that has read so many records of each partition, and reads no more. more:
    of its config."""
    config = {"group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = Consumer({**clients.config, **config, "client.id": "slow-app", **more})
    consumer.subscribe([topic])
    wait_for(lambda: consumer.poll(0.2) is not None or bool(consumer.assignment()))
    assigned = consumer.assignment()
    consumer.pause(assigned)
    offsets = [TopicPartition(topic, item.partition, read) for item in assigned]
    consumer.commit(offsets=offsets, asynchronous=False)
    yield consumer
    consumer.close()


def collect_findings(output: str) -> Mapping[str, Any]:
    """Rule -> finding, of the JSON lines of a plan."""
    findings: dict[str, Any] = {}

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            if "rule" in value and "level" in value:
                findings[value["rule"]] = value
            for item in value.values():
                walk(item)
        elif isinstance(value, list):
            for item in value:
                walk(item)

    for line in output.splitlines():
        if line.startswith("{"):
            walk(json.loads(line))
    return findings


def look(session: KafkaSession, change: Change) -> dict[str, Finding]:
    rows = find_consequences(session, [change], BOUNDS[Extent.FAST])
    return {finding.rule: finding for _, finding in rows}


def test_a_slow_group_misses_what_the_plan_said(
    box: Sandbox, clients: Clients, tmp_path: Path
) -> None:
    """`topic-unread-lost`: the plan of a shorter retention says how many records the group has not
    read of those that go; after the apply, it misses exactly these."""
    folder = Folder(tmp_path, box.bootstrap, box.admin_password)
    folder.write(TOPIC.format(retention="7d"))
    assert folder.apply().code == 0
    producer = Producer({**clients.config, "acks": "all", "enable.idempotence": True})
    now = int(time.time() * 1000)
    for minutes in AGES:
        for partition in (0, 1):
            producer.produce("orders", b"x", partition=partition, timestamp=now - minutes * MINUTE)
            # Records of one batch are in one segment.
            producer.flush(SECONDS)
    with slow_member(clients, "orders", SLOW, 25) as consumer:
        folder.write(TOPIC.format(retention="1h"))
        token = tmp_path / "approval"
        plan = folder.run("plan", "--json", "--approval-out", str(token))
        findings = collect_findings(plan.out)
        lost = findings["topic-unread-lost"]
        assert lost["figures"]["unread_records"] == [f"{SLOW}=70"]
        assert (lost["level"], lost["harm"]) == ("danger", "data-loss")
        # The record at offset 25 was written 105 minutes ago.
        span = re.search(r"billing is about (.+?) behind: retention of 1 h deletes", lost["text"])
        age = round((time.time() * 1000 - now) / 1000) + 105 * 60
        assert span is not None
        assert span[1] in {render_span(age + more) for more in range(-60, 60)}
        assert "producers" in findings["topic-writers"]["figures"]
        text = folder.plan()
        for part in ("70 records that it has not read", "1 group reads it: billing (1 member"):
            assert part in " ".join(text.out.split()), text.out

        # The group falls back while the plan is reviewed; the approval stays what it was.
        assert clients.write("orders", "later", "k") == ""
        applied = folder.run("apply", "--expect", token.read_text("utf-8").strip(), "--no-color")
        assert applied.code == 0, applied.out
        starts = {}

        def has_gone() -> bool:
            for partition in (0, 1):
                item = TopicPartition("orders", partition)
                starts[partition] = consumer.get_watermark_offsets(item, SECONDS, cached=False)[0]
            return all(starts.values())

        wait_for(has_gone)
    assert sum(start - 25 for start in starts.values()) == 70


def test_a_size_deletes_about_what_the_plan_said(clients: Clients, session: KafkaSession) -> None:
    """`topic-unread-lost`: of a smaller retention.bytes, at most one segment less goes than the
    plan said, because brokers delete whole segments."""
    mebibyte, segment = 2**20, 1_100
    assert clients.create("large", segment_bytes=mebibyte) == ""
    producer = Producer({**clients.config, "acks": "all"})
    for number in range(5_000):
        producer.produce("large", os.urandom(512).hex(), key=str(number))
    assert producer.flush(SECONDS) == 0
    config = {"segment.bytes": str(mebibyte)}
    before, after = (
        topic("large", partitions=1, replication_factor=1, config={**config, **more})
        for more in ({}, {"retention.bytes": str(2 * mebibyte)})
    )
    cut = add_findings(
        make_change(Action.UPDATE, before, after),
        SIZE_CUT.find("less is kept", ("config", "retention.bytes")),
    )
    item = TopicPartition("large", 0)
    with slow_member(clients, "large", "sized", 500) as consumer:
        lost = look(session, cut)["topic-unread-lost"]
        assert "retention of 2 MiB deletes" in lost.text, lost.text
        assert clients.set("large", retention_bytes=2 * mebibyte) == ""
        wait_for(lambda: consumer.get_watermark_offsets(item, SECONDS, cached=False)[0] > 0)
        # All segments of one look for old ones go together.
        time.sleep(2)
        missed = consumer.get_watermark_offsets(item, SECONDS, cached=False)[0] - 500
    assert 0 <= lost.figures["most_unread_records"] - missed <= segment, (lost.text, missed)


QUESTIONS = {"ListGroups", "OffsetFetch", "DescribeGroups", "DescribeProducers", "DescribeLogDirs"}
"""What only a look asks."""


def read_page(window: Window, path: str) -> str:
    return " ".join(" ".join(text for _, text in Page(window.page(path)).texts).split())


def test_the_window_and_the_editor_show_the_slow_group_when_asked(
    box: Sandbox, clients: Clients, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page of a topic and a hover over its block show the lag in records and in time that a
    plan tells, after one look each; pages that are only loaded and an editor without `--live` send
    no request."""
    monkeypatch.setenv("PROOF_PASSWORD", box.admin_password)
    block = TOPIC.format(retention="7d").replace("orders", "watched")
    with proxying(box.brokers[0].ports.client) as proxy:
        folder = Folder(tmp_path, proxy.bootstrap, box.admin_password)
        folder.write(block)
        assert folder.apply().code == 0
        producer = Producer({**clients.config, "enable.idempotence": True})
        now = int(time.time() * 1000)
        for minutes in AGES:
            for partition in (0, 1):
                stamp = now - minutes * MINUTE
                producer.produce("watched", b"x", partition=partition, timestamp=stamp)
        assert producer.flush(SECONDS) == 0
        lag = 2 * (len(AGES) - 25)
        with slow_member(clients, "watched", "slow-reader", 25):
            proxy.take()
            sources = replace(make_sources(tmp_path), live=LiveLooks(Inputs.read(())))
            with open_window(sources) as window:
                topic_page = f"objects/{make_id(str(Identity('kafka', 'kafka_topic', 'watched')))}"
                for path in ("", "objects", "log", "disks", topic_page, topic_page):
                    window.page(path)
                assert not proxy.take(), "a page that is loaded asks nobody"
                with ThreadPoolExecutor(2) as pool:
                    presses = [pool.submit(press, window, topic_page) for _ in range(2)]
                assert [future.result()[0] for future in presses] == [303, 303]
                assert (requests := proxy.take())["ListGroups"] == 1, requests
                assert requests.keys() >= QUESTIONS, requests
                page = read_page(window, topic_page)
                check_slow_reader(page, lag, now)
                assert "1 producer has written to it in the last hour" in page
                assert not proxy.take()
                press(window, f"disks/{make_id('kafka')}")
                page = read_page(window, "disks")
                assert "Disks of the brokers" in page and "B/day" in page, page
                assert set(proxy.take()) & QUESTIONS == {"DescribeLogDirs"}
            text = (tmp_path / "main.kf.hcl").read_text("utf-8")
            text = text.replace('"watched" {', '"wat|ched" {')
            for flags, questions in ((), set()), (("--live",), QUESTIONS):
                editor = Editor(tmp_path, None, None, *flags)
                hovers = [editor.hover("main.kf.hcl", text) for _ in range(3)]
                editor.close()
                requests = proxy.take()
                assert set(requests) & QUESTIONS == questions, requests
                assert requests["ListGroups"] == len(flags), "a mouse that comes back asks nobody"
                assert "slow-reader" not in hovers[0] or flags
        check_slow_reader(hovers[-1], lag, now)
        assert box.admin_password not in "".join(hovers)


def check_slow_reader(text: str, lag: int, now: int) -> None:
    """The group stands at offset 25, whose record was written 105 minutes ago."""
    row = re.search(r"slow-reader +(\d+) +([\d,]+) records +about (\d+ h \d+ min)", text)
    assert row is not None, text
    age = round((time.time() * 1000 - now) / 1000) + 105 * 60
    assert (row[1], row[2]) == ("1", f"{lag:,}")
    assert row[3] in {render_span(age + more) for more in range(-60, 60)}, text


def test_a_broker_that_is_down_is_said(
    box: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the page and in the hover, with what to do; a topic is not called unused."""
    monkeypatch.setenv("PROOF_PASSWORD", box.admin_password)
    block = TOPIC.format(retention="7d").replace("orders", "unwatched")
    with proxying(box.brokers[0].ports.client) as proxy:
        folder = Folder(tmp_path, proxy.bootstrap, box.admin_password)
        folder.write(block)
        assert folder.apply().code == 0
    sources = replace(make_sources(tmp_path), live=LiveLooks(Inputs.read(())))
    with open_window(sources) as window:
        topic_page = f"objects/{make_id(str(Identity('kafka', 'kafka_topic', 'unwatched')))}"
        assert press(window, topic_page)[0] == 303
        page = read_page(window, topic_page)
    editor = Editor(tmp_path, None, None, "--live")
    text = (tmp_path / "main.kf.hcl").read_text("utf-8")
    hover = editor.hover("main.kf.hcl", text.replace('"unwatched" {', '"un|watched" {'))
    editor.close()
    for shown in (page, " ".join(hover.split())):
        assert f"Cannot reach Kafka at {proxy.bootstrap}: connection refused" in shown, shown
        assert "Check bootstrap_servers" in shown and "No group" not in shown


def test_the_lag_is_that_of_kafkas_own_tool(
    box: Sandbox, clients: Clients, session: KafkaSession, tmp_path: Path
) -> None:
    """`topic-readers`: the same lag, for each partition together, as kafka-consumer-groups."""
    assert clients.create("lagging", partitions=3) == ""
    for number in range(30):
        assert clients.write("lagging", "x", f"k{number}") == ""
    with slow_member(clients, "lagging", "behind", 2):
        readers = look(session, gone("lagging", "id", 3))["topic-readers"]
        printed = run_tool(
            write_admin_properties(box, tmp_path),
            CONSUMER_GROUPS,
            "--describe",
            "--group",
            "behind",
        )
    lags = [int(row["LAG"]) for row in read_tables(printed) if row.get("TOPIC") == "lagging"]
    assert len(lags) == 3 and sum(lags) == 24
    assert readers.figures["lag_records"] == 24
    assert readers.figures["members"] == 1
    assert readers.level is Level.CAUTION


def test_groups_of_newer_protocols_are_seen(
    box: Sandbox, clients: Clients, session: KafkaSession, tmp_path: Path
) -> None:
    """`topic-readers`: a group of KIP-848 with its committed lag, and a share group with the lag
    that the cluster counts, as Kafka's own tool shows it."""
    if get_choice().lacks("4.2", zookeeper=False):
        pytest.skip("share groups are complete since Kafka 4.2")
    assert clients.create("shared") == ""
    for number in range(10):
        assert clients.write("shared", "x", f"k{number}") == ""
    assert alter(session, GROUP, "jobs", {"share.auto.offset.reset": "earliest"}) == ""
    with (
        slow_member(clients, "shared", "newer", 4, **{"group.protocol": "consumer"}),
        open_consumer(clients, "jobs", "shared") as member,
    ):

        def has_begun() -> bool:
            # A share partition has a start once something in it is done with.
            for message in poll_records(member):
                member.acknowledge(message)
            text = look(session, gone("shared", "id"))["topic-readers"].text
            return re.search(r"jobs \(1 member, \d+ records", text) is not None

        wait_for(has_begun)
        for number in range(5):
            assert clients.write("shared", "x", f"late{number}") == ""
        properties = write_admin_properties(box, tmp_path)
        flags = ("--describe", "--group", "jobs")
        (row,) = read_tables(run_tool(properties, SHARE_GROUPS, *flags))
        readers = look(session, gone("shared", "id"))["topic-readers"]
    assert int(row["LAG"]) >= 5
    assert "newer (1 member, 11 records" in readers.text, readers.text
    assert f"jobs (1 member, {row['LAG']} records" in readers.text, (readers.text, row)
    assert set(readers.figures["groups"]) == {"newer", "jobs"}


def test_a_streams_group_is_a_reader(
    box: Sandbox,
    clients: Clients,
    session: KafkaSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`topic-readers`, `topic-unread-lost`: an application of Kafka Streams reads the topics of its
    tasks, also before its first commit, and its lag is that of Kafka's own tool. Its process is a
    member like any other, so `alter group` leaves the group alone until it has left."""
    if get_choice().lacks("4.1", zookeeper=False):
        pytest.skip("streams groups came with Kafka 4.1")
    assert clients.create("flowing") == ""
    for number in range(10):
        assert clients.write("flowing", "x", f"k{number}") == ""
    kind = define_messages("StreamsGroupHeartbeat", tmp_path, monkeypatch)
    folder = Folder(tmp_path, box.bootstrap, box.admin_password)
    folder.write("")
    reset = ("--reset-offsets", "--shift-by", "-3", "--all-topics")
    with open_streams_member(box, kind, "app", "flowing") as member:
        readers = look(session, gone("flowing", "id"))["topic-readers"]
        assert "1 group reads it: app (1 member, lag unknown)" in readers.text, readers.text
        member.commit({("flowing", 0): 4})
        findings = look(session, gone("flowing", "id"))
        flags = ("--describe", "--group", "app", "--offsets")
        (row,) = read_tables(
            run_tool(write_admin_properties(box, tmp_path), STREAMS_GROUPS, *flags)
        )
    readers = findings["topic-readers"]
    assert "app (1 member, 6 records" in readers.text, readers.text
    assert (readers.figures["lag_records"], row["OFFSET-LAG"]) == (6, "6")
    lost = findings["topic-unread-lost"]
    assert lost.figures["unread_records"] == ("app=6",) and lost.level is Level.DANGER

    set_back = alter_group(folder, "app", *reset)
    assert set_back.code == 0 and "3 records in 1 partition are read again" in set_back.out
    left = look(session, gone("flowing", "id"))["topic-readers"]
    assert "app (no members, 9 records" in left.text, left.text
    assert alter_group(folder, "app", "--delete").code == 0
    assert "topic-readers" not in look(session, gone("flowing", "id"))


def alter_group(folder: Folder, group: str, *words: str) -> Ended:
    """An `alter group` that nobody is asked about."""
    return folder.run("alter", "group", group, *words, "--auto-approve", "--no-color")


@pytest.mark.parametrize(
    ("topics", "groups"),
    [
        (600, 300),
        pytest.param(10_000, 2_000, marks=pytest.mark.slow("waits for a broker with 10,000 logs")),
    ],
)
def test_many_topics_and_groups_are_looked_at_in_five_seconds(
    clients: Clients, session: KafkaSession, topics: int, groups: int
) -> None:
    """`users-unseen`: of all topics that are deleted, 500 are looked at, each with the groups that
    have offsets in it, and what there was no time or no room for is said."""
    names = [f"bulk{topics}-{number:05}" for number in range(topics)]
    # A controller takes 10,000 records at once.
    for start in range(0, topics, 1_000):
        batch = [NewTopic(name, 1, 1) for name in names[start : start + 1_000]]
        for future in clients.admin.create_topics(batch).values():
            future.result(120)
    wire = session.context.wire

    def is_committed(number: int) -> bool:
        group, offsets = f"bulk{topics}-{number}", {(name, 0): 0 for name in names[number:][:2]}
        try:
            # Kafka makes its topic of groups first, and before it what it has been asked for.
            if find_coordinator(wire, group, SECONDS).code:
                return False
            answers = commit_offsets(wire, group, offsets, "1", SECONDS)
        except (RequestNotSent, RequestUnanswered):
            return False
        return not any(answer.code for answer in answers.values())

    for number in range(groups):
        eventually(partial(is_committed, number), bool, patience=240)
    began = time.monotonic()
    rows = find_consequences(session, [gone(name, "id") for name in names], BOUNDS[Extent.FAST])
    took = time.monotonic() - began
    print(f"{took:.2f} s for {topics:,} topics and {groups:,} groups")
    # A request that was begun in time may end a little later.
    assert took < 6
    (unseen,) = (finding.text for identity, finding in rows if identity is None)
    assert unseen.startswith(f"not looked at: {topics - 500:,} of {topics:,} topics"), unseen
    if "no time" not in unseen:
        readers = sum(finding.rule == "topic-readers" for _, finding in rows)
        assert readers == min(500, groups + 1)


def test_producers_and_their_last_write_are_seen(clients: Clients, session: KafkaSession) -> None:
    """`topic-writers`: an idempotent producer counts; of any other, only its newest record is
    seen."""
    for name in ("plain", "numbered"):
        assert clients.create(name) == ""
    assert clients.write("plain", "x", "k") == ""
    producer = Producer({**clients.config, "enable.idempotence": True})
    producer.produce("numbered", b"x")
    assert producer.flush(SECONDS) == 0
    plain, numbered = (
        look(session, gone(name, "id"))["topic-writers"] for name in ("plain", "numbered")
    )
    assert (plain.figures["producers"], numbered.figures["producers"]) == (0, 1)
    for finding in (plain, numbered):
        assert finding.figures["newest_record_seconds"] < 60
        assert finding.level is Level.CAUTION


def test_the_clients_of_a_lost_right_are_named(clients: Clients, session: KafkaSession) -> None:
    """`access-used-now`: brokers show the client id and the host of a member, and no principal."""
    assert clients.create("closed") == ""
    assert clients.write("closed", "x", "k") == ""
    row = AccessRow("User:ann", "Topic", "closed", "literal", ("Read",), Breadth.ONE)
    change = add_findings(
        Change(Identity("kafka", "kafka_acl", "x"), "kafka_acl.x", Action.DELETE),
        Finding("access-lost", Level.CAUTION, Harm.ACCESS_LOST, "text", access=(row,)),
    )
    assert "access-used-now" not in look(session, change)
    with slow_member(clients, "closed", "reader", 0):
        text = look(session, change)["access-used-now"].text
    assert "reader (slow-app at 127.0.0.1)" in text, text
    assert "admin" not in text


def test_what_may_not_be_seen_is_said(
    box: Sandbox, clients: Clients, session: KafkaSession
) -> None:
    """`users-unseen`: without Describe on the group and Read on the topic, nobody is called
    absent."""
    assert clients.create("shown") == ""
    assert clients.write("shown", "x", "k") == ""
    with new_login(box) as user, slow_member(clients, "shown", "unseen", 0):
        grant(box, user, "Topic", "shown", "DESCRIBE", "DELETE")
        limited = connect(box, user)
        findings = look(limited, gone("shown", "id"))
        limited.close()
        whole = look(session, gone("shown", "id"))
    assert "topic-readers" in whole and "users-unseen" not in whole
    assert "topic-readers" not in findings
    assert "producers" not in findings["topic-writers"].figures
    text = findings["users-unseen"].text
    assert "groups that this principal may not describe" in text, text
    assert "the producers of shown" in text, text


GROWN = """
resource "kafka_topic" "grown" {{
  name               = "{name}"
  partitions         = {partitions}
  replication_factor = 1
  config             = {{ "cleanup.policy" = "{policy}" }}
}}
"""
SECRET_VALUE = b"nobody may read this value"


def write_records(clients: Clients, name: str, key: bytes | None, **config: str) -> None:
    """A few records to each of two partitions."""
    producer = Producer({**clients.config, "linger.ms": 50, **config})
    if "transactional.id" in config:
        producer.init_transactions(SECONDS)
        producer.begin_transaction()
    for number in range(10):
        producer.produce(name, SECRET_VALUE, key=key, partition=number % 2)
    if "transactional.id" in config:
        # What the log ends with is a marker, which is no record.
        producer.commit_transaction(SECONDS)
    assert producer.flush(SECONDS) == 0


def sample(session: KafkaSession, *names: str) -> dict[str, list[str]]:
    """Topic -> what is said about its keys."""
    changes = []
    for name in names:
        before, after = (topic(name, partitions=count, replication_factor=1) for count in (2, 4))
        item = make_change(Action.UPDATE, before, after)
        changes.append(add_findings(item, PARTITIONS_ADDED.find("2 → 4")))
    bounds = replace(BOUNDS[Extent.FULL], sample=True)
    texts: dict[str, list[str]] = {}
    for identity, finding in find_consequences(session, changes, bounds):
        if finding.rule in ("topic-keys-sampled", "users-unseen"):
            texts.setdefault(identity.key if identity else "", []).append(finding.text)
    return texts


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_sampled_records_have_keys_or_none(
    clients: Clients, session: KafkaSession, codec: str
) -> None:
    """`topic-keys-sampled`: as producers wrote them, with every compression of Kafka, also where a
    marker of a transaction ends the log."""
    module = {"snappy": "snappy", "lz4": "lz4", "zstd": "zstandard"}.get(codec, "zlib")
    keyed, bare, marked = (f"{kind}-{codec}" for kind in ("keyed", "bare", "marked"))
    for name in (keyed, bare, marked):
        assert clients.create(name, partitions=2) == ""
    write_records(clients, keyed, b"k" * 100, **{"compression.type": codec})
    write_records(clients, bare, None, **{"compression.type": codec})
    transaction = {"transactional.id": f"sampled-{codec}", "compression.type": codec}
    write_records(clients, marked, b"key", **transaction)
    texts = sample(session, keyed, bare, marked)
    if find_spec(module) is None:
        [gap] = texts[""]
        assert f"to read records compressed with {codec}, run " in gap
        return
    assert texts == {
        keyed: ["keys exist: 2 of 2 sampled records have one"],
        bare: ["no keys in 2 sampled records"],
        marked: ["keys exist: 2 of 2 sampled records have one"],
    }


def test_a_codec_that_is_missing_is_named(
    clients: Clients, session: KafkaSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the command that installs it; other topics are sampled all the same."""
    monkeypatch.setitem(sys.modules, "zstandard", None)
    for name, codec in (("packed", "zstd"), ("open", "gzip")):
        assert clients.create(name, partitions=2) == ""
        write_records(clients, name, b"k", **{"compression.type": codec})
    texts = sample(session, "packed", "open")
    assert texts["open"] == ["keys exist: 2 of 2 sampled records have one"]
    assert "packed" not in texts
    assert "the keys of packed: to read records compressed with zstd, run " in texts[""][0]


def test_an_empty_topic_has_nothing_to_sample(clients: Clients, session: KafkaSession) -> None:
    """It is said, because it is no proof that there will be no keys."""
    assert clients.create("blank", partitions=2) == ""
    assert sample(session, "blank") == {"blank": ["there is no record to sample"]}


def test_a_sample_needs_the_right_to_read(
    box: Sandbox, clients: Clients, session: KafkaSession
) -> None:
    """A login without Read on the topic learns which right it lacks, and nothing else."""
    assert clients.create("guarded", partitions=2) == ""
    write_records(clients, "guarded", b"k")
    with new_login(box) as user:
        grant(box, user, "Topic", "guarded", "DESCRIBE")
        reader = connect(box, user)
        texts = sample(reader, "guarded")
        reader.close()
    assert texts.keys() == {""}
    assert "the keys of guarded: a right on the topic is missing" in texts[""][0]


def test_a_plan_samples_only_if_asked(box: Sandbox, clients: Clients, tmp_path: Path) -> None:
    """Without --sample the plan says how to find out; a record is nowhere in what is written."""
    folder = Folder(tmp_path, box.bootstrap, box.admin_password)
    folder.write(GROWN.format(name="grown", partitions=2, policy="delete"))
    assert folder.apply().code == 0
    write_records(clients, "grown", b"a-key-of-somebody")
    folder.write(GROWN.format(name="grown", partitions=4, policy="delete"))
    usual = folder.run("plan", "--json")
    hint = collect_findings(usual.out)["topic-keys-sampled"]
    assert (hint["level"], hint["text"]) == (
        "note",
        "whether its records have keys is unknown: `plan --sample` reads one of each partition",
    )
    saved = tmp_path / "saved.kfplan"
    asked = folder.run("plan", "--json", "--sample", "--out", str(saved))
    finding = collect_findings(asked.out)["topic-keys-sampled"]
    assert (finding["level"], finding["text"]) == (
        "caution",
        "keys exist: 2 of 2 sampled records have one",
    )
    assert finding["figures"] == {"sampled_records": 2, "records_with_key": 2}
    for written in (asked.out, saved.read_text("utf-8")):
        assert SECRET_VALUE.decode() not in written
        assert "a-key-of-somebody" not in written
    refused = folder.run("plan", "--sample", "--impact", "off")
    assert refused.code == 1
    assert "--sample cannot be combined with --impact off" in refused.out


def test_a_compacted_topic_is_not_read(box: Sandbox, tmp_path: Path) -> None:
    """It has keys, because brokers refuse records without one there."""
    folder = Folder(tmp_path, box.bootstrap, box.admin_password)
    folder.write(GROWN.format(name="compacted-keys", partitions=2, policy="compact"))
    assert folder.apply().code == 0
    folder.write(GROWN.format(name="compacted-keys", partitions=4, policy="compact"))
    for flags in ((), ("--sample",)):
        findings = collect_findings(folder.run("plan", "--json", *flags).out)
        text = findings["topic-keys-sampled"]["text"]
        assert text.startswith("keys exist: the topic is compacted")
