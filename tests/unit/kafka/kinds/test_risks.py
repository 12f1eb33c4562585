"""The risk tables: every config of Kafka 4.3 has a row, and the rows say what hurts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kafkaform.core.change import Action, Change, PathChange
from kafkaform.core.legacy import RiskKind
from kafkaform.core.resource import Facts, Identity
from kafkaform.core.value import FrozenMap
from kafkaform_kafka.kinds.config import risks as config_risks
from kafkaform_kafka.kinds.config.resource_type import SCOPES, TYPES
from kafkaform_kafka.kinds.topic.config_risks import (
    JUDGES,
    Retention,
    find_new_retention,
    find_topic_config_risks,
    find_topic_unit,
)
from kafkaform_kafka.kinds.topic.risks import find_topic_risks
from kafkaform_kafka.protocol.broker_keys import UpdateMode, broker_keys, find_broker_key
from kafkaform_kafka.protocol.config_keys import ALL_TOPIC_KEYS, GROUP_KEYS, METRICS_KEYS

FACTS = Facts("cluster", ("1", "2", "3"))
DAY = 86_400_000


def update(
    before: Mapping[str, str], after: Mapping[str, str], effective: Mapping[str, str] | None = None
) -> Change:
    """An update of a topic's overrides. effective: what takes effect of those that go."""
    paths = tuple(
        PathChange(("config", key), before.get(key), after.get(key), (effective or {}).get(key))
        for key in sorted({*before, *after})
        if before.get(key) != after.get(key)
    )
    identity = Identity("kafka", "kafka_topic", "t")
    sides = [FrozenMap(name="t", config=FrozenMap(side)) for side in (before, after)]
    return Change(identity, "kafka_topic.t", Action.UPDATE, *sides, paths)


def kinds(change: Change) -> list[str]:
    return [risk.kind.value for risk in find_topic_risks(change, FACTS)]


def test_every_topic_config_has_a_row() -> None:
    """A config of any Kafka that the table lacks would never be marked."""
    assert set(JUDGES) == set(ALL_TOPIC_KEYS)


def test_every_dynamic_broker_config_has_a_row() -> None:
    """Configs that need a restart cannot be declared, but for those of one listener's login."""
    known = broker_keys()
    dynamic = {name for name, key in known.items() if key.mode is not UpdateMode.READ_ONLY}
    assert dynamic <= set(config_risks.BROKER_HARMS)
    assert all(find_broker_key(name) for name in config_risks.BROKER_HARMS)


def test_every_group_and_metrics_config_has_a_row() -> None:
    """Both tables name exactly what Kafka 4.3 has."""
    assert set(config_risks.GROUP_HARMS) == set(GROUP_KEYS)
    assert set(config_risks.METRICS_HARMS) == set(METRICS_KEYS)
    assert all(scope.harms for scope in SCOPES) and all(kind.risks for kind in TYPES)


@pytest.mark.parametrize("key", sorted(JUDGES))
def test_every_row_can_be_asked(key: str) -> None:
    """Every config in both directions between two values that differ: a judge never fails, and
    each risk names the config first and has no final stop."""
    known = ALL_TOPIC_KEYS[key]
    low, high = ("1", "1000000") if known.kind in ("int", "long") else ("0.1", "0.9")
    if known.kind == "boolean":
        low, high = "false", "true"
    elif known.choices:
        low, high = known.choices[0], known.choices[1]
    elif known.kind == "list":
        low, high = "0:1", "*"
    for one, other in ((low, high), (high, low)):
        for risk in find_topic_risks(update({key: one}, {key: other}), FACTS):
            assert risk.text.startswith(f"{key}: ") and not risk.text.endswith(".")
            assert risk.path == ("config", key)


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ({"retention.ms": "2592000000"}, {"retention.ms": "1000"}, ["data-loss"]),
        ({"retention.ms": "1000"}, {"retention.ms": "2592000000"}, []),
        ({"retention.ms": "-1"}, {"retention.ms": "2592000000"}, ["data-loss"]),
        ({"retention.ms": "1000"}, {"retention.ms": "-1"}, []),
        ({}, {"retention.ms": "1000"}, ["data-loss"]),
        ({}, {"retention.ms": "2592000000"}, []),
        ({}, {"retention.bytes": "1"}, ["data-loss"]),
        ({"retention.bytes": "1"}, {}, []),
        ({"cleanup.policy": "compact"}, {"cleanup.policy": "delete"}, ["data-loss", "ordering"]),
        (
            {"cleanup.policy": "delete"},
            {"cleanup.policy": "compact"},
            ["data-loss", "refused-writes"],
        ),
        ({"cleanup.policy": "compact"}, {"cleanup.policy": "compact,delete"}, ["data-loss"]),
        ({}, {"max.message.bytes": "1000"}, ["refused-writes"]),
        ({"max.message.bytes": "1000"}, {}, []),
        ({}, {"unclean.leader.election.enable": "true"}, ["availability"]),
        ({"unclean.leader.election.enable": "true"}, {}, ["availability"]),
        ({"min.insync.replicas": "1"}, {"min.insync.replicas": "2"}, ["availability"]),
        ({}, {"segment.bytes": "1048576"}, []),
        ({"remote.storage.enable": "true"}, {"remote.storage.enable": "false"}, ["data-loss"]),
    ],
)
def test_what_hurts_is_marked(
    before: dict[str, str], after: dict[str, str], found: list[str]
) -> None:
    """Cuts of retention, another cleanup, smaller messages, elections: each with its kind."""
    assert kinds(update(before, after)) == found


