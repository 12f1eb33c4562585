"""Rules for dynamic configs: what a broker would refuse or ignore, and what cannot be undone."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kafkaform.core.change import Action, Change
from kafkaform.core.diagnostics import Diagnostics, Severity, suggest
from kafkaform.core.resource import Facts
from kafkaform.core.value import EMPTY, FrozenMap, Value

from ...protocol import broker_keys, broker_rules, config_values
from ...protocol.broker_key_history import DYNAMIC_WITH_ZOOKEEPER
from ...protocol.broker_keys import BrokerKey, UpdateMode
from ...protocol.broker_rules import Faults
from ...protocol.capabilities import CLIENT_METRICS, GROUP_CONFIGS, capability_faults
from ...protocol.config_keys import GROUP_KEYS, MATCHES, METRICS_KEYS, MIN_IN_SYNC, ConfigKey
from ...protocol.releases import NEWEST
from ...protocol.version_rules import fit_range, presence_faults

ConfigRule = Callable[[Change, Facts], Faults]
MASK = "(sensitive)"


_TABLES: Mapping[str, tuple[Mapping[str, ConfigKey], str]] = {
    "kafka_group_config": (GROUP_KEYS, "a group"),
    "kafka_client_metrics": (METRICS_KEYS, "client metrics"),
}
"""Kind -> all its configs, and whose they are."""


def mask_config(config: Mapping[str, Value] | None) -> FrozenMap:
    """Declared configs of a broker, with MASK for each value that belongs into `secret_config`."""
    # The rules refuse such values, but the plan that says so must not show them.
    return FrozenMap(
        {
            key: MASK if value is not None and is_hidden_config(key) else value
            for key, value in (config or EMPTY).items()
        }
    )


def is_hidden_config(key: str) -> bool:
    """True if a broker never reveals the value of this config."""
    # A broker reports a key that it does not know as sensitive: it could be a plugin's password.
    known = broker_keys.find_broker_key(key)
    return known is None or known.secret


def check_change(rule: ConfigRule, change: Change, facts: Facts) -> Diagnostics:
    """The faults and warnings of one change."""
    warnings = broker_rules.diagnose(change, _lost_secret_warnings(change), Severity.WARNING)
    if change.action not in (Action.CREATE, Action.UPDATE):
        return warnings
    faults = [*rule(change, facts)]
    if change.action is Action.CREATE and not _has_configs(change):
        faults.append(("the block has no config", "name at least one config, or remove the block"))
    doubts = (*_secret_warnings(change), *_unknown_warnings(change))
    notes = broker_rules.diagnose(change, doubts, Severity.WARNING)
    return (*broker_rules.diagnose(change, faults), *notes, *warnings)


def broker_faults(change: Change, facts: Facts) -> Faults:
    """The rules for one broker's configs."""
    changed = broker_rules.select_changed_configs(change)
    yield from _broker_faults(changed, _dynamic_faults, facts)
    yield from _secret_faults(change, _dynamic_faults)
    # INVALID_CONFIG (40): the controller computes ELR with one number for all brokers.
    if facts.values.get("elr") and MIN_IN_SYNC in changed:
        yield (
            f"{MIN_IN_SYNC} cannot be set for one broker in this cluster, because it uses eligible "
            "leader replicas (KIP-966)",
            f"set {MIN_IN_SYNC} in kafka_cluster_config, or for single topics",
        )


def cluster_faults(change: Change, facts: Facts) -> Faults:
    """The rules for configs that all brokers share."""
    yield from _broker_faults(broker_rules.select_changed_configs(change), _sharing_faults, facts)
    yield from _secret_faults(change, _sharing_faults)


def group_faults(change: Change, facts: Facts) -> Faults:
    """The rules for a group's configs."""
    changed = broker_rules.select_changed_configs(change)
    lacking = [*capability_faults(GROUP_CONFIGS, facts)]
    yield from lacking or _table_faults(changed, *_TABLES[change.identity.kind], facts)


