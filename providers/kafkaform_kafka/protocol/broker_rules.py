"""Rules that find what Kafka would refuse, before a request is sent.

Each function returns the faults that it finds as (summary, advice) pairs. The rules make findings
of them, and schemas refuse values with them while a block is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache

from kafkaform.core.change import Change
from kafkaform.core.diagnostics import suggest
from kafkaform.core.resource import Facts
from kafkaform.core.value import EMPTY, FrozenMap, Value

from . import config_keys
from .cluster_facts import NEWEST, fit_range, is_certain, presence_faults
from .config_keys import (
    ALL_TOPIC_KEYS,
    TOPIC_COUNTERPARTS,
    TOPIC_KEYS,
    BrokerKey,
    ConfigKey,
    UpdateMode,
    find_broker_key,
)

Faults = Iterable[tuple[str, str]]
"""Summary and advice of each fault."""

# Names that Kafka's source hard-codes. Metadata flags only the first three as internal; the
# metadata log and the topic of tiered storage look like ordinary topics to an admin client. The
# prefix `__` is no rule of Kafka: applications choose such names too.
INTERNAL_TOPICS = frozenset(
    {
        "__consumer_offsets",
        "__transaction_state",
        "__share_group_state",
        "__cluster_metadata",
        "__remote_log_metadata",
    }
)
# A name is the start of a folder's name, `NAME-PARTITION`; file systems end at 255.
MAX_NAME = 249
# The controller's own limit for one atomic batch; `apis.MAX_RECORDS` is ours.
MAX_RECORDS = 10_000
# Both travel as a signed 16-bit number: the factor itself, and the length of a string.
MAX_REPLICATION = 32_767
MAX_VALUE = 32_767
_NAME = re.compile(r"[A-Za-z0-9._-]+", re.ASCII)
# Lower, and configs of other distributions would count as misspelt: retention.local.target.bytes
# is like retention.bytes by 0.7, max.message.size is like max.message.bytes by 0.79.
NEAR = 0.75
"""How like a known name or word a misspelt one is (`suggest`)."""


def plain_name_faults(name: str) -> Faults:
    """A principal as the name of a user in a quota or a credential."""
    plain = name.removeprefix("User:")
    if plain != name:
        yield (
            f"'{name}' is a principal; quotas and credentials use the name without 'User:'",
            f"write '{plain}', unless the user logs in with the name '{name}'",
        )


def collision_key(name: str) -> str:
    """Equal for topic names that cannot exist side by side, such as `a.b` and `a_b`."""
    # Kafka spells '.' as '_' in metric names, so the metrics of both topics would mix.
    return name.replace(".", "_")


def name_faults(name: str) -> Faults:
    """A topic name that Kafka refuses: it allows 1 to 249 of [A-Za-z0-9._-], not "." or ".."."""
    if name in ("", ".", ".."):
        yield f"'{name}' is not a valid topic name", "choose a name with a letter or a digit"
    elif not _NAME.fullmatch(name):
        wrong = "".join(sorted(set(re.sub(_NAME, "", name))))
        yield (
            f"topic name {name!r} has characters that Kafka does not allow: {wrong!r}",
            "use only letters, digits, '.', '_' and '-'",
        )
    if len(name) > MAX_NAME:
        yield (
            f"the topic name has {len(name)} characters; Kafka allows at most {MAX_NAME}",
            "choose a shorter name",
        )


def partition_faults(partitions: int) -> Faults:
    """A number of partitions that no topic can have."""
    if partitions < 1:
        yield (
            f"partitions is {partitions}; a topic has at least 1 partition",
            "set partitions to 1 or more",
        )


def replica_faults(replication_factor: int) -> Faults:
    """A number of replicas that no topic can have."""
    if not 1 <= replication_factor <= MAX_REPLICATION:
        yield (
            f"replication_factor is {replication_factor}; it must be 1 to {MAX_REPLICATION}",
            "set replication_factor to 1 or more",
        )


def broker_count_faults(replication_factor: int, facts: Facts) -> Faults:
    """More replicas than this cluster has live brokers."""
    # Fenced brokers are not among the nodes: the controller places replicas on unfenced ones only
    # and answers INVALID_REPLICATION_FACTOR (38) otherwise.
    brokers = len(facts.nodes)
    if brokers and brokers < replication_factor <= MAX_REPLICATION:
        yield (
            f"replication_factor is {replication_factor}, but the cluster has {brokers} "
            f"live broker{'s' if brokers > 1 else ''}",
            f"lower it to {brokers} or less, or start more brokers",
        )


def size_faults(partitions: Value, configs: int) -> Faults:
    """A topic whose creation does not fit into one request."""
    # One record for the topic, for each config and for each partition, all in one atomic batch.
    if isinstance(partitions, int) and 1 + configs + partitions > MAX_RECORDS:
        most = MAX_RECORDS - 1 - configs
        yield (
            f"{partitions} partitions are more than Kafka can create in one request ({most})",
            f"create the topic with at most {most} partitions, then raise the number",
        )


def assignment_faults(assignment: Sequence[Sequence[int]]) -> Faults:
    """A replica assignment that Kafka refuses: each partition needs the same number of distinct
    brokers (error 39)."""
    if not assignment:
        yield "replica_assignment is empty", "give one list of broker ids for each partition"
        return
    for index, replicas in enumerate(assignment):
        width = len(assignment[0])
        advice = "give each partition the same number of different broker ids"
        if not replicas:
            yield f"partition {index} has no replicas in replica_assignment", advice
        elif len(replicas) != width:
            verb = "has 1 replica" if len(replicas) == 1 else f"has {len(replicas)} replicas"
            yield f"partition {index} {verb}, but partition 0 has {width}", advice
        if len(set(replicas)) != len(replicas):
            yield f"partition {index} names a broker twice in replica_assignment", advice


def dead_broker_faults(rows: Mapping[int, Sequence[int]], facts: Facts) -> Faults:
    """Replicas on brokers that are not live (error 39). rows: partition -> the brokers that it
    would get."""
    for index, replicas in rows.items():
        missing = [str(node) for node in replicas if facts.nodes and str(node) not in facts.nodes]
        if missing:
            yield (
                f"partition {index} would get replicas on brokers that are not live: "
                f"{', '.join(missing)}",
                f"use live brokers: {', '.join(facts.nodes)}",
            )


def config_faults(config: Mapping[str, Value], facts: Facts) -> Faults:
    """Misspelt keys, keys that this cluster does not have, and values of the wrong type or out of
    range."""
    for key, value in config.items():
        if value is None:
            continue
        definition = ALL_TOPIC_KEYS.get(key)
        if definition is None:
            yield from _key_faults(key)
            continue
        absent = [*presence_faults(definition, key, facts)]
        yield from absent or value_faults(fit_range(definition, facts), key, value)


def unknown_warnings(config: Mapping[str, Value], facts: Facts) -> Faults:
    """Keys that no topic of the newest Kafka has, and that look like none."""
    for key, value in config.items():
        if value is not None:
            yield from unknown_key_faults(key, facts)


def unknown_key_faults(key: str, facts: Facts) -> Faults:
    """A key that no topic of the newest Kafka has, and that looks like none."""
    # A newer broker or another distribution can have it. A broker that does not know it refuses it
    # in the dry run, before anything is sent.
    if key in TOPIC_KEYS or any(_key_faults(key)):
        return
    definition = ALL_TOPIC_KEYS.get(key)
    if definition is None or not is_certain(definition, facts):
        yield (
            f"Kafka {NEWEST} has no topic config {key}; a broker that does not know it refuses it "
            "in the dry run",
            "make sure that your brokers know it",
        )


def spelling_faults(config: Mapping[str, Value]) -> Faults:
    """Topic configs that no version of Kafka takes, for `validate`: misspelt keys, misspelt words,
    and texts that are no number."""
    for key, value in config.items():
        if value is not None:
            yield from _find_spelling_faults(key, str(config_keys.config_value(key, value)))


@lru_cache(config_keys.REPEATED)
def _find_spelling_faults(key: str, text: str) -> tuple[tuple[str, str], ...]:
    definition = ALL_TOPIC_KEYS.get(key)
    return tuple(_key_faults(key) if definition is None else word_faults(definition, key, text))


def word_faults(definition: ConfigKey, key: str, value: Value) -> Faults:
    """The fault of a value that no version of Kafka takes: no number, or a word that looks like a
    valid one. Other words and numbers can be valid for newer brokers, so only a plan that would set
    them is blocked (`value_faults`)."""
    text = str(value)
    if definition.choices:
        words = config_keys.parse_items(text) if definition.kind == "list" else (text,)
        certain = any(
            w not in definition.choices and suggest(w, definition.choices, NEAR) for w in words
        )
    else:
        parse = _PARSERS.get(definition.kind)
        certain = parse is not None and parse(text) is None
    if certain:
        yield from value_faults(definition, key, value)


def value_faults(definition: ConfigKey, key: str, value: Value) -> Faults:
    """The fault of this value of a known config, if it has one."""
    text = str(value)
    problem = _find_problem(definition, text)
    if problem:
        ellipsis = f"… ({len(text):,} characters)" if len(text) > 80 else ""
        yield f"{key} = {text[:80]!r}{ellipsis}{problem}", _value_advice(definition, text)


def select_changed_configs(change: Change) -> FrozenMap:
    """The config values that this change writes: all those of a create, the changed ones of an
    update."""
    after = FrozenMap((change.after or EMPTY).get("config") or EMPTY)
    if change.before is None:
        return after
    keys = [item.path[1] for item in change.paths if item.path[0] == "config" and item.path[1:]]
    return FrozenMap({key: after[key] for key in keys if after.get(key) is not None})


def _key_faults(key: str) -> Faults:
    """The fault of a key that is one of the brokers', or that looks like one of topics."""
    yield from [*broker_key_faults(key)] or misspelt_key_faults(key)


