"""Which release a cluster runs, and what that release has."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkaform.core.change import Action
from kafkaform.core.finding import Level
from kafkaform.core.resource import Facts, Fault
from kafkaform_kafka.protocol import broker_rules, cluster_facts, config_keys
from kafkaform_kafka.protocol.apis import APIS
from kafkaform_kafka.protocol.cluster_facts import (
    CAPABILITIES,
    CLIENT_METRICS,
    GROUP_CONFIGS,
    LEVELS,
    MARKS,
    NEWEST,
    RELEASES,
    TWO_PHASE_ACLS,
    USER_ACLS,
    acl_faults,
    explain_absence,
    find_capability_fault,
    find_release,
    find_spans,
    is_before,
)
from kafkaform_kafka.protocol.config_keys import (
    ALL_TOPIC_KEYS,
    AT_BROKERS,
    DYNAMIC_WITH_ZOOKEEPER,
    GROUP_KEYS,
    THROTTLES,
    TOPIC_KEYS,
    ConfigKey,
    UpdateMode,
)
from kafkaform_kafka.protocol.faults import fault_of

from ....kit.kafka.changes import change, facts, topic
from ....kit.kafka.config_changes import declared, faults, planned
from ....kit.kafka.judgement import judge

DOCS = Path(__file__).resolve().parents[4] / "docs"
APIS_OF = {
    "3.0": (9, 7, 11, 5, 7, 4, 3, 3, 2, 0),
    "3.1": (9, 7, 12, 5, 7, 4, 3, 3, 2, 0),
    "3.2": (9, 7, 12, 6, 9, 4, 3, 3, 3, 0),
    "3.3": (9, 7, 12, 6, 9, 4, 3, 3, 4, 0),
    "3.4": (9, 7, 12, 7, 9, 4, 3, 3, 4, 0),
    "3.5": (9, 8, 12, 7, 9, 4, 3, 3, 4, 0),
    "3.6": (9, 8, 12, 7, 9, 4, 3, 4, 4, 0),
    "3.7": (10, 8, 12, 7, 9, 4, 3, 4, 4, 1),
    "3.8": (11, 8, 12, 7, 9, 5, 3, 5, 4, 1),
    "3.9": (11, 9, 12, 7, 9, 5, 4, 5, 4, 1),
    "4.0": (12, 10, 13, None, 9, 5, 4, 5, 4, 2),
    "4.1": (13, 10, 13, None, 9, 5, 4, 5, 4, 2),
    "4.2": (13, 11, 13, None, 9, 5, 4, 5, 4, 2),
    "4.3": (13, 11, 13, None, 9, 5, 4, 5, 5, 2),
}
"""Release -> the highest stable version of Produce, ListOffsets, Metadata, LeaderAndIsr (ZooKeeper
only), JoinGroup, ListGroups, ApiVersions, AddPartitionsToTxn, DescribeLogDirs and DescribeCluster,
from the message definitions of Kafka."""
NUMBERS = (0, 2, 3, 4, 11, 16, 18, 24, 35, 60)


_UNCHANGEABLE = ("without a restart since", "removed", "is read-only")


def list_versions(release: str, *, zookeeper: bool) -> dict[int, int]:
    found = dict(zip(NUMBERS, APIS_OF[release], strict=True))
    return {
        api: version
        for api, version in found.items()
        if version is not None and (zookeeper or api != 4)
    }


def read_table(kind: str) -> Iterator[tuple[str, str, str, dict[str, str]]]:
    """Name, first and last release, and the lowest numbers from a release on."""
    text = (Path(__file__).parent / "configs.txt").read_text("ascii")
    for line in text.splitlines():
        of, name, first, last, *lows = line.split()
        if of == kind:
            yield name, first, last, dict(low.split(":", 1) for low in lows)


def has(name: str, known: ConfigKey, release: str) -> bool:
    found = cluster_facts.presence_faults(known, name, facts(kafka_version=release))
    return not list(found)


@pytest.mark.parametrize("release", RELEASES)
def test_every_release_is_recognized(release: str) -> None:
    """With ZooKeeper by its requests, with KRaft by its level or, before 3.3, by its requests."""
    if is_before(release, "4.0"):
        assert find_release(list_versions(release, zookeeper=True), None) == release
    levels = [level for level, name in LEVELS.items() if name == release]
    assert bool(levels) == (not is_before(release, "3.3"))
    kraft = list_versions(release, zookeeper=False)
    assert find_release(kraft, levels[0] if levels else None) == release


@pytest.mark.parametrize(
    ("level", "expected"), [(6, None), (9, "3.4"), (13, "3.5"), (26, "4.0"), (31, "4.3")]
)
def test_a_build_between_releases_has_at_least_the_older_one(
    level: int, expected: str | None
) -> None:
    """Levels that no release supports as its highest, and one that is newer than the table."""
    assert find_release({}, level) == expected


def test_what_is_no_apache_kafka_has_no_release() -> None:
    """A later mark without an earlier one, an older cluster, and no answer prove nothing."""
    picked = {**list_versions("3.5", zookeeper=False), 3: 13}
    assert find_release(picked, None) is None
    assert find_release({2: 6, 3: 9}, None) is None
    assert find_release({}, None) is None
    # Without a level, LeaderAndIsr is missing from 3.4 on, and later marks are there.
    assert find_release(list_versions("3.9", zookeeper=False), None) is None


def test_marks_are_in_order_and_releases_compare_as_numbers() -> None:
    """A release that is out of order would end the search early."""
    assert list(MARKS) == sorted(MARKS, key=lambda name: tuple(map(int, name.split("."))))
    assert RELEASES[-1] == NEWEST == list(LEVELS.values())[-1]
    assert is_before("3.9", "3.10") and not is_before("4.0", "3.10")


@pytest.mark.parametrize("release", RELEASES)
def test_topics_have_the_configs_of_their_release(release: str) -> None:
    """Names and lowest numbers, as Kafka's own classes have them, and none besides."""
    table = {name: row for name, *row in read_table("topic")}
    assert set(table) == set(ALL_TOPIC_KEYS)
    for name, (first, last, lows) in table.items():
        known = ALL_TOPIC_KEYS[name]
        there = not is_before(release, first) and not is_before(last, release)
        assert has(name, known, release) == there, name
        if there and lows:
            low = [low for at, low in lows.items() if not is_before(release, at)][-1]
            fitting = cluster_facts.fit_range(known, facts(kafka_version=release))
            assert fitting.low == int(low), name
    newest = {name for name, (_, last, _) in table.items() if last == NEWEST}
    assert newest == set(TOPIC_KEYS)


