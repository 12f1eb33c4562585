"""Rules of topics: names, numbers, single configs, places of replicas, growth and deletion."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaform.core.change import Action, Change
from kafkaform.core.finding import Block, Level
from kafkaform.core.resource import Facts
from kafkaform.core.value import FrozenMap
from kafkaform_kafka.rules import topic_configs
from kafkaform_kafka.rules.topics import life, moves

from ....kit.kafka.changes import FACTS, change, facts, topic
from ....kit.kafka.judgement import judge, name_rules

KIND = "kafka_topic_config"


def create(name: str = "orders", **attributes: Any) -> Change:
    return change(Action.CREATE, None, topic(name, **attributes))


def update(before: dict[str, Any], after: dict[str, Any]) -> Change:
    return change(Action.UPDATE, topic(**before), topic(**after))


def delete(incarnation: str | None = "id-1") -> Change:
    return change(Action.DELETE, topic(), None, incarnation=incarnation)


def override(config: dict[str, Any], name: str = "orders") -> Change:
    after = {"topic": name, "config": config}
    return change(Action.CREATE, None, after, kind=KIND)


def move(before: list[list[int]], after: list[list[int]], **config: str) -> Change:
    """An update from one assignment to another."""
    sides = (
        topic(partitions=len(rows), replication_factor=len(rows[0]), replica_assignment=rows)
        for rows in (before, after)
    )
    old, new = sides
    return change(Action.UPDATE, old, {**new, "config": config})


OPEN, SHUT = facts(delete_topic_enable=True), facts(delete_topic_enable=False)
COMPACT = {"cleanup.policy": "compact"}
CASES: tuple[tuple[str, Change, Facts, str], ...] = (
    # rule, change, facts, the sentence
    (
        "topic-name-invalid",
        create("a b"),
        FACTS,
        "topic name 'a b' has characters that Kafka does not allow: ' '",
    ),
    (
        "topic-name-invalid",
        override({"retention.ms": "1"}, ".."),
        FACTS,
        "'..' is not a valid topic name",
    ),
    (
        "topic-partitions-invalid",
        create(partitions=0),
        FACTS,
        "partitions is 0; a topic has at least 1 partition",
    ),
    (
        "topic-replicas-invalid",
        create(replication_factor=0),
        FACTS,
        "replication_factor is 0; it must be 1 to 32767",
    ),
    (
        "topic-replicas-above-brokers",
        create(replication_factor=4),
        FACTS,
        "replication_factor is 4, but the cluster has 3 live brokers",
    ),
    (
        "topic-replicas-above-brokers",
        update({}, {"replication_factor": 4}),
        FACTS,
        "replication_factor is 4, but the cluster has 3 live brokers",
    ),
    (
        "topic-too-large",
        create(partitions=10_000),
        FACTS,
        "10000 partitions are more than Kafka can create in one request (9999)",
    ),
    (
        "topic-too-large",
        update({"partitions": 1}, {"partitions": 20_000}),
        FACTS,
        "19999 partitions are more than Kafka can create in one request (9999)",
    ),
    (
        "topic-number-unknown",
        create(partitions=None),
        FACTS,
        "partitions is not set, and the broker's default cannot be read, so the plan cannot show "
        "the number",
    ),
    (
        "topic-partitions-removed",
        update({"partitions": 3}, {"partitions": 2}),
        FACTS,
        "partitions would go from 3 to 2: Kafka cannot remove partitions",
    ),
    (
        "topic-partitions-added",
        update({"partitions": 3}, {"partitions": 4}),
        FACTS,
        "partitions 3 → 4: new records of a key can go to another partition than older ones, and "
        "the partitions cannot be removed again",
    ),
    (
        "topic-old-values-kept",
        update({"partitions": 3, "config": COMPACT}, {"partitions": 4, "config": COMPACT}),
        FACTS,
        "partitions 3 → 4 of a compacted topic: the old value of a key that goes to another "
        "partition stays in its old one for ever",
    ),
    (
        "topic-old-values-kept",
        update({"partitions": 3}, {"partitions": 4}),
        facts(topic_defaults=FrozenMap({"cleanup.policy": "compact,delete"})),
        "partitions 3 → 4 of a compacted topic: the old value of a key that goes to another "
        "partition stays in its old one until it expires",
    ),
    (
        "topic-replicas-removed",
        update({"replication_factor": 3}, {"replication_factor": 1}),
        FACTS,
        "replication_factor 3 → 1: 1 of 3 replicas stays, and no broker can fail without loss",
    ),
    (
        "topic-replicas-removed",
        update({"replication_factor": 3}, {"replication_factor": 2}),
        FACTS,
        "replication_factor 3 → 2: 2 of 3 replicas stay, and 1 broker can fail without loss",
    ),
    ("topic-deleted", delete(), OPEN, "the topic and all its records are deleted"),
    (
        "topic-deletion-forbidden",
        delete(),
        SHUT,
        "the cluster forbids the deletion of topics (delete.topic.enable=false)",
    ),
    (
        "topic-comes-back",
        delete(),
        facts(auto_create=True),
        "auto.create.topics.enable is true: the topic comes back, empty and with default settings, "
        "as soon as a client uses it",
    ),
    (
        "topic-id-unknown",
        delete(None),
        OPEN,
        "the id of the topic is unknown, and kafkaform deletes topics only by id",
    ),
    (
        "topic-assignment-invalid",
        create(replica_assignment=[[1, 1]]),
        FACTS,
        "partition 0 names a broker twice in replica_assignment",
    ),
    (
        "topic-assignment-invalid",
        create(replica_assignment=[[1, 2], [3]]),
        FACTS,
        "partition 1 has 1 replica, but partition 0 has 2",
    ),
    (
        "topic-assignment-invalid",
        create(replica_assignment=[]),
        FACTS,
        "replica_assignment is empty",
    ),
    (
        "topic-assignment-not-live",
        create(replica_assignment=[[1, 4]]),
        FACTS,
        "partition 0 would get replicas on brokers that are not live: 4",
    ),
    (
        "topic-assignment-not-live",
        move([[1, 2]], [[1, 4]]),
        FACTS,
        "partition 0 would get replicas on brokers that are not live: 4",
    ),
    (
        "topic-move-unplanned",
        update({}, {"replication_factor": 3}),
        FACTS,
        "replication_factor would go from 2 to 3, but replica_assignment is ignored or the live "
        "brokers are unknown, so the new assignment is unknown",
    ),
    (
        "topic-replicas-moved",
        move([[1], [2], [3]], [[1, 2], [2, 3], [3, 1]]),
        FACTS,
        "3 partitions: 3 replicas copied; the apply starts the move and does not wait",
    ),
    (
        "topic-replicas-moved",
        move([[1]], [[2]]),
        FACTS,
        "1 partition: 1 replica copied, 1 replica removed; the apply starts the move and does not "
        "wait",
    ),
    (
        "topic-leaders-changed",
        move([[1, 2]], [[2, 1]]),
        FACTS,
        "1 partition: the preferred leader changes, and no data is copied",
    ),
    (
        "topic-replicas-not-live",
        move([[1, 9]], [[1]]),
        FACTS,
        "broker 9 of this topic is not live; all replicas leave 9",
    ),
    (
        "topic-replicas-not-live",
        move([[1, 9]], [[1, 9, 2]]),
        FACTS,
        "broker 9 of this topic is not live; replicas stay on 9",
    ),
    (
        "topic-min-insync-early",
        move([[1]], [[1, 2]], **{"min.insync.replicas": "2"}),
        FACTS,
        "min.insync.replicas becomes 2 at once, but only 1 replica has the data until the move "
        "ends: until then brokers can refuse producers with acks=all",
    ),
    (
        "topic-config-misspelt",
        create(config={"retension.ms": "1"}),
        FACTS,
        "retension.ms is not a topic config of Kafka",
    ),
    (
        "topic-config-of-brokers",
        create(config={"log.retention.ms": "1"}),
        FACTS,
        "log.retention.ms is a config of brokers, not of topics",
    ),
    (
        "topic-config-unknown",
        create(config={"redpanda.remote.read": "true"}),
        FACTS,
        "Kafka 4.3 has no topic config redpanda.remote.read; a broker that does not know it "
        "refuses it in the dry run",
    ),
    (
        "topic-config-absent",
        create(config={"message.format.version": "3.0"}),
        facts(kafka_version="4.0"),
        "the cluster runs Kafka 4.0; Kafka 4.0 removed message.format.version",
    ),
    (
        "topic-config-value-invalid",
        create(config={"cleanup.policy": "none"}),
        FACTS,
        "cleanup.policy = 'none' is not a valid value",
    ),
    (
        "topic-config-value-invalid",
        update({}, {"config": {"retention.ms": "x"}}),
        FACTS,
        "retention.ms = 'x' is not a whole number",
    ),
    (
        "topic-config-value-invalid",
        create(config={"segment.bytes": "1000"}),
        facts(kafka_version="4.1"),
        "segment.bytes = '1000' is out of range",
    ),
    (
        "topic-config-value-outdated",
        create(config={"segment.bytes": "1000"}),
        FACTS,
        "segment.bytes = 1000 B: Kafka 4.1 and newer refuse less than 1 MiB",
    ),
    ("topic-config-empty", override({}), FACTS, "config is empty"),
    (
        "topic-internal",
        override({"segment.bytes": "2000000"}, "__consumer_offsets"),
        FACTS,
        "__consumer_offsets is an internal topic of Kafka",
    ),
)


@pytest.mark.parametrize(("rule", "edit", "cluster", "text"), CASES)
def test_each_rule_fires(rule: str, edit: Change, cluster: Facts, text: str) -> None:
    """The sentence names what is wrong, once."""
    assert text in [finding.text for finding in judge(edit, cluster) if finding.rule == rule]


def test_every_rule_has_a_case() -> None:
    """A rule that nobody saw firing is no rule."""
    parts = (*life.JUDGES, *moves.JUDGES, *topic_configs.VALUE_JUDGES)
    assert {case[0] for case in CASES} == {rule.id for part in parts for rule in part.rules}


QUIET: tuple[tuple[str, Change, Facts], ...] = (
    ("a usual topic", create(), FACTS),
    ("defaults that were read", create(), OPEN),
    ("an application's topic", create("__debezium-heartbeat.inventory"), FACTS),
    ("the most partitions", create(partitions=9_999), FACTS),
    ("an override that nobody knows goes", update({"config": {"made.up": "1"}}, {}), FACTS),
    (
        "an override that nobody knows stays",
        update({"config": {"made.up": "1"}}, {"config": {"made.up": "1"}}),
        FACTS,
    ),
    ("adopted as it is", change(Action.ADOPT, topic("a b"), topic("a b")), FACTS),
    ("forgotten", change(Action.FORGET, topic("__x"), None), FACTS),
    (
        "a small segment before Kafka 4.1",
        create(config={"segment.bytes": "1000"}),
        facts(kafka_version="4.0"),
    ),
    (
        "a config that this release has",
        create(config={"message.format.version": "3.0"}),
        facts(kafka_version="3.9"),
    ),
    ("more replicas later, without a higher minimum", move([[1, 2]], [[1, 2, 3]]), FACTS),
)
MOVES = {"topic-replicas-moved"}


@pytest.mark.parametrize(
    ("edit", "cluster"), [case[1:] for case in QUIET], ids=[c[0] for c in QUIET]
)
def test_what_kafka_can_do_is_quiet(edit: Change, cluster: Facts) -> None:
    """Nothing is found about usual changes, but that a move is one."""
    assert {finding.rule for finding in judge(edit, cluster)} <= MOVES


def test_growth_of_a_topic_that_expires_keeps_no_old_value() -> None:
    """Only compaction keeps the last record of a key for ever."""
    grown = update({"partitions": 3}, {"partitions": 4})
    assert name_rules(judge(grown)) == ["topic-partitions-added"]


def test_a_topic_whose_id_is_unknown_is_not_moved() -> None:
    """Its throttles and its move could be those of another topic of this name."""
    edit = move([[1]], [[2]])
    nameless = change(
        Action.UPDATE, dict(edit.before or {}), dict(edit.after or {}), incarnation=None
    )
    (finding,) = (item for item in judge(nameless) if item.rule == "topic-id-unknown")
    assert "moves the replicas only of topics with an id" in finding.text
    old = facts(zookeeper=True)
    assert any("inter.broker.protocol.version" in item.fix for item in judge(nameless, old))


@pytest.mark.parametrize(
    "edit",
    [
        create("a b"),
        create(partitions=0),
        create(replication_factor=0),
        create(partitions=10_000),
        create(replica_assignment=[[1, 1]]),
        create(config={"log.roll.hours": "1"}),
        create(config={"cleanup.policy": "none"}),
        override({"num.partitions": "3"}),
        override({}),
    ],
)
def test_what_the_block_alone_shows_is_found_without_a_cluster(edit: Change) -> None:
    """`validate` and the editor say it as the plan does."""
    alone = judge(edit, Facts(""), only_block=True)
    assert alone and alone[0].block is Block.IMPOSSIBLE
    assert {finding.text for finding in alone} <= {finding.text for finding in judge(edit)}


@pytest.mark.parametrize(
    "edit",
    [
        create(partitions=None, replication_factor=None),
        create(replication_factor=-1),
        create(replication_factor=30, replica_assignment=[list(range(30))]),
        create(config={"retention.ms": "1", "retention.bytes": None}),
    ],
)
def test_what_only_a_cluster_shows_is_not_claimed_without_one(edit: Change) -> None:
    """Numbers that the cluster fills in, brokers that nobody counted, values that are kept."""
    assert judge(edit, Facts(""), only_block=True) == []


@pytest.mark.parametrize(
    ("key", "advice"),
    [
        ("log.retention.ms", "Use retention.ms."),
        ("log.retention.hours", "Use retention.ms."),
        ("log.roll.hours", "Use segment.ms."),
        ("log.segment.bytes", "Use segment.bytes."),
        ("message.max.bytes", "Use max.message.bytes."),
        ("num.partitions", "Use partitions of the kafka_topic."),
        ("default.replication.factor", "Use replication_factor of the kafka_topic."),
        ("num.io.threads", "Set it with kafka_cluster_config or kafka_broker_config."),
        ("auto.create.topics.enable", "Set it in the brokers' server.properties."),
    ],
)
def test_configs_of_brokers_are_known_as_such(key: str, advice: str) -> None:
    """Whoever copies a broker's file reads which config the topic has instead."""
    (finding,) = judge(create(config={key: "1"}))
    assert (finding.rule, finding.fix) == ("topic-config-of-brokers", advice)
    assert finding.level is Level.BLOCK