def broker_key_faults(key: str) -> Faults:
    """A config that brokers have and topics do not."""
    broker_key = None if key in ALL_TOPIC_KEYS else find_broker_key(key)
    if broker_key is not None:
        yield f"{key} is a config of brokers, not of topics", _advise_broker_key(broker_key)


def _advise_broker_key(broker_key: BrokerKey) -> str:
    name = broker_key.key.name
    if name in TOPIC_COUNTERPARTS:
        return f"use {TOPIC_COUNTERPARTS[name]}"
    if broker_key.mode is UpdateMode.READ_ONLY:
        return "set it in the brokers' server.properties"
    return "set it with kafka_cluster_config or kafka_broker_config"


def misspelt_key_faults(key: str) -> Faults:
    """A key that looks like a config of topics."""
    advice = "" if key in ALL_TOPIC_KEYS else suggest(key, TOPIC_KEYS, NEAR)
    if advice:
        yield f"{key} is not a topic config of Kafka", advice


@lru_cache(config_keys.REPEATED)
def _find_problem(key: ConfigKey, text: str) -> str:
    """The rest of a sentence that begins with the value; empty for a good one."""
    if len(text) > MAX_VALUE:
        return f" has more than {MAX_VALUE:,} characters"
    if key.kind in ("int", "long", "short"):
        return _number_problem(key, config_keys.parse_integer(text), "whole number")
    if key.kind == "double":
        return _number_problem(key, config_keys.parse_double(text), "number")
    if key.kind == "boolean":
        return "" if text in ("true", "false") else " is neither true nor false"
    words = config_keys.parse_items(text) if key.kind == "list" else (text,)
    wrong = [word for word in words if key.choices and word not in key.choices]
    if wrong and wrong[0] != text:
        return f" has {wrong[0]!r}, which is not a valid value"
    return " is not a valid value" if wrong else ""


