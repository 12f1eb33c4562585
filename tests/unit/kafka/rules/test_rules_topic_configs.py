"""Rules of topic configs: what a change of the values that take effect does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kafkaform.core.change import Action, Change, PathChange
from kafkaform.core.finding import Harm, Level
from kafkaform.core.resource import Coverage, CoverageKind, Depth, Facts, Identity, Observed, Sweep
from kafkaform.core.value import FrozenMap
from kafkaform_kafka.kinds.topic.configs import Retention, find_new_retention, find_topic_unit
from kafkaform_kafka.protocol.config_keys import ALL_TOPIC_KEYS
from kafkaform_kafka.provider import PROVIDER
from kafkaform_kafka.rules.topics import configs as topic_configs
from kafkaform_kafka.rules.topics.configs import TopicConfigs, judge_topic_configs

from ....kit.kafka.changes import FACTS, change, facts, topic
from ....kit.kafka.judgement import find_rule, judge, name_rules, survey

DAY = 86_400_000
NOW, OLD = facts(kafka_version="4.3"), facts(kafka_version="3.6")
MIN = "min.insync.replicas"


def update(
    before: Mapping[str, str],
    after: Mapping[str, str],
    effective: Mapping[str, str] | None = None,
    replicas: tuple[int, int] = (3, 3),
) -> Change:
    """An update of a topic's overrides. effective: what takes effect of those that go."""
    old, new = (
        topic("t", config=dict(config), replication_factor=number)
        for config, number in zip((before, after), replicas, strict=True)
    )
    paths = tuple(
        PathChange(("config", key), before.get(key), after.get(key), (effective or {}).get(key))
        for key in sorted({*before, *after})
        if before.get(key) != after.get(key)
    )
    edit = change(Action.UPDATE, old, new)
    return Change(edit.identity, edit.address, edit.action, edit.before, edit.after, paths)