def metrics_faults(change: Change, facts: Facts) -> Faults:
    """The rules for a subscription to client metrics (KIP-714)."""
    changed = broker_rules.select_changed_configs(change)
    yield from capability_faults(CLIENT_METRICS, facts)
    yield from _table_faults(changed, *_TABLES[change.identity.kind], facts)
    for item in config_values.parse_items(str(changed.get("match") or "")):
        name, equals, _pattern = item.partition("=")
        if not equals or name.strip() not in MATCHES:
            yield _match_fault(item)


def _match_fault(item: str) -> tuple[str, str]:
    return (
        f"match has the element {item!r}; each element must be NAME=PATTERN",
        suggest(item.partition("=")[0].strip(), MATCHES) or f"NAME is one of {', '.join(MATCHES)}",
    )


PlacementRule = Callable[[str, BrokerKey], Faults]
"""Finds configs that belong to another level."""


def _broker_faults(config: Mapping[str, Value], placed: PlacementRule, facts: Facts) -> Faults:
    for key, value in config.items():
        known = _find_key(key, facts)
        if known is None:
            yield _unknown_fault(key)
        elif known.secret and known.mode is not UpdateMode.READ_ONLY:
            yield f"{key} is a secret, which must not be in config", _AS_SECRET
        else:
            absent = [*presence_faults(known.key, key, facts, _DYNAMIC)]
            misplaced = absent or [*placed(key, known)]
            fitting = fit_range(known.key, facts)
            yield from misplaced or broker_rules.value_faults(fitting, key, value)


_DYNAMIC = "can be changed without a restart"


def _find_key(key: str, facts: Facts) -> BrokerKey | None:
    """The row of a config as the brokers of this cluster have it."""
    known = broker_keys.find_broker_key(key)
    if known is None or key not in DYNAMIC_WITH_ZOOKEEPER or not facts.values.get("zookeeper"):
        return known
    return BrokerKey(known.key, UpdateMode.BROKER)


def _unknown_fault(key: str) -> tuple[str, str]:
    known = suggest(key, broker_keys.broker_keys())
    return (
        f"brokers do not know {key}; they never reveal the value of an unknown config, so "
        "kafkaform could not compare it",
        f"{known} If a plugin reads it: {_AS_SECRET}".strip(),
    )


_AS_SECRET = (
    "put it into secret_config, by reference, and change secret_config_version whenever the value "
    "changes"
)


def _secret_faults(change: Change, placed: PlacementRule) -> Faults:
    after = change.after or EMPTY
    config = after.get("config") or EMPTY
    for key in after.get("secret_config") or EMPTY:
        known = broker_keys.find_broker_key(key)
        if key in config:
            yield f"{key} is both in config and in secret_config", "keep it in one of them"
        elif known is not None and not known.secret:
            yield (
                f"{key} is not a secret: a broker reveals its value to everybody who can read its "
                "configs",
                "put it into config",
            )
        elif known is not None:
            yield from placed(key, known)


def _dynamic_faults(key: str, known: BrokerKey) -> Faults:
    # "Cannot update these configs dynamically" (42; KIP-133 had promised another error).
    if known.mode is UpdateMode.READ_ONLY:
        yield (
            f"{key} is read-only: a broker reads it only at startup",
            "set it in server.properties, restart the brokers one after the other, and remove it "
            "from the block",
        )
    # "can be dynamically updated only per-listener" (42).
    elif known.mode is UpdateMode.LISTENER and not known.listener:
        yield (
            f"{key} can be changed only for a listener, not for the whole broker",
            f"write listener.name.LISTENER.{key}, with the listener's name in lower case",
        )


