"""What the changes of a plan add to which disk."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kafkaform.core.change import Action, Change
from kafkaform.core.finding import Level
from kafkaform.core.resource import Identity
from kafkaform_kafka.capacity.forecast import (
    DiskWorld,
    Forecast,
    Spread,
    TopicSettings,
    list_concerned_brokers,
    make_forecast,
    needs_room,
)
from kafkaform_kafka.capacity.projection import DAY_MS, Disk, LogGrowth, read_limits
from kafkaform_kafka.rules.looks import NEARLY_FULL, ROOM_UNKNOWN, TOO_SMALL, find_full_disks

from ....kit.kafka.changes import FACTS, change, facts, topic
from ....kit.quick import examples

GIB = 1 << 30
VALUES = {
    "cleanup.policy": "delete",
    "retention.ms": str(7 * DAY_MS),
    "retention.bytes": "-1",
    "segment.ms": str(7 * DAY_MS),
    # So small that no test has to count it.
    "segment.bytes": "1024",
    "remote.storage.enable": "false",
    "local.retention.ms": "-2",
    "local.retention.bytes": "-2",
    "remote.log.copy.disable": "false",
}
ROWS = ((1, 2), (2, 3), (3, 1))
ORDERS = Identity("kafka", "kafka_topic", "orders")
Paths = tuple[str, ...]


def make_cluster(
    topics: Mapping[str, Sequence[Sequence[int]]],
    size: int = 70,
    rate: float | None = 10,
    *,
    total: int | None = 700,
    used: int = 400,
    paths: Sequence[Paths] = (("/data/1",),),
    values: Mapping[str, str] = VALUES,
    own: Sequence[str] = (),
) -> DiskWorld:
    """Brokers 1, 2 and 3 with these disks. size: GiB of each partition; rate: GiB a day; total,
    used: GiB of each disk; own: configs that topics override."""
    places = {
        (name, number): row for name, rows in topics.items() for number, row in enumerate(rows)
    }
    disks = [
        Disk(
            broker,
            directories,
            None if total is None else total * GIB,
            None if total is None else (total - used) * GIB,
            {p: size * GIB for p, row in places.items() if broker in row and disk == 0},
        )
        for broker in (1, 2, 3)
        for disk, directories in enumerate(paths)
    ]
    growth = LogGrowth(None if rate is None else rate * GIB, read_limits(values))
    return DiskWorld(
        disks,
        {
            name: Spread(tuple(map(tuple, rows)), tuple(map(tuple, rows)))
            for name, rows in topics.items()
        },
        dict.fromkeys(topics, TopicSettings(values, frozenset(own), frozenset())),
        dict.fromkeys(places, growth),
        dict.fromkeys(places, size * GIB),
    )


def update(before: dict[str, Any], after: dict[str, Any]) -> Change:
    rows = tuple(map(tuple, ROWS))
    usual = {"replica_assignment": rows}
    return change(Action.UPDATE, topic(**{**usual, **before}), topic(**{**usual, **after}))


LONGER = update({"config": {"retention.ms": 7 * DAY_MS}}, {"config": {"retention.ms": 30 * DAY_MS}})
CUT = update({"config": {"retention.ms": 7 * DAY_MS}}, {"config": {"retention.ms": DAY_MS}})
THREE = update(
    {},
    {
        "replication_factor": 3,
        "replica_assignment": tuple((*row, *({1, 2, 3} - {*row})) for row in ROWS),
    },
)
MORE = update({"partitions": 3}, {"partitions": 6, "replica_assignment": (*ROWS, *ROWS)})


def find_added(forecast: Forecast, identity: Identity = ORDERS) -> dict[tuple[int, Paths], float]:
    """Disk -> GiB that a change adds to it."""
    return {
        (share.projection.disk.broker, share.projection.disk.directories): share.added / GIB
        for share in forecast.shares.get(identity, ())
    }


@pytest.mark.parametrize(
    ("item", "needs"),
    [
        (LONGER, True),
        (CUT, False),
        (THREE, True),
        (MORE, True),
        (update({}, {"config": {"retention.ms": -1}}), True),
        (update({"config": {"retention.ms": -1}}, {}), False),
        (update({"config": {"retention.bytes": 5}}, {}), True),
        (update({}, {"config": {"cleanup.policy": "compact"}}), False),
        (update({}, {"config": {"max.message.bytes": 5}}), False),
        (change(Action.CREATE, None, topic()), False),
        (change(Action.DELETE, topic(), None), False),
    ],
)
def test_which_changes_need_room(item: Change, needs: bool) -> None:
    """All others cause no request. A new topic has no data, and nobody knows how much it gets."""
    assert needs_room(item, FACTS) is needs


def test_a_longer_retention_adds_to_each_replica() -> None:
    """10 GiB a day for 23 more days, twice on each broker."""
    forecast = make_forecast(make_cluster({"orders": ROWS}), [LONGER], FACTS)
    added = find_added(forecast)
    assert added.keys() == {(broker, ("/data/1",)) for broker in (1, 2, 3)}
    assert list(added.values()) == pytest.approx([460.0] * 3, abs=0.01)
    [finding] = [finding for _, finding in find_full_disks(forecast)]
    assert (finding.rule, finding.level) == (TOO_SMALL.id, Level.DANGER)
    assert finding.text == (
        "broker 1, /data/1: 400 GiB → 860 GiB of 700 GiB (123%; 460 GiB of it by this change); "
        "full in about 15 days at today's rate; and 2 disks more"
    )
    assert finding.figures["disks"] == tuple(f"broker {n}, /data/1" for n in (1, 2, 3))
    assert (finding.figures["days"], finding.figures["used_bytes"]) == (15, 400 * GIB)


def test_a_replica_more_is_copied_whole() -> None:
    """Each broker gets the partition that it does not have."""
    forecast = make_forecast(make_cluster({"orders": ROWS}), [THREE], FACTS)
    assert find_added(forecast) == {(b, ("/data/1",)): 70.0 for b in (1, 2, 3)}
    assert not list(find_full_disks(forecast)), "470 of 700 GiB are no finding"
    full = make_cluster({"orders": ROWS}, used=660)
    [finding] = [finding for _, finding in find_full_disks(make_forecast(full, [THREE], FACTS))]
    assert finding.rule == TOO_SMALL.id
    assert "it is full before the copies are complete" in finding.text


def test_copies_go_to_the_disk_with_the_fewest_replicas() -> None:
    """All data is on the first of two disks, so Kafka chooses the second."""
    cluster = make_cluster({"orders": ROWS}, paths=(("/data/1",), ("/data/2",)))
    added = find_added(make_forecast(cluster, [THREE], FACTS))
    assert added == {(b, ("/data/2",)): 70.0 for b in (1, 2, 3)}


def test_a_copy_to_another_disk_of_the_broker_needs_all_its_bytes() -> None:
    """A move between two disks that runs already (KIP-113); the old replica goes afterwards."""
    cluster = make_cluster({"orders": ROWS}, used=620, paths=(("/data/1",), ("/data/2",)))
    disks = [
        replace(disk, future={("orders", 0): 10 * GIB})
        if (disk.broker, disk.directories) == (1, ("/data/2",))
        else disk
        for disk in cluster.disks
    ]
    shares = make_forecast(replace(cluster, disks=disks), [THREE], FACTS).shares[ORDERS]
    [share] = [s for s in shares if s.projection.disk.broker == 1]
    # 60 GiB of the running copy, and 70 of the new replica.
    assert share.projection.needed == 750 * GIB
    assert share.added == 70 * GIB


def test_more_partitions_share_what_is_written() -> None:
    """Age limits keep the same number of bytes altogether; size limits count for each partition."""
    by_age = make_forecast(make_cluster({"orders": ROWS}), [MORE], FACTS)
    total = sum(find_added(by_age).values())
    # Three partitions with two replicas each move half of 210 GiB; the old ones shrink meanwhile.
    assert total == pytest.approx(210, abs=0.1)
    projection = by_age.shares[ORDERS][0].projection
    assert projection.added == pytest.approx(0, abs=GIB)
    values = {**VALUES, "retention.ms": "-1", "retention.bytes": str(70 * GIB)}
    by_size = make_forecast(make_cluster({"orders": ROWS}, values=values), [MORE], FACTS)
    assert by_size.shares[ORDERS][0].projection.added == pytest.approx(140 * GIB, rel=0.01)


def test_a_topic_that_goes_makes_room() -> None:
    """It is gone long before a retention has its effect; copies do not wait for it."""
    gone = change(Action.DELETE, topic("old", replica_assignment=ROWS), None)
    cluster = make_cluster({"orders": ROWS, "old": ROWS}, used=660)
    [share, *_] = make_forecast(cluster, [THREE, gone], FACTS).shares[ORDERS]
    assert share.projection.needed == 730 * GIB
    [share, *_] = make_forecast(cluster, [LONGER, gone], FACTS).shares[ORDERS]
    assert share.projection.added == pytest.approx(320 * GIB, rel=0.001)


def make_default(kind: str, key: str, before: str, after: str) -> Change:
    return replace(
        change(
            Action.UPDATE,
            {"config": {"log.retention.ms": before}},
            {"config": {"log.retention.ms": after}},
            kind=kind,
        ),
        identity=Identity("kafka", kind, key),
    )


@pytest.mark.parametrize(
    ("kind", "key", "brokers"),
    [("kafka_cluster_config", "", (1, 2, 3)), ("kafka_broker_config", "2", (2,))],
)
def test_a_default_concerns_the_topics_that_follow_it(
    kind: str, key: str, brokers: tuple[int, ...]
) -> None:
    """And the brokers that it is about; a topic with its own value stays as it is."""
    item = make_default(kind, key, str(7 * DAY_MS), str(8 * DAY_MS))
    assert needs_room(item, FACTS)
    assert list_concerned_brokers([item], {}, FACTS) == set(brokers)
    forecast = make_forecast(make_cluster({"orders": ROWS}), [item], FACTS)
    assert find_added(forecast, item.identity) == {
        (b, ("/data/1",)): pytest.approx(20, abs=0.01) for b in brokers
    }
    fixed = make_cluster({"orders": ROWS}, own=("retention.ms",))
    assert not make_forecast(fixed, [item], FACTS).shares


def test_unlimited_growth_is_a_matter_of_time() -> None:
    """Soon it is a danger, later something to keep in mind."""
    forever = update({"config": {"retention.ms": 7 * DAY_MS}}, {"config": {"retention.ms": -1}})
    for rate, rule in ((10, TOO_SMALL), (1, NEARLY_FULL)):
        cluster = make_cluster({"orders": ROWS}, rate=rate)
        [finding] = [f for _, f in find_full_disks(make_forecast(cluster, [forever], FACTS))]
        assert finding.rule == rule.id
        assert "400 GiB of 700 GiB, and nothing stops the growth; full in about" in finding.text
        assert "added_bytes" not in finding.figures
    limited = update(
        {"config": {"retention.ms": 7 * DAY_MS}}, {"config": {"retention.ms": 10_000 * DAY_MS}}
    )
    for total, rules in ((700, [TOO_SMALL.id]), (5_000, [NEARLY_FULL.id]), (40_000, [])):
        cluster = make_cluster({"orders": ROWS}, rate=5, total=total)
        assert [f.rule for _, f in find_full_disks(make_forecast(cluster, [limited], FACTS))] == (
            rules
        )
    still = make_cluster({"orders": ROWS}, rate=0)
    assert not list(find_full_disks(make_forecast(still, [forever], FACTS)))


def test_what_is_unknown_is_said() -> None:
    """The size of a disk, the growth of a topic, a broker that does not answer."""
    cluster = make_cluster({"orders": ROWS}, total=None)
    [finding] = [f for _, f in find_full_disks(make_forecast(cluster, [THREE], FACTS))]
    assert finding.rule == ROOM_UNKNOWN.id
    assert finding.text.startswith("adds up to 210 GiB to broker 1, /data/1; broker 2, /data/1")
    cluster = make_cluster({"orders": ROWS})
    mixed = [replace(cluster.disks[0], total=None, usable=None), *cluster.disks[1:]]
    forecast = make_forecast(replace(cluster, disks=mixed), [THREE], FACTS)
    [finding] = [f for _, f in find_full_disks(forecast)]
    assert finding.text.startswith("adds up to 70 GiB to broker 1, /data/1: how much fits")
    young = make_cluster({"orders": ROWS}, rate=None)
    forecast = make_forecast(young, [LONGER], FACTS, ["the disks of broker 4: it is silent"])
    texts = [finding.text for _, finding in find_full_disks(forecast)]
    assert texts == [
        "how much room the topic will need is unknown: the brokers do not show how fast it grows"
    ]
    assert forecast.gaps == ("the disks of broker 4: it is silent",)


def test_little_more_on_a_full_disk_is_no_news() -> None:
    """Otherwise every plan would repeat that a disk is nearly full."""
    cluster = make_cluster({"orders": ROWS}, size=1, used=650)
    assert not list(find_full_disks(make_forecast(cluster, [THREE], FACTS)))
    crossing = make_cluster({"orders": ROWS}, size=1, used=595)
    [finding] = [f for _, f in find_full_disks(make_forecast(crossing, [THREE], FACTS))]
    assert (finding.rule, finding.level) == (NEARLY_FULL.id, Level.CAUTION)


def test_a_broker_without_an_answer_has_copies_of_unknown_size() -> None:
    """Its partitions count for nothing otherwise, and everything would seem to fit."""
    cluster = make_cluster({"orders": ROWS})
    lost = replace(cluster, disks=cluster.disks[:1], sizes={})
    assert make_forecast(lost, [THREE], FACTS).unknown == {ORDERS: ("orders",)}


@st.composite
def worlds(draw: st.DrawFn) -> tuple[DiskWorld, list[Change]]:
    """Three brokers with random topics, of which some change."""
    topics, changes = {}, []
    for number in range(draw(st.integers(1, 4))):
        name = f"t{number}"
        count = draw(st.integers(1, 4))
        factor = draw(st.integers(1, 3))
        rows = tuple(tuple(draw(st.permutations((1, 2, 3))))[:factor] for _ in range(count))
        topics[name] = rows
        after = tuple(tuple(draw(st.permutations((1, 2, 3)))) for _ in range(count))
        target = after if draw(st.booleans()) else rows
        days = draw(st.sampled_from((1, 7, 30)))
        changes.append(
            change(
                Action.UPDATE,
                topic(
                    name,
                    partitions=count,
                    replication_factor=factor,
                    replica_assignment=rows,
                    config={"retention.ms": 7 * DAY_MS},
                ),
                topic(
                    name,
                    partitions=count,
                    replication_factor=len(target[0]),
                    replica_assignment=target,
                    config={"retention.ms": days * DAY_MS},
                ),
            )
        )
    cluster = make_cluster(
        topics,
        draw(st.integers(0, 70)),
        draw(st.none() | st.integers(0, 10)),
        paths=draw(st.sampled_from(((("/a",),), (("/a",), ("/b",)), (("/a", "/b"),)))),
    )
    return cluster, changes


@settings(max_examples=examples(150), deadline=None)
@given(worlds())
def test_shares_make_up_what_disks_get(world: tuple[DiskWorld, list[Change]]) -> None:
    """Each copy goes to exactly one disk of its broker, and no disk gets more than its shares."""
    cluster, changes = world
    forecast = make_forecast(cluster, changes, FACTS)
    shares = [share for rows in forecast.shares.values() for share in rows]
    by_disk: dict[tuple[int, Paths], float] = defaultdict(float)
    for share in shares:
        assert share.added > 0
        by_disk[share.projection.disk.broker, share.projection.disk.directories] += share.added
    for share in shares:
        disk = share.projection.disk
        assert share.projection.added <= by_disk[disk.broker, disk.directories] + 1
    copies = 0
    for item in changes:
        assert item.after is not None
        spread = cluster.topics[item.identity.key]
        for number, row in enumerate(item.after["replica_assignment"]):
            added = len(set(row) - set(spread.replicas[number]))
            copies += added * cluster.sizes[item.identity.key, number]
    assert copies - 1 <= sum(by_disk.values()) < math.inf


def test_only_concerned_brokers_are_asked() -> None:
    """Those that have the topic, and those that get it."""
    spreads = {"orders": Spread(((1,),), ((1,),))}
    moved = change(
        Action.UPDATE,
        topic(partitions=1, replica_assignment=((1,),)),
        topic(partitions=1, replica_assignment=((3,),)),
    )
    assert list_concerned_brokers([moved], spreads, facts()) == {1, 3}
    anywhere = change(Action.UPDATE, topic(partitions=1), topic(partitions=2))
    assert list_concerned_brokers([anywhere], spreads, facts()) == {1, 2, 3}
