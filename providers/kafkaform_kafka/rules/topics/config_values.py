"""Rules of single topic configs: names that no topic has, and values that no broker takes.

The sentences are those of `protocol/broker_rules`, which also refuses some of them while a block
is read (`AttributeSchema.refuses`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kafkaform.core.change import Action, Change
from kafkaform.core.finding import Block, Finding, Harm, Level
from kafkaform.core.resource import Facts
from kafkaform.core.rule import Judge, Needs, Rule
from kafkaform.core.value import Value

from ...kinds.topic.configs import get_config
from ...protocol import broker_rules
from ...protocol.config_keys import ALL_TOPIC_KEYS, ConfigKey
from ...protocol.config_values import render_config
from ...protocol.releases import fit_old_range, fit_range, get_release, presence_faults
from .config_rows import OVERRIDES, TOPIC

_TYPES = (TOPIC, OVERRIDES)


def _make_block(
    id: str, title: str, needs: Needs, why: str, example: str, fix: str, proof: str = ""
) -> Rule:
    place = f"tests/cluster/claims/test_topics.py::{proof}" if proof else ""
    return Rule(
        id,
        title,
        Level.BLOCK,
        Harm.NONE,
        _TYPES,
        needs,
        why,
        example,
        fix,
        Block.IMPOSSIBLE,
        proof=place,
    )


MISSPELT = _make_block(
    "topic-config-misspelt",
    "No topic has a config of this name",
    Needs.BLOCK,
    "Brokers refuse configs that they do not know with INVALID_CONFIG (40), and this name is like "
    "one that they know.",
    'config = { "retension.ms" = 86400000 }',
    "Correct the name.",
    "test_configs_that_no_topic_has_are_refused",
)
OF_BROKERS = _make_block(
    "topic-config-of-brokers",
    "The config belongs to brokers",
    Needs.BLOCK,
    "Brokers have defaults for topics under names of their own, which topics do not have "
    "(ServerTopicConfigSynonyms): INVALID_CONFIG (40).",
    'config = { "log.retention.hours" = 24 }',
    "Use the config of topics.",
    "test_configs_that_no_topic_has_are_refused",
)
ABSENT = _make_block(
    "topic-config-absent",
    "The brokers do not have the config",
    Needs.FACTS,
    "Releases add and remove configs (LogConfig of each release); a broker refuses one that it "
    "does not have with INVALID_CONFIG (40).",
    'config = { "message.format.version" = "3.0" }   # Kafka 4.0',
    "Remove the config.",
    "test_configs_that_no_topic_has_are_refused",
)
INVALID = _make_block(
    "topic-config-value-invalid",
    "No broker takes the value",
    Needs.BLOCK,
    "Brokers check type, range and words of a value (LogConfig): INVALID_CONFIG (40).",
    'config = { "cleanup.policy" = "none" }',
    "Correct the value.",
    "test_values_that_no_broker_takes_are_refused",
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


def _judge_overrides(change: Change, _: Facts) -> Iterator[Finding]:
    if change.action not in (Action.CREATE, Action.UPDATE):
        return
    if not get_config(change.after):
        yield EMPTY_BLOCK.find("config is empty", ("config",))
    if change.identity.key in broker_rules.INTERNAL_TOPICS:
        yield INTERNAL.find(f"{change.identity.key} is an internal topic of Kafka", ("topic",))


RULES = (ABSENT, INVALID, MISSPELT, OF_BROKERS, OF_OLD_RELEASES, UNKNOWN)
JUDGES = (
    Judge(RULES, _TYPES, Needs.BLOCK, _judge_configs),
    Judge((EMPTY_BLOCK, INTERNAL), (OVERRIDES,), Needs.BLOCK, _judge_overrides),
)
