"""Capacity, cost and growth, compared with counting by hand."""

from __future__ import annotations

from datetime import UTC, date, datetime
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kafkaform.fleet.datasets import capacity
from kafkaform.fleet.landed.register import Owner, Rates, Register, RegisteredCluster

from . import oracle_capacity
from .live_rows import NOW, Row, cluster, context, days, frames, live, past, rows_of, topic

RATES = Rates("EUR", topic=0.1, partition=0.25, replica=1.5, gigabyte=0.02)
TRAFFIC = Rates("USD", gigabyte=0.02, ingress_gigabyte=0.11, egress_gigabyte=0.07)
OWNERS = (Owner("sales", ("orders.*",)), Owner("risk", ("pay?",)))
NAMES = ("orders.a", "orders.b", "pay1", "pay2", "other", "__consumer_offsets")
TABLES = ("live", "history", "cluster", "topic_growth", "desired", "recorded")
Tables = dict[str, list[Row]]


def same(found: list[Row], wanted: list[Row]) -> None:
    """All equal, and growth as nearly as binary fractions allow."""
    key = ("cluster", "subject")
    for rows in (found, wanted):
        rows.sort(key=lambda row: [row[name] for name in key])
    assert [[r[n] for n in key] for r in found] == [[r[n] for n in key] for r in wanted]
    for one, other in zip(found, wanted, strict=True):
        for name in ("growth_per_day", "bytes_per_day"):
            assert one.pop(name) == pytest.approx(other.pop(name), abs=1e-9)
        assert one == other


def _assignment(dice: Random) -> list[list[int]]:
    factor = dice.randrange(1, 4)
    return [dice.sample(range(1, 6), factor) for _ in range(dice.randrange(1, 5))]


def _random(dice: Random, name: str) -> Tables:
    tables: Tables = {table: [] for table in TABLES}
    when = days(dice.choice((0, 0, 2.5)))
    coverage = dice.choice(({"kafka_topic": "visible_only"},) * 5 + ({}, {"kafka_topic": "failed"}))
    tables["cluster"].append(cluster(name, captured_at=when, coverage=coverage))
    about = {"default_replication_factor": "2"} if dice.random() < 0.8 else {}
    about |= {"nodes": '["1","2","9"]'} if dice.random() < 0.8 else {}
    about |= {"leaders.1": "7", "leaders.9": "0"} if dice.random() < 0.8 else {}
    tables["live"].append(live(name, "cluster", "id", about))
    measured = dice.random() < 0.7
    for key in dice.sample(NAMES, dice.randrange(len(NAMES) + 1)):
        row = topic(name, key, _assignment(dice), owner=dice.choice((None, None, "own")))
        if dice.random() < 0.1:
            del row["attrs"]["replica_assignment"]
        tables["live"].append(row)
        tables["history"] += _past(dice, row, when)
        if measured or dice.random() < 0.5:
            size = {"bytes": str(dice.randrange(10**12))}
            tables["live"].append(live(name, "topic_usage", key, size))
        if measured or dice.random() < 0.5:
            rate = dice.choice((None,) + (dice.randrange(-9, 99) / 4,) * 9)
            traffic = {
                part: dice.choice((None, 0) + (dice.randrange(10**11),) * 8)
                for part in ("ingress_per_day", "egress_per_day")
            }
            grown = {"cluster": name, "topic": key, "bytes_per_day": rate, **traffic}
            tables["topic_growth"].append(grown)
        if dice.random() < 0.2:
            table = dice.choice(("desired", "recorded"))
            said = {**row, "lineage": "l", "owner": "declared"}
            tables[table].append({n: v for n, v in said.items() if n != "snapshot"})
    return tables


def _past(dice: Random, row: Row, until: datetime) -> list[Row]:
    """Intervals that end in what the topic is now, or with its end."""
    turns = sorted(dice.sample(range(60), dice.randrange(1, 5)), reverse=True)
    times = [until.replace(hour=dice.randrange(5), minute=0) - (NOW - days(turn)) for turn in turns]
    rows = []
    for begin, end in zip(times, [*times[1:], None], strict=True):
        attrs = row["attrs"] if end is None else topic("", "", _assignment(dice))["attrs"]
        rows.append(past(row["cluster"], row["key"], attrs, begin, valid_to=end))
    return rows


def _clusters() -> tuple[Tables, list[RegisteredCluster]]:
    dice = Random(5)
    tables: Tables = {table: [] for table in TABLES}
    limits = []
    for number in range(80):
        for table, rows in _random(dice, f"c{number}").items():
            tables[table] += rows
        limit = dice.choice((None, 5, 40, 60, 100, 10_000))
        limits.append(RegisteredCluster(f"c{number}", limit_replicas=limit))
    return tables, limits


