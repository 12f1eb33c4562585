"""Disks and growth as brokers report them, and what a look at them asks."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from kafkaform.core.change import Action
from kafkaform.core.resource import Fault, FaultClass, Identity
from kafkaform_kafka.capacity import readings
from kafkaform_kafka.capacity.forecast import TopicSettings
from kafkaform_kafka.capacity.projection import DAY_MS, Disk
from kafkaform_kafka.capacity.readings import (
    compute_rate,
    read_disks,
    read_forecast,
    read_growth,
    read_settings,
)
from kafkaform_kafka.wire.answers import ConfigEntry, ItemAnswer
from kafkaform_kafka.wire.cluster import LogDirectories, LogDirectory, LogSize
from kafkaform_kafka.wire.topics import TopicRow
from kafkaform_kafka.wire.usage import EARLIEST, EARLIEST_LOCAL, LATEST, DatedOffset

from ....kit.kafka.changes import FACTS, change, topic

GIB = 1 << 30
HOUR_MS = 3_600_000
SILENT = Fault("SILENT", "it does not answer", FaultClass.NOT_APPLIED)
ORDERS = TopicRow("orders", 0, replicas=((1, 2),), in_sync=((1, 2),), leaders=(1,))
Answer = Callable[..., Any]


class FakeAsker:
    """Answers requests from a table, and counts them."""

    def __init__(self, **answers: Any) -> None:
        """answers: API -> the answer, or a function of the arguments of its request."""
        self.answers = answers
        self.asked: list[str] = []
        self.context: Any = SimpleNamespace(facts=FACTS)

    def ask(self, api: str, call: object, *arguments: Any, node: str | None = None) -> Any:
        self.asked.append(api)
        answer = self.answers[api]
        return answer(*arguments) if callable(answer) else answer


def make_directory(path: str, usable: int | None, *logs: LogSize, **more: Any) -> LogDirectory:
    """usable: of 1,000 bytes."""
    total = None if usable is None else 1000 * GIB
    return LogDirectory(path, more.get("code", 0), total, usable, more.get("cordoned", False), logs)


def log(topic: str, number: int, size: int, *, future: bool = False) -> LogSize:
    return LogSize(topic, number, "1", size, future)


def test_directories_of_one_volume_share_its_room() -> None:
    """Two that report the same bytes are on one disk, whose room counts once."""
    rows = (
        make_directory("/a", 400 * GIB, log("t", 0, 5), log("t", 1, 7, future=True)),
        make_directory("/b", 400 * GIB - 4096, log("t", 1, 9)),
        make_directory("/c", 300 * GIB, cordoned=True),
    )
    reading = read_disks(FakeAsker(DescribeLogDirs=LogDirectories(0, rows)), [1])
    assert reading.disks == (
        Disk(
            1,
            ("/a", "/b"),
            1000 * GIB,
            400 * GIB,
            {("t", 0): 5, ("t", 1): 9},
            {("t", 1): 7},
            fewest=1,
        ),
        Disk(1, ("/c",), 1000 * GIB, 300 * GIB, {}, cordoned=True),
    )


def test_disks_of_unknown_size_are_never_the_same() -> None:
    """Brokers before Kafka 3.3 report -1 for all of them."""
    rows = (make_directory("/a", None, log("t", 0, 5)), make_directory("/b", None))
    reading = read_disks(FakeAsker(DescribeLogDirs=LogDirectories(0, rows)), [1])
    assert [(d.directories, d.used, d.stored) for d in reading.disks] == [
        (("/a",), None, 5),
        (("/b",), None, 0),
    ]


def test_what_cannot_be_read_is_no_empty_disk() -> None:
    """A broker that is silent, one that refuses, and a disk that failed."""

    def answer(_: None, node: str) -> LogDirectories | Fault:
        failed = make_directory("/a", None, code=56)
        answers: dict[str, LogDirectories | Fault] = {
            "1": SILENT,
            "2": LogDirectories(31, ()),
            "3": LogDirectories(0, (failed, make_directory("/b", 5))),
        }
        return answers[node]

    reading = read_disks(FakeAsker(DescribeLogDirs=answer), [3, 1, 2])
    assert reading.faults[1] == SILENT
    assert reading.faults[2].kind is FaultClass.PERMISSION
    assert reading.failed == {3: ("/a",)}
    assert [disk.directories for disk in reading.disks] == [("/b",)]


NOW = 10 * DAY_MS


@pytest.mark.parametrize(
    ("offsets", "first", "rate"),
    [
        # 1,000 records of 10 bytes; 100 of them within the last day.
        ((1000, 0, 0), DatedOffset(900, NOW - DAY_MS + 5), 1000),
        # Written for 6 hours only, all of it.
        ((1000, 0, 0), DatedOffset(0, NOW - 6 * HOUR_MS), 40_000),
        # Retention deletes what is older than 30 minutes.
        ((1000, 500, 500), DatedOffset(500, NOW - HOUR_MS // 2), 480_000),
        # A new topic: 10 minutes say nothing about a day.
        ((1000, 0, 0), DatedOffset(0, NOW - HOUR_MS // 6), None),
        ((1000, 0, 0), DatedOffset(0, None), None),
        # Nothing within a day, and nothing at all.
        ((1000, 0, 0), DatedOffset(-1, None), 0),
        ((1000, 1000, 1000), DatedOffset(-1, None), 0),
        # With remote storage, the bytes on disk are those of the local records.
        ((1000, 0, 500), DatedOffset(400, NOW - DAY_MS + 5), 12_000),
    ],
)
def test_a_rate_is_what_came_within_a_day(
    offsets: tuple[int, int, int], first: DatedOffset, rate: float | None
) -> None:
    """Records times the bytes of a record; unknown if they cover too short a time."""
    log_of_partition = readings._Log(*offsets)
    records = max(1, offsets[0] - offsets[2])
    size = 10 * records if offsets[2] == offsets[1] == 0 else 10_000
    found = compute_rate(size, log_of_partition, first, NOW)
    assert found == (None if rate is None else pytest.approx(rate))


def test_growth_of_tiered_topics_needs_their_local_start() -> None:
    """Other topics are not asked for it, so that brokers before Kafka 3.6 answer."""
    places = [("orders", 0), ("tiered", 0)]
    asked: list[Mapping[tuple[str, int], int]] = []

    def answer(times: Mapping[tuple[str, int], int], node: str) -> Mapping[Any, DatedOffset]:
        asked.append(times)
        table = {LATEST: 1000, EARLIEST: 0, EARLIEST_LOCAL: 800}
        return {
            place: DatedOffset(table.get(at, 900), None if at in table else at + 5)
            for place, at in times.items()
        }

    rows = [ORDERS, TopicRow("tiered", 0, replicas=((1,),), in_sync=((1,),), leaders=(1,))]
    values = {"cleanup.policy": "delete", "retention.ms": "5", "segment.bytes": "1"}
    settings = {
        name: TopicSettings({**values, "remote.storage.enable": remote}, frozenset(), frozenset())
        for name, remote in (("orders", "false"), ("tiered", "true"))
    }
    growth = read_growth(FakeAsker(ListOffsets=answer), rows, settings, dict.fromkeys(places, 2000))
    assert [growth[place].rate for place in places] == [pytest.approx(200), pytest.approx(1000)]
    [local] = [times for times in asked if EARLIEST_LOCAL in times.values()]
    assert local == {("tiered", 0): EARLIEST_LOCAL}
    silent = read_growth(FakeAsker(ListOffsets=SILENT), rows, settings, {})
    assert [silent[place].rate for place in places] == [None, None]


def make_answer(_: str, names: Sequence[str]) -> Mapping[str, ItemAnswer]:
    entries = (
        ConfigEntry("cleanup.policy", "delete", 5),
        ConfigEntry("retention.ms", str(7 * DAY_MS), 1),
        ConfigEntry("retention.bytes", "-1", 2),
        ConfigEntry("segment.bytes", "1024", 5),
        ConfigEntry("segment.ms", str(7 * DAY_MS), 5),
    )
    return {name: ItemAnswer(0, configs=entries) for name in names}


def test_settings_know_where_they_come_from() -> None:
    """An override of the topic, or one of a broker, is not changed by the cluster's default."""
    settings = read_settings(FakeAsker(DescribeConfigs=make_answer), ["orders"])
    assert settings["orders"].own == {"retention.ms"}
    assert settings["orders"].of_broker == {"retention.bytes"}
    assert not read_settings(FakeAsker(DescribeConfigs=SILENT), ["orders"])


