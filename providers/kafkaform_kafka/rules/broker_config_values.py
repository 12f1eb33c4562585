"""Rules of single configs of brokers and cluster: names, places and values that no broker takes.

The sentences are those of `kinds/config/faults`, which also refuses some of them while a block is
read (`AttributeSchema.refuses`).
"""

from __future__ import annotations

from collections.abc import Iterator

from kafkaform.core.change import Action, Change
from kafkaform.core.diagnostics import suggest
from kafkaform.core.finding import Finding, Harm, Level
from kafkaform.core.resource import Facts
from kafkaform.core.rule import Judge, Needs, Rule
from kafkaform.core.value import EMPTY, Value

from ..kinds.config import faults
from ..kinds.topic.configs import BROKER_CONFIG, CLUSTER_CONFIG, get_config
from ..protocol import broker_rules
from ..protocol.cluster_facts import (
    KafkaFacts,
    fit_old_range,
    fit_range,
    get_release,
    presence_faults,
)
from ..protocol.config_keys import (
    MIN_IN_SYNC,
    BrokerKey,
    UpdateMode,
    broker_keys,
    find_broker_key,
    render_config,
)
from .config_harms import block_configs

_TYPES = (BROKER_CONFIG, CLUSTER_CONFIG)
_DYNAMIC = "can be changed without a restart"
_CLAIMS = "tests/cluster/claims/test_brokers.py"
_KEYS = "tests/cluster/kafka/test_broker_keys.py"
_SECRET = "tests/cluster/kafka/test_config_levels.py::test_a_secret_is_set_and_never_told"
_REFUSED = f"{_CLAIMS}::test_configs_that_brokers_refuse"


