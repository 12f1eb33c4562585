"""Connectors and the topics that they use, in one plan of two providers."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kafkaform.core.address import parse_address
from kafkaform.core.change import Change
from kafkaform.core.errors import DryRunRefused
from kafkaform.core.resource import Declared, Desired, Identity, ProviderConfig
from kafkaform.core.risk import RiskKind
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform.provider.http.exchange import Call
from kafkaform_connect.connector import KIND
from kafkaform_connect.memory.provider import MemoryProvider
from kafkaform_connect.memory.workers import SimulatedWorkers

from ...kit.simulated import engine
from ...kit.simulated.engine import PLACE, House, removed, topic

CONNECT = "kafka_connect"
SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"


def connector(name: str, topics: str) -> Declared:
    attributes = FrozenMap(
        name=name, **{"class": SOURCE}, config=FrozenMap(topic=topics), state="stopped"
    )
    identity = Identity(CONNECT, KIND, name)
    return Declared(identity, parse_address(f"{KIND}.{name}"), attributes, PLACE)


def both(*declared: Declared, **said: object) -> Desired:
    """A configuration with both providers."""
    kafka = engine.desired(*declared, **said)  # type: ignore[arg-type]
    block = ProviderConfig(CONNECT, CONNECT, EMPTY, PLACE)
    return replace(kafka, providers={**kafka.providers, CONNECT: block})


def make_house(cluster_id: str = "") -> tuple[House, SimulatedWorkers]:
    """A Kafka cluster, and workers that use it, or the cluster with this id."""
    house = engine.house()
    workers = SimulatedWorkers(house.clock, cluster_id or house.cluster.id)
    house.providers = {**house.providers, CONNECT: MemoryProvider(workers)}
    return house, workers


def find(changes: tuple[Change, ...], address: str) -> Change:
    return next(change for change in changes if change.address == address)


def test_a_topic_is_created_before_the_connector_that_uses_it() -> None:
    """Without a reference in the configuration; and it is deleted after it."""
    house, workers = make_house()
    said = both(connector("lines", "orders"), topic("orders"), topic("kept"))
    change = find(engine.plan(house, said).changes, f"{KIND}.lines")
    assert change.depends_on == ("kafka_topic.orders",)
    engine.apply(house, said)
    assert "lines" in workers.connectors
    gone = (
        removed(f"{KIND}.lines", destroy=True),
        removed("kafka_topic.orders", destroy=True),
    )
    plan = engine.plan(house, both(topic("kept"), removed=gone))
    # Deletions are sent in reverse order of what depends on what.
    assert find(plan.changes, f"{KIND}.lines").depends_on == ("kafka_topic.orders",)
    engine.apply(house, both(topic("kept"), removed=gone))
    assert not workers.connectors and "orders" not in house.cluster.topics


def test_deleting_a_topic_names_the_connectors_that_use_it() -> None:
    """Declared ones, and those that nobody manages."""
    house, workers = make_house()
    engine.apply(house, both(connector("lines", "orders"), topic("orders"), topic("kept")))
    config = {"connector.class": SOURCE, "topic": "orders"}
    workers.handle(Call("POST", "/connectors", {"name": "other", "config": config}), "somebody")
    gone = (removed("kafka_topic.orders", destroy=True),)
    plan = engine.plan(house, both(connector("lines", "orders"), topic("kept"), removed=gone))
    risks = find(plan.changes, "kafka_topic.orders").risks
    (named,) = (risk.text for risk in risks if risk.kind is RiskKind.AVAILABILITY)
    assert f"{KIND}.lines writes to it" in named
    assert f"{KIND} other (not managed) writes to it" in named


def test_a_topic_of_another_cluster_is_not_meant() -> None:
    """Workers say which Kafka cluster they use."""
    house, _ = make_house("another-cluster")
    plan = engine.plan(house, both(connector("lines", "orders"), topic("orders")))
    assert not find(plan.changes, f"{KIND}.lines").depends_on


def test_a_wrong_configuration_is_refused_before_its_topic_is_created() -> None:
    """Although a connector waits for its topic, its configuration is checked first."""
    house, workers = make_house()
    bad = connector("lines", "orders")
    bad = replace(bad, attributes=bad.attributes.with_items({"config": FrozenMap(file="x")}))
    wanted = replace(bad, depends_on=(parse_address("kafka_topic.orders"),))
    with pytest.raises(DryRunRefused) as refused:
        engine.apply(house, both(wanted, topic("orders")))
    assert "Missing required configuration" in str(refused.value.diagnostics)
    assert not workers.connectors and "orders" not in house.cluster.topics
