"""The simulated cluster of `kafkaform test`: what a `simulate "kafka"` block can set."""

from __future__ import annotations

from kafkaform.core.clock import Clock
from kafkaform.core.schema import NUMBER, STRING, AttributeSchema, make_schema
from kafkaform.core.value import FrozenMap
from kafkaform.provider.simulation import Simulation

from ..protocol.releases import NEWEST, RELEASES
from .cluster import SimulatedCluster
from .provider import MemoryProvider

MAX_BROKERS = 1_000


def _refuse_count(value: int) -> tuple[tuple[str, str], ...]:
    if 1 <= value <= MAX_BROKERS:
        return ()
    return ((f"{value} is out of range", f"Write a number from 1 to {MAX_BROKERS:,}."),)


def _make_count(name: str, doc: str, default: int) -> AttributeSchema:
    return AttributeSchema(name, NUMBER, doc, whole=True, default=default, refuses=_refuse_count)


SETTINGS = make_schema(
    "The simulated cluster of a test file.",
    # Three, so that the replication factor of most configurations can be created.
    _make_count("brokers", "How many brokers it has.", 3),
    _make_count("default_partitions", "The brokers' `num.partitions`.", 1),
    _make_count("default_replication_factor", "The brokers' `default.replication.factor`.", 1),
    AttributeSchema(
        "kafka_version",
        STRING,
        "The version of Kafka that it runs, with KRaft. It has the configs and features of that "
        "version.",
        default=NEWEST,
        choices=RELEASES,
    ),
)


def make_provider(settings: FrozenMap, scope: str, clock: Clock) -> MemoryProvider:
    """The provider of a new cluster. scope: its cluster id."""
    cluster = SimulatedCluster(
        brokers=settings["brokers"],
        clock=clock,
        cluster_id=scope,
        kafka_version=settings["kafka_version"],
    )
    cluster.default_partitions = settings["default_partitions"]
    cluster.default_replication_factor = settings["default_replication_factor"]
    return MemoryProvider(cluster)


SIMULATION = Simulation(SETTINGS, make_provider)
