"""What Kafka would refuse is said before anything is sent, with advice."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaform_kafka.protocol import broker_rules
from kafkaform_kafka.protocol.config_keys import TOPIC_KEYS

from ....kit.kafka.changes import facts

FACTS = facts(kafka_version="4.3")
NAMES = [
    ("orders", ""),
    ("a.b_c-D9", ""),
    ("x" * 249, ""),
    ("x" * 250, "250 characters"),
    ("", "is not a valid topic name"),
    (".", "is not a valid topic name"),
    ("..", "is not a valid topic name"),
    ("...", ""),
    ("a b", "does not allow: ' '"),
    ("bestätigt", "does not allow: 'ä'"),
    ("a\nb", "does not allow: '\\n'"),
    ("a/b:c", "does not allow: '/:'"),
]
COUNTS = [
    (3, 3, ""),
    (0, 1, "at least 1"),
    (-1, 1, "at least 1"),
    (1, 0, "must be 1 to"),
    (1, 40_000, "must be 1 to 32767"),
]
ASSIGNMENTS = [
    (((1, 2), (2, 3)), ""),
    ((), "is empty"),
    (((1,), ()), "partition 1 has no replicas"),
    (((1, 2), (3,)), "partition 1 has 1 replica, but partition 0 has 2"),
    (((1, 1),), "names a broker twice"),
]
CONFIGS = [
    ({"retention.ms": "-1"}, ""),
    ({"retention.ms": "-2"}, "out of range"),
    ({"retention.ms": "7d"}, "is not a whole number"),
    ({"retention.ms": "9223372036854775808"}, "out of range"),
    ({"retention.ms": None}, ""),
    ({"retention.m": "1"}, "not a topic config"),
    ({"segment.bytes": "1000"}, "out of range"),
    ({"segment.bytes": "2147483648"}, "out of range"),
    ({"compression.gzip.level": "-1"}, ""),
    ({"compression.gzip.level": "0"}, "out of range"),
    ({"compression.gzip.level": "10"}, "out of range"),
    ({"compression.zstd.level": "-131072"}, ""),
    ({"compression.type": "lz5"}, "'lz5' is not a valid value"),
    ({"cleanup.policy": "compact,delete"}, ""),
    ({"cleanup.policy": ""}, ""),
    ({"cleanup.policy": "compact,none"}, "'none', which is not a valid value"),
    ({"min.cleanable.dirty.ratio": "1.1"}, "out of range"),
    ({"min.cleanable.dirty.ratio": "0.5"}, ""),
    ({"min.cleanable.dirty.ratio": "x"}, "is not a number"),
    ({"preallocate": "yes"}, "is neither true nor false"),
    ({"local.retention.ms": "-2"}, ""),
    ({"message.format.version": "2.8"}, "Kafka 4.0 removed message.format.version"),
    ({"leader.replication.throttled.replicas": "0:" + "1" * 40_000}, "32,767 characters"),
]


def _agrees(found: list[tuple[str, str]], expected: str) -> bool:
    if not expected:
        return not found
    return any(expected in text and advice for text, advice in found)


@pytest.mark.parametrize(("name", "expected"), NAMES)
def test_topic_names(name: str, expected: str) -> None:
    """A name that Kafka refuses is refused with what is wrong in it."""
    assert _agrees(list(broker_rules.name_faults(name)), expected)


@pytest.mark.parametrize(("partitions", "replicas", "expected"), COUNTS)
def test_counts(partitions: int, replicas: int, expected: str) -> None:
    """Counts are checked against Kafka's limits."""
    faults = [*broker_rules.partition_faults(partitions), *broker_rules.replica_faults(replicas)]
    assert _agrees(faults, expected)


