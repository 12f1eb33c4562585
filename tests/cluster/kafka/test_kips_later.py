"""What the KIPs left for later, or turned down, as it is today on a real broker
(docs/kip-map.md)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.protocol.metadata import MetadataRequest
from msgspec.structs import replace

from kafkaform import sandbox
from kafkaform.cli.commands.sandbox import count_brokers
from kafkaform.core.resource import Absent, Depth, FaultClass, Identity, Observed, Sweep
from kafkaform.core.value import FrozenMap
from kafkaform_kafka.inspect.documents import describe
from kafkaform_kafka.inspect.source import DescribeQuery
from kafkaform_kafka.protocol import acl as acls
from kafkaform_kafka.protocol.acl import LISTED_RIGHTS
from kafkaform_kafka.protocol.faults import name_right
from kafkaform_kafka.session import KafkaSession
from kafkaform_kafka.wire import describe as wire_describe
from kafkaform_kafka.wire.configs import describe_configs
from kafkaform_kafka.wire.describe import ConfigRow, ResourceRow
from kafkaform_kafka.wire.topics import list_topics

from ...kit.kafka.logins import Login, new_login
from ...kit.kafka.sessions import apply, connect, eventually, gone, grant, new, read
from ...kit.kafka.terraform import BLOCK, faults
from ...kit.kafka.versions import make_options

TIMEOUT = 20.0
UNKNOWN_TOPIC = 3


@pytest.fixture
def user(broker: Any, prefix: str) -> Iterator[Login]:
    """A user whom no other test knows, and who has no rights."""
    with new_login(broker, prefix) as made:
        yield made


@pytest.fixture
def somebody(broker: Any, user: Login) -> Iterator[KafkaSession]:
    """A session of that user."""
    session = connect(broker, user)
    yield session
    session.close()


@pytest.fixture
def all_on_topic(broker: Any, user: Login, prefix: str) -> Callable[[], object]:
    """Gives that user All on the topic of the same name."""
    return lambda: grant(broker, user, "Topic", prefix, "ALL")


@pytest.fixture
def live(admin: KafkaSession, prefix: str) -> Iterator[str]:
    """A topic of that name."""
    apply(admin, new(prefix))
    seen = eventually(lambda: read(admin, prefix), lambda found: isinstance(found, Observed))
    assert isinstance(seen, Observed)
    yield prefix
    apply(admin, gone(prefix, seen.incarnation))


def test_rights_to_change_acls_are_no_finer_than_the_cluster(
    somebody: KafkaSession, live: str, all_on_topic: Callable[[], object]
) -> None:
    """All on a topic gives its configs, DescribeConfigs and AlterConfigs being part of it, and no
    say in its ACLs: that is Alter on the cluster, and nothing less."""
    all_on_topic()
    key = Identity("kafka", LISTED_RIGHTS, f"Topic|{live}")
    found = eventually(lambda: somebody.read([key])[key], lambda r: isinstance(r, Observed))
    assert isinstance(found, Observed)
    assert {"DescribeConfigs", "AlterConfigs", "Read"} <= set(found.attributes["operations"])
    assert isinstance(read(somebody, live), Observed)
    rule = acls.Acl(f"User:{live}", "*", "Read", "Allow", "Topic", live, "Literal")
    change = replace(
        new("unused"),
        identity=Identity("kafka", acls.KIND, rule.key),
        after=rule.attributes,
        paths=(),
    )
    (outcome,) = apply(somebody, change)
    assert outcome.fault is not None and outcome.fault.kind is FaultClass.PERMISSION
    assert "Alter on Cluster" in outcome.fault.advice


def test_nobody_lists_his_own_acls_without_describe_on_the_cluster(
    somebody: KafkaSession, live: str, all_on_topic: Callable[[], object]
) -> None:
    """KIP-4 let every principal see his own; Kafka does not. What a broker does tell everybody is
    what he may do with what he sees."""
    key = Identity("kafka", LISTED_RIGHTS, f"Topic|{live}")
    all_on_topic()
    told = eventually(lambda: somebody.read([key])[key], lambda r: isinstance(r, Observed))
    assert isinstance(told, Observed)
    sweep = somebody.sweep(acls.KIND, Depth.FULL)
    assert sweep.items == () and sweep.coverage.fault is not None
    assert "Describe on Cluster" in sweep.coverage.fault.advice
    own = acls.Acl(f"User:{live}", "*", "All", "Allow", "Topic", live, "Literal")
    assert not isinstance(read(somebody, own.key, acls.KIND), Observed | Absent)


def test_configs_are_no_resource() -> None:
    """KIP-133 turned a resource of its own down: rights on configs are operations on what has
    them."""
    block = (
        'resource "kafka_acl" "a" {{\n  acl_principal = "User:a"\n  acl_host = "*"\n'
        '  acl_permission_type = "Allow"\n  acl_operation = "{0}"\n'
        '  resource_type = "{1}"\n  resource_name = "{2}"\n}}\n'
    )
    (fault,) = faults(BLOCK + block.format("Read", "Configs", "x"))
    assert "resource_type" in fault
    for kind, name in (("Topic", "x"), ("Group", "x"), ("Cluster", "kafka-cluster")):
        for operation in ("DescribeConfigs", "AlterConfigs"):
            assert not faults(BLOCK + block.format(operation, kind, name)), (kind, operation)


def test_brokers_are_no_resource_of_acls() -> None:
    """KIP-133 and KIP-248 have rights on a broker; Kafka has rights on the cluster instead."""
    block = (
        'resource "kafka_acl" "a" {{\n  acl_principal = "User:a"\n  acl_host = "*"\n'
        '  acl_permission_type = "Allow"\n  acl_operation = "AlterConfigs"\n'
        '  resource_type = "{0}"\n  resource_name = "{1}"\n}}\n'
    )
    for kind in ("Broker", "Client"):
        (fault,) = faults(BLOCK + block.format(kind, "1"))
        assert "resource_type" in fault
    assert not faults(BLOCK + block.format("Cluster", "kafka-cluster"))
    for api in ("DescribeConfigs", "IncrementalAlterConfigs"):
        assert "on Cluster" in name_right(api, "1", 31)


def test_configs_are_told_by_name(admin: KafkaSession, live: str) -> None:
    """KIP-133: null is all, else those that are named; one that there is not is left out."""
    wire = admin.context.wire

    def ask(keys: list[str] | None) -> set[str]:
        found = wire_describe.describe_all_configs(wire, "topic", [live], TIMEOUT, keys=keys)
        return {row.name for row in found[live].configs}

    assert len(ask(None)) > 20
    named = ["segment.ms", "retention.ms"]
    assert ask([*named, "no.such"]) == set(named)
    assert describe_configs(wire, "topic", [live], TIMEOUT)[live].configs


def test_what_a_newer_broker_tells_is_unknown_and_shown() -> None:
    """A source of configs with a number that this version has no name for."""
    row = ResourceRow(0, None, (ConfigRow("k", "v", False, False, 99),))
    context: Any = SimpleNamespace(
        facts=SimpleNamespace(scope_id="c", nodes=("1",)), timeout=1.0, wire=None
    )
    found = _described(context, row)
    assert found["entities"][0]["configs"][0]["source"] == "UNKNOWN"


def _described(context: Any, row: ResourceRow) -> FrozenMap:
    patch = pytest.MonkeyPatch()
    with patch.context() as instead:
        instead.setattr(wire_describe, "describe_all_configs", lambda *_, **__: {"t": row})
        return describe("configs", context, _unasked, DescribeQuery(exact=("t",)))


def _unasked(kind: str, depth: Depth) -> Sweep:
    raise AssertionError("nothing is listed")


# ── topics that clients make ────────────────────────────────────────────────────────────


@pytest.fixture
def generous(own_brokers: None) -> Iterator[Any]:
    """A broker that creates each topic that a client asks for."""
    name = f"tests-auto-{os.getpid()}"
    config = (("auto.create.topics.enable", "true"),)
    try:
        yield sandbox.up(make_options(name, config=config), count_brokers)
    finally:
        sandbox.down(name)


def test_asking_for_a_topic_never_makes_it(generous: Any) -> None:
    """Whatever reads a topic asks without creating it, where a client that does not say so would
    have made it."""
    session = connect(generous, "admin")
    wire = session.context.wire
    try:
        (row,) = wire_describe.describe_topics(wire, ["asked"], TIMEOUT)
        (listed,) = list_topics(wire, ["asked"], TIMEOUT)
        assert (row.code, listed.code) == (UNKNOWN_TOPIC, UNKNOWN_TOPIC)
        assert isinstance(read(session, "asked"), Absent)
        assert session.facts.recorded_values["auto_create"] is True
        ask = MetadataRequest.MetadataRequestTopic
        careless = MetadataRequest(
            topics=[ask(name="careless")], allow_auto_topic_creation=True, min_version=10
        )
        wire.send(careless, TIMEOUT)
        eventually(lambda: read(session, "careless"), lambda r: isinstance(r, Observed))
        assert {row.name for row in list_topics(wire, None, TIMEOUT)} == {"careless"}
    finally:
        session.close()
