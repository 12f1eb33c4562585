"""Capacity, counted cluster by cluster and day by day."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from math import floor
from typing import Any

from kafkaform.fleet.landed.register import Rates, Register

from .oracle_policy import owner_of

Row = dict[str, Any]
TOPIC, USAGE, CLUSTER = "kafka_topic", "topic_usage", "cluster"
Tables = Mapping[str, Sequence[Row]]


def capacity(tables: Tables, register: Register) -> list[Row]:
    rows = []
    for cluster in tables["cluster"]:
        holds = any(
            (r["cluster"], r["kind"]) == (cluster["cluster"], TOPIC) for r in tables["live"]
        )
        read = holds or cluster["coverage"].get(TOPIC, "failed") != "failed"
        if read and cluster["captured_at"]:
            rows += _of_cluster(cluster, tables, register)
    return rows


def _of_cluster(cluster: Row, tables: Tables, register: Register) -> list[Row]:
    name, as_of = cluster["cluster"], cluster["captured_at"]
    mine = [row for row in tables["live"] if row["cluster"] == name]
    about = next((row["attrs"] for row in mine if row["kind"] == CLUSTER), {})
    default = about.get("default_replication_factor")
    sizes = {r["key"]: r["attrs"].get("bytes") for r in mine if r["kind"] == USAGE}
    declared = [*tables["desired"], *tables["recorded"]]
    grown = {row["topic"]: row for row in tables["topic_growth"] if row["cluster"] == name}
    topics = [
        {
            **_topic(row, sizes.get(row["key"]), default, owner_of(row, declared, register)),
            **{part: grown.get(row["key"], {}).get(part) for part in GROWN},
        }
        for row in mine
        if row["kind"] == TOPIC
    ]
    known = {"cluster": name, "as_of": as_of}
    whole = {
        "subject": "cluster",
        **_counts(topics),
        **_future(name, topics, tables, register, as_of),
    }
    rows = [{**known, **whole}]
    rows[0] |= _cost(topics, register.rates)
    for owner in {topic["owner"] for topic in topics}:
        owned = [topic for topic in topics if topic["owner"] == owner]
        subject = {"subject": f"owner {owner}" if owner else "unowned"}
        rows.append({**known, **subject, **_counts(owned), **_cost(owned, register.rates)})
    nodes = {int(node) for node in json.loads(about.get("nodes", "[]"))}
    held = {broker for topic in topics for part in topic["assignment"] for broker in part}
    led = {broker: about.get(f"leaders.{broker}") for broker in nodes}
    rows += [
        {
            **{**known, **_broker(broker, topics)},
            "leaders": None if led.get(broker) is None else int(led[broker]),
        }
        for broker in nodes | held
    ]
    currency = register.rates.currency if register.rates else None
    return [{**_NOTHING, **row, "currency": currency} for row in rows]


GROWN = ("bytes_per_day", "ingress_per_day", "egress_per_day")
_COST = ("cost", "cost_at_least", "cost_unknown", "unpriced_topics")
_NOTHING = dict.fromkeys(
    ("bytes", "growth_per_day", "limit_replicas", "breach_on", "leaders", *GROWN, *_COST)
)


def _topic(row: Row, size: str | None, default: str | None, owner: str | None) -> Row:
    assignment = json.loads(row["attrs"].get("replica_assignment", "[]"))
    factor = min(map(len, assignment), default=int(row["attrs"].get("replication_factor", 0)))
    return {
        "assignment": assignment,
        "partitions": int(row["attrs"]["partitions"]),
        "replicas": replicas(row["attrs"]),
        "below": None if default is None else factor < int(default),
        "bytes": None if size is None else int(size),
        "owner": owner,
    }


def replicas(attrs: Mapping[str, str]) -> int:
    if "replica_assignment" in attrs:
        return sum(map(len, json.loads(attrs["replica_assignment"])))
    return int(attrs["partitions"]) * int(attrs["replication_factor"])


def _counts(topics: Sequence[Row]) -> Row:
    return {
        "partitions": sum(topic["partitions"] for topic in topics),
        "replicas": sum(topic["replicas"] for topic in topics),
        "topics": len(topics),
        "below_rf": _whole(topics, "below"),
        "bytes": _whole(topics, "bytes"),
        **{part: _whole(topics, part) for part in GROWN},
    }


def _whole(topics: Sequence[Row], name: str) -> int | None:
    values = [topic[name] for topic in topics]
    return None if None in values else sum(values)


def _broker(broker: int, topics: Sequence[Row]) -> Row:
    here = [topic for topic in topics if any(broker in part for part in topic["assignment"])]
    parts = [part for topic in here for part in topic["assignment"]]
    return {
        "subject": f"broker {broker}",
        "partitions": sum(part[0] == broker for part in parts),
        "replicas": sum(part.count(broker) for part in parts),
        "topics": len(here),
        "below_rf": _whole(here, "below"),
    }


def _cost(topics: Sequence[Row], rates: Rates | None) -> Row:
    """What each topic costs a month, one after the other."""
    if rates is None:
        return {}
    month = Fraction(365, 12)
    prices = {
        "topics": (rates.topic, Fraction(1)),
        "partitions": (rates.partition, Fraction(1)),
        "replicas": (rates.replica, Fraction(1)),
        "bytes": (rates.gigabyte, Fraction(1, 10**9)),
        "ingress_per_day": (rates.ingress_gigabyte, month / 10**9),
        "egress_per_day": (rates.egress_gigabyte, month / 10**9),
    }
    total, unknown, unpriced = Fraction(0), set(), 0
    for topic in topics:
        gaps = set()
        for name, (rate, share) in prices.items():
            amount = 1 if name == "topics" else topic[name]
            if rate is not None and amount is None:
                gaps.add(name.removesuffix("_per_day"))
            elif rate is not None:
                total += amount * Fraction(str(rate)) * share
        unknown |= gaps
        unpriced += bool(gaps)
    cents = Decimal((total * 100).numerator) / Decimal((total * 100).denominator)
    least = float(cents.quantize(Decimal(1), ROUND_HALF_UP) / 100)
    return {
        "cost": None if unknown else least,
        "cost_at_least": least,
        "cost_unknown": [name for name in ("bytes", "ingress", "egress") if name in unknown],
        "unpriced_topics": unpriced,
    }


def _future(
    name: str, topics: Sequence[Row], tables: Tables, register: Register, as_of: datetime
) -> Row:
    history = [r for r in tables["history"] if (r["cluster"], r["kind"]) == (name, TOPIC)]
    growth = _growth(history, as_of.date())
    limit = next((c.limit_replicas for c in register.clusters if c.name == name), None)
    held = sum(topic["replicas"] for topic in topics)
    return {
        "growth_per_day": growth,
        "limit_replicas": limit,
        "breach_on": _breach(held, limit, growth, as_of.date()),
    }


def _growth(history: Sequence[Row], today: date) -> float | None:
    begins = [row["valid_from"].date() for row in history]
    if not begins:
        return None
    first = max(min(begins), today - timedelta(days=29))
    points = defaultdict(int)
    for number in range((today - first).days + 1):
        day = first + timedelta(days=number)
        points[number] = sum(
            replicas(row["attrs"])
            for row in history
            if row["valid_from"].date() <= day
            and (row["valid_to"] is None or row["valid_to"].date() > day)
        )
    if len(points) < 7:
        return None
    mean_x, mean_y = sum(points) / len(points), sum(points.values()) / len(points)
    above = sum((x - mean_x) * (y - mean_y) for x, y in points.items())
    return above / sum((x - mean_x) ** 2 for x in points)


def _breach(held: int, limit: int | None, growth: float | None, today: date) -> date | None:
    if limit is None:
        return None
    if held > limit:
        return today
    if growth is None or growth <= 0:
        return None
    wait = floor((limit - held) / growth) + 1
    return today + timedelta(days=wait) if wait <= 5 * 365 else None
