"""What Kafka would refuse anyway, said earlier and with the place in the configuration.

Each rule returns the faults it found as (summary, advice) pairs; `diagnose` turns them into
diagnostics of one change.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

from kafkaform.core.change import Change
from kafkaform.core.diagnostics import Diagnostic, Diagnostics, Severity, suggest
from kafkaform.core.resource import Facts
from kafkaform.core.value import EMPTY, FrozenMap, Value

from . import config_values
from .config_keys import REMOVED_KEYS, TOPIC_KEYS, ConfigKey

Faults = Iterable[tuple[str, str]]

INTERNAL_TOPICS = frozenset(
    {
        "__consumer_offsets",
        "__transaction_state",
        "__share_group_state",
        "__cluster_metadata",
        "__remote_log_metadata",
    }
)
MAX_NAME = 249
MAX_RECORDS = 10_000
MAX_REPLICATION = 32_767
MAX_VALUE = 32_767
_NAME = re.compile(r"[A-Za-z0-9._-]+", re.ASCII)


def diagnose(change: Change, faults: Faults, severity: Severity = Severity.ERROR) -> Diagnostics:
    """The faults as diagnostics that point at the change's block."""
    return tuple(
        Diagnostic(severity, summary, range=change.range, advice=advice, address=change.address)
        for summary, advice in faults
    )


def is_internal(name: str) -> bool:
    """True for topics that belong to Kafka itself: the five known ones and every `__*`."""
    return name in INTERNAL_TOPICS or name.startswith("__")


def plain_name_faults(name: str) -> Faults:
    """A principal where Kafka takes the name of a user."""
    plain = name.removeprefix("User:")
    if plain != name:
        yield (
            f'"{name}": quotas and credentials take the name without User:',
            f'write "{plain}", unless that is the name that the user logs in with',
        )


def collision_key(name: str) -> str:
    """Names with equal keys cannot live side by side: metrics spell '.' as '_'."""
    return name.replace(".", "_")


def name_faults(name: str) -> Faults:
    """Kafka's rules for topic names: [A-Za-z0-9._-], 1 to 249 of them, not "." or ".."."""
    if name in ("", ".", ".."):
        yield f'"{name}" cannot be a topic name', "choose a name with a letter or digit in it"
    elif not _NAME.fullmatch(name):
        wrong = "".join(sorted(set(re.sub(_NAME, "", name))))
        yield (
            f"topic name {name!r} has characters that Kafka does not allow: {wrong!r}",
            "use letters, digits, '.', '_' and '-' only",
        )
    if len(name) > MAX_NAME:
        yield (
            f"the topic name has {len(name)} characters; Kafka allows {MAX_NAME}",
            "choose a shorter name",
        )


def internal_faults(name: str, verb: str, advice: str = "") -> Faults:
    """Kafka's own topics are never created, changed or deleted by us. advice: where it is not the
    block of the topic that asks for it."""
    if is_internal(name):
        yield (
            f"{name} is an internal topic of Kafka and cannot be {verb}",
            advice
            or "remove it from the configuration; "
            "kafka_topic_config changes the configs of an internal topic",
        )


def internal_warnings(name: str) -> Faults:
    """Configs of an internal topic may be changed, but rarely should."""
    if is_internal(name):
        yield f"{name} is an internal topic of Kafka", "make sure that this config may be changed"


def partition_faults(partitions: int) -> Faults:
    """A number of partitions that no topic can have."""
    if partitions < 1:
        yield f"partitions is {partitions}; a topic has at least 1", "set partitions to 1 or more"


def replica_faults(replication_factor: int) -> Faults:
    """A number of replicas that no topic can have."""
    if not 1 <= replication_factor <= MAX_REPLICATION:
        yield (
            f"replication_factor is {replication_factor}; it must be 1 to {MAX_REPLICATION}",
            "set replication_factor to 1 or more",
        )


def count_faults(partitions: Value, replication_factor: Value, facts: Facts) -> Faults:
    """Numbers that no cluster, or not this one, can provide."""
    if isinstance(partitions, int):
        yield from partition_faults(partitions)
    if not isinstance(replication_factor, int):
        return
    yield from replica_faults(replication_factor)
    brokers = len(facts.nodes)
    if brokers and replication_factor > brokers:
        yield (
            f"replication_factor is {replication_factor}, but the cluster has {brokers} "
            f"live broker{'s' if brokers > 1 else ''}",
            f"lower it to {brokers} or less, or bring more brokers up",
        )


def size_faults(partitions: Value, configs: int) -> Faults:
    """One topic is one atomic metadata batch of at most 10,000 records."""
    if isinstance(partitions, int) and 1 + configs + partitions > MAX_RECORDS:
        most = MAX_RECORDS - 1 - configs
        yield (
            f"{partitions} partitions are more than Kafka can create in one request ({most})",
            f"create the topic with {most} partitions or less, then raise the number",
        )


