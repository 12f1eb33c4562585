"""What a plan adds to a cluster: expected rates, replicas against limits, and what it costs."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest
from msgspec.structs import replace

from kafkaform.core.change import Action, Change
from kafkaform.core.finding import Finding, Level
from kafkaform.core.resource import Facts, Identity
from kafkaform.core.value import FrozenMap
from kafkaform_kafka.capacity.amounts import compute_costs, count_amounts, needs_count
from kafkaform_kafka.capacity.forecast import Forecast, ReplicaCount, make_forecast, needs_room
from kafkaform_kafka.impact.inquiry import Inquiry
from kafkaform_kafka.impact.looks import look_at_disks
from kafkaform_kafka.protocol.rates import ReplicaLimits
from kafkaform_kafka.rules.looks import find_costs, find_exceeded_limits, find_full_disks

from ....kit.kafka.changes import FACTS, change, facts, topic
from .test_forecast import CUT, GIB, LONGER, MORE, ORDERS, ROWS, THREE, find_added
from .test_forecast import make_cluster as make_world
from .test_readings import make_cluster

NEW = Identity("kafka", "kafka_topic", "new")
DELETED = change(Action.DELETE, topic(replica_assignment=ROWS), None)
PRICES = {"currency": "EUR", "topic": None, "partition": Decimal("0.25"), "replica": 1}
GIGABYTES = FrozenMap(PRICES, gigabyte=Decimal("0.02"))
COUNTED_ONLY = FrozenMap(PRICES, gigabyte=None)


def create(rate: str | None, **attributes: Any) -> Change:
    expectations = FrozenMap() if rate is None else FrozenMap(expected_rate=rate)
    made = change(Action.CREATE, None, topic("new", **attributes))
    return replace(made, expectations=expectations)


def costs_of(*changes: Change, rates: FrozenMap = GIGABYTES) -> list[tuple[Any, Finding]]:
    own_facts = facts(rates=rates)
    forecast = make_forecast(make_world({"orders": ROWS}), changes, own_facts)
    return list(find_costs(compute_costs(forecast, changes, own_facts), "EUR"))


def test_a_new_topic_needs_what_its_block_expects() -> None:
    """10 GiB a day for 7 days, in two copies on three disks; an unlimited one fills them."""
    a_day = create(f"{10 * GIB // 86_400}")
    assert needs_room(a_day, FACTS)
    forecast = make_forecast(make_world({"orders": ROWS}), [a_day], FACTS)
    added = find_added(forecast, NEW)
    # Each of the three partitions keeps a segment more than seven days of its third: 1 GiB.
    assert sum(added.values()) == pytest.approx(2 * (70 + 3), rel=0.001)
    assert {round(amount) for amount in added.values()} == {49}
    endless = create("50MiB/s", config={"retention.ms": -1})
    [(_, finding)] = find_full_disks(make_forecast(make_world({"orders": ROWS}), [endless], FACTS))
    assert "full in about 3 hours at the expected rates" in finding.text


def test_without_an_expected_rate_nothing_is_said() -> None:
    """Nobody knows how much the topic will get, and it is not guessed."""
    forecast = make_forecast(make_world({"orders": ROWS}), [create(None)], FACTS)
    assert (forecast.shares, forecast.unknown) == ({}, {})


def test_more_partitions_share_what_the_block_expects() -> None:
    """60 GiB a day, where three partitions get 30 today, so that six get 10 each."""
    more = replace(MORE, expectations=FrozenMap(expected_rate=f"{60 * GIB // 86_400}"))
    forecast = make_forecast(make_world({"orders": ROWS}), [more], FACTS)
    # The old partitions keep their 70 GiB, the new ones get as much.
    assert sum(find_added(forecast).values()) == pytest.approx(420, abs=1)
    # A topic that is not written yet: half of what it is expected to get goes to the new ones.
    empty = make_forecast(make_world({"orders": ROWS}, size=0, rate=0), [more], FACTS)
    assert sum(find_added(empty).values()) == pytest.approx(420, abs=1)


@pytest.mark.parametrize(
    ("item", "amounts"),
    [
        (create(None), (1, 3, 6)),
        (create(None, partitions=4, replication_factor=1), (1, 4, 4)),
        (create(None, replica_assignment=((1, 2, 3), (1, 2, 3))), (1, 3, 8)),
        (DELETED, (-1, -3, -6)),
        (MORE, (0, 3, 6)),
        (THREE, (0, 0, 3)),
        (LONGER, (0, 0, 0)),
    ],
)
def test_what_changes_add(item: Change, amounts: tuple[int, int, int]) -> None:
    """Topics, partitions and replicas; a row of replicas counts more than the factor."""
    assert tuple(count_amounts(item, FACTS).values()) == amounts


def test_numbers_that_the_cluster_chooses_are_not_guessed() -> None:
    """Nothing is said about them."""
    for unknown in ({"partitions": None}, {"replication_factor": None}):
        assert count_amounts(create(None, **unknown), FACTS) == {}


def test_each_change_says_what_it_costs_and_the_plan_the_sum() -> None:
    """Bytes are those of all replicas once the change has had its full effect."""
    created = create(f"{10 * GIB // 86_400}", config={"segment.bytes": 1024})
    [(first, cost), (second, saving), (whole, total)] = costs_of(created, DELETED)
    assert (first, second, whole) == (NEW, ORDERS, None)
    assert cost.text == (
        "it costs about 9.76 EUR more a month (+3 partitions, +6 replicas, +140 GiB)"
    )
    assert saving.text == (
        "it saves about 15.77 EUR a month (-3 partitions, -6 replicas, -420 GiB)"
    )
    assert saving.figures == {
        "partitions": -3,
        "replicas": -6,
        "bytes": -420 * GIB,
        "monthly_cost": Decimal("-15.77"),
        "currency": "EUR",
    }
    assert total.text == "this plan saves about 6.01 EUR a month (-280 GiB)"
    assert {finding.level for finding in (cost, saving, total)} == {Level.NOTE}


def test_a_retention_costs_or_saves_bytes() -> None:
    """Each of six replicas keeps 230 GiB more, or 60 GiB less."""
    [(_, longer)] = costs_of(LONGER)
    assert longer.figures["bytes"] == pytest.approx(6 * 230 * GIB, rel=0.001)
    [(_, shorter)] = costs_of(CUT)
    assert shorter.figures["bytes"] == pytest.approx(-6 * 60 * GIB, rel=0.001)


def test_bytes_that_cannot_be_counted_are_left_out_with_the_reason() -> None:
    """The rest is counted all the same."""
    [(_, unknown)] = costs_of(create(None))
    assert unknown.text == (
        "it costs about 6.75 EUR more a month (+3 partitions, +6 replicas), without bytes on "
        "disks, whose amount is unknown"
    )
    [(_, endless)] = costs_of(create("1MiB", config={"retention.ms": -1}))
    assert endless.text.endswith(", without bytes on disks, which nothing limits")
    assert not costs_of(LONGER, rates=COUNTED_ONLY), "what has no price is not told"


TRAFFIC = FrozenMap(
    PRICES, ingress_gigabyte=Decimal("0.1"), egress_gigabyte=Decimal("0.05"), gigabyte=None
)


def test_what_producers_write_is_counted_where_a_block_expects_it() -> None:
    """10 GB a day are 304.17 GB in an average month. What is read, and what a deleted topic got, is
    left out and named."""
    [(_, known)] = costs_of(create(str(10**10 // 86_400)), rates=TRAFFIC)
    assert known.text == (
        "it costs about 37.17 EUR more a month (+3 partitions, +6 replicas, +9.31 GiB written a "
        "day), without egress, whose amount is unknown"
    )
    assert known.figures["ingress_per_day"] == 10**10 // 86_400 * 86_400
    both = ", without ingress and egress, whose amount is unknown"
    [(_, unknown), (_, deleted), (_, plan)] = costs_of(create(None), DELETED, rates=TRAFFIC)
    assert unknown.text.endswith(f"(+3 partitions, +6 replicas){both}")
    assert deleted.text.endswith(f"(-3 partitions, -6 replicas){both}")
    assert plan.text == f"this plan costs about 0.00 EUR more a month{both}"
    assert not costs_of(LONGER, rates=TRAFFIC), "another retention alters no traffic"


def test_each_reason_is_told_once() -> None:
    """Nothing limits the bytes of one topic, and nobody knows how much of it is read."""
    endless = create("1MiB", config={"retention.ms": -1})
    rates = FrozenMap(TRAFFIC, gigabyte=Decimal("0.02"))
    [(_, cost)] = costs_of(endless, rates=rates)
    assert cost.text.endswith(
        ", without bytes on disks, which nothing limits, without egress, whose amount is unknown"
    )
    [(_, cost)] = costs_of(create(None), rates=rates)
    assert cost.text.endswith(
        ", without bytes on disks, ingress and egress, whose amount is unknown"
    )


def test_prices_of_traffic_need_no_request() -> None:
    """Nothing is asked about what no broker tells before there is a topic."""
    [text], requests = look(facts(rates=TRAFFIC), create(None))
    assert "without ingress and egress" in text and requests == []


def test_without_rates_and_limits_nothing_is_counted() -> None:
    """Neither a request nor a word."""
    asker = make_cluster("orders")
    created = create(None)
    assert not needs_count(created, FACTS)
    assert look_at_disks(Inquiry(asker, [created], (), 0, 500)).findings == ()
    assert asker.asked == []


def look(own_facts: Facts, *changes: Change) -> tuple[list[str], list[str]]:
    """The texts of the findings, and the requests."""
    asker = make_cluster("orders")
    asker.context.facts = own_facts
    assert all(needs_count(item, own_facts) for item in changes)
    findings = look_at_disks(Inquiry(asker, changes, (), 0, 500)).findings
    return [finding.text for _, finding in findings], asker.asked


def test_what_is_only_counted_needs_no_request() -> None:
    """Prices of bytes and limits need one or more."""
    created = create(None)
    [text], requests = look(facts(rates=COUNTED_ONLY), created)
    assert text == "it costs about 6.75 EUR more a month (+3 partitions, +6 replicas)"
    assert requests == []
    _, requests = look(facts(limits=ReplicaLimits(100)), created)
    assert requests == ["Metadata"]
    _, requests = look(facts(rates=GIGABYTES), created)
    assert "DescribeLogDirs" in requests


def test_replicas_above_a_declared_limit_are_a_danger() -> None:
    """The fullest broker is named; two new topics go to brokers in turn."""
    own_facts = facts(limits=ReplicaLimits(3, 14))
    second = change(Action.CREATE, None, topic("second"))
    findings, _ = look(own_facts, create(None), second)
    assert findings == [
        "broker 1 would hold about 5 replicas (1 now), more than the 3 of limits, and so would 2 "
        "brokers more",
    ]
    world = make_world({"orders": ROWS})
    forecast = make_forecast(world, [create(None), second], own_facts)
    assert forecast.replicas == {b: ReplicaCount(2, 6) for b in (1, 2, 3)}
    [(_, broker), (_, whole)] = find_exceeded_limits(forecast, own_facts)
    assert {broker.level, whole.level} == {Level.DANGER}
    assert whole.text == "the cluster would hold 18 replicas (6 now), more than the 14 of limits"
    assert whole.figures == {"replicas": 18, "replicas_before": 6, "limit": 14}
    assert broker.figures["brokers"] == ("1", "2", "3")
    enough = facts(limits=ReplicaLimits(6, 18))
    assert not list(find_exceeded_limits(forecast, enough))


def test_a_deletion_makes_room_under_the_limit() -> None:
    """What a plan deletes does not count, and a cluster that only shrinks is not told."""
    own_facts = facts(limits=ReplicaLimits(1, 1))
    forecast = make_forecast(make_world({"orders": ROWS}), [DELETED], own_facts)
    assert forecast.replicas == {b: ReplicaCount(2, 0) for b in (1, 2, 3)}
    both = make_forecast(make_world({"orders": ROWS}), [DELETED, create(None)], own_facts)
    assert not list(find_exceeded_limits(both, own_facts))


@pytest.mark.parametrize(("zookeeper", "told"), [(True, True), (False, False), (None, False)])
def test_kafkas_recommendation_counts_with_zookeeper(zookeeper: bool | None, told: bool) -> None:
    """As a caution; with KRaft, no number is published."""
    counts = {1: ReplicaCount(3_990, 4_020)}
    forecast = Forecast({}, {}, (), replicas=counts)
    findings = [f for _, f in find_exceeded_limits(forecast, facts(zookeeper=zookeeper))]
    assert [finding.text for finding in findings] == told * [
        "broker 1 would hold about 4,020 replicas (3,990 now), more than the 4,000 of what Kafka's "
        "developers recommend with ZooKeeper"
    ]
    assert all(finding.level is Level.CAUTION for finding in findings)
    declared = facts(zookeeper=zookeeper, limits=ReplicaLimits(5_000))
    assert not list(find_exceeded_limits(forecast, declared)), "what is declared wins"


def test_a_deletion_frees_what_is_on_the_disks() -> None:
    """Also if nobody knows how fast the topic grows."""
    own_facts = facts(rates=GIGABYTES)
    for rate in (None, 10):
        forecast = make_forecast(make_world({"orders": ROWS}, rate=rate), [DELETED], own_facts)
        assert forecast.net == {ORDERS: -420 * GIB}
        assert not list(find_full_disks(forecast))
    unknown = make_forecast(make_world({"orders": ROWS}, rate=None), [CUT], own_facts)
    assert (unknown.net, unknown.unknown) == ({}, {}), "a cut needs no room, so nothing is unknown"
    endless = create("1MiB", config={"retention.ms": -1})
    made = make_forecast(make_world({"orders": ROWS}), [endless], own_facts)
    assert math.isinf(made.net[NEW])