@pytest.mark.parametrize("release", [name for name in RELEASES if not is_before(name, "4.0")])
def test_groups_have_the_configs_of_their_release(release: str) -> None:
    """As in Kafka's GroupConfig."""
    table = {name: (first, last) for name, first, last, _ in read_table("group")}
    assert set(table) == set(GROUP_KEYS)
    for name, (first, _) in table.items():
        assert has(name, GROUP_KEYS[name], release) == (not is_before(release, first)), name


@pytest.mark.parametrize("release", RELEASES)
def test_brokers_have_the_dynamic_configs_of_their_release(release: str) -> None:
    """Those that DynamicBrokerConfig can change without a restart, for some only with ZooKeeper."""
    known = facts(kafka_version=release, zookeeper=is_before(release, "4.0"))
    names = {name for name, *_ in read_table("broker")}
    for name, first, last, _ in read_table("broker"):
        there = not is_before(release, first) and not is_before(last, release)
        wish = declared("kafka_broker_config", broker_id=1, config={name: "1"})
        made = planned("kafka_broker_config", wish, facts=known)
        said = [sentence for sentence, _ in faults(made, known)]
        refused = [text for text in said if any(word in text for word in _UNCHANGEABLE)]
        assert bool(refused) != there, (name, said)
    dynamic = {
        name
        for name, known in config_keys.broker_keys().items()
        if known.mode is not UpdateMode.READ_ONLY
    }
    assert dynamic - set(THROTTLES["broker"]) <= names


def test_brokers_are_asked_for_every_config_that_comes_or_goes() -> None:
    """Each config that a plan can change, by the name that it has at brokers."""
    topics = [name for name, known in ALL_TOPIC_KEYS.items() if known.since or known.until]
    at_brokers = {AT_BROKERS.get(name, name) for name in topics} - {
        "remote.log.copy.disable",
        "remote.log.delete.on.disable",
        "remote.storage.enable",
    }
    assert at_brokers <= set(find_spans())
    for name in AT_BROKERS.values():
        known = config_keys.find_broker_key(name)
        assert known is not None
        (row,) = (known for known in ALL_TOPIC_KEYS.values() if AT_BROKERS.get(known.name) == name)
        assert (row.since, row.until) == (known.key.since, known.key.until)
    assert not DYNAMIC_WITH_ZOOKEEPER & set(find_spans())