def assignment_faults(assignment: Sequence[Sequence[int]], facts: Facts) -> Faults:
    """A replica assignment: every partition has the same number of distinct, known brokers."""
    if not assignment:
        yield "replica_assignment is empty", "give one list of broker ids for each partition"
        return
    for index, replicas in enumerate(assignment):
        yield from _replica_faults(index, replicas, len(assignment[0]), facts)


def _replica_faults(index: int, replicas: Sequence[int], width: int, facts: Facts) -> Faults:
    advice = "give each partition the same number of different broker ids"
    if not replicas:
        yield f"partition {index} has no replicas in replica_assignment", advice
    elif len(replicas) != width:
        yield f"partition {index} has {len(replicas)} replicas, partition 0 has {width}", advice
    if len(set(replicas)) != len(replicas):
        yield f"partition {index} names a broker twice in replica_assignment", advice
    missing = [str(node) for node in replicas if facts.nodes and str(node) not in facts.nodes]
    if missing:
        yield (
            f"partition {index} names brokers that are not live: {', '.join(missing)}",
            f"the live brokers are {', '.join(facts.nodes)}",
        )


def config_faults(config: Mapping[str, Value]) -> Faults:
    """Unknown keys, and values of the wrong type or out of range."""
    for key, value in config.items():
        if value is None:
            continue
        known = TOPIC_KEYS.get(key)
        if known is None:
            yield f"{key} is not a topic config of Kafka", _unknown_advice(key)
            continue
        yield from value_faults(known, key, value)


def misspelt_faults(config: Mapping[str, Value]) -> Faults:
    """Keys that Kafka does not have, and that look like one that it has. Any other unknown key
    may be of a newer broker: what a plan would set of those, it blocks."""
    for key, value in config.items():
        known = key in TOPIC_KEYS or key in REMOVED_KEYS
        if value is not None and not known and suggest(key, TOPIC_KEYS):
            yield f"{key} is not a topic config of Kafka", _unknown_advice(key)


def value_faults(known: ConfigKey, key: str, value: Value) -> Faults:
    """What is wrong with this value of a known config."""
    text = str(value)
    problem = _find_problem(known, text)
    if problem:
        more = f"… ({len(text):,} characters)" if len(text) > 80 else ""
        yield f"{key} = {text[:80]!r}{more}: {problem}", _range_advice(known)


def config_warnings(config: Mapping[str, Value], replication_factor: Value) -> Faults:
    """Valid settings that are very likely a mistake."""
    text = config.get("min.insync.replicas")
    minimum = config_values.parse_integer(str(text)) if text else None
    if minimum is None or not isinstance(replication_factor, int):
        return
    if minimum > replication_factor:
        yield (
            f"min.insync.replicas is {minimum}, but there are only {replication_factor} replicas: "
            "producers with acks=all will be refused",
            "lower min.insync.replicas or raise the replication factor",
        )


def select_changed_configs(change: Change) -> FrozenMap:
    """The config values that this change writes: all of a create's, else the changed ones."""
    after = FrozenMap((change.after or EMPTY).get("config") or EMPTY)
    if change.before is None:
        return after
    keys = [item.path[1] for item in change.paths if item.path[0] == "config" and item.path[1:]]
    return FrozenMap({key: after[key] for key in keys if after.get(key) is not None})


def _unknown_advice(key: str) -> str:
    return REMOVED_KEYS.get(key) or suggest(key, TOPIC_KEYS) or "remove it from config"


def _find_problem(key: ConfigKey, text: str) -> str:
    if len(text) > MAX_VALUE:
        return f"a config value can have {MAX_VALUE} characters"
    if key.kind in ("int", "long", "short"):
        return _number_problem(key, config_values.parse_integer(text), "a whole number")
    if key.kind == "double":
        return _number_problem(key, config_values.parse_double(text), "a number")
    if key.kind == "boolean":
        return "" if text in ("true", "false") else "it must be true or false"
    words = config_values.parse_items(text) if key.kind == "list" else (text,)
    wrong = [word for word in words if key.choices and word not in key.choices]
    return f"{wrong[0]!r} is not possible here" if wrong else ""


def _number_problem(key: ConfigKey, number: int | Decimal | None, kind: str) -> str:
    if number is None:
        return f"it must be {kind}"
    return "" if key.allows(Decimal(number)) else "it is out of range"


def _range_advice(key: ConfigKey) -> str:
    if key.choices:
        return f"possible: {', '.join(key.choices)}"
    if key.kind == "boolean":
        return "write true or false"
    unit = f" ({key.unit})" if key.unit else ""
    low = "" if key.low is None else f" from {key.low}"
    also = "".join(f", or {number}" for number in key.also)
    return f"write a number{unit}{low} up to {key.limit}{also}"
