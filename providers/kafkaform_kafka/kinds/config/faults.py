"""Faults of dynamic configs: what no broker takes, as sentences with advice.

`refuse_*` finds them while a block is read; the rules of brokers and groups find the others.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafkaform.core.diagnostics import suggest
from kafkaform.core.resource import Facts
from kafkaform.core.value import EMPTY, FrozenMap, Value

from ...protocol import broker_rules, config_keys
from ...protocol.broker_rules import Faults
from ...protocol.cluster_facts import NEWEST, KafkaFacts
from ...protocol.config_keys import (
    DYNAMIC_WITH_ZOOKEEPER,
    GROUP_KEYS,
    MATCHES,
    METRICS_KEYS,
    BrokerKey,
    ConfigKey,
    UpdateMode,
)

MASK = "(sensitive)"
TABLES: Mapping[str, tuple[Mapping[str, ConfigKey], str]] = {
    "kafka_group_config": (GROUP_KEYS, "a group"),
    "kafka_client_metrics": (METRICS_KEYS, "client metrics"),
}
"""Kind -> all its configs, and whose they are."""
_AS_SECRET = (
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
    row = config_keys.find_broker_key(key)
    return row is None or row.secret


def find_broker_row(key: str, facts: Facts) -> BrokerKey | None:
    """The row of a config as the brokers of this cluster have it."""
    row = config_keys.find_broker_key(key)
    if row is None or key not in DYNAMIC_WITH_ZOOKEEPER:
        return row
    # Without a cluster nobody knows whether it has ZooKeeper.
    if KafkaFacts.of(facts).zookeeper is not False:
        return BrokerKey(row.key, UpdateMode.BROKER)
    return row


# ── brokers and cluster ─────────────────────────────────────────────────────────────────


def unknown_faults(key: str) -> Faults:
    """A config that brokers do not know."""
    advice = suggest(key, config_keys.broker_keys())
    yield (
        f"brokers do not know {key}; they never reveal the value of an unknown config, so "
        "kafkaform could not compare it",
        f"{advice} If a plugin reads it, {_AS_SECRET}".strip(),
    )


def exposure_faults(key: str) -> Faults:
    """A secret that stands among the other configs."""
    yield f"{key} is a secret, which must not be in config", _AS_SECRET


def no_secret_faults(key: str) -> Faults:
    """A config in `secret_config` that everybody can read."""
    yield (
        f"{key} is not a secret: a broker reveals its value to everybody who can read its configs",
        "put it into config",
    )


def read_only_faults(key: str, row: BrokerKey) -> Faults:
    """A config that needs a restart."""
    # "Cannot update these configs dynamically" (42; KIP-133 had promised another error).
    if row.mode is UpdateMode.READ_ONLY:
        yield (
            f"{key} is read-only: a broker reads it only at startup",
            "set it in server.properties, restart the brokers one after the other, and remove it "
            "from the block",
        )


def listener_faults(key: str, row: BrokerKey) -> Faults:
    """A config of listeners without the name of one."""
    # "can be dynamically updated only per-listener" (42).
    if row.mode is UpdateMode.LISTENER and not row.listener:
        yield (
            f"{key} can be changed only for a listener, not for the whole broker",
            f"write listener.name.LISTENER.{key}, with the listener's name in lower case",
        )


def sharing_faults(key: str, row: BrokerKey) -> Faults:
    """A config that each broker has for itself."""
    if row.mode in (UpdateMode.BROKER, UpdateMode.LISTENER):
        yield (
            f"{key} can be set only for single brokers, because each broker has its own listeners, "
            "keys and disks",
            "set it in a kafka_broker_config for each broker",
        )


def refuse_broker_configs(config: Mapping[str, Value]) -> Faults:
    """What `validate` refuses: configs that no broker can change while it runs, misspelt keys, and
    values that no version of Kafka takes."""
    for key, value in config.items():
        row = config_keys.find_broker_key(key)
        if value is None:
            continue
        if row is None:
            if suggest(key, config_keys.broker_keys(), broker_rules.NEAR):
                yield from unknown_faults(key)
        elif row.mode is UpdateMode.READ_ONLY:
            # Only a plan knows whether the cluster uses ZooKeeper.
            yield from () if key in DYNAMIC_WITH_ZOOKEEPER else read_only_faults(key, row)
        elif not row.secret:
            written = config_keys.config_value(key, value, {key: row.key}.get)
            yield from broker_rules.word_faults(row.key, key, written)


# ── groups and client metrics ───────────────────────────────────────────────────────────


def refuse_group_configs(config: Mapping[str, Value]) -> Faults:
    """What `validate` refuses in the configs of a group."""
    yield from _spelling_faults(config, "kafka_group_config")


def refuse_metrics_configs(config: Mapping[str, Value]) -> Faults:
    """What `validate` refuses in a subscription to client metrics."""
    yield from _spelling_faults(config, "kafka_client_metrics")
    for element in config_keys.parse_items(str(config.get("match") or "")):
        name = element.partition("=")[0].strip()
        if name not in MATCHES and suggest(name, MATCHES, broker_rules.NEAR):
            yield from match_faults(element)


def match_faults(element: str) -> Faults:
    """An element of `match` that is not NAME=PATTERN with a name that Kafka has."""
    name, equals, _ = element.partition("=")
    if not equals or name.strip() not in MATCHES:
        yield (
            f"match has the element {element!r}; each element must be NAME=PATTERN",
            suggest(name.strip(), MATCHES) or f"use one of the names {', '.join(MATCHES)}",
        )


def _spelling_faults(config: Mapping[str, Value], kind: str) -> Faults:
    table, _ = TABLES[kind]
    for key, value in config.items():
        if value is not None and key in table:
            written = config_keys.config_value(key, value, table.get)
            yield from broker_rules.word_faults(table[key], key, written)
        elif value is not None:
            yield from misspelt_faults(key, kind)


def misspelt_faults(key: str, kind: str) -> Faults:
    """A key that looks like a known one. Any other can belong to newer brokers, and those that do
    not know it refuse it in the dry run."""
    table, owner = TABLES[kind]
    advice = "" if key in table else suggest(key, table, broker_rules.NEAR)
    if advice:
        yield f"{key} is not a config of {owner}", advice


def unheard_faults(key: str, kind: str) -> Faults:
    """A key that Kafka does not have, and that does not look like one either."""
    table, owner = TABLES[kind]
    if key not in table and not any(misspelt_faults(key, kind)):
        yield (
            f"Kafka {NEWEST} has no config {key} of {owner}; a broker that does not know it "
            "refuses it in the dry run",
            "make sure that your brokers know it",
        )