COMPACT, BOTH, LOG_TIME = (
    {"cleanup.policy": "compact"},
    {"cleanup.policy": "compact,delete"},
    {"message.timestamp.type": "LogAppendTime"},
)
REMOTE = {"remote.storage.enable": "true"}
CASES: tuple[tuple[str, Mapping[str, str], Mapping[str, str], str], ...] = (
    # rule, overrides before and after, the sentence
    (
        "topic-retention-cut",
        {},
        {"retention.ms": "3600000"},
        "retention.ms 7 d (default) → 1 h: records older than that are deleted",
    ),
    (
        "topic-retention-cut",
        {"retention.ms": "-1"},
        {"retention.ms": "600000000"},
        "retention.ms no limit → 6.94 d (600000000 ms): records older than that are deleted",
    ),
    (
        "topic-size-cut",
        {},
        {"retention.bytes": "1073741824"},
        "retention.bytes no limit (default) → 1 GiB: the oldest records of each partition that is "
        "larger are deleted",
    ),
    (
        "topic-compaction-started",
        {},
        COMPACT,
        "cleanup.policy delete (default) → compact: compaction deletes all but the latest record "
        "of each key, and every record without a key",
    ),
    (
        "topic-keyless-refused",
        {},
        BOTH,
        "cleanup.policy delete (default) → compact,delete: records without a key are refused",
    ),
    (
        "topic-compaction-stopped",
        COMPACT,
        {},
        "cleanup.policy compact → delete (default): the topic is no longer compacted, so it keeps "
        "every new record of a key",
    ),
    (
        "topic-expiry-started",
        COMPACT,
        BOTH,
        "cleanup.policy compact → compact,delete: records are deleted once they are older than 7 "
        "d, also the latest of each key",
    ),
    (
        "topic-expiry-started",
        {**COMPACT, "retention.ms": "-1", "retention.bytes": "1048576"},
        {"retention.ms": "-1", "retention.bytes": "1048576"},
        "cleanup.policy compact → delete (default): records are deleted beyond 1 MiB of a "
        "partition, also the latest of each key",
    ),
    (
        "topic-expiry-stopped",
        BOTH,
        COMPACT,
        "cleanup.policy compact,delete → compact: nothing is deleted because of its age or size "
        "any more, the latest record of each key is kept for ever, and disks can fill up",
    ),
    (
        "topic-expiry-stopped",
        {},
        {"cleanup.policy": ""},
        "cleanup.policy delete (default) → (empty): nothing is deleted because of its age or size "
        "any more, records are kept for ever, and disks can fill up",
    ),
    (
        "topic-unclean-election",
        {},
        {"unclean.leader.election.enable": "true"},
        "unclean.leader.election.enable false (default) → true: acknowledged records are lost when "
        "a replica that lags behind becomes leader",
    ),
    (
        "topic-clean-election",
        {"unclean.leader.election.enable": "true"},
        {},
        "unclean.leader.election.enable true → false (default): a partition stays offline until a "
        "replica that was in sync returns",
    ),
    (
        "topic-remote-data-deleted",
        REMOTE,
        {"remote.storage.enable": "false"},
        "remote.storage.enable true → false: all data in remote storage is deleted",
    ),
    (
        "topic-remote-data-at-risk",
        REMOTE,
        {**REMOTE, "remote.log.delete.on.disable": "true"},
        "remote.log.delete.on.disable false (default) → true: all data in remote storage is "
        "deleted once remote.storage.enable is set to false",
    ),
    (
        "topic-old-consumers-refused",
        {},
        {"message.downconversion.enable": "false"},
        "message.downconversion.enable true (default) → false: consumers before Kafka 0.11 cannot "
        "read the topic any more",
    ),
    (
        "topic-batches-refused",
        {},
        {"max.message.bytes": "1000"},
        "max.message.bytes 1 MiB (1048588 B) (default) → 1000 B: record batches over 1000 B are "
        "refused",
    ),
    (
        "topic-timestamps-refused",
        {},
        {"message.timestamp.before.max.ms": "60000"},
        "message.timestamp.before.max.ms no limit (default) → 1 min: records whose timestamp is "
        "more than 1 min in the past are refused",
    ),
    (
        "topic-timestamps-refused",
        LOG_TIME,
        {},
        "message.timestamp.after.max.ms 1 h takes effect: records whose timestamp is more than 1 h "
        "in the future are refused",
    ),
    (
        "topic-timestamps-changed",
        {},
        LOG_TIME,
        "message.timestamp.type CreateTime (default) → LogAppendTime: new records get the broker's "
        "time, and retention goes by it",
    ),
    (
        "topic-tombstones-missed",
        COMPACT,
        {**COMPACT, "delete.retention.ms": "1000"},
        "delete.retention.ms 1 d (default) → 1 s: a consumer that is more than 1 s behind misses "
        "deletions of keys",
    ),
    (
        "topic-tombstones-missed",
        COMPACT,
        {**COMPACT, "delete.retention.ms": "0"},
        "delete.retention.ms 1 d (default) → 0 ms: a consumer that is behind misses deletions of "
        "keys",
    ),
    (
        "topic-old-values-missed",
        COMPACT,
        {**COMPACT, "max.compaction.lag.ms": "3600000"},
        "max.compaction.lag.ms no limit (default) → 1 h: a consumer that is more than 1 h behind "
        "misses older records of a key",
    ),
    (
        "topic-recompressed",
        {},
        {"compression.type": "gzip"},
        "compression.type producer (default) → gzip: brokers recompress batches that are not gzip, "
        "which costs them processor time",
    ),
    (
        "topic-flushed-more",
        {},
        {"flush.messages": "1"},
        "flush.messages no limit (default) → 1: brokers write each partition to disk after that "
        "many records",
    ),
    (
        "topic-flushed-more",
        {},
        {"flush.ms": "1000"},
        "flush.ms no limit (default) → 1 s: brokers write each partition to disk after that time",
    ),
    (
        "topic-local-data-cut",
        REMOTE,
        {**REMOTE, "local.retention.ms": "3600000"},
        "local.retention.ms as retention.ms (default) → 1 h: consumers read records that are older "
        "than 1 h from remote storage",
    ),
    (
        "topic-local-data-cut",
        {"local.retention.bytes": "1048576"},
        {"local.retention.bytes": "1048576", **REMOTE},
        "local.retention.bytes 1 MiB takes effect: consumers read records beyond 1 MiB of a "
        "partition from remote storage",
    ),
)


