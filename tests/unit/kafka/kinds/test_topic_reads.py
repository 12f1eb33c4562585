"""Topics that one broker shows and another one does not know: each of them applies the metadata
log by itself."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from types import SimpleNamespace
from typing import Any

import pytest

from kafkaform.core.resource import Absent, Failed, Identity, Observed, Reading
from kafkaform_kafka.kinds.context import LAG
from kafkaform_kafka.kinds.topic import requests as reads
from kafkaform_kafka.wire.answers import ConfigEntry, ItemAnswer
from kafkaform_kafka.wire.client import RequestNotSent
from kafkaform_kafka.wire.topics import TopicRow

from ....kit.kafka.changes import FACTS

NEVER = math.inf
OURS = (ConfigEntry("retention.ms", "1000", 1),)
Shown = tuple[float, float]
"""From when until when a broker shows a topic, in seconds."""
ALWAYS, NOT_AT_ALL = (0.0, NEVER), (NEVER, NEVER)


def name(label: str) -> Identity:
    return Identity("kafka", "kafka_topic", label)


@dataclass
class Brokers:
    """views: broker -> topic -> when it shows it; turns: who gets the requests that any broker
    may answer; dead: brokers that the cluster still lists; asked: API and broker of each request.
    It is its own clock, which moves only when somebody sleeps."""

    views: Mapping[str, Mapping[str, Shown]]
    turns: Iterator[str]
    dead: Sequence[str] = ()
    asked: list[tuple[str, str]] = field(default_factory=list)
    now: float = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def shows(self, broker: str, topic: str) -> bool:
        begin, end = self.views[broker].get(topic, NOT_AT_ALL)
        return begin <= self.now < end

    def turn(self, api: str, node: str | None) -> str:
        broker = node or next(self.turns)
        self.asked.append((api, broker))
        if broker in self.dead:
            raise RequestNotSent("connection refused")
        return broker

    def list_topics(
        self, wire: Any, names: Sequence[str], timeout: float, *, node: str | None = None
    ) -> Sequence[TopicRow]:
        broker = self.turn("Metadata", node)
        return [
            TopicRow(one, 0, "id", replicas=((1,),), in_sync=((1,),), leaders=(1,))
            if self.shows(broker, one)
            else TopicRow(one, reads.UNKNOWN_TOPIC)
            for one in names
        ]

    def describe_own(
        self, wire: Any, names: Sequence[str], timeout: float, node: str | None = None
    ) -> Mapping[str, ItemAnswer]:
        broker = self.turn("DescribeConfigs", node)
        missing = ItemAnswer(reads.UNKNOWN_TOPIC, "")
        return {
            one: ItemAnswer(0, configs=OURS) if self.shows(broker, one) else missing
            for one in names
        }


def read(monkeypatch: pytest.MonkeyPatch, brokers: Brokers, *labels: str, **more: Any) -> Any:
    """The readings of these topics, or of `t`."""
    monkeypatch.setattr(reads, "list_topics", brokers.list_topics)
    monkeypatch.setattr(reads, "describe_own", brokers.describe_own)
    monkeypatch.setattr(reads, "describe_configs", lambda *_, **__: {})
    monkeypatch.setattr(reads, "time", brokers)
    monkeypatch.setattr(reads, "list_moves", lambda context, node=None: {})
    monkeypatch.setattr(reads, "live_nodes", lambda context: tuple(brokers.views))
    context: Any = SimpleNamespace(
        wire=None, timeout=1.0, facts=FACTS, settings=None, instance="kafka"
    )
    ids = [name(label) for label in labels or ("t",)]
    readings = more.get("by", reads.read_topics)(context, ids, more.get("node"))
    assert list(readings) == ids
    return readings if labels else readings[name("t")]


def two(one: Shown, other: Shown, turns: str = "12") -> Brokers:
    """Two brokers that show the topic `t` at these times."""
    return Brokers({"1": {"t": one}, "2": {"t": other}}, cycle(turns))


def is_whole(reading: Reading) -> bool:
    """Whether it is the topic with its configs."""
    return isinstance(reading, Observed) and reading.attributes["config"] == {
        "retention.ms": "1000"
    }


@pytest.mark.parametrize("turns", ["12", "1222", "122212", "121221"])
def test_a_new_topic_is_read_once_all_brokers_know_it(
    monkeypatch: pytest.MonkeyPatch, turns: str
) -> None:
    """Whoever answers in between: that a broker which lags behind does not know it yet proves no
    absence."""
    brokers = two(ALWAYS, (0.5, NEVER), turns)
    assert is_whole(read(monkeypatch, brokers))
    assert 0 < brokers.now <= 1


@pytest.mark.parametrize("turns", ["12", "1222"])
def test_a_deleted_topic_is_gone_once_no_broker_shows_it(
    monkeypatch: pytest.MonkeyPatch, turns: str
) -> None:
    """The broker that does not know it any more is not believed before the other one agrees."""
    brokers = two((0, 0.5), NOT_AT_ALL, turns)
    assert read(monkeypatch, brokers) == Absent(name("t"))
    assert 0.5 <= brokers.now <= 1


def test_brokers_that_never_agree_are_a_failed_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a few seconds the reading says what the broker said, and to wait."""
    brokers = two(ALWAYS, NOT_AT_ALL)
    reading = read(monkeypatch, brokers)
    assert isinstance(reading, Failed)
    assert (reading.fault.code, reading.fault.where) == (
        "UNKNOWN_TOPIC_OR_PARTITION",
        "DescribeConfigs",
    )
    assert "wait if it was created a moment ago" in reading.fault.advice
    assert LAG <= brokers.now < LAG + 1