UNKNOWN = block_configs(
    "broker-config-unknown",
    "Brokers do not know the config",
    _TYPES,
    # Brokers of other distributions know more, so a block alone shows no fault.
    Needs.FACTS,
    "A broker stores any key, and reports one that it does not know as sensitive and without a "
    "value, because it could be a plugin's password (DynamicBrokerConfig, ConfigHelper).",
    'config = { "my.plugin.limit" = 5 }',
    "Correct the name, or put it into secret_config if a plugin reads it.",
    f"{_CLAIMS}::test_a_broker_hides_the_value_of_a_config_that_it_does_not_know",
)
SECRET_EXPOSED = block_configs(
    "broker-config-secret-exposed",
    "A secret is in config",
    _TYPES,
    Needs.BLOCK,
    "Everything in config is shown in plans and kept in the state; brokers never reveal such a "
    "value, so it could not be compared either.",
    'config = { "listener.name.tls.ssl.keystore.password" = "…" }',
    "Put it into secret_config, by reference.",
    _SECRET,
)
NO_SECRET = block_configs(
    "broker-config-not-secret",
    "secret_config has a config that everybody can read",
    _TYPES,
    Needs.BLOCK,
    "Only passwords and unknown configs are hidden by DescribeConfigs.",
    'secret_config = { "log.retention.ms" = "env:RETENTION" }',
    "Put it into config.",
    f"{_KEYS}::test_the_table_has_every_config_that_a_broker_lists",
)
SET_TWICE = block_configs(
    "broker-config-set-twice",
    "A config is in config and in secret_config",
    _TYPES,
    Needs.BLOCK,
    "A config has one value.",
    'config = { "my.key" = "a" }, secret_config = { "my.key" = "env:KEY" }',
    "Keep it in one of them.",
)
ABSENT = block_configs(
    "broker-config-absent",
    "The brokers do not have the config",
    _TYPES,
    Needs.FACTS,
    "Releases add and remove configs that can be changed without a restart (DynamicBrokerConfig of "
    "each release).",
    'config = { "log.message.downconversion.enable" = false }   # Kafka 4.0',
    "Remove the config.",
    f"{_KEYS}::test_modes_are_the_brokers_own",
)
READ_ONLY = block_configs(
    "broker-config-read-only",
    "The config needs a restart",
    _TYPES,
    Needs.BLOCK,
    "A broker refuses it with INVALID_REQUEST (42): Cannot update these configs dynamically "
    "(DynamicBrokerConfig.validateConfigs).",
    'config = { "log.retention.hours" = 24 }',
    "Set it in server.properties and restart the brokers.",
    _REFUSED,
)
NEEDS_LISTENER = block_configs(
    "broker-config-needs-listener",
    "The config belongs to a listener",
    _TYPES,
    Needs.BLOCK,
    "A broker takes it only with the prefix of a listener: INVALID_REQUEST (42; "
    "DynamicBrokerConfig.ListenerConfigRegex).",
    'config = { "ssl.keystore.location" = "/etc/kafka/keys.pem" }',
    "Write listener.name.LISTENER. before it.",
    _REFUSED,
)
PER_BROKER = block_configs(
    "broker-config-per-broker",
    "The config belongs to single brokers",
    _TYPES,
    Needs.BLOCK,
    "Brokers refuse it as the value of all brokers with INVALID_REQUEST (42): Cannot update these "
    "configs at default cluster level (KIP-226).",
    'kafka_cluster_config "all" { config = { "listeners" = "PLAINTEXT://:9092" } }',
    "Set it in a kafka_broker_config for each broker.",
    _REFUSED,
)
INVALID = block_configs(
    "broker-config-value-invalid",
    "No broker takes the value",
    _TYPES,
    Needs.BLOCK,
    "Brokers check type, range and words of a value (AbstractKafkaConfig): INVALID_REQUEST (42) or "
    "INVALID_CONFIG (40).",
    'config = { "log.cleaner.threads" = -1 }',
    "Correct the value.",
    _REFUSED,
)
OUTDATED = Rule(
    "broker-config-value-outdated",
    "Only older brokers take the value",
    Level.CAUTION,
    Harm.NONE,
    _TYPES,
    Needs.BLOCK,
    "Newer releases have narrower ranges (KIP-1030), and which release the brokers run is unknown "
    "here.",
    'config = { "log.segment.bytes" = 1000 }',
    "Use a value that newer brokers take, too.",
    proof=_REFUSED,
)
MIN_IN_SYNC_SHARED = block_configs(
    "broker-config-min-insync-shared",
    "min.insync.replicas is the same for all brokers",
    (BROKER_CONFIG,),
    Needs.FACTS,
    "With eligible leader replicas, the controller computes with one number for all brokers: "
    "INVALID_CONFIG (40; KIP-966).",
    'kafka_broker_config "one" { broker_id = 1  config = { "min.insync.replicas" = 2 } }',
    "Set it in kafka_cluster_config, or for single topics.",
    f"{_CLAIMS}::test_one_broker_cannot_have_its_own_min_insync_replicas",
)
EMPTY_BLOCK = block_configs(
    "config-block-empty",
    "The block sets nothing",
    (*_TYPES, *faults.TABLES),
    Needs.OBJECT,
    "The object is the configs that are set: without any, it does not exist.",
    "config = {}",
    "Name at least one config, or remove the block.",
    "tests/cluster/claims/test_brokers.py::test_configs_end_with_the_last_one",
)
SECRET_UNKNOWN = Rule(
    "broker-secret-unknown",
    "Brokers do not know the secret",
    Level.CAUTION,
    Harm.NONE,
    _TYPES,
    Needs.BLOCK,
    "Brokers pass configs that they do not know to plugins without a check.",
    'secret_config = { "my.plugin.pasword" = "env:PASSWORD" }',
    "Make sure that a plugin reads it.",
    proof=f"{_CLAIMS}::test_a_broker_hides_the_value_of_a_config_that_it_does_not_know",
)
SECRET_REMOVED = Rule(
    "broker-secret-removed",
    "A secret is removed that nobody can restore",
    Level.CAUTION,
    Harm.ONE_WAY,
    _TYPES,
    Needs.OBJECT,
    "No broker reveals the value, and no state has it.",
    "a kafka_broker_config without secret_config, on a broker that has a keystore password",
    'Declare it in secret_config, or set config_mode = "additive".',
    proof=_SECRET,
)

Fault = tuple[Rule, str, str]
"""The rule, the sentence, and what to do."""


def _judge_configs(change: Change, facts: Facts) -> Iterator[Finding]:
    if change.action not in (Action.CREATE, Action.UPDATE):
        return
    for key, value in broker_rules.select_changed_configs(change).items():
        if value is not None:
            for rule, summary, advice in _find_faults(change.identity.kind, key, value, facts):
                yield rule.find(summary, ("config", key), fix=advice)


def _find_faults(kind: str, key: str, value: Value, facts: Facts) -> Iterator[Fault]:
    row = faults.find_broker_row(key, facts)
    if row is None:
        return
    if row.secret and row.mode is not UpdateMode.READ_ONLY:
        yield from ((SECRET_EXPOSED, *fault) for fault in faults.exposure_faults(key))
    elif absences := [*presence_faults(row.key, key, facts, _DYNAMIC)]:
        yield from ((ABSENT, *fault) for fault in absences)
    else:
        misplaced = [*_find_misplaced(kind, key, row)]
        yield from misplaced or _find_value_faults(row, key, value, facts)


