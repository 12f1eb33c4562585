"""Fixtures of the conformance suite for topics: the simulated cluster and a real one."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import confluent_kafka.admin

from kafkaform.core.clock import Clock, SystemClock
from kafkaform.core.resource import FaultClass
from kafkaform.core.secret import Secret
from kafkaform.core.value import EMPTY, FrozenMap, SecretRef
from kafkaform.provider import contract
from kafkaform.provider.registry import Registry
from kafkaform.provider.testing.workbench import INSTANCE, About, Edit, Question
from kafkaform_kafka import data_sources as data
from kafkaform_kafka.kinds.topic import resource_type as topics
from kafkaform_kafka.memory import MemoryProvider, SimulatedCluster
from kafkaform_kafka.provider import PROVIDER

from .logins import Login, admin_login, open_client
from .sessions import eventually

CLIENT: Any = confluent_kafka.admin
"""The library has no types that a checker accepts."""


class Broker(Protocol):
    """The running sandbox that the session-wide fixture `broker` provides."""

    bootstrap: str
    admin_password: str


def config(**values: str) -> FrozenMap:
    """Config overrides; keyword `retention_ms` is `retention.ms`."""
    return FrozenMap({"config": FrozenMap({k.replace("_", "."): v for k, v in values.items()})})


def partitions(count: int) -> FrozenMap:
    return FrozenMap({"partitions": count})


EDITS = (
    Edit("set a config", wish=config(retention_ms="3600000")),
    Edit(
        "set two, of which one is there", config(flush_ms="9"), config(flush_ms="9", segment_ms="8")
    ),
    Edit(
        "change a config", config(cleanup_policy="compact"), config(cleanup_policy="delete,compact")
    ),
    Edit(
        "remove an override",
        config(retention_ms="1000", min_insync_replicas="1"),
        config(min_insync_replicas="1"),
        fallbacks=FrozenMap({"config.retention.ms": "604800000"}),
    ),
    Edit(
        "remove an override that equals the default",
        config(segment_ms="604800000"),
        FrozenMap({"config": EMPTY}),
        fallbacks=FrozenMap({"config.segment.ms": "604800000"}),
    ),
    Edit("grow", wish=partitions(3)),
    Edit("grow and set a config", wish=partitions(2).with_items(config(flush_ms="77"))),
    Edit("grow to what it is by now", EMPTY, partitions(3), partitions(3), FaultClass.CONVERGED),
    Edit(
        "grow to less than it is by now", EMPTY, partitions(3), partitions(4), FaultClass.CONVERGED
    ),
    Edit(
        "set values that exclude each other",
        wish=config(min_compaction_lag_ms="2000", max_compaction_lag_ms="1000"),
        expect=FaultClass.DEFINITE,
    ),
    Edit("shrink", partitions(3), partitions(2), blocked=True),
    Edit("misspell a config", wish=config(retention_mss="1"), blocked=True),
    # Another broker could know it, so it is the broker that refuses it.
    Edit(
        "set an unknown config",
        wish=config(no_such_config="1"),
        expect=FaultClass.DEFINITE,
    ),
    Edit("set nonsense", wish=config(retention_ms="soon"), blocked=True),
    Edit("ask for too many replicas", wish=FrozenMap({"replication_factor": 20}), blocked=True),
)


def tells(shown: FrozenMap, attributes: FrozenMap) -> bool:
    """The topic as a data source shows it is the one that was made."""
    names = ("partitions", "replication_factor", "config")
    return bool(shown["topic_id"]) and all(shown[n] == attributes[n] for n in names)


def by_name(attributes: FrozenMap) -> FrozenMap:
    return FrozenMap({"name": attributes["name"]})


QUESTIONS = (
    Question("kafka_topic", About.OBJECT, by_name, tells),
    Question(
        "kafka_topics",
        About.LIST,
        by_name,
        lambda answer, wanted: any(tells(topic, wanted) for topic in answer["list"]),
    ),
    Question(
        "kafka_cluster",
        About.SYSTEM,
        lambda _: EMPTY,
        lambda answer, _: bool(answer["cluster_id"] and answer["brokers"]),
    ),
    Question("kafka_acls", About.SYSTEM, lambda _: EMPTY, lambda answer, _: answer["complete"]),
    Question("kafka_quotas", About.SYSTEM, lambda _: EMPTY, lambda answer, _: answer["complete"]),
)


class TopicSystem:
    """What both systems share: the type, its edits, its data sources and fresh names."""

    type = topics.TYPE
    provider: contract.Provider = PROVIDER
    edits: Sequence[Edit] = EDITS
    bad = config(retention_ms="soon")
    data = data.DATA
    questions = QUESTIONS
    secrets: contract.Secrets = EMPTY
    incarnations = True
    unfit: Mapping[str, str] = EMPTY

    def fresh(self, given: FrozenMap) -> FrozenMap:
        return FrozenMap(
            {
                "name": f"conformance-{uuid.uuid4().hex[:12]}",
                "partitions": 1,
                "replication_factor": 1,
                "replica_assignment": None,
                "config": EMPTY,
                "config_mode": "authoritative",
                "managed_replication_factor": None,
                **given,
            }
        )


class SimulatedSystem(TopicSystem):
    """lag: how many reads miss each write."""

    def __init__(self, *, brokers: int = 1, lag: int = 0) -> None:
        self.cluster = SimulatedCluster(brokers=brokers)
        self.cluster.lag(reads=lag)
        self.cluster.grant("nobody")
        self.clock: Clock = self.cluster.clock

    def open(self, *, privileged: bool) -> contract.Session:
        user = "admin" if privileged else "nobody"
        return MemoryProvider(self.cluster, user).open(INSTANCE, EMPTY, {})

    def make(self, attributes: FrozenMap) -> None:
        self.cluster.outside.create(
            attributes["name"],
            attributes["partitions"],
            attributes["replication_factor"],
            attributes["config"],
        )

    def alter(self, attributes: FrozenMap, given: FrozenMap) -> None:
        if "partitions" in given:
            self.cluster.outside.grow(attributes["name"], given["partitions"])
        if "config" in given:
            self.cluster.outside.alter(attributes["name"], given["config"])

    def recreate(self, attributes: FrozenMap) -> None:
        self.cluster.outside.recreate(attributes["name"])


class RealSystem(TopicSystem):
    """A real cluster; another client than the provider's plays the outside world. stranger: a user
    without rights."""

    def __init__(self, broker: Broker, stranger: Login, provider: contract.Provider) -> None:
        self.broker = broker
        self.stranger = stranger
        self.provider = provider
        self.clock: Clock = SystemClock()
        self._admin = open_client(broker, admin_login(broker))

    def open(self, *, privileged: bool) -> contract.Session:
        broker = self.broker
        who = admin_login(broker) if privileged else self.stranger
        secret = SecretRef("env", "CONFORMANCE_PASSWORD")
        block = FrozenMap(
            {
                "bootstrap_servers": tuple(broker.bootstrap.split(",")),
                "security_protocol": "SASL_PLAINTEXT",
                "sasl_mechanism": who.mechanism,
                "sasl_username": who.user,
                "sasl_password": secret,
                "operation_timeout": "5s",
            }
        )
        return self.provider.open(INSTANCE, block, {str(secret): Secret(who.password)})

    def make(self, attributes: FrozenMap) -> None:
        topic = CLIENT.NewTopic(
            attributes["name"],
            num_partitions=attributes["partitions"],
            replication_factor=attributes["replication_factor"],
            config=dict(attributes["config"]),
        )
        _settle(self._admin.create_topics([topic]))
        self._wait_for_partitions(attributes["name"], attributes["partitions"])

    def alter(self, attributes: FrozenMap, given: FrozenMap) -> None:
        name = attributes["name"]
        if "partitions" in given:
            _settle(
                self._admin.create_partitions([CLIENT.NewPartitions(name, given["partitions"])])
            )
            self._wait_for_partitions(name, given["partitions"])
        if "config" in given:
            entries = [
                CLIENT.ConfigEntry(key, value, incremental_operation=CLIENT.AlterConfigOpType.SET)
                for key, value in given["config"].items()
            ]
            resource = CLIENT.ConfigResource(
                CLIENT.ResourceType.TOPIC, name, incremental_configs=entries
            )
            _settle(self._admin.incremental_alter_configs([resource]))
            wanted = given["config"].items()
            eventually(
                lambda: self.effective_configs(attributes), lambda found: wanted <= found.items()
            )

    def _wait_for_partitions(self, name: str, number: int) -> None:
        """A broker acknowledges a change before it shows it."""
        eventually(
            lambda: self._admin.list_topics(timeout=60).topics,
            lambda topics: name in topics and len(topics[name].partitions) == number,
        )

    def recreate(self, attributes: FrozenMap) -> None:
        name = attributes["name"]
        _settle(self._admin.delete_topics([name]))
        eventually(
            lambda: self._admin.list_topics(timeout=60).topics, lambda topics: name not in topics
        )
        # With ZooKeeper, the brokers no longer list a topic while its deletion still runs.
        eventually(lambda: self._make_if_gone(attributes), lambda made: made)

    def _make_if_gone(self, attributes: FrozenMap) -> bool:
        try:
            self.make(attributes)
        except confluent_kafka.KafkaException as error:
            if error.args[0].code() != confluent_kafka.KafkaError.TOPIC_ALREADY_EXISTS:
                raise
            return False
        return True

    def effective_configs(self, attributes: FrozenMap) -> dict[str, str]:
        """Every config of the topic, inherited ones included."""
        resource = CLIENT.ConfigResource(CLIENT.ResourceType.TOPIC, attributes["name"])
        (future,) = self._admin.describe_configs([resource]).values()
        return {entry.name: entry.value for entry in future.result(30).values()}


def _settle(futures: Mapping[Any, Any]) -> None:
    for future in futures.values():
        future.result(30)


def real_system(broker: Broker, stranger: Login) -> RealSystem:
    """The run's broker, and a user of this test without rights."""
    return RealSystem(broker, stranger, Registry().load("kafka"))