def test_a_broker_that_does_not_answer_proves_no_absence(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may show what the others do not know any more."""
    views = {"1": {"t": (0.0, 0.05)}, "2": {}, "3": {}}
    brokers = Brokers(views, cycle("12"), dead="3")
    assert isinstance(read(monkeypatch, brokers), Failed)


def test_nothing_is_asked_twice_if_nothing_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """One request of each kind, and no wait; also for a topic that no broker knows."""
    brokers = Brokers({"1": {"t": ALWAYS}, "2": {"t": ALWAYS}}, cycle("12"))
    readings = read(monkeypatch, brokers, "none", "t")
    assert readings[name("none")] == Absent(name("none")) and is_whole(readings[name("t")])
    assert (brokers.asked, brokers.now) == ([("Metadata", "1"), ("DescribeConfigs", "2")], 0)


def test_whether_a_topic_exists_takes_one_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its configs are not asked for: a broker needs long for them."""
    brokers = Brokers({"1": {"t": ALWAYS}}, cycle("1"))
    readings = read(monkeypatch, brokers, "none", "t", by=reads.find_topics)
    seen = readings[name("t")]
    assert readings[name("none")] == Absent(name("none"))
    assert isinstance(seen, Observed) and seen.incarnation == "id"
    assert brokers.asked == [("Metadata", "1")]


def test_only_what_is_disputed_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two topics the one on which all agree costs nothing more."""
    asked: list[Sequence[str]] = []
    views = {"1": {"t": ALWAYS, "old": ALWAYS}, "2": {"t": (0.5, NEVER), "old": ALWAYS}}
    brokers = Brokers(views, cycle("12"))
    answer = brokers.list_topics
    monkeypatch.setattr(
        brokers,
        "list_topics",
        lambda w, names, *_, **m: asked.append(names) or answer(w, names, 1, **m),
    )
    readings = read(monkeypatch, brokers, "old", "t")
    assert all(map(is_whole, readings.values()))
    assert asked[0] == ["old", "t"] and {*map(tuple, asked[1:])} == {("t",)}


def test_one_broker_is_asked_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A read at a broker says what this one shows, also if it is deleted between two requests."""
    brokers = two(ALWAYS, (0, 0.05))
    described = brokers.describe_own

    def late(*given: Any) -> Mapping[str, ItemAnswer]:
        brokers.now += 0.1
        return described(*given)

    monkeypatch.setattr(brokers, "describe_own", late)
    assert read(monkeypatch, brokers, node="2") == Absent(name("t"))
    assert {broker for _, broker in brokers.asked} == {"2"}