def _figured() -> Tables:
    big, gone = topic("big", "big", [[1, 2]] * 10), topic("empty", "x")
    history = [
        past(
            *("big", "big", topic("big", "big", [[1, 2]] * (day + 1))["attrs"], days(9 - day)),
            valid_to=None if day == 9 else days(8 - day),
        )
        for day in range(10)
    ]
    history.append(past("empty", "x", gone["attrs"], days(90), valid_to=days(50), deleted=True))
    coverage = {"kafka_topic": "complete"}
    never = cluster("never", captured_at=None, status="never")
    return {
        "live": [
            *(big, topic("big", "orders.a", [[1], [2]])),
            live("big", "cluster", "id", {"default_replication_factor": "2"}),
            live("big", "topic_usage", "orders.a", {"bytes": "2500000000"}),
        ],
        "history": history,
        "cluster": [*(cluster(name, coverage=coverage) for name in ("big", "empty")), never],
    }


FIGURED = (
    RegisteredCluster("big", limit_replicas=28),
    RegisteredCluster("empty", limit_replicas=1),
)


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> list[Row]:
    """What is made of all cases at once; each has clusters of its own."""
    tables, limits = _clusters()
    both = {name: [*rows, *_figured().get(name, ())] for name, rows in tables.items()}
    register = Register(clusters=(*limits, *FIGURED), owners=OWNERS, rates=RATES)
    return rows_of(capacity.build(frames(spark, both), context(register)))


def test_random_clusters(found: list[Row]) -> None:
    """80 clusters with all that may be missing: the same rows as counted by hand."""
    tables, limits = _clusters()
    register = Register(clusters=tuple(limits), owners=OWNERS, rates=RATES)
    wanted = oracle_capacity.capacity(tables, register)
    breaches = [row["breach_on"] for row in wanted if row["breach_on"] is not None]
    assert len(breaches) > 10
    assert sum(day > NOW.date() for day in breaches) > 5
    assert sum(row["growth_per_day"] is not None for row in wanted) > 30
    mine = {row["cluster"] for row in wanted}
    same([dict(row) for row in found if row["cluster"] in mine], wanted)
    assert {row["cluster"] for row in found} == {*mine, "big", "empty"}


@pytest.mark.parametrize("rates", [TRAFFIC, None])
def test_other_rates(spark: SparkSession, rates: Rates | None) -> None:
    """What is written and read has a price; where a part is unknown, its sum is one of what is
    known, and says what is not. Without rates there is no cost."""
    tables, limits = _clusters()
    register = Register(clusters=tuple(limits), owners=OWNERS, rates=rates)
    made = rows_of(capacity.build(frames(spark, tables), context(register)))
    wanted = oracle_capacity.capacity(tables, register)
    if rates:
        gaps = {tuple(row["cost_unknown"]) for row in wanted if row["cost_unknown"]}
        assert len(gaps) == 7, "each combination of parts occurs"
        assert sum(row["cost"] is not None for row in wanted) > 30
    same(made, wanted)


def test_one_cluster_in_figures(found: list[Row]) -> None:
    """Two topics, one of which has grown by two replicas each day for ten days."""
    rows = {_key(row): row for row in found if row["cluster"] in ("big", "empty", "never")}
    assert {key: _figures(row) for key, row in rows.items()} == {
        ("big", "cluster"): (12, 22, 2, 1, None, 2.0, date(2026, 6, 19), None),
        ("big", "owner sales"): (2, 2, 1, 1, 2_500_000_000, None, None, 3.65),
        ("big", "unowned"): (10, 20, 1, 0, None, None, None, None),
        ("big", "broker 1"): (11, 11, 2, 1, None, None, None, None),
        ("big", "broker 2"): (1, 11, 2, 1, None, None, None, None),
        ("empty", "cluster"): (0, 0, 0, 0, 0, 0.0, None, 0.0),
    }
    assert {row["as_of"] for row in rows.values()} == {datetime(2026, 6, 15, 4, 30, tzinfo=UTC)}


def _key(row: Row) -> tuple[str, str]:
    return row["cluster"], row["subject"]


def _figures(row: Row) -> tuple[Any, ...]:
    names = ("partitions", "replicas", "topics", "below_rf", "bytes")
    growth = row["growth_per_day"]
    rounded = None if growth is None else round(growth, 9)
    return (*(row[name] for name in names), rounded, row["breach_on"], row["cost"])
