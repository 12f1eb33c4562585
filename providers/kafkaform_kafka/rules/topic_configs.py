"""Rules of single topic configs: names that no topic has, and values that no broker takes; and the
judges of all configs of topics, of overrides that another block declares, and of the defaults that
topics follow.

The sentences are those of `protocol/broker_rules`, which also refuses some of them while a block is
read (`AttributeSchema.refuses`). What whole sets of configs do is judged by `topics/configs`.

A default of the cluster or of a broker has the rules and sentences of a topic's own config. What is
added are the topics: whose overrides do not decide, how many they are, and their names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set

from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core.change import Action, Change
from kafkaform.core.finding import Block, Finding, Harm, Level
from kafkaform.core.resource import CoverageKind, Depth, Facts, Identity, Sweep
from kafkaform.core.rule import Judge, Needs, Rule, Scene, Survey
from kafkaform.core.text import render_count
from kafkaform.core.value import EMPTY, FrozenMap, Value

from ..kinds.topic.configs import (
    BROKER_CONFIG,
    CLUSTER_CONFIG,
    RETENTION_KEYS,
    DefaultChange,
    find_default_change,
    find_effective,
    get_config,
    list_default_keys,
    list_default_paths,
)
from ..protocol import broker_rules
from ..protocol.cluster_facts import fit_old_range, fit_range, get_release, presence_faults
from ..protocol.config_keys import ALL_TOPIC_KEYS, ConfigKey, render_config
from .config_harms import block_configs
from .topics import config_rows as rows
from .topics import configs as topic_configs
from .topics.config_rows import EXPIRY_STARTED, OVERRIDES, TOPIC
from .topics.configs import TopicConfigs, judge_topic_configs


def _judge_topic_replicas(change: Change, facts: Facts) -> Iterator[Finding]:
    if change.action in (Action.CREATE, Action.UPDATE):
        yield from topic_configs.judge_in_sync_replicas(_make_topic_configs(change, facts))


def _judge_topic(change: Change, facts: Facts) -> Iterator[Finding]:
    if change.action is Action.UPDATE:
        yield from topic_configs.judge_records_and_clients(_make_topic_configs(change, facts))


def _make_topic_configs(change: Change, facts: Facts) -> TopicConfigs:
    effective = find_effective(change, facts)
    return TopicConfigs(
        effective.before if change.before is not None else {},
        effective.after,
        _count_replicas(change.after),
        facts,
        effective.inherited_before,
        effective.inherited_after,
        _count_replicas(change.before),
    )


def _count_replicas(attributes: FrozenMap | None) -> int | None:
    """The replicas of each partition; None if the cluster chooses the number."""
    whole = attributes or EMPTY
    rows = whole.get("replica_assignment")
    number = len(rows[0]) if rows else whole.get("replication_factor")
    return number if isinstance(number, int) and number > 0 else None


# The topic is there before the block and after it, so overrides that come or go with the block
# concern records as much as an update.
_WRITES = (Action.CREATE, Action.UPDATE, Action.DELETE)


def _judge_overrides(change: Change, facts: Facts) -> Iterator[Finding]:
    if change.action in _WRITES:
        yield from topic_configs.judge_records_and_clients(
            _make_override_configs(change, None, facts)
        )


def _make_override_configs(change: Change, replicas: int | None, facts: Facts) -> TopicConfigs:
    effective = find_effective(change, facts)
    return TopicConfigs(
        effective.before,
        effective.after,
        replicas,
        facts,
        effective.inherited_before,
        effective.inherited_after,
    )


def _sets_in_sync_replicas(change: Change) -> bool:
    """True for a `kafka_topic_config` whose topic gets another min.insync.replicas: only a listing
    of the topics says how many replicas it has."""
    return (
        change.identity.kind == OVERRIDES
        and change.action in _WRITES
        and any(item.path == ("config", rows.MIN_IN_SYNC) for item in change.paths)
    )


def _survey_overrides(scene: Scene) -> Iterator[tuple[Identity | None, Finding]]:
    changes = list(filter(_sets_in_sync_replicas, scene.changes))
    sweep = scene.sweeps.get(TOPIC) if changes else None
    replicas = {
        item.identity.key: item.attributes.get("replication_factor") or None
        for item in (sweep.items if sweep else ())
    }
    for change in changes:
        overrides = _make_override_configs(change, replicas.get(change.identity.key), scene.facts)
        for finding in topic_configs.judge_in_sync_replicas(overrides):
            yield change.identity, finding


_TYPES = (TOPIC, OVERRIDES)


_CLAIMS = "tests/cluster/claims/test_topics.py"

MISSPELT = block_configs(
    "topic-config-misspelt",
    "No topic has a config of this name",
    _TYPES,
    Needs.BLOCK,
    "Brokers refuse configs that they do not know with INVALID_CONFIG (40), and this name is like "
    "one that they know.",
    'config = { "retension.ms" = 86400000 }',
    "Correct the name.",
    f"{_CLAIMS}::test_configs_that_no_topic_has_are_refused",
)
OF_BROKERS = block_configs(
    "topic-config-of-brokers",
    "The config belongs to brokers",
    _TYPES,
    Needs.BLOCK,
    "Brokers have defaults for topics under names of their own, which topics do not have "
    "(ServerTopicConfigSynonyms): INVALID_CONFIG (40).",
    'config = { "log.retention.hours" = 24 }',
    "Use the config of topics.",
    f"{_CLAIMS}::test_configs_that_no_topic_has_are_refused",
)
ABSENT = block_configs(
    "topic-config-absent",
    "The brokers do not have the config",
    _TYPES,
    Needs.FACTS,
    "Releases add and remove configs (LogConfig of each release); a broker refuses one that it "
    "does not have with INVALID_CONFIG (40).",
    'config = { "message.format.version" = "3.0" }   # Kafka 4.0',
    "Remove the config.",
    f"{_CLAIMS}::test_configs_that_no_topic_has_are_refused",
)
INVALID = block_configs(
    "topic-config-value-invalid",
    "No broker takes the value",
    _TYPES,
    Needs.BLOCK,
    "Brokers check type, range and words of a value (LogConfig): INVALID_CONFIG (40).",
    'config = { "cleanup.policy" = "none" }',
    "Correct the value.",
    f"{_CLAIMS}::test_values_that_no_broker_takes_are_refused",
)
EMPTY_BLOCK = Rule(
    "topic-config-empty",
    "The block sets nothing",
    Level.BLOCK,
    Harm.NONE,
    (OVERRIDES,),
    Needs.BLOCK,
    "The object is the topic's overrides: without any, it cannot be told from a deleted one.",
    'resource "kafka_topic_config" "orders" { topic = "orders"  config = {} }',
    "Name at least one config, or remove the block.",
    Block.IMPOSSIBLE,
    proof="tests/cluster/claims/test_brokers.py::test_configs_end_with_the_last_one",
)
OF_OLD_RELEASES = Rule(
    "topic-config-value-outdated",
    "Only older brokers take the value",
    Level.CAUTION,
    Harm.NONE,
    _TYPES,
    Needs.BLOCK,
    "Newer releases have narrower ranges (KIP-1030), and which release the brokers run is "
    "unknown here.",
    'config = { "segment.bytes" = 1000 }',
    "Use a value that newer brokers take, too.",
    proof="tests/cluster/claims/test_topics.py::test_values_that_no_broker_takes_are_refused",
)
UNKNOWN = Rule(
    "topic-config-unknown",
    "Kafka does not have the config",
    Level.CAUTION,
    Harm.NONE,
    _TYPES,
    Needs.BLOCK,
    "Other distributions and newer releases have further configs. A broker that does not know one "
    "refuses it in the dry run.",
    'config = { "redpanda.remote.read" = true }',
    "Make sure that your brokers know it.",
    proof="tests/cluster/claims/test_topics.py::test_configs_that_no_topic_has_are_refused",
)
INTERNAL = Rule(
    "topic-internal",
    "The topic is one of Kafka's own",
    Level.CAUTION,
    Harm.NONE,
    (OVERRIDES,),
    Needs.BLOCK,
    "Kafka creates some topics itself, with the configs that it needs: a wrong cleanup.policy of "
    "__consumer_offsets loses the offsets of groups.",
    'resource "kafka_topic_config" "offsets" { topic = "__consumer_offsets" … }',
    "Make sure that this config can be changed.",
    proof="tests/cluster/claims/test_replicas.py::test_the_topic_of_groups_loses_offsets_without_compaction",
)


def judge_config(config: Mapping[str, Value], facts: Facts) -> Iterator[Finding]:
    """What is wrong with each config. config: name -> value; None stands for one that is left
    alone."""
    for key, value in config.items():
        if value is None:
            continue
        entry = ALL_TOPIC_KEYS.get(key)
        faults = (
            _find_name_faults(key, facts)
            if entry is None
            else _find_value_faults(entry, key, value, facts)
        )
        for rule, summary, advice in faults:
            yield rule.find(summary, ("config", key), fix=advice)


Fault = tuple[Rule, str, str]
"""The rule, the sentence, and what to do."""


def _find_name_faults(key: str, facts: Facts) -> Iterator[Fault]:
    for rule, faults in (
        (OF_BROKERS, broker_rules.broker_key_faults(key)),
        (MISSPELT, broker_rules.misspelt_key_faults(key)),
        (UNKNOWN, broker_rules.unknown_key_faults(key, facts)),
    ):
        for summary, advice in faults:
            yield rule, summary, advice
            return


def _find_value_faults(entry: ConfigKey, key: str, value: Value, facts: Facts) -> Iterator[Fault]:
    absences = [*presence_faults(entry, key, facts)]
    yield from ((ABSENT, summary, advice) for summary, advice in absences)
    if absences:
        return
    yield from ((UNKNOWN, *fault) for fault in broker_rules.unknown_key_faults(key, facts))
    for summary, advice in broker_rules.value_faults(fit_range(entry, facts), key, value):
        old = fit_old_range(entry)
        if get_release(facts) or any(broker_rules.value_faults(old, key, value)):
            yield INVALID, summary, advice
        else:
            since = entry.lower[0] if entry.lower else ""
            amount, low = (render_config(entry, str(number)) for number in (value, entry.low))
            yield (
                OF_OLD_RELEASES,
                f"{key} = {amount}: Kafka {since} and newer refuse less than {low}",
                advice,
            )


def _judge_configs(change: Change, facts: Facts) -> Iterator[Finding]:
    if change.action in (Action.CREATE, Action.UPDATE):
        yield from judge_config(broker_rules.select_changed_configs(change), facts)


def _judge_override_values(change: Change, _: Facts) -> Iterator[Finding]:
    if change.action not in (Action.CREATE, Action.UPDATE):
        return
    if not get_config(change.after):
        yield EMPTY_BLOCK.find("config is empty", ("config",))
    if change.identity.key in broker_rules.INTERNAL_TOPICS:
        yield INTERNAL.find(f"{change.identity.key} is an internal topic of Kafka", ("topic",))


RULES = (ABSENT, INVALID, MISSPELT, OF_BROKERS, OF_OLD_RELEASES, UNKNOWN)
VALUE_JUDGES = (
    Judge(RULES, _TYPES, Needs.BLOCK, _judge_configs),
    Judge((EMPTY_BLOCK, INTERNAL), (OVERRIDES,), Needs.BLOCK, _judge_override_values),
)
JUDGES = (
    Judge(topic_configs.IN_SYNC_RULES, (TOPIC,), Needs.BLOCK, _judge_topic_replicas),
    Judge(topic_configs.RULES, (TOPIC,), Needs.OBJECT, _judge_topic),
    Judge(topic_configs.RULES, (OVERRIDES,), Needs.OBJECT, _judge_overrides),
    *VALUE_JUDGES,
)


NAMED = 10
"""The most topics that a sentence names."""


class Follower(Struct, frozen=True):
    """One topic."""

    name: str
    """What clients call it."""
    config: FrozenMap
    """Its overrides after the plan."""
    replicas: int | None
    """Replicas of each partition, None if unknown."""
    brokers: frozenset[str]
    """The brokers with replicas of it; empty if unknown."""


def _survey_defaults(scene: Scene) -> Iterator[tuple[Identity | None, Finding]]:
    changes = [change for change in scene.changes if list_default_paths(change)]
    if not changes:
        return
    sweep = scene.sweeps.get(TOPIC)
    if sweep is None or sweep.coverage.kind is CoverageKind.FAILED:
        topics = None
    else:
        topics = _list_topics(sweep, scene.changes)
    overriding = _list_overriding(scene.sweeps.get(BROKER_CONFIG))
    for change in changes:
        for finding in _judge_defaults(change, topics, overriding, scene.facts):
            yield change.identity, finding


def _list_topics(sweep: Sweep, changes: Sequence[Change]) -> Sequence[Follower]:
    """The topics that are there before and after the plan."""
    planned = {
        change.identity.key: change
        for change in changes
        if change.effective and change.identity.kind in (TOPIC, OVERRIDES)
    }
    topics = []
    for item in sweep.items:
        change = planned.get(item.identity.key)
        if change and change.identity.kind == TOPIC and change.action is Action.DELETE:
            continue
        rows = item.attributes.get("replica_assignment") or ()
        topics.append(
            Follower(
                item.identity.key,
                get_config(change.after if change else item.attributes),
                item.attributes.get("replication_factor"),
                frozenset(str(broker) for row in rows for broker in row),
            )
        )
    return topics


def _list_overriding(sweep: Sweep | None) -> Mapping[str, Set[str]]:
    """Topic config -> the brokers that have a default of their own for it."""
    keys = list_default_keys()
    overriding: dict[str, set[str]] = defaultdict(set)
    for item in sweep.items if sweep else ():
        for name in get_config(item.attributes):
            if name in keys:
                overriding[keys[name]].add(item.identity.key)
    return overriding


def _judge_defaults(
    change: Change,
    topics: Sequence[Follower] | None,
    overriding: Mapping[str, Set[str]],
    facts: Facts,
) -> Iterator[Finding]:
    of_broker = change.identity.kind == BROKER_CONFIG
    keys = list_default_paths(change).keys()
    defaults = find_default_change(change, facts, () if of_broker else overriding.keys() & keys)
    if not of_broker and facts.nodes:
        # Where every broker has a value of its own, that wins.
        hidden = [key for key in keys if overriding.get(key, frozenset()) >= {*facts.nodes}]
        unchanged = {key: defaults.before[key] for key in hidden}
        defaults = replace(defaults, after={**defaults.after, **unchanged})
    if topics is None:
        unknown = Follower("", EMPTY, None, frozenset())
        for finding in _judge_follower(defaults, unknown, facts):
            suffix = " without an override of their own; the topics could not be listed"
            yield _place(finding, defaults, f"in all topics{suffix}")
        return
    if of_broker:
        topics = [
            item for item in topics if not item.brokers or change.identity.key in item.brokers
        ]
    groups: dict[tuple[FrozenMap, int | None], list[Follower]] = defaultdict(list)
    for item in topics:
        groups[item.config, item.replicas].append(item)
    concerned: dict[Finding, list[str]] = defaultdict(list)
    for members in groups.values():
        for finding in _judge_follower(defaults, members[0], facts):
            concerned[finding] += [item.name for item in members]
    for finding, names in concerned.items():
        figures = finding.figures.with_items(
            {
                "objects": len(names),
                "of_objects": len(topics),
                "kind": TOPIC,
                "topics": tuple(sorted(names)),
            }
        )
        yield _place(replace(finding, figures=figures), defaults, _name_topics(names, of_broker))


def _judge_follower(defaults: DefaultChange, topic: Follower, facts: Facts) -> Iterator[Finding]:
    overrides = {key: str(value) for key, value in topic.config.items() if value is not None}
    before, after = {**defaults.before, **overrides}, {**defaults.after, **overrides}
    configs = TopicConfigs(
        before, after, topic.replicas, facts, defaults.unset_before, defaults.unset_after
    )
    for finding in judge_topic_configs(configs):
        if finding.rule == EXPIRY_STARTED.id:
            # Each topic expires by its own limits, which the change does not show.
            limits = tuple(f"{key}={after[key]}" for key in RETENTION_KEYS)
            finding = replace(finding, figures=FrozenMap(limits=limits))
        yield finding


def _place(finding: Finding, defaults: DefaultChange, scope: str) -> Finding:
    """The finding at the broker config that changes the default. scope: in which topics."""
    # A rule over two configs can name the one that stays.
    path = defaults.paths.get(finding.path[1], next(iter(defaults.paths.values())))
    return replace(finding, path=path, text=f"{finding.text}, {scope}")


def _name_topics(names: Sequence[str], of_broker: bool) -> str:
    listed = ", ".join(sorted(names)[:NAMED])
    suffix = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    own = "its" if len(names) == 1 else "their"
    count = render_count(len(names), "topic")
    if of_broker:
        return (
            f"in the replicas that the broker has of {count} without an override: {listed}{suffix}"
        )
    return f"in {count} without an override of {own} own: {listed}{suffix}"


def list_needs(changes: Sequence[Change]) -> Mapping[str, Depth]:
    """For a changed default all topics with their overrides, and the brokers with values of their
    own; for an override of min.insync.replicas the numbers of replicas."""
    kinds = {change.identity.kind for change in changes if list_default_paths(change)}
    if not kinds:
        return {TOPIC: Depth.NAMES} if any(map(_sets_in_sync_replicas, changes)) else {}
    brokers = {BROKER_CONFIG: Depth.FULL} if CLUSTER_CONFIG in kinds else {}
    return {TOPIC: Depth.FULL, **brokers}


SURVEYS = (
    Survey((*topic_configs.IN_SYNC_RULES, *topic_configs.RULES), _survey_defaults),
    Survey(topic_configs.IN_SYNC_RULES, _survey_overrides),
)
