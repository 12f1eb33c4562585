"""Data sources of the simulated cluster, under mishaps that a real one has too."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafkaform.core.errors import KafkaformError
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform.provider.contract import Session
from kafkaform.provider.testing.workbench import Bench
from kafkaform_kafka.memory import (
    MemoryProvider,
    Mishap,
    SimulatedCluster,
    lost_reply,
    not_sent,
    refused_items,
)

NOT_CONTROLLER = 41


def as_user(cluster: SimulatedCluster, name: str) -> Session:
    return MemoryProvider(cluster, name).open("kafka", EMPTY, {})


def message(session: Session, data: str, name: str | None) -> str:
    with pytest.raises(KafkaformError) as caught:
        session.query(data, FrozenMap(name=name))
    assert caught.value.advice
    return caught.value.message


def names(session: Session, pattern: str | None = None) -> list[str]:
    answer = session.query("kafka_topics", FrozenMap(name=pattern))
    assert answer["complete"] is False
    return [topic["name"] for topic in answer["list"]]


def test_topics_are_found_by_pattern(bench: Bench, cluster: SimulatedCluster) -> None:
    """Patterns look at the whole name, with case."""
    for name in ("shop.orders", "shop.returns", "Shop.x", "workshop"):
        cluster.outside.create(name)
    assert names(bench.session, "shop.*") == ["shop.orders", "shop.returns"]
    assert names(bench.session, "*shop*") == ["shop.orders", "shop.returns", "workshop"]
    assert names(bench.session) == ["Shop.x", "shop.orders", "shop.returns", "workshop"]


def test_a_topic_that_goes_meanwhile_is_left_out(bench: Bench, cluster: SimulatedCluster) -> None:
    """Between the list and the look at the configs somebody deletes one of two topics."""
    cluster.outside.create("kept")
    cluster.outside.create("gone")
    look = cluster.look

    def deleting(api: str, node: int | None) -> object:
        if api == "DescribeTopics":
            cluster.outside.delete("gone")
        return look(api, node)

    vars(cluster)["look"] = deleting
    assert names(bench.session) == ["kept"]


def test_rights_decide_what_is_listed_and_told(cluster: SimulatedCluster) -> None:
    """Seen without configs: in the list with null, refused by name with the missing right."""
    cluster.outside.create("orders", config={"flush.ms": "1"})
    cluster.outside.create("hidden")
    cluster.grant("reader", ("Describe", "topic:orders"))
    session = as_user(cluster, "reader")
    (topic,) = session.query("kafka_topics", FrozenMap(name=None))["list"]
    assert (topic["name"], topic["config"]) == ("orders", None)
    assert "DescribeConfigs on Topic orders is missing" in message(session, "kafka_topic", "orders")
    assert "Describe on Topic hidden is missing" in message(session, "kafka_topic", "hidden")
    cluster.grant("reader", ("DescribeConfigs", "topic:orders"))
    answer = as_user(cluster, "reader").query("kafka_topic", FrozenMap(name="orders"))
    assert answer["config"] == {"flush.ms": "1"}


@pytest.mark.parametrize(
    ("api", "data"),
    [
        ("DescribeTopics", "kafka_topic"),
        ("DescribeTopics", "kafka_topics"),
        ("ListTopics", "kafka_topics"),
        ("DescribeCluster", "kafka_cluster"),
    ],
)
@pytest.mark.parametrize("mishap", [not_sent, lost_reply], ids=["not sent", "lost"])
def test_a_read_that_failed_is_no_absence(
    bench: Bench, cluster: SimulatedCluster, api: str, data: str, mishap: Callable[[], Mishap]
) -> None:
    """No answer and a broken connection are told; the next query answers."""
    cluster.outside.create("orders")
    cluster.faults.schedule(mishap(), api)
    assert "cannot be read" in message(bench.session, data, "orders")
    assert bench.session.query(data, FrozenMap(name="orders"))


def test_an_error_for_one_topic_fails_the_list(bench: Bench, cluster: SimulatedCluster) -> None:
    """A list without the topic that could not be read would claim that it is not there."""
    for name in ("a", "b"):
        cluster.outside.create(name)
    cluster.faults.schedule(refused_items(NOT_CONTROLLER, names="b"), "DescribeTopics")
    assert 'topic "b" cannot be read' in message(bench.session, "kafka_topics", None)


def test_the_cluster_tells_its_live_brokers(cluster: SimulatedCluster) -> None:
    """A broker that is down is not listed; the controller is for those who may see it."""
    cluster.stop(1)
    cluster.grant("nobody")
    answer = as_user(cluster, "admin").query("kafka_cluster", EMPTY)
    assert [broker["id"] for broker in answer["brokers"]] == [2, 3]
    assert (answer["cluster_id"], answer["controller_id"]) == ("simulated", 2)
    assert as_user(cluster, "nobody").query("kafka_cluster", EMPTY)["controller_id"] is None