def test_a_topic_config_of_another_release_is_refused_with_both_releases() -> None:
    """Since when it exists, or which release removed it and what to use instead."""

    def refuse(key: str, value: str, release: str) -> list[tuple[str, str]]:
        return list(broker_rules.config_faults({key: value}, facts(kafka_version=release)))

    old = "message.timestamp.difference.max.ms"
    assert refuse(old, "1", "3.9") == []
    assert refuse(old, "x", "3.9")[0][0] == f"{old} = 'x' is not a whole number"
    ((text, advice),) = refuse(old, "1", "4.0")
    assert text == f"the cluster runs Kafka 4.0; Kafka 4.0 removed {old}"
    assert advice == (
        "use message.timestamp.before.max.ms and message.timestamp.after.max.ms instead"
    )
    ((text, advice),) = refuse("remote.log.copy.disable", "true", "3.8")
    assert text == ("the cluster runs Kafka 3.8; remote.log.copy.disable exists since Kafka 3.9")
    assert advice == "remove remote.log.copy.disable, or upgrade the brokers"
    assert refuse("segment.bytes", "1000", "4.0") == []
    ((text, advice),) = refuse("segment.bytes", "1000", "4.1")
    assert "out of range" in text and "from 1048576" in advice
    ((_, advice),) = refuse("segment.bytes", "1", "3.0")
    assert "from 14 up to" in advice


def test_what_the_brokers_list_beats_the_tables() -> None:
    """Another distribution can have a config earlier, or leave one out."""
    key, name = "message.timestamp.before.max.ms", "log.message.timestamp.before.max.ms"
    early = facts(kafka_version="3.5", config_keys={name: True})
    assert list(broker_rules.config_faults({key: "1"}, early)) == []
    lacking = facts(kafka_version="4.3", config_keys={name: False})
    ((text, advice),) = broker_rules.config_faults({key: "1"}, lacking)
    assert text == f"the brokers do not list {key}, so they do not have it"
    assert advice == f"remove {key}"
    late = facts(kafka_version="4.3", config_keys={"log.message.format.version": True})
    assert list(broker_rules.config_faults({"message.format.version": "3.0"}, late)) == []
    assert list(broker_rules.unknown_warnings({"message.format.version": "3.0"}, late)) == []


def test_without_a_release_the_dry_run_decides() -> None:
    """Nothing is refused by its release; a config that Kafka removed is warned of."""
    unknown = facts(kafka_version=None)
    for key, known in ALL_TOPIC_KEYS.items():
        assert has(key, known, "") and not list(cluster_facts.presence_faults(known, key, unknown))
    old = {"message.format.version": "3.0"}
    ((text, _),) = broker_rules.unknown_warnings(old, unknown)
    assert f"Kafka {NEWEST} has no topic config message.format.version" in text
    assert list(broker_rules.unknown_warnings(old, facts(kafka_version="3.6"))) == []


def test_validate_takes_every_config_of_every_release() -> None:
    """Offline nobody knows the release, so only what no release takes is a fault."""
    defaults = {name: known.default for name, known in ALL_TOPIC_KEYS.items()}
    assert list(broker_rules.spelling_faults(defaults)) == []
    ((text, _),) = broker_rules.spelling_faults({"message.downconversion.enable": "yes"})
    assert "is neither true nor false" in text


CASES = [
    (GROUP_CONFIGS, "3.9", False, "since Kafka 4.0"),
    (GROUP_CONFIGS, "4.0", False, ""),
    (GROUP_CONFIGS, "3.9", True, "exist only with KRaft"),
    (CLIENT_METRICS, "3.6", False, "since Kafka 3.7"),
    (CLIENT_METRICS, "3.9", True, "exist only with KRaft"),
    (CLIENT_METRICS, "3.7", False, ""),
    (USER_ACLS, "3.2", True, "since Kafka 3.3"),
    (USER_ACLS, "3.3", True, ""),
    (TWO_PHASE_ACLS, "4.0", False, "since Kafka 4.1"),
    (TWO_PHASE_ACLS, "4.1", False, ""),
]