@pytest.mark.parametrize(("rule", "before", "after", "text"), CASES)
def test_each_rule_fires(
    rule: str, before: Mapping[str, str], after: Mapping[str, str], text: str
) -> None:
    """One sentence in people's units, at the config that causes it."""
    (finding,) = (item for item in judge(update(before, after)) if item.rule == rule)
    assert finding.text == text
    assert finding.path[0] == "config" and finding.path[1] == text.split()[0]


ZSTD = "topic-zstd-consumers-refused"
HARMFUL = {rule.id for rule in topic_configs.RULES}
QUIET: tuple[tuple[str, Mapping[str, str], Mapping[str, str]], ...] = (
    ("a longer retention", {"retention.ms": "1000"}, {"retention.ms": str(30 * DAY)}),
    ("no retention limit", {"retention.ms": "1000"}, {"retention.ms": "-1"}),
    ("a larger size", {"retention.bytes": "1"}, {}),
    ("a retention without expiry", COMPACT, {**COMPACT, "retention.ms": "1000"}),
    ("a size without expiry", COMPACT, {**COMPACT, "retention.bytes": "1000"}),
    ("larger batches", {"max.message.bytes": "1000"}, {}),
    ("segments", {}, {"segment.bytes": "1048576", "segment.ms": "1000"}),
    (
        "limits of times that the broker sets",
        LOG_TIME,
        {**LOG_TIME, "message.timestamp.before.max.ms": "1"},
    ),
    ("deletions without compaction", {}, {"delete.retention.ms": "1"}),
    ("a lag without compaction", {}, {"max.compaction.lag.ms": "1", "min.compaction.lag.ms": "1"}),
    ("local data without remote storage", {}, {"local.retention.ms": "1000"}),
    ("remote deletion without remote storage", {}, {"remote.log.delete.on.disable": "true"}),
    ("the producers' compression", {"compression.type": "zstd"}, {}),
    ("another level", {}, {"compression.zstd.level": "9"}),
    ("fewer flushes", {"flush.messages": "1"}, {"flush.messages": "2"}),
    ("the same order of policies", BOTH, {"cleanup.policy": "delete,compact"}),
)


@pytest.mark.parametrize(
    ("before", "after"), [case[1:] for case in QUIET], ids=[c[0] for c in QUIET]
)
def test_what_does_no_harm_is_quiet(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """No finding about what takes less away, or what has no effect."""
    assert judge(update(before, after)) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [("retention.ms", "-2"), ("retention.ms", "x"), ("max.message.bytes", "-1"), (MIN, "0")],
)
def test_a_value_that_no_broker_takes_does_nothing(key: str, value: str) -> None:
    """The change is blocked, and nothing is claimed about records older than -2."""
    assert name_rules(judge(update({}, {key: value}))) == ["topic-config-value-invalid"]


def test_zstd_stops_old_consumers_of_old_brokers() -> None:
    """Brokers of Kafka 4 send them what they cannot unpack, and refuse nobody."""
    edit = update({}, {"compression.type": "zstd"})
    (finding,) = (item for item in judge(edit, OLD) if item.rule == ZSTD)
    assert finding.text == (
        "compression.type producer (default) → zstd: consumers before Kafka 2.1 cannot read the "
        "topic any more"
    )
    assert ZSTD not in name_rules(judge(edit, NOW))
    assert ZSTD not in name_rules(judge(update({}, {"compression.type": "gzip"}), OLD))


def test_every_rule_has_a_case() -> None:
    """A rule that nobody saw firing is no rule."""
    assert {ZSTD, *(case[0] for case in CASES)} == HARMFUL