def _number_problem(key: ConfigKey, number: int | Decimal | None, kind: str) -> str:
    if number is None:
        return f" is not a {kind}"
    return "" if key.allows(Decimal(number)) else " is out of range"


def _parse_boolean(text: str) -> str | None:
    return text if text in ("true", "false") else None


_PARSERS: Mapping[str, Callable[[str], object]] = {
    **dict.fromkeys(("int", "long", "short"), config_keys.parse_integer),
    "double": config_keys.parse_double,
    "boolean": _parse_boolean,
}
"""Type of a config -> the function that reads its canonical text; None for any other text."""

_CALLS: Mapping[str, str] = {"ms": 'retention("7d")', "bytes": 'bytes("10MiB")'}
"""Unit -> an example of the language's function for it."""


def _value_advice(key: ConfigKey, text: str) -> str:
    if key.choices:
        words = config_keys.parse_items(text) if key.kind == "list" else (text,)
        wrong = next((word for word in words if word not in key.choices), "")
        return suggest(wrong, key.choices, NEAR) or f"use one of {', '.join(key.choices)}"
    if key.kind == "boolean":
        return "write true or false"
    if key.unit in _CALLS and _PARSERS[key.kind](text) is None:
        return f"write the number ({key.unit}), or {_CALLS[key.unit]}, for example"
    unit = f" ({key.unit})" if key.unit else ""
    low = "" if key.low is None else f" from {key.low}"
    also = "".join(f", or {number}" for number in key.also)
    return f"write a number{unit}{low} up to {key.limit}{also}"