@pytest.mark.parametrize(("capability", "release", "zookeeper", "expected"), CASES)
def test_a_missing_feature_is_named(
    capability: Any, release: str, zookeeper: bool, expected: str
) -> None:
    """What the cluster runs, what it lacks, and which release has it."""
    known = facts(kafka_version=release, zookeeper=zookeeper)
    why = explain_absence(capability, known)
    fault = find_capability_fault(capability, known, "DescribeConfigs")
    if not expected:
        assert why == "" and fault is None
        return
    assert why.startswith(f"the cluster runs Kafka {release}") and expected in why
    assert capability.name in why
    assert isinstance(fault, Fault) and fault.code == "UNSUPPORTED_VERSION"
    assert (fault.message, fault.advice) == (why, capability.advice)


def test_no_feature_is_missing_from_an_unknown_release() -> None:
    """The broker decides."""
    assert not any(explain_absence(capability, Facts("c")) for capability in CAPABILITIES)


def test_acls_need_a_release_by_their_type_or_operation() -> None:
    """Older brokers would only say that the ACL contains UNKNOWN."""
    old = facts(kafka_version="3.2")
    assert [*acl_faults("User", "CreateTokens", old)]
    assert [*acl_faults("TransactionalID", "TwoPhaseCommit", old)]
    assert not [*acl_faults("Topic", "Read", old)]


def test_a_group_config_of_a_newer_release_is_refused() -> None:
    """Before 4.0 the whole block is, after that single configs."""
    kind, key = "kafka_group_config", "share.isolation.level"
    wish = declared(kind, group="g", config={key: "read_committed"})

    def check(release: str) -> list[str]:
        known = facts(kafka_version=release)
        return [sentence for sentence, _ in faults(planned(kind, wish, facts=known), known)]

    assert check("3.9") == ["the cluster runs Kafka 3.9; configs of groups exist since Kafka 4.0"]
    assert check("4.0") == [f"the cluster runs Kafka 4.0; {key} exists since Kafka 4.1"]
    assert check("4.1") == []


def test_requests_that_came_later_with_kraft_say_both_releases() -> None:
    """ZooKeeper had users on the wire before KRaft did."""
    for api in ("DescribeUserScramCredentials", "AlterUserScramCredentials"):
        text = fault_of(api, 35, "").message
        assert f"does not support {api}, which needs Kafka 3.5 (2.7 with ZooKeeper)" in text
    assert not APIS["CreateTopics"].needs


def test_the_page_of_versions_has_these_tables() -> None:
    """docs/compatibility.md says since when everything exists, in the words of the messages."""
    made = runpy.run_path(str(DOCS / "versions.py"))
    page = (DOCS / "compatibility.md").read_text("utf-8")
    _, _, rest = page.partition(made["BEGIN"])
    assert rest.startswith(f"\n{made['render_tables']()}\n{made['END']}"), "run docs/versions.py"


@pytest.mark.parametrize(
    ("zookeeper", "advice"), [(True, "inter.broker.protocol.version to 2.8"), (False, "Describe")]
)
def test_a_topic_without_an_id_is_neither_deleted_nor_moved(zookeeper: bool, advice: str) -> None:
    """Nobody could tell it from one that was recreated. With ZooKeeper, an old protocol between the
    brokers can be the reason. Configs and partitions need no id."""
    known = facts(kafka_version="3.9", zookeeper=zookeeper)
    rows = {"replication_factor": 1, "partitions": 1}
    live = topic(replica_assignment=((1,),), **rows)
    there = topic(replica_assignment=((2,),), **rows)
    grown = topic(replica_assignment=((1,), (2,)), replication_factor=1, partitions=2)

    def refuse(action: Action, after: dict[str, Any] | None) -> list[tuple[str, str]]:
        made = change(action, live, after, incarnation=None)
        findings = judge(made, known)
        return [(item.text, item.fix) for item in findings if item.level is Level.BLOCK]

    ((text, told),) = refuse(Action.DELETE, None)
    assert text.endswith("kafkaform deletes topics only by id") and advice in told
    ((text, told),) = refuse(Action.UPDATE, there)
    assert text.endswith("kafkaform moves the replicas only of topics with an id")
    assert advice in told
    assert refuse(Action.UPDATE, grown) == []
    assert refuse(Action.UPDATE, {**live, "config": {"retention.ms": "1"}}) == []