def test_every_topic_config_is_judged_or_harmless() -> None:
    """A config that the tables lack would never be marked."""
    judged = {
        "cleanup.policy",
        "compression.type",
        MIN,
        *(limit.key for limit in topic_configs._LIMITS),
        *(switch.key for switch in topic_configs._SWITCHES),
    }
    assert judged | topic_configs.HARMLESS == set(ALL_TOPIC_KEYS)
    assert not judged & topic_configs.HARMLESS


@pytest.mark.parametrize("key", sorted(ALL_TOPIC_KEYS))
def test_every_config_can_be_judged(key: str) -> None:
    """Every config in both directions between two values that differ."""
    config = ALL_TOPIC_KEYS[key]
    low, high = ("1", "1000000") if config.kind in ("int", "long") else ("0.1", "0.9")
    if config.kind == "boolean":
        low, high = "false", "true"
    elif config.choices:
        low, high = config.choices[0], config.choices[1]
    elif config.kind == "list":
        low, high = "0:1", "*"
    for one, other in ((low, high), (high, low)):
        rules = {item.rule for item in judge(update({key: one}, {key: other}))}
        assert key not in topic_configs.HARMLESS or not rules & HARMFUL


# ── replicas in sync ────────────────────────────────────────────────────────────────────

IN_SYNC = (
    # before, after, replicas before and after, facts, rule, level, sentence
    (
        {},
        {MIN: "3"},
        (2, 2),
        NOW,
        "topic-min-insync-above-replicas",
        Level.CAUTION,
        f"{MIN} 1 (default) → 3, but the topic has only 2 replicas: it protects no more than 2, "
        "and one broker that is down stops producers with acks=all",
    ),
    (
        {},
        {MIN: "2"},
        (1, 1),
        NOW,
        "topic-min-insync-above-replicas",
        Level.CAUTION,
        f"{MIN} 1 (default) → 2, but the topic has only 1 replica: it protects no more than 1",
    ),
    (
        {},
        {MIN: "3"},
        (2, 2),
        OLD,
        "topic-min-insync-unreachable",
        Level.DANGER,
        f"{MIN} 1 (default) → 3, but the topic has only 2 replicas: brokers refuse producers with "
        "acks=all",
    ),
    (
        {MIN: "2"},
        {MIN: "2"},
        (3, 1),
        OLD,
        "topic-min-insync-unreachable",
        Level.DANGER,
        f"{MIN} is 2, but the topic has only 1 replica: brokers refuse producers with acks=all",
    ),
    (
        {},
        {MIN: "3"},
        (3, 3),
        NOW,
        "topic-all-insync-required",
        Level.DANGER,
        f"{MIN} 1 (default) → 3, as many as the topic has replicas: one broker that is down stops "
        "producers with acks=all",
    ),
    (
        {MIN: "2"},
        {MIN: "2"},
        (3, 2),
        NOW,
        "topic-all-insync-required",
        Level.DANGER,
        f"{MIN} is 2, as many as the topic has replicas: one broker that is down stops producers "
        "with acks=all",
    ),
    (
        {},
        {MIN: "2"},
        (3, 3),
        NOW,
        "topic-min-insync-raised",
        Level.CAUTION,
        f"{MIN} 1 (default) → 2: producers with acks=all are refused while fewer than 2 replicas "
        "are in sync",
    ),
    (
        {MIN: "2"},
        {},
        (3, 3),
        NOW,
        "topic-min-insync-lowered",
        Level.DANGER,
        f"{MIN} 2 → 1 (default): a record counts as written at 1 of its 3 replicas, and is lost "
        "with it",
    ),
)


@pytest.mark.parametrize(
    ("before", "after", "replicas", "cluster", "rule", "level", "text"), IN_SYNC
)
def test_replicas_in_sync(
    before: Mapping[str, str],
    after: Mapping[str, str],
    replicas: tuple[int, int],
    cluster: Facts,
    rule: str,
    level: Level,
    text: str,
) -> None:
    """The number is held against the replicas, whichever of the two changes."""
    findings = judge(update(before, after, replicas=replicas), cluster)
    (finding,) = (item for item in findings if item.rule.startswith(("topic-min", "topic-all")))
    assert (finding.rule, finding.level, finding.text) == (rule, level, text)