def test_live_brokers() -> None:
    """No more replicas than live brokers, and none on a broker that is not live."""
    assert _agrees([*broker_rules.broker_count_faults(4, FACTS)], "has 3 live brokers")
    assert _agrees([*broker_rules.broker_count_faults(3, FACTS)], "")
    assert _agrees([*broker_rules.dead_broker_faults({0: (1, 9)}, FACTS)], "not live: 9")
    assert _agrees([*broker_rules.dead_broker_faults({0: (1, 2)}, FACTS)], "")


@pytest.mark.parametrize(("assignment", "expected"), ASSIGNMENTS)
def test_assignments(assignment: tuple[tuple[int, ...], ...], expected: str) -> None:
    """Every partition has as many replicas, each on another broker."""
    assert _agrees(list(broker_rules.assignment_faults(assignment)), expected)


@pytest.mark.parametrize(("config", "expected"), CONFIGS)
def test_configs(config: dict[str, Any], expected: str) -> None:
    """A key that no topic has, or a value that no broker takes, is refused with the range."""
    assert _agrees(list(broker_rules.config_faults(config, FACTS)), expected)


def test_a_mistyped_config_gets_a_suggestion() -> None:
    """The nearest real key is proposed."""
    ((_, advice),) = broker_rules.config_faults({"retension.ms": "1"}, FACTS)
    assert advice == 'Did you mean "retention.ms"?'


@pytest.mark.parametrize(
    "key", ["confluent.tier.enable", "retention.local.target.bytes", "write.caching"]
)
def test_a_config_of_another_distribution_is_left_to_the_broker(key: str) -> None:
    """It is no fault, offline or in a plan, and the plan says who decides."""
    faults = [*broker_rules.config_faults({key: "1"}, FACTS)]
    assert not [*faults, *broker_rules.spelling_faults({key: "1"})]
    config = {key: "1", "retention.ms": "1", "flush.ms": None}
    ((text, _),) = broker_rules.unknown_warnings(config, FACTS)
    assert f"no topic config {key}; a broker that does not know it refuses it" in text


@pytest.mark.parametrize(
    ("config", "certain"),
    [
        ({"cleanup.policy": "compct"}, True),
        ({"cleanup.policy": "compact, DELETE"}, True),
        ({"cleanup.policy": "tier"}, False),
        ({"retention.ms": "7d"}, True),
        ({"retention.ms": " +7 "}, False),
        ({"segment.bytes": "14"}, False),
        ({"min.cleanable.dirty.ratio": "half"}, True),
        ({"preallocate": "TRUE"}, False),
        ({"retention.mss": "1"}, True),
        ({"message.format.version": "2.8"}, False),
        ({"retention.ms": None}, False),
    ],
)
def test_what_no_version_of_kafka_takes(config: dict[str, Any], certain: bool) -> None:
    """`validate` refuses typing errors. Limits and words of other versions are left to a plan."""
    assert bool([*broker_rules.spelling_faults(config)]) == certain


def test_a_time_that_is_no_number_names_the_function() -> None:
    """Whoever writes 7d learns how to write it."""
    ((_, advice),) = broker_rules.spelling_faults({"retention.ms": "7d"})
    assert advice == 'write the number (ms), or retention("7d"), for example'


def test_a_config_that_newer_brokers_lost_says_what_replaced_it() -> None:
    """A key that Kafka 4 removed is explained, not just unknown."""
    ((_, advice),) = broker_rules.config_faults({"message.timestamp.difference.max.ms": "1"}, FACTS)
    assert "message.timestamp.before.max.ms" in advice


def test_the_table_of_configs_is_complete_and_accepts_its_own_defaults() -> None:
    """Kafka 4.3 has 33 public topic configs, and each default is a legal value."""
    assert len(TOPIC_KEYS) == 33
    defaults = {name: key.default for name, key in TOPIC_KEYS.items()}
    assert list(broker_rules.config_faults(defaults, FACTS)) == []


def test_a_topic_larger_than_one_metadata_batch_is_refused() -> None:
    """10,000 records is the most that the controller commits at once."""
    assert list(broker_rules.size_faults(9_999, 0)) == []
    assert list(broker_rules.size_faults(10_000, 0))
