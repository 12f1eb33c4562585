"""Faults of dynamic configs: what a broker would refuse, whoever asks.

Each is a summary and an advice. `rules/broker_configs` makes findings of them, and the schemas
refuse the certain ones while a block is read (`AttributeSchema.refuses`).
"""

from __future__ import annotations

from collections.abc import Mapping

from kafkaform.core.diagnostics import suggest
from kafkaform.core.resource import Facts
from kafkaform.core.value import EMPTY, FrozenMap, Value

from ...protocol import broker_keys, broker_rules, config_values
from ...protocol.broker_key_history import DYNAMIC_WITH_ZOOKEEPER
from ...protocol.broker_keys import BrokerKey, UpdateMode
from ...protocol.broker_rules import Faults
from ...protocol.capabilities import CLIENT_METRICS, GROUP_CONFIGS, capability_faults
from ...protocol.config_keys import GROUP_KEYS, MATCHES, METRICS_KEYS, ConfigKey

MASK = "(sensitive)"
DYNAMIC = "can be changed without a restart"
"""What a config of a broker must be, for `presence_faults`."""
AS_SECRET = (
    "put it into secret_config, by reference, and change secret_config_version whenever the value "
    "changes"
)


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
    row = broker_keys.find_broker_key(key)
    return row is None or row.secret


def find_key(name: str, facts: Facts) -> BrokerKey | None:
    """The row of a config as the brokers of this cluster have it; None if they do not know it."""
    row = broker_keys.find_broker_key(name)
    # Without facts, nobody knows whether the cluster uses ZooKeeper.
    if row is None or name not in DYNAMIC_WITH_ZOOKEEPER:
        return row
    if facts.values and not facts.values.get("zookeeper"):
        return row
    return BrokerKey(row.key, UpdateMode.BROKER)


def describe_unknown(name: str) -> tuple[str, str]:
    """The fault of a config that brokers do not know."""
    near = suggest(name, broker_keys.broker_keys())
    return (
        f"brokers do not know {name}; they never reveal the value of an unknown config, so "
        "kafkaform could not compare it",
        f"{near} If a plugin reads it: {AS_SECRET}".strip(),
    )


def list_read_only(name: str, row: BrokerKey) -> Faults:
    """The fault of a config that no broker can change while it runs."""
    # "Cannot update these configs dynamically" (42; KIP-133 had promised another error).
    if row.mode is UpdateMode.READ_ONLY:
        yield (
            f"{name} is read-only: a broker reads it only at startup",
            "set it in server.properties, restart the brokers one after the other, and remove it "
            "from the block",
        )


def list_misplaced(name: str, row: BrokerKey, *, shared: bool) -> Faults:
    """The fault of a config that belongs to another level. shared: the block is about all
    brokers."""
    if shared and row.mode in (UpdateMode.BROKER, UpdateMode.LISTENER):
        yield (
            f"{name} can be set only for single brokers, because each broker has its own "
            "listeners, keys and disks",
            "set it in a kafka_broker_config for each broker",
        )
    # "can be dynamically updated only per-listener" (42).
    elif not shared and row.mode is UpdateMode.LISTENER and not row.listener:
        yield (
            f"{name} can be changed only for a listener, not for the whole broker",
            f"write listener.name.LISTENER.{name}, with the listener's name in lower case",
        )


def list_match_faults(item: str) -> Faults:
    """The fault of an element of `match` of client metrics."""
    name, equals, _pattern = item.partition("=")
    if not equals or name.strip() not in MATCHES:
        yield (
            f"match has the element {item!r}; each element must be NAME=PATTERN",
            suggest(name.strip(), MATCHES) or f"NAME is one of {', '.join(MATCHES)}",
        )


_CAPABILITIES = {"kafka_group_config": GROUP_CONFIGS, "kafka_client_metrics": CLIENT_METRICS}


def list_unsupported(kind: str, facts: Facts) -> Faults:
    """Why this cluster cannot have configs of this kind."""
    return capability_faults(_CAPABILITIES[kind], facts)


# ── while a block is read ───────────────────────────────────────────────────────────────


def refuse_broker_configs(config: Mapping[str, Value]) -> Faults:
    """Configs that no broker can change while it runs, misspelt names, and values that no version
    of Kafka takes."""
    for name, value in config.items():
        row = broker_keys.find_broker_key(name)
        if value is None:
            continue
        if row is None:
            if suggest(name, broker_keys.broker_keys(), broker_rules.NEAR):
                yield describe_unknown(name)
        elif row.mode is UpdateMode.READ_ONLY:
            # Only a plan knows whether the cluster uses ZooKeeper.
            yield from () if name in DYNAMIC_WITH_ZOOKEEPER else list_read_only(name, row)
        elif not row.secret:
            written = config_values.config_value(name, value, {name: row.key}.get)
            yield from broker_rules.word_faults(row.key, name, written)


def refuse_group_configs(config: Mapping[str, Value]) -> Faults:
    """Misspelt names of a group's configs, and values that no version of Kafka takes."""
    yield from _list_spelling_faults(config, GROUP_KEYS, "a group")


def refuse_metrics_configs(config: Mapping[str, Value]) -> Faults:
    """The same for a subscription to client metrics."""
    yield from _list_spelling_faults(config, METRICS_KEYS, "client metrics")
    for item in config_values.parse_items(str(config.get("match") or "")):
        name = item.partition("=")[0].strip()
        if name not in MATCHES and suggest(name, MATCHES, broker_rules.NEAR):
            yield from list_match_faults(item)


def _list_spelling_faults(
    config: Mapping[str, Value], table: Mapping[str, ConfigKey], owner: str
) -> Faults:
    for name, value in config.items():
        if value is not None and name in table:
            written = config_values.config_value(name, value, table.get)
            yield from broker_rules.word_faults(table[name], name, written)
        elif value is not None and (advice := suggest(name, table, broker_rules.NEAR)):
            yield f"{name} is not a config of {owner}", advice