def test_retention_of_a_compacted_topic_deletes_nothing() -> None:
    """Kafka ignores retention.ms where cleanup.policy has no delete."""
    before = {"cleanup.policy": "compact", "retention.ms": "1000000"}
    assert kinds(update(before, {**before, "retention.ms": "1000"})) == []


def test_a_removed_override_is_judged_by_what_takes_effect() -> None:
    """30 days that fall back to the cluster's one hour lose data."""
    change = update({"retention.ms": str(30 * DAY)}, {}, {"retention.ms": "3600000"})
    (risk,) = find_topic_risks(change, FACTS)
    assert risk.text == "retention.ms: records older than 1 h (3600000) are deleted"
    assert find_new_retention(change, FACTS) == Retention(3_600_000, None)


def test_what_the_cluster_has_by_default_is_what_an_override_replaces() -> None:
    """A cluster that keeps records for an hour loses nothing by a topic's two hours."""
    facts = Facts(
        "c", ("1",), values=FrozenMap(topic_defaults=FrozenMap({"retention.ms": "3600000"}))
    )
    change = update({}, {"retention.ms": "7200000"})
    assert list(find_topic_risks(change, facts)) == []


def override(action: Action, value: str, effective: str | None = None) -> Change:
    """A `kafka_topic_config` that comes or goes with one override of retention.ms."""
    there = FrozenMap(topic="t", config=FrozenMap({"retention.ms": value}))
    sides = (None, there) if action is Action.CREATE else (there, None)
    values = (None, value) if action is Action.CREATE else (value, None)
    path = PathChange(("config", "retention.ms"), *values, effective)
    identity = Identity("kafka", "kafka_topic_config", "t")
    return Change(identity, "kafka_topic_config.t", action, *sides, (path,))


def test_overrides_of_a_topic_that_is_there_already() -> None:
    """A new `kafka_topic_config` block cuts the retention of a topic that has data, and so does
    one that goes, if what takes effect then is shorter."""
    cut = find_topic_config_risks(override(Action.CREATE, "1000"), FACTS)
    assert [risk.kind for risk in cut] == [RiskKind.DATA_LOSS]
    gone = override(Action.DELETE, "-1", "3600000")
    assert [risk.kind for risk in find_topic_config_risks(gone, FACTS)] == [RiskKind.DATA_LOSS]
    assert find_new_retention(gone, FACTS) == Retention(3_600_000, None)
    assert not find_topic_config_risks(override(Action.CREATE, str(30 * DAY)), FACTS)
    assert not find_topic_config_risks(override(Action.DELETE, "1000", "3600000"), FACTS)


def test_topics_and_their_replicas() -> None:
    """A deletion, fewer replicas and more partitions."""
    identity = Identity("kafka", "kafka_topic", "t")
    gone = Change(identity, "kafka_topic.t", Action.DELETE, FrozenMap(name="t"))
    assert kinds(gone) == ["data-loss"]
    before = FrozenMap(name="t", partitions=3, replication_factor=3)
    after = FrozenMap(name="t", partitions=6, replication_factor=2)
    assert kinds(Change(identity, "a", Action.UPDATE, before, after)) == [
        "ordering",
        "availability",
    ]
    made = Change(identity, "a", Action.CREATE, None, FrozenMap(name="t"))
    assert kinds(made) == []


def test_units_are_those_of_the_keys() -> None:
    """Times in milliseconds and sizes in bytes, nothing for the rest."""
    assert find_topic_unit(("config", "retention.ms")) == "ms"
    assert find_topic_unit(("config", "segment.bytes")) == "bytes"
    assert find_topic_unit(("config", "cleanup.policy")) == ""
    assert find_topic_unit(("partitions",)) == ""


def config_change(kind: str, key: str, before: Any, after: Any, effective: Any = None) -> Change:
    item = PathChange(("config", key), before, after, effective)
    return Change(Identity("kafka", kind, "1"), f"{kind}.a", Action.UPDATE, paths=(item,))


@pytest.mark.parametrize(
    ("key", "before", "after", "found"),
    [
        ("log.retention.ms", None, "1000", [RiskKind.DATA_LOSS]),
        ("log.retention.ms", "1000", "-1", []),
        ("min.insync.replicas", "1", "2", [RiskKind.AVAILABILITY]),
        ("max.connections", None, "5", [RiskKind.ACCESS]),
        ("max.connections", "5", None, []),
        ("ssl.client.auth", "none", "required", [RiskKind.ACCESS]),
        ("listener.name.sasl.ssl.client.auth", "none", "required", [RiskKind.ACCESS]),
        ("unclean.leader.election.enable", None, "true", [RiskKind.AVAILABILITY]),
        ("log.cleaner.threads", "4", "1", []),
        ("my.plugin.key", "4", "1", []),
    ],
)
def test_broker_configs(key: str, before: Any, after: Any, found: list[RiskKind]) -> None:
    """By the same rules on one broker and on all; a plugin's config is nobody's business."""
    for kind in TYPES[:2]:
        assert kind.risks is not None
        risks = kind.risks(config_change(kind.name, key, before, after), FACTS)
        assert [risk.kind for risk in risks] == found