LONGER = change(
    Action.UPDATE,
    topic(partitions=1, config={"retention.ms": 7 * DAY_MS}),
    topic(partitions=1, config={"retention.ms": 30 * DAY_MS}),
)


def make_cluster(*names: str) -> FakeAsker:
    """Brokers 1 and 2 with topics of 10 GiB, each of which gets 1.5 GiB a day."""
    now = int(time.time() * 1000)

    def list_offsets(times: Mapping[tuple[str, int], int], _: str) -> Mapping[Any, DatedOffset]:
        table = {LATEST: 1000, EARLIEST: 0}
        return {
            place: DatedOffset(table.get(at, 850), None if at in table else now - DAY_MS)
            for place, at in times.items()
        }

    logs = tuple(log(name, 0, 10 * GIB - place) for place, name in enumerate(names))
    row = ORDERS
    return FakeAsker(
        Metadata=tuple(
            TopicRow(name, 0, replicas=row.replicas, in_sync=row.in_sync, leaders=row.leaders)
            for name in names
        ),
        DescribeLogDirs=LogDirectories(0, (make_directory("/a", 20 * GIB, *logs),)),
        DescribeConfigs=make_answer,
        ListOffsets=list_offsets,
    )


def test_a_look_at_two_brokers() -> None:
    """The topic grows from 10 to 45 GiB on each of its brokers, and no third one is asked."""
    asker = make_cluster("orders")
    forecast = read_forecast(asker, [LONGER], None)
    assert forecast is not None
    shares = forecast.shares[Identity("kafka", "kafka_topic", "orders")]
    assert [share.projection.disk.broker for share in shares] == [1, 2]
    assert shares[0].added == pytest.approx(35 * GIB, rel=0.001)
    assert shares[0].projection.days == pytest.approx(13.33, rel=0.01)
    assert asker.asked.count("DescribeLogDirs") == 2


