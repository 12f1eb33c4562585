"""Every config of topics, groups, client metrics and brokers of Kafka 3.0 to 4.3: type, unit, valid
values, where it can be changed, and the releases that have it; and one spelling for equal values:
the one that a broker prints after parsing.

The tables are `tables/config_keys.tsv` and `tables/broker_keys.tsv`. A config of a broker of the
form `listener.name.LISTENER.KEY` follows KEY. Sizes in bytes are read the way people write them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from functools import cache, lru_cache, partial
from typing import Any

from msgspec import Struct

from kafkaform.core.canonical import render_number
from kafkaform.core.schema import KeySchema
from kafkaform.core.text import LONG_MAX, SCALES, render_amount, render_quantity
from kafkaform.core.value import EMPTY, FrozenMap, Value

from .tables import read_table

INT_MAX = 2**31 - 1


# The types are a table, because `validate` checks values without a cluster. DescribeConfigs returns
# types only from version 3 on, and librdkafka uses version 1.
class ConfigKey(Struct, frozen=True):
    """One config."""

    name: str
    kind: str
    """int, long, short, double, boolean, string, list, class or password."""
    default: str
    """Kafka's default, which applies unless a broker config overrides it."""
    unit: str = ""
    """ms, bytes, bytes/s or empty."""
    low: int | None = None
    """The lowest number."""
    high: int | None = None
    """The highest number."""
    also: tuple[int, ...] = ()
    """Valid numbers outside that range."""
    choices: tuple[str, ...] = ()
    """Valid words."""
    ordered: bool = True
    """True if the order of a list's elements counts."""
    since: str = ""
    """The first release that has it, empty if 3.0 does."""
    until: str = ""
    """The first release that does not have it any more, empty if the newest one does."""
    lower: tuple[str, int] | None = None
    """A release, and the lowest number in the releases before it."""
    meaning: str = ""
    """What people read about it while they write it; empty for configs of brokers."""

    def allows(self, number: Decimal) -> bool:
        """True if the number is in range."""
        low = self.low if self.low is not None else -LONG_MAX - 1
        return number in self.also or low <= number <= self.limit

    @property
    def limit(self) -> int:
        """The highest valid number."""
        widest = INT_MAX if self.kind == "int" else LONG_MAX
        return widest if self.high is None else self.high


def _parse_key(row: Mapping[str, str], unit: str) -> ConfigKey:
    """A config from its row. The head of `tables/config_keys.tsv` says what its columns hold."""
    kind, values = row["type"], row["values"].split("|")
    is_range = ".." in values[0]
    low, _, high = values[0].partition("..") if is_range else ("", "", "")
    release, _, number = row["lower"].partition(":")
    return ConfigKey(
        row["name"],
        "list" if kind == "set" else kind,
        row["default"],
        unit,
        int(low) if low else None,
        int(high) if high else None,
        tuple(map(int, values[1:])) if is_range else (),
        tuple(values) if values[0] and not is_range else (),
        kind != "set",
        row["since"],
        row["until"],
        (release, int(number)) if number else None,
        row.get("meaning", ""),
    )


_KEYS: dict[str, dict[str, ConfigKey]] = {"topic": {}, "group": {}, "metrics": {}}
for _row in read_table("config_keys"):
    _KEYS[_row["of"]][_row["name"]] = _parse_key(_row, _row["unit"])

ALL_TOPIC_KEYS: Mapping[str, ConfigKey] = _KEYS["topic"]
"""The configs of all releases."""
TOPIC_KEYS: Mapping[str, ConfigKey] = {
    name: key for name, key in ALL_TOPIC_KEYS.items() if not key.until
}
"""The configs of the newest release."""
GROUP_KEYS: Mapping[str, ConfigKey] = _KEYS["group"]
"""Groups have configs since Kafka 4.0."""
METRICS_KEYS: Mapping[str, ConfigKey] = _KEYS["metrics"]

OLD_DEFAULTS: Mapping[str, tuple[str, str]] = {
    "message.timestamp.after.max.ms": ("4.0", "9223372036854775807"),  # KIP-1030
}
"""Topic config -> a release, and the default in the releases before it."""