def test_every_rule_of_replicas_in_sync_has_a_case() -> None:
    """As above."""
    assert {case[4] for case in IN_SYNC} == {rule.id for rule in topic_configs.IN_SYNC_RULES}


@pytest.mark.parametrize(
    ("before", "after", "replicas"),
    [
        ({MIN: "2"}, {MIN: "2", "retention.ms": "1000000000"}, (3, 3)),
        ({MIN: "2"}, {MIN: "2"}, (2, 3)),
        ({MIN: "5"}, {MIN: "4"}, (3, 3)),
        ({}, {MIN: "1"}, (1, 1)),
    ],
)
def test_replicas_in_sync_that_harm_nothing_new(
    before: Mapping[str, str], after: Mapping[str, str], replicas: tuple[int, int]
) -> None:
    """Neither of the two changes, there is one more replica, or the number was without effect
    before and says so again."""
    rules = name_rules(judge(update(before, after, replicas=replicas), NOW))
    assert [id for id in rules if "insync" in id] in ([], ["topic-min-insync-above-replicas"])
    assert ("topic-min-insync-above-replicas" in rules) == (before == {MIN: "5"})


def test_a_new_topic_is_judged_from_its_block_alone() -> None:
    """`validate` finds it without a cluster, and names both behaviours of brokers."""
    new = change(Action.CREATE, None, topic(config={MIN: "3", "retention.ms": "1"}))
    (finding,) = judge(new, Facts(""), only_block=True)
    assert finding.rule == "topic-min-insync-above-replicas"
    assert finding.text == (
        f"{MIN} is 3, but the topic has only 2 replicas: it protects no more than 2, and one "
        "broker that is down stops producers with acks=all; brokers before Kafka 3.7 refuse "
        "acks=all"
    )
    assert judge(change(Action.CREATE, None, topic()), Facts(""), only_block=True) == []


def test_a_default_of_the_cluster_counts_for_a_new_topic() -> None:
    """Two of two replicas must be in sync although no block says so; nobody writes to it yet."""
    cluster = facts(topic_defaults=FrozenMap({MIN: "2"}))
    (finding,) = judge(change(Action.CREATE, None, topic()), cluster)
    assert (finding.rule, finding.level) == ("topic-all-insync-required", Level.CAUTION)


# ── whose values ────────────────────────────────────────────────────────────────────────


def test_a_removed_override_is_judged_by_what_takes_effect() -> None:
    """30 days that fall back to the cluster's one hour lose data."""
    gone = update({"retention.ms": str(30 * DAY)}, {}, {"retention.ms": "3600000"})
    (finding,) = judge(gone)
    assert finding.text == (
        "retention.ms 30 d → 1 h (default): records older than that are deleted"
    )
    assert find_new_retention(gone, FACTS) == Retention(3_600_000, None)


def test_what_the_cluster_has_by_default_is_what_an_override_replaces() -> None:
    """A cluster that keeps records for an hour loses nothing by a topic's two hours."""
    cluster = facts(topic_defaults=FrozenMap({"retention.ms": "3600000"}))
    assert judge(update({}, {"retention.ms": "7200000"}), cluster) == []


def test_defaults_are_those_of_the_release() -> None:
    """Before Kafka 4.0 no record was refused for its time (KIP-1030)."""
    assert "topic-timestamps-refused" in name_rules(judge(update(LOG_TIME, {}), NOW))
    assert "topic-timestamps-refused" not in name_rules(judge(update(LOG_TIME, {}), OLD))