def _judge_names(change: Change, _: Facts) -> Iterator[Finding]:
    written = broker_rules.select_changed_configs(change)
    for key, value in written.items() if change.action in (Action.CREATE, Action.UPDATE) else ():
        if value is not None and find_broker_key(key) is None:
            for summary, advice in faults.unknown_faults(key):
                yield UNKNOWN.find(summary, ("config", key), fix=advice)


def _find_misplaced(kind: str, key: str, row: BrokerKey) -> Iterator[Fault]:
    """Why the config cannot be set in blocks of this kind."""
    yield from ((READ_ONLY, *fault) for fault in faults.read_only_faults(key, row))
    if kind == CLUSTER_CONFIG:
        yield from ((PER_BROKER, *fault) for fault in faults.sharing_faults(key, row))
    else:
        yield from ((NEEDS_LISTENER, *fault) for fault in faults.listener_faults(key, row))


def _find_value_faults(row: BrokerKey, key: str, value: Value, facts: Facts) -> Iterator[Fault]:
    for summary, advice in broker_rules.value_faults(fit_range(row.key, facts), key, value):
        old = fit_old_range(row.key)
        if get_release(facts) or any(broker_rules.value_faults(old, key, value)):
            yield INVALID, summary, advice
        else:
            since = row.key.lower[0] if row.key.lower else ""
            amount, low = (render_config(row.key, str(item)) for item in (value, row.key.low))
            yield (
                OUTDATED,
                f"{key} = {amount}: Kafka {since} and newer refuse less than {low}",
                advice,
            )


def _judge_secrets(change: Change, _: Facts) -> Iterator[Finding]:
    if change.action not in (Action.CREATE, Action.UPDATE):
        return
    after = change.after or EMPTY
    for key in after.get("secret_config") or EMPTY:
        for rule, summary, advice in _find_secret_faults(change, key):
            yield rule.find(summary, ("secret_config", key), fix=advice)


def _find_secret_faults(change: Change, key: str) -> Iterator[Fault]:
    row = find_broker_key(key)
    if key in get_config(change.after):
        yield SET_TWICE, f"{key} is both in config and in secret_config", SET_TWICE.fix
    elif row is None:
        yield (
            SECRET_UNKNOWN,
            f"brokers do not know {key}: they pass it to plugins without a check and never reveal "
            "its value",
            suggest(key, broker_keys()) or SECRET_UNKNOWN.fix,
        )
    elif not row.secret:
        yield from ((NO_SECRET, *fault) for fault in faults.no_secret_faults(key))
    else:
        yield from _find_misplaced(change.identity.kind, key, row)


def _judge_lost_secrets(change: Change, _: Facts) -> Iterator[Finding]:
    for item in change.paths:
        if item.path[0] == "secret_keys" and item.after is None and item.path[1:]:
            yield SECRET_REMOVED.find(
                f"{item.path[1]} is removed, and nobody can restore its secret", item.path
            )


def _judge_sharing(change: Change, facts: Facts) -> Iterator[Finding]:
    changed = broker_rules.select_changed_configs(change)
    written = change.action in (Action.CREATE, Action.UPDATE) and MIN_IN_SYNC in changed
    if written and KafkaFacts.of(facts).elr:
        yield MIN_IN_SYNC_SHARED.find(
            f"{MIN_IN_SYNC} cannot be set for one broker in this cluster, because it uses eligible "
            "leader replicas (KIP-966)",
            ("config", MIN_IN_SYNC),
        )


def _judge_emptiness(change: Change, _: Facts) -> Iterator[Finding]:
    secrets = (change.after or EMPTY).get("secret_config")
    if change.action is Action.CREATE and not get_config(change.after) and not secrets:
        yield EMPTY_BLOCK.find("the block has no config", ("config",))


JUDGES = (
    Judge(
        (
            ABSENT,
            INVALID,
            NEEDS_LISTENER,
            OUTDATED,
            PER_BROKER,
            READ_ONLY,
            SECRET_EXPOSED,
        ),
        _TYPES,
        Needs.BLOCK,
        _judge_configs,
    ),
    Judge(
        (NEEDS_LISTENER, NO_SECRET, PER_BROKER, READ_ONLY, SECRET_UNKNOWN, SET_TWICE),
        _TYPES,
        Needs.BLOCK,
        _judge_secrets,
    ),
    Judge((UNKNOWN,), _TYPES, Needs.FACTS, _judge_names),
    Judge((SECRET_REMOVED,), _TYPES, Needs.OBJECT, _judge_lost_secrets),
    Judge((MIN_IN_SYNC_SHARED,), (BROKER_CONFIG,), Needs.FACTS, _judge_sharing),
    Judge((EMPTY_BLOCK,), EMPTY_BLOCK.types, Needs.OBJECT, _judge_emptiness),
)
