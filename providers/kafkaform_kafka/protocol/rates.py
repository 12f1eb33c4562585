"""What a cluster costs and how much it is to hold: the `rates` block, which the provider block and
the fleet's register share, and the `limits` block.

A module of its own, because the register is also read where nothing else of Kafka is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from kafkaform.core.schema import NUMBER, STRING, AttributeSchema, make_schema

GIGABYTE = 10**9
MONTH_DAYS = 365 / 12
"""Days of an average month: what is counted by the day costs so many times as much a month."""


class Rates(Struct, frozen=True):
    """Cost of one of each per month. None: not counted."""

    currency: str
    topic: float | None = None
    partition: float | None = None
    replica: float | None = None
    gigabyte: float | None = None
    """On disk, of each replica."""
    ingress_gigabyte: float | None = None
    """Written by producers. Unlike the others, what one costs whenever it is written."""
    egress_gigabyte: float | None = None
    """Read by consumers, likewise."""

    @property
    def prices(self) -> Mapping[str, float]:
        """What is counted (`topics`, `partitions`, `replicas`, `bytes`, and bytes a day:
        `ingress_per_day`, `egress_per_day`) -> the cost of one of it a month."""
        rates = {
            "topics": (self.topic, 1.0),
            "partitions": (self.partition, 1.0),
            "replicas": (self.replica, 1.0),
            "bytes": (self.gigabyte, 1 / GIGABYTE),
            "ingress_per_day": (self.ingress_gigabyte, MONTH_DAYS / GIGABYTE),
            "egress_per_day": (self.egress_gigabyte, MONTH_DAYS / GIGABYTE),
        }
        return {name: rate * share for name, (rate, share) in rates.items() if rate is not None}


class ReplicaLimits(Struct, frozen=True):
    """How many replicas of partitions a cluster is to hold. None: no limit."""

    replicas_per_broker: int | None = None
    replicas: int | None = None
    """On all brokers together."""


# ZooKeeper bounds how fast a controller moves leaders and loads what it knows. With KRaft, nobody
# has published such a number.
GUIDANCE = ReplicaLimits(4_000, 200_000)
"""What Kafka's developers recommend for clusters with ZooKeeper since 1.1.0: "Apache Kafka Supports
200K Partitions Per Cluster", the blog of the Apache Software Foundation, 2018."""


def refuse_negative(value: Any) -> Iterator[tuple[str, str]]:
    """The fault of a number below 0."""
    if value < 0:
        yield f"{value} is less than 0", "Write 0 or more."


def _refuse_below_one(value: Any) -> Iterator[tuple[str, str]]:
    if value < 1:
        yield f"{value} is less than 1", "Write 1 or more."


def _make_rate(name: str, counted: str) -> AttributeSchema:
    doc = f"Cost of one {counted}. Default: not counted."
    return AttributeSchema(name, NUMBER, doc, refuses=refuse_negative, policy=True)


def _make_limit(name: str, doc: str) -> AttributeSchema:
    return AttributeSchema(name, NUMBER, doc, whole=True, refuses=_refuse_below_one, policy=True)


RATES = make_schema(
    "What things cost.",
    AttributeSchema("currency", STRING, "Such as EUR.", required=True, policy=True),
    _make_rate("topic", "topic a month"),
    _make_rate("partition", "partition a month"),
    _make_rate("replica", "replica a month"),
    _make_rate("gigabyte", "gigabyte on disk a month, counted for each replica"),
    _make_rate("ingress_gigabyte", "gigabyte that producers write"),
    _make_rate("egress_gigabyte", "gigabyte that consumers read"),
)
LIMITS = make_schema(
    "How many replicas of partitions the cluster is to hold. A plan that exceeds a limit says so.",
    _make_limit("replicas_per_broker", "On one broker."),
    _make_limit("replicas", "On all brokers together."),
)


def read_rates(values: Mapping[str, Any]) -> Rates:
    """The rates in a sound block. values: argument -> value, None if it is left out."""
    prices = values.items() - {("currency", values["currency"])}
    return Rates(
        values["currency"],
        **{name: float(price) for name, price in prices if price is not None},
    )