def override(
    action: Action, value: str, effective: str | None = None, key: str = "retention.ms"
) -> Change:
    """A `kafka_topic_config` that comes or goes with one override."""
    there = FrozenMap(topic="t", config=FrozenMap({key: value}))
    sides = (None, there) if action is Action.CREATE else (there, None)
    values = (None, value) if action is Action.CREATE else (value, None)
    path = PathChange(("config", key), *values, effective)
    identity = Identity("kafka", "kafka_topic_config", "t")
    return Change(identity, "kafka_topic_config.t", action, *sides, (path,))


def test_overrides_of_a_topic_that_is_there_already() -> None:
    """A new `kafka_topic_config` block cuts the retention of a topic that has data, and so does
    one that goes, if what takes effect then is shorter."""
    assert name_rules(judge(override(Action.CREATE, "1000"))) == ["topic-retention-cut"]
    gone = override(Action.DELETE, "-1", "3600000")
    assert name_rules(judge(gone)) == ["topic-retention-cut"]
    assert find_new_retention(gone, FACTS) == Retention(3_600_000, None)
    assert not judge(override(Action.CREATE, str(30 * DAY)))
    assert not judge(override(Action.DELETE, "1000", "3600000"))
    assert not judge(override(Action.CREATE, "1000"), Facts(""), only_block=True)


@pytest.mark.parametrize(
    ("replicas", "rules"),
    [
        (2, ["topic-min-insync-above-replicas"]),
        (3, ["topic-all-insync-required"]),
        (4, ["topic-min-insync-raised"]),
        (None, ["topic-min-insync-raised"]),
    ],
)
def test_overrides_are_held_against_the_replicas_of_the_live_topic(
    replicas: int | None, rules: list[str]
) -> None:
    """The same rule as for a `kafka_topic`; the listing says how many replicas there are."""
    new = override(Action.CREATE, "3", key=MIN)
    items = (
        Observed(
            Identity("kafka", "kafka_topic", "t"),
            FrozenMap(name="t", replication_factor=replicas),
        ),
    )
    sweep = Sweep("kafka_topic", Depth.NAMES, items, Coverage(CoverageKind.VISIBLE_ONLY))
    assert PROVIDER.review_needs([new])["kafka_topic"] is Depth.NAMES
    assert "kafka_topic" not in PROVIDER.review_needs([override(Action.CREATE, "1000")])
    pairs = survey([new], {"kafka_topic": sweep}, NOW)
    assert [finding.rule for _, finding in pairs] == rules
    assert {identity for identity, _ in pairs} == {new.identity}


def test_whoever_sets_a_value_is_judged_alike() -> None:
    """A default of the cluster and an override give the same rules."""
    before = {name: key.default for name, key in ALL_TOPIC_KEYS.items()}
    after = {**before, "cleanup.policy": "compact", "min.insync.replicas": "3"}
    findings = list(judge_topic_configs(TopicConfigs(before, after, 3, NOW)))
    own = judge(update({}, {"cleanup.policy": "compact", MIN: "3"}), NOW)
    assert name_rules(findings) == name_rules(own)
    assert all(finding.path[0] == "config" for finding in findings)
    assert findings[0].text.startswith(f"{MIN} 1 → 3, as many as")


def test_lost_acknowledged_records_are_durability() -> None:
    """An unclean election and a lower min.insync.replicas lose what was acknowledged."""
    for id in ("topic-unclean-election", "topic-min-insync-lowered"):
        assert find_rule(id).harm is Harm.DURABILITY and find_rule(id).level is Level.DANGER


def test_unchanged_topics_are_not_judged() -> None:
    """A topic whose settings were always questionable is no news."""
    same: Any = topic(config={MIN: "3", "unclean.leader.election.enable": "true"})
    assert judge(change(Action.NOOP, same, same)) == []


def test_units_are_those_of_the_keys() -> None:
    """Times in milliseconds and sizes in bytes, nothing for the rest."""
    assert find_topic_unit(("config", "retention.ms")) == "ms"
    assert find_topic_unit(("config", "segment.bytes")) == "bytes"
    assert find_topic_unit(("config", "cleanup.policy")) == ""
    assert find_topic_unit(("partitions",)) == ""