def refuse_broker_configs(config: Mapping[str, Value]) -> Faults:
    """What `validate` refuses: configs that no broker can change while it runs, misspelt keys, and
    values that no version of Kafka takes."""
    for key, value in config.items():
        known = broker_keys.find_broker_key(key)
        if value is None:
            continue
        if known is None:
            if suggest(key, broker_keys.broker_keys(), broker_rules.NEAR):
                yield _unknown_fault(key)
        elif known.mode is UpdateMode.READ_ONLY:
            # Only a plan knows whether the cluster uses ZooKeeper.
            yield from () if key in DYNAMIC_WITH_ZOOKEEPER else _dynamic_faults(key, known)
        elif not known.secret:
            written = config_values.config_value(key, value, {key: known.key}.get)
            yield from broker_rules.word_faults(known.key, key, written)


def refuse_group_configs(config: Mapping[str, Value]) -> Faults:
    """What `validate` refuses in the configs of a group."""
    yield from _spelling_faults(config, *_TABLES["kafka_group_config"])


def refuse_metrics_configs(config: Mapping[str, Value]) -> Faults:
    """What `validate` refuses in a subscription to client metrics."""
    yield from _spelling_faults(config, *_TABLES["kafka_client_metrics"])
    for item in config_values.parse_items(str(config.get("match") or "")):
        name = item.partition("=")[0].strip()
        if name not in MATCHES and suggest(name, MATCHES, broker_rules.NEAR):
            yield _match_fault(item)


def _sharing_faults(key: str, known: BrokerKey) -> Faults:
    if known.mode in (UpdateMode.BROKER, UpdateMode.LISTENER):
        yield (
            f"{key} can be set only for single brokers, because each broker has its own listeners, "
            "keys and disks",
            "set it in a kafka_broker_config for each broker",
        )
    else:
        yield from _dynamic_faults(key, known)


def _table_faults(
    config: Mapping[str, Value], table: Mapping[str, ConfigKey], of: str, facts: Facts
) -> Faults:
    for key, value in config.items():
        if key in table:
            absent = [*presence_faults(table[key], key, facts)]
            yield from absent or broker_rules.value_faults(table[key], key, value)
        else:
            yield from _misspelt_fault(key, table, of)


def _spelling_faults(
    config: Mapping[str, Value], table: Mapping[str, ConfigKey], of: str
) -> Faults:
    for key, value in config.items():
        if value is not None and key in table:
            written = config_values.config_value(key, value, table.get)
            yield from broker_rules.word_faults(table[key], key, written)
        elif value is not None:
            yield from _misspelt_fault(key, table, of)


def _misspelt_fault(key: str, table: Mapping[str, ConfigKey], of: str) -> Faults:
    """The fault of a key that looks like a known one. Any other can belong to newer brokers, and
    those that do not know it refuse it in the dry run."""
    advice = suggest(key, table, broker_rules.NEAR)
    if advice:
        yield f"{key} is not a config of {of}", advice


def _unknown_warnings(change: Change) -> Faults:
    if change.identity.kind not in _TABLES:
        return
    table, of = _TABLES[change.identity.kind]
    for key in broker_rules.select_changed_configs(change):
        if key not in table and not any(_misspelt_fault(key, table, of)):
            yield (
                f"Kafka {NEWEST} has no config {key} of {of}; a broker that does not "
                "know it refuses it in the dry run",
                "make sure that your brokers know it",
            )


def _has_configs(change: Change) -> bool:
    after = change.after or EMPTY
    return bool(after.get("config") or after.get("secret_config"))


def _secret_warnings(change: Change) -> Faults:
    for key in (change.after or EMPTY).get("secret_config") or EMPTY:
        if broker_keys.find_broker_key(key) is None:
            yield (
                f"brokers do not know {key}: they pass it to plugins without a check and never "
                "reveal its value",
                suggest(key, broker_keys.broker_keys()) or "make sure that a plugin reads it",
            )


def _lost_secret_warnings(change: Change) -> Faults:
    """Secrets that the change removes because no block declares them."""
    for item in change.paths:
        if item.path[0] == "secret_keys" and item.after is None and item.path[1:]:
            yield (
                f"{item.path[1]} is removed, and nobody can restore its secret: to keep it, "
                'declare it in secret_config, or set config_mode = "additive"',
                "make sure that nothing needs it any more",
            )