MATCHES = (
    "client_id",
    "client_instance_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)
"""The client properties that a client metrics subscription can match (KIP-714)."""

# DescribeConfigs lists these neither as synonyms nor under the topic's name, so the value that
# takes effect below an override has to be computed.
BROKER_TIMES: Mapping[str, tuple[tuple[str, int], ...]] = {
    "retention.ms": (
        ("log.retention.ms", 1),
        ("log.retention.minutes", 60_000),
        ("log.retention.hours", 3_600_000),
    ),
    "segment.ms": (("log.roll.ms", 1), ("log.roll.hours", 3_600_000)),
    "segment.jitter.ms": (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", 3_600_000)),
    "flush.ms": (("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)),
}
"""Topic config -> broker configs that set its default, the strongest first, with the milliseconds
in their unit."""

BROKER_DEFAULTS: Mapping[str, str] = {
    "cleanup.policy": "log.cleanup.policy",
    "compression.type": "compression.type",
    "delete.retention.ms": "log.cleaner.delete.retention.ms",
    "flush.messages": "log.flush.interval.messages",
    "local.retention.bytes": "log.local.retention.bytes",
    "local.retention.ms": "log.local.retention.ms",
    "max.compaction.lag.ms": "log.cleaner.max.compaction.lag.ms",
    "max.message.bytes": "message.max.bytes",
    "message.timestamp.after.max.ms": "log.message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms": "log.message.timestamp.before.max.ms",
    "message.timestamp.type": "log.message.timestamp.type",
    "min.compaction.lag.ms": "log.cleaner.min.compaction.lag.ms",
    "min.insync.replicas": "min.insync.replicas",
    "retention.bytes": "log.retention.bytes",
    "unclean.leader.election.enable": "unclean.leader.election.enable",
}
"""Topic config -> the broker config that sets its default (ServerTopicConfigSynonyms), of those
whose change can do harm; the times are in BROKER_TIMES."""

TOPIC_COUNTERPARTS: Mapping[str, str] = {
    **{broker: topic for topic, broker in BROKER_DEFAULTS.items()},
    **{broker: topic for topic, sources in BROKER_TIMES.items() for broker, _ in sources},
    "default.replication.factor": "replication_factor of the kafka_topic",
    "log.cleaner.min.cleanable.ratio": "min.cleanable.dirty.ratio",
    "log.index.interval.bytes": "index.interval.bytes",
    "log.index.size.max.bytes": "segment.index.bytes",
    "log.message.downconversion.enable": "message.downconversion.enable",
    "log.message.format.version": "message.format.version",
    "log.message.timestamp.difference.max.ms": "message.timestamp.difference.max.ms",
    "log.preallocate": "preallocate",
    "log.segment.bytes": "segment.bytes",
    "log.segment.delete.delay.ms": "file.delete.delay.ms",
    "num.partitions": "partitions of the kafka_topic",
}
"""Config of brokers -> what sets the same for one topic (ServerTopicConfigSynonyms)."""

# Whoever moves replicas writes these into the configs of others (KIP-73), so a plan must not take
# them for drift. Reassignment tools remove them afterwards.
THROTTLES: Mapping[str, tuple[str, ...]] = {
    "topic": ("follower.replication.throttled.replicas", "leader.replication.throttled.replicas"),
    "broker": (
        "follower.replication.throttled.rate",
        "leader.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    ),
}
"""Resource -> the replication throttles that are set for a move and removed after it."""

MIN_IN_SYNC = "min.insync.replicas"
# With ELR (KIP-966, on by default since 4.1) the cluster has a dynamic min.insync.replicas from
# birth, which nobody declared. Removing it fails with INVALID_CONFIG (40), and so does setting it
# for one broker. A topic loses its own like any other config.
IRREMOVABLE: Mapping[str, tuple[str, ...]] = {"broker": (MIN_IN_SYNC,)}
"""Resource -> configs of the cluster and of one broker that ELR clusters refuse to remove."""

REPLACEMENTS: Mapping[str, tuple[str, ...]] = {
    "message.timestamp.difference.max.ms": (
        "message.timestamp.before.max.ms",
        "message.timestamp.after.max.ms",
    ),
    "log.message.timestamp.difference.max.ms": (
        "log.message.timestamp.before.max.ms",
        "log.message.timestamp.after.max.ms",
    ),
}
"""Removed config -> the configs that replaced it (KIP-937)."""

AT_BROKERS: Mapping[str, str] = {
    "local.retention.bytes": "log.local.retention.bytes",
    "local.retention.ms": "log.local.retention.ms",
    "message.downconversion.enable": "log.message.downconversion.enable",
    "message.format.version": "log.message.format.version",
    "message.timestamp.after.max.ms": "log.message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms": "log.message.timestamp.before.max.ms",
    "message.timestamp.difference.max.ms": "log.message.timestamp.difference.max.ms",
}
"""Topic config of some releases -> the broker config of the same releases."""


# ── configs of brokers ──────────────────────────────────────────────────────────────────


class UpdateMode(StrEnum):
    """Where a broker config can be changed (KIP-226)."""

    READ_ONLY = "read-only"
    """In server.properties; a change needs a restart."""
    LISTENER = "listener"
    """For one broker, and only with a listener's prefix."""
    BROKER = "broker"
    """For one broker."""
    CLUSTER = "cluster"
    """For one broker or for all brokers."""


class BrokerKey(Struct, frozen=True):
    """One broker config."""

    key: ConfigKey
    mode: UpdateMode
    listener: bool = False
    """True if the name has a listener's prefix."""

    @property
    def secret(self) -> bool:
        """True if a broker never reveals the value."""
        # DescribeConfigs returns passwords, and keys that the broker itself does not know, as
        # sensitive and without a value. The authorizer's keys are of the second sort.
        return self.key.kind == "password" or self.key.name in _AUTHORIZER


_AUTHORIZER = ("allow.everyone.if.no.acl.found", "super.users")
"""Configs of the authorizer."""


_PER_MECHANISM = (
    "connections.max.reauth.ms",
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
)
"""Configs that are dynamic after `listener.name.LISTENER.MECHANISM.`, whatever their own mode."""

# The only configs with a listener's prefix that DynamicBrokerConfig allows in the cluster's
# defaults.
_LISTENER_WIDE = ("max.connection.creation.rate", "max.connections", "num.network.threads")
"""Configs of one listener that can be set for all brokers."""

# With KRaft a broker lists it as dynamic, too, and refuses every other value.
DYNAMIC_WITH_ZOOKEEPER: frozenset[str] = frozenset({"advertised.listeners"})
"""Configs that one broker of a cluster with ZooKeeper can change without a restart."""

_LISTENER = re.compile(r"listener\.name\.[^.]+\.(.+)")


def find_broker_key(name: str) -> BrokerKey | None:
    """The row of a config of any release by its full name, or None for one of a plugin."""
    prefixed = _LISTENER.fullmatch(name)
    if prefixed is None:
        return all_broker_keys().get(name)
    suffix = prefixed[1]
    base = next(
        (key for key in _PER_MECHANISM if suffix == key or suffix.endswith(f".{key}")), suffix
    )
    broker_key = broker_keys().get(base)
    if broker_key is None:
        return None
    if base in _PER_MECHANISM:
        mode = UpdateMode.BROKER
    elif broker_key.mode is UpdateMode.READ_ONLY or base in _LISTENER_WIDE:
        mode = broker_key.mode
    else:
        mode = UpdateMode.BROKER
    return BrokerKey(broker_key.key, mode, listener=True)


@cache
def broker_keys() -> Mapping[str, BrokerKey]:
    """Name -> config, for all configs that a broker itself knows, without listeners' prefixes."""
    return {name: row for name, row in all_broker_keys().items() if not row.key.until}


_UNITS: Mapping[str, str] = {
    ".ms": "ms",
    ".bytes": "bytes",
    **dict.fromkeys(THROTTLES["broker"], "bytes/s"),
    ".copy.max.bytes.per.second": "bytes/s",
    ".fetch.max.bytes.per.second": "bytes/s",
}
"""How a name ends -> the unit of its value."""


@cache
def all_broker_keys() -> Mapping[str, BrokerKey]:
    """Name -> config, for those of any release, without listeners' prefixes."""
    keys: dict[str, BrokerKey] = {}
    for row in read_table("broker_keys"):
        name = row["name"]
        unit = next((unit for end, unit in _UNITS.items() if name.endswith(end)), "")
        keys[name] = BrokerKey(_parse_key(row, unit), UpdateMode(row["mode"]))
    return keys


# ── what people read while they write configs ───────────────────────────────────────────

_MODES: Mapping[UpdateMode, str] = {
    UpdateMode.CLUSTER: "It can be set for one broker or for all brokers.",
    UpdateMode.BROKER: "It can be set for one broker only.",
    UpdateMode.LISTENER: "It can be set for a listener of one broker, with the prefix "
    "listener.name.NAME.",
}


def render_range(key: ConfigKey) -> str:
    """The valid numbers with their unit: `from 0 ms`; empty for other types."""
    if key.kind not in ("int", "long", "double"):
        return ""
    low = "" if key.low is None else f"from {key.low}"
    high = "" if key.high is None else f"to {key.high}"
    also = "".join(f"or {number}" for number in key.also)
    return " ".join(phrase for phrase in (low, high, also, key.unit) if phrase)


def make_key_schema(key: ConfigKey, doc: str) -> KeySchema:
    """A config for people."""
    choices = ("true", "false") if key.kind == "boolean" else key.choices
    since = f"Since Kafka {key.since}." if key.since else ""
    text = " ".join(sentence for sentence in (doc, since) if sentence)
    return KeySchema(key.name, key.kind, text, key.default, key.unit, render_range(key), choices)


def list_topic_keys() -> tuple[KeySchema, ...]:
    """The configs of topics."""
    return tuple(make_key_schema(key, key.meaning) for key in TOPIC_KEYS.values())


def list_group_keys() -> tuple[KeySchema, ...]:
    """The configs of groups."""
    return tuple(make_key_schema(key, key.meaning) for key in GROUP_KEYS.values())


def list_metrics_keys() -> tuple[KeySchema, ...]:
    """The configs of subscriptions to client metrics."""
    return tuple(make_key_schema(key, key.meaning) for key in METRICS_KEYS.values())


@cache
def _list_broker_keys(modes: frozenset[UpdateMode], secret: bool) -> tuple[KeySchema, ...]:
    return tuple(
        make_key_schema(broker_key.key, _find_broker_page(name, broker_key.mode))
        for name, broker_key in broker_keys().items()
        if broker_key.mode in modes and broker_key.secret is secret
    )


_CLUSTER = frozenset({UpdateMode.CLUSTER})
_BROKER = frozenset({UpdateMode.CLUSTER, UpdateMode.BROKER, UpdateMode.LISTENER})
list_cluster_keys = partial(_list_broker_keys, _CLUSTER, False)
"""The configs of all brokers."""
list_broker_keys = partial(_list_broker_keys, _BROKER, False)
"""The configs of one broker."""
list_broker_secrets = partial(_list_broker_keys, _BROKER, True)
"""The configs of one broker whose values it never reveals."""


@cache
def _get_default_setters() -> Mapping[str, str]:
    """Config of brokers -> the config of topics whose default it is."""
    times = {
        broker_config: topic
        for topic, sources in BROKER_TIMES.items()
        for broker_config, _ in sources
    }
    return {**{broker: topic for topic, broker in BROKER_DEFAULTS.items()}, **times}


def _find_broker_page(name: str, mode: UpdateMode) -> str:
    topic = _get_default_setters().get(name)
    doc = f"The default of the topics' {topic}. {TOPIC_KEYS[topic].meaning} " if topic else ""
    return doc + _MODES[mode]


_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)\s*([kKMGT]i?)?B?(?:/s)?", re.ASCII)
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


def parse_size(value: Any) -> int | None:
    """The bytes in a number or in text such as `50MiB` (1024s) or `50 MB` (1000s); None if it is
    not a size, or less than one byte."""
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
        return None
    match = _SIZE.fullmatch(str(value).strip())
    if match is None:
        return None
    unit = match[2] or ""
    base = 1024 if unit.endswith("i") else 1000
    size = int(Decimal(match[1]) * base ** _POWERS[unit[:1].upper()])
    return size if size > 0 else None


Lookup = Callable[[str], ConfigKey | None]
"""Name of a config -> its row in a table, or None."""

REPEATED = 4_096
"""Pairs of config and value whose answers are kept: thousands of topics share a few of them."""

_NUMBERS = ("int", "long", "short")
_SYMBOLS = {"bytes": "B", "bytes/s": "B/s"}
_LONG = 1000
"""From here on, a number of units is long."""
FOLLOWS = -2
"""The value of a local retention that follows the retention of all data (KIP-405)."""
_FOLLOWED = {
    f"{prefix}local.retention.{unit}": f"{prefix}retention.{unit}"
    for prefix in ("", "log.")
    for unit in ("ms", "bytes")
}

# Bounded: no valid number is longer, and int() refuses texts of more than 4,300 digits.
_INTEGER = re.compile(r"[+-]?\d{1,40}", re.ASCII)
_DOUBLE = re.compile(r"[+-]?(\d{1,40}(\.\d{0,40})?|\.\d{1,40})([eE][+-]?\d{1,3})?", re.ASCII)


def config_value(key: str, value: Value, find: Lookup = ALL_TOPIC_KEYS.get) -> Value:
    """The canonical text of a config's value; None stays None. find: the table of the configs."""
    # Brokers trim, turn `TRUE` into `true` and `+5` into `5`. Without the same here, each plan
    # would show a difference that no apply can remove. Text that does not parse stays as it was
    # written, so that the check can show it.
    return None if value is None else _make_canonical(key, _render_text(value).strip(), find)


# By text and not by value: true and 1 are equal for Python.
@lru_cache(REPEATED)
def _make_canonical(key: str, text: str, find: Lookup) -> str:
    definition = find(key)
    return text if definition is None else _FORMS[definition.kind](definition, text)


def config_map(config: Mapping[str, Value] | None, find: Lookup = ALL_TOPIC_KEYS.get) -> FrozenMap:
    """The canonical form of a whole config map; None counts as an empty one."""
    if not config:
        return EMPTY
    return FrozenMap({key: config_value(key, value, find) for key, value in config.items()})


def parse_integer(text: str) -> int | None:
    """The whole number that a broker reads in this text, or None."""
    return int(text) if _INTEGER.fullmatch(text) else None


def parse_double(text: str) -> Decimal | None:
    """The decimal number that a broker reads in this text, or None."""
    if not _DOUBLE.fullmatch(text):
        return None
    try:
        return Decimal(text)
    except InvalidOperation:
        return None


def parse_limit(text: str) -> Decimal:
    """A number that can be compared: -1 means no limit in every config that accepts it."""
    number = parse_integer(text)
    if number is None:
        return parse_double(text) or Decimal(0)
    return Decimal(LONG_MAX if number == -1 else number)


def render_config(key: ConfigKey | None, text: str) -> str:
    """A value in people's units: `7 d`, `no limit`; the text itself if it is no number. An amount
    that has no short exact form is rounded: `6.94 d (600000000 ms)`."""
    if key is None or key.kind not in _NUMBERS or (number := parse_integer(text)) is None:
        return text
    if number == FOLLOWS and key.name in _FOLLOWED:
        return f"as {_FOLLOWED[key.name]}"
    if number == -1 or number == key.limit >= INT_MAX:
        return "no limit"
    if key.unit not in SCALES:
        return f"{number:,}"
    exact = render_quantity(number, key.unit) or f"{number:,} {_SYMBOLS.get(key.unit, key.unit)}"
    if number <= 0 or Decimal(exact.partition(" ")[0].replace(",", "")) < _LONG:
        return exact
    rounded = render_amount(number, key.unit)
    if rounded == exact:
        return exact
    return f"{rounded} ({number} {_SYMBOLS.get(key.unit, key.unit)})"


def parse_items(text: str) -> tuple[str, ...]:
    """The elements of a list value in their order, trimmed."""
    items = (item.strip() for item in text.split(","))
    # Brokers drop repeated elements since Kafka 4.2 (KIP-1161).
    return tuple(dict.fromkeys(item for item in items if item))


def _render_text(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | Decimal):
        return render_number(value)
    if isinstance(value, tuple):
        return ",".join(_render_text(item) for item in value)
    return str(value)


def _integer_form(_: ConfigKey, text: str) -> str:
    number = parse_integer(text)
    # Most are canonical already, and the text that came in is one that others share.
    return text if number is None or str(number) == text else str(number)


def _double_form(_: ConfigKey, text: str) -> str:
    number = parse_double(text)
    return text if number is None else render_number(number)


def _boolean_form(_: ConfigKey, text: str) -> str:
    return text.lower() if text.lower() in ("true", "false") else text


def _list_form(key: ConfigKey, text: str) -> str:
    items = parse_items(text)
    return ",".join(items if key.ordered else sorted(items))


def _string_form(_: ConfigKey, text: str) -> str:
    return text


_FORMS: Mapping[str, Callable[[ConfigKey, str], str]] = {
    "int": _integer_form,
    "long": _integer_form,
    "short": _integer_form,
    "double": _double_form,
    "boolean": _boolean_form,
    "list": _list_form,
    "string": _string_form,
    "class": _string_form,
    "password": _string_form,
}
