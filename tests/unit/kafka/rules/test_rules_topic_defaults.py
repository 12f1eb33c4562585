"""Rules of defaults: what a change of cluster or broker does to the topics that follow it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from kafkaform.core.change import Action, Change, PathChange
from kafkaform.core.finding import Finding, Harm, Level
from kafkaform.core.resource import (
    Coverage,
    CoverageKind,
    Depth,
    Facts,
    Fault,
    FaultClass,
    Identity,
    Observed,
    Sweep,
)
from kafkaform.core.value import EMPTY, FrozenMap, freeze
from kafkaform_kafka.kinds.topic.configs import find_default_change, list_default_keys
from kafkaform_kafka.protocol.config_keys import ALL_TOPIC_KEYS
from kafkaform_kafka.rules.book import list_needs

from ....kit.kafka.changes import FACTS, change, facts, topic
from ....kit.kafka.judgement import survey

CLUSTER, BROKER = "kafka_cluster_config", "kafka_broker_config"
HOUR, DAY = "3600000", "86400000"
RETENTION = "log.retention.ms"


def set_default(
    *items: tuple[str, str | None, str | None],
    effective: str | None = None,
    broker: str = "",
    action: Action = Action.UPDATE,
) -> Change:
    """A change of defaults. items: config, value before and after; broker: empty for the
    cluster."""
    paths = tuple(PathChange(("config", key), old, new, effective) for key, old, new in items)
    kind, key = (BROKER, broker) if broker else (CLUSTER, "default")
    before, after = (
        FrozenMap(config=FrozenMap({item.path[1]: value for item, value in pairs if value}))
        for pairs in (
            [(item, item.before) for item in paths],
            [(item, item.after) for item in paths],
        )
    )
    return Change(Identity("kafka", kind, key), f"{kind}.x", action, before, after, paths)


def observe(name: str, brokers: Sequence[int] = (1, 2), **config: str) -> Observed:
    """A live topic with one partition on these brokers. config: its overrides, with `_` for `.`."""
    attributes: dict[str, Any] = {
        "name": name,
        "partitions": 1,
        "replication_factor": len(brokers),
        "replica_assignment": (tuple(brokers),),
        "config": {key.replace("_", "."): value for key, value in config.items()},
    }
    return Observed(
        Identity("kafka", "kafka_topic", name),
        FrozenMap(freeze(attributes)),  # type: ignore[arg-type]
    )


def sweep(*topics: Observed, brokers: Mapping[str, Mapping[str, str]] = EMPTY) -> dict[str, Sweep]:
    """The listings. brokers: id -> configs of its own."""
    visible = Coverage(CoverageKind.VISIBLE_ONLY)
    own = tuple(
        Observed(
            Identity("kafka", BROKER, key),
            FrozenMap(broker_id=int(key), config=FrozenMap(dict(config))),
        )
        for key, config in brokers.items()
    )
    return {
        "kafka_topic": Sweep("kafka_topic", Depth.FULL, topics, visible),
        BROKER: Sweep(BROKER, Depth.FULL, own, visible),
    }


def find(
    changes: Change | Sequence[Change], sweeps: Mapping[str, Sweep], known: Facts = FACTS
) -> list[Finding]:
    """What is found about the defaults."""
    asked = [changes] if isinstance(changes, Change) else list(changes)
    pairs = survey(asked, sweeps, known)
    return [item for identity, item in pairs if identity and identity.kind in (CLUSTER, BROKER)]


TWELVE = [observe(f"t{number:02}") for number in range(12)]
KEPT = observe("kept", retention_ms="-1")


def test_a_lower_default_names_and_counts_the_topics_that_follow_it() -> None:
    """As many as there are, ten by name, all of them in the figures; overrides keep their value."""
    (finding,) = find(set_default((RETENTION, None, HOUR)), sweep(*TWELVE, KEPT))
    assert (finding.rule, finding.level, finding.harm, finding.path) == (
        "topic-retention-cut",
        Level.DANGER,
        Harm.DATA_LOSS,
        ("config", RETENTION),
    )
    assert finding.text == (
        "retention.ms 7 d (default) → 1 h: records older than that are deleted, in 12 topics "
        "without an override of their own: t00, t01, t02, t03, t04, t05, t06, t07, t08, t09 and 2 "
        "more"
    )
    assert finding.figures == FrozenMap(
        objects=12,
        of_objects=13,
        kind="kafka_topic",
        topics=tuple(f"t{number:02}" for number in range(12)),
    )


def test_a_default_that_nobody_follows_harms_nothing() -> None:
    """Every topic has its own value, or only compaction decides, or there are no topics."""
    change = set_default((RETENTION, None, HOUR))
    assert find(change, sweep(KEPT)) == []
    assert find(change, sweep(observe("c", cleanup_policy="compact"))) == []
    assert find(change, sweep()) == []


CASES: tuple[tuple[str, str | None, str | None, list[str]], ...] = (
    # config, value before and after, the rules
    (RETENTION, None, "-1", []),
    (RETENTION, DAY, HOUR, ["topic-retention-cut"]),
    (RETENTION, "-1", None, ["topic-retention-cut"]),
    (RETENTION, HOUR, None, []),
    ("log.retention.bytes", None, "1048576", ["topic-size-cut"]),
    (
        "log.cleanup.policy",
        None,
        "compact",
        ["topic-compaction-started", "topic-expiry-stopped", "topic-keyless-refused"],
    ),
    ("message.max.bytes", None, "1000", ["topic-batches-refused"]),
    ("message.max.bytes", "1000", None, []),
    ("min.insync.replicas", "1", "2", ["topic-all-insync-required"]),
    ("min.insync.replicas", "2", "1", ["topic-min-insync-lowered"]),
    ("min.insync.replicas", "1", "3", ["topic-min-insync-above-replicas"]),
    ("unclean.leader.election.enable", None, "true", ["topic-unclean-election"]),
    ("log.message.timestamp.type", None, "LogAppendTime", ["topic-timestamps-changed"]),
    ("log.message.timestamp.before.max.ms", None, HOUR, ["topic-timestamps-refused"]),
    ("compression.type", None, "zstd", ["topic-recompressed"]),
    ("log.flush.interval.messages", None, "1", ["topic-flushed-more"]),
    ("log.local.retention.ms", None, HOUR, []),
    ("log.segment.bytes", None, "1048576", []),
    ("log.cleaner.threads", None, "2", []),
)


@pytest.mark.parametrize(("key", "before", "after", "rules"), CASES)
def test_defaults_are_judged_by_the_rules_of_topics(
    key: str, before: str | None, after: str | None, rules: list[str]
) -> None:
    """For the cluster and for one broker, each with the topics that it concerns."""
    for broker in ("", "1"):
        findings = find(set_default((key, before, after), broker=broker), sweep(TWELVE[0], KEPT))
        # `kept` has an override of retention.ms only.
        own = ["kept"] if key != RETENTION else []
        assert sorted({item.rule for item in findings}) == rules
        for item in findings:
            assert item.path == ("config", key)
            assert item.figures["topics"] == (*own, "t00")


def test_cluster_wide_compaction_refuses_records_without_a_key_and_deletes_them() -> None:
    """Both are said of every topic that follows."""
    texts = [
        item.text
        for item in find(set_default(("log.cleanup.policy", None, "compact")), sweep(TWELVE[0]))
    ]
    where = "in 1 topic without an override of its own: t00"
    assert texts[0] == (
        "cleanup.policy delete (default) → compact: compaction deletes all but the latest record "
        f"of each key, and every record without a key, {where}"
    )
    assert f"records without a key are refused, {where}" in texts[1]


def test_topics_that_begin_to_expire_do_so_by_their_own_limits() -> None:
    """Deletion is added to compaction: each topic has the limits by which it is measured."""
    topics = (
        *TWELVE[:2],
        observe("short", retention_ms=HOUR),
        observe("sized", retention_bytes="9"),
    )
    change = set_default(("log.cleanup.policy", "compact", "compact,delete"))
    findings = find(change, sweep(*topics, KEPT))
    assert {item.rule for item in findings} == {"topic-expiry-started"}
    assert {(item.figures["topics"], item.figures["limits"]) for item in findings} == {
        (("t00", "t01"), ("retention.ms=604800000", "retention.bytes=-1")),
        (("short",), (f"retention.ms={HOUR}", "retention.bytes=-1")),
        (("sized",), ("retention.ms=604800000", "retention.bytes=9")),
    }
    assert "in 2 topics without an override of their own: t00, t01" in findings[0].text


def test_a_broker_concerns_the_topics_of_which_it_has_replicas() -> None:
    """Others keep what their brokers have."""
    topics = (observe("here", (1, 2)), observe("there", (2, 3)))
    (finding,) = find(set_default((RETENTION, None, HOUR), broker="1"), sweep(*topics))
    assert finding.figures["topics"] == ("here",)
    assert finding.text.endswith(
        "in the replicas that the broker has of 1 topic without an override: here"
    )
    assert find(set_default((RETENTION, None, HOUR), broker="4"), sweep(*topics)) == []


def test_brokers_with_values_of_their_own_do_not_follow_the_cluster() -> None:
    """If all have one, nothing changes; if one has, the others follow."""
    change = set_default((RETENTION, None, HOUR))
    own = {RETENTION: "-1"}
    every = sweep(*TWELVE, brokers=dict.fromkeys("123", own))
    assert find(change, every) == []
    (finding,) = find(change, sweep(*TWELVE, brokers={"2": own}))
    assert finding.rule == "topic-retention-cut"


def test_what_takes_effect_below_a_default_counts() -> None:
    """server.properties, as the brokers report them, and what a removal leaves."""
    static = facts(topic_defaults=FrozenMap({"retention.ms": HOUR}))
    assert find(set_default((RETENTION, None, DAY)), sweep(TWELVE[0]), static) == []
    change = set_default((RETENTION, DAY, None), effective=HOUR)
    (finding,) = find(change, sweep(TWELVE[0]))
    assert finding.text.startswith("retention.ms 1 d → 1 h (default): ")
    deletion = set_default((RETENTION, "-1", None), action=Action.DELETE)
    assert find(deletion, sweep(TWELVE[0]))[0].text.startswith("retention.ms no limit → 7 d (def")


def test_topics_are_judged_as_the_same_plan_leaves_them() -> None:
    """One that gets an override, is deleted or created does not follow; one whose override goes
    does."""
    default = set_default((RETENTION, None, HOUR))
    pinned = change(Action.UPDATE, topic("t00"), topic("t00", config={"retention.ms": "-1"}))
    deleted = change(Action.DELETE, topic("t01"), None)
    created = change(Action.CREATE, None, topic("new"))
    freed = change(
        Action.DELETE,
        {"topic": "kept", "config": {"retention.ms": "-1"}},
        None,
        kind="kafka_topic_config",
    )
    changes = (default, pinned, deleted, created, freed)
    (finding,) = find(changes, sweep(*TWELVE[:3], KEPT))
    assert finding.figures["topics"] == ("kept", "t02")


def test_topics_that_cannot_be_listed_are_not_counted() -> None:
    """The finding stays, and says that nobody knows the topics."""
    fault = Fault("TIMEOUT", "no answer", FaultClass.AMBIGUOUS)
    failed = Sweep("kafka_topic", Depth.FULL, (), Coverage(CoverageKind.FAILED, fault))
    (finding,) = find(set_default((RETENTION, None, HOUR)), {"kafka_topic": failed})
    assert finding.text.endswith(
        "in all topics without an override of their own; the topics could not be listed"
    )
    assert "objects" not in finding.figures


def test_topics_with_other_replicas_have_a_sentence_of_their_own() -> None:
    """min.insync.replicas means something else for each number of replicas."""
    findings = find(
        set_default(("min.insync.replicas", "1", "2")),
        sweep(observe("one", (1,)), observe("two", (1, 2)), observe("three", (1, 2, 3))),
    )
    assert {(item.rule, item.figures["topics"]) for item in findings} == {
        ("topic-min-insync-above-replicas", ("one",)),
        ("topic-all-insync-required", ("two",)),
        ("topic-min-insync-raised", ("three",)),
    }


def test_only_changed_defaults_need_a_listing() -> None:
    """Of all topics in full; for the cluster also of the brokers."""
    assert list_needs([set_default((RETENTION, None, HOUR))]) == {
        "kafka_topic": Depth.FULL,
        BROKER: Depth.FULL,
    }
    assert list_needs([set_default((RETENTION, None, HOUR), broker="1")]) == {
        "kafka_topic": Depth.FULL
    }
    assert list_needs([set_default(("log.cleaner.threads", None, "2"))]) == {}
    assert list_needs([set_default((RETENTION, None, HOUR), action=Action.NOOP)]) == {}


def test_every_default_has_a_topic_config() -> None:
    """Only configs that can be changed without a restart, and none twice."""
    keys = list_default_keys()
    assert set(keys.values()) <= set(ALL_TOPIC_KEYS)
    assert len(set(keys.values())) == len(keys)
    assert "log.retention.hours" not in keys and keys[RETENTION] == "retention.ms"


def test_two_defaults_of_one_change_are_judged_together() -> None:
    """A retention that is cut where nothing expires any more deletes nothing."""
    change = set_default((RETENTION, None, HOUR), ("log.cleanup.policy", None, "compact"))
    rules = {item.rule for item in find(change, sweep(TWELVE[0]))}
    assert "topic-retention-cut" not in rules and "topic-compaction-started" in rules
    after = find_default_change(change, FACTS).after
    assert (after["retention.ms"], after["cleanup.policy"]) == (HOUR, "compact")