def test_plans_that_need_no_room_ask_nothing() -> None:
    """Not one request more."""
    asker = make_cluster("orders")
    shorter = change(
        Action.UPDATE,
        topic(config={"retention.ms": 7 * DAY_MS}),
        topic(config={"retention.ms": DAY_MS}),
    )
    assert read_forecast(asker, [shorter, change(Action.DELETE, topic(), None)], None) is None
    assert asker.asked == []


def test_small_topics_beyond_the_limit_count_as_they_are() -> None:
    """The changed topic comes first, then the largest; what is left out is said."""
    forecast = read_forecast(make_cluster("a", "b", "c", "orders"), [LONGER], 2)
    assert forecast is not None
    assert forecast.gaps == (
        "how fast 2 smaller topics on these disks grow: they count as they are",
    )
    [share, _] = forecast.shares[Identity("kafka", "kafka_topic", "orders")]
    # Of the other three, only the largest grows.
    assert share.projection.growth == pytest.approx(3 * GIB, rel=0.01)


def test_a_silent_cluster_is_said() -> None:
    """Nothing is concluded from it."""
    asker = make_cluster("orders")
    asker.answers["Metadata"] = SILENT
    forecast = read_forecast(asker, [LONGER], None)
    assert forecast is not None
    assert (forecast.shares, len(forecast.gaps)) == ({}, 1)
    asker = make_cluster("orders")
    asker.answers["DescribeLogDirs"] = SILENT
    forecast = read_forecast(asker, [LONGER], None)
    assert forecast is not None
    assert forecast.gaps == ("the disks of broker 1, 2: it does not answer",)
