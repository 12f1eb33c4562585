"""`kafka_topic_config` and what all kinds with a config map share: ownership, targets, steps.

A `kafka_topic_config` is the overrides of a topic that is declared elsewhere. It exists as long as
the topic has overrides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from functools import cache, lru_cache

from msgspec import Struct

from kafkaform.core.change import Action, Change, Evidence, Path, PathChange, Repeat, Request, Step
from kafkaform.core.resource import Facts, Identity, Observed
from kafkaform.core.schema import STRING, TEXT, AttributeSchema, make_schema, map_of
from kafkaform.core.value import EMPTY, FrozenMap, Value
from kafkaform.provider.contract import ResourceType

from ...protocol import broker_rules, cluster_facts, config_keys
from ...protocol.cluster_facts import KafkaFacts, is_before
from ...protocol.config_keys import (
    ALL_TOPIC_KEYS,
    IRREMOVABLE,
    OLD_DEFAULTS,
    THROTTLES,
    TOPIC_COUNTERPARTS,
    Lookup,
    UpdateMode,
    config_map,
    config_value,
    find_broker_key,
    parse_integer,
    parse_items,
)
from ..kind import ALTER_TOPIC_CONFIGS, REMOVE_CONFIGS, SILENT, all_paths, make_step, paths_below

KIND = "kafka_topic_config"


def is_foreign_config(resource: str, key: str, facts: Facts) -> bool:
    """True for a config that belongs to others unless a block declares it: a replication throttle,
    what this cluster refuses to remove, and what only its vendor sets. resource: `topic`,
    `broker`, as in requests."""
    cluster = KafkaFacts.of(facts)
    locked = IRREMOVABLE.get(resource, ()) if cluster.elr else ()
    if key in THROTTLES.get(resource, ()) or key in locked:
        return True
    settable = cluster.topic_configs if resource == "topic" else None
    return isinstance(settable, tuple) and key not in settable


def find_foreign_paths(resource: str, keys: Iterable[str], facts: Facts) -> frozenset[Path]:
    """The paths of these configs that belong to others (`Observed.foreign`)."""
    return frozenset(("config", key) for key in keys if is_foreign_config(resource, key, facts))


def compute_target_config(
    declared: Mapping[str, Value] | None,
    live: Mapping[str, Value],
    facts: Facts,
    keep: bool,
    find: Lookup = ALL_TOPIC_KEYS.get,
    resource: str = "topic",
) -> FrozenMap:
    """The configs that an object will have.

    declared: None counts as an empty map, and a key with the value None stays as it is; keep: live
    configs that are not declared stay; find, resource: the table of configs, and whose they are.
    """
    target = config_map(declared, find)
    remaining = {
        key: value
        for key, value in live.items()
        if target.get(key) is None
        and (keep or key in target or is_foreign_config(resource, key, facts))
    }
    return FrozenMap(
        {**remaining, **{key: value for key, value in target.items() if value is not None}}
    )


def select_declared(target: FrozenMap, declared: FrozenMap) -> FrozenMap:
    """The target without the overrides that a block keeps but does not set."""
    declared_config = declared.get("config") or EMPTY
    config = {k: v for k, v in get_config(target).items() if declared_config.get(k) is not None}
    return target.with_items({"config": FrozenMap(config)})


def make_remainder(*names: str) -> Callable[[FrozenMap, FrozenMap], FrozenMap | None]:
    """A `ResourceType.left` that removes only recorded keys from these maps. names: attributes."""

    def left(live: FrozenMap, recorded: FrozenMap) -> FrozenMap | None:
        remaining = {
            name: FrozenMap(
                {k: v for k, v in live[name].items() if k not in (recorded.get(name) or EMPTY)}
            )
            for name in names
            if live.get(name)
        }
        return live.with_items(remaining) if any(remaining.values()) else None

    return left


def get_config(attributes: FrozenMap | None) -> FrozenMap:
    """The config map of an object's attributes; empty if there is none."""
    return FrozenMap((attributes or EMPTY).get("config") or EMPTY)


class EffectiveConfigs(Struct, frozen=True):
    """All configs of a topic as they take effect before and after a change, also overrides that no
    table knows."""

    before: Mapping[str, str]
    after: Mapping[str, str]
    inherited_before: Set[str]
    """Configs that have no override before the change."""
    inherited_after: Set[str]
    """Configs that have none after it."""


def find_effective(change: Change, facts: Facts) -> EffectiveConfigs:
    """The override of each topic config, or the default of cluster or Kafka, on both sides of a
    change of a `kafka_topic` or `kafka_topic_config`."""
    # Without the right to read the brokers' configs, Kafka's own defaults are assumed.
    defaults = _list_defaults(
        cluster_facts.get_release(facts), KafkaFacts.of(facts).topic_defaults or EMPTY
    )
    before, after = (
        {key: str(value) for key, value in get_config(side).items() if value is not None}
        for side in (change.before, change.after)
    )
    fallbacks = {
        item.path[1]: str(item.effective)
        for item in change.paths
        if len(item.path) == 2
        and item.path[0] == "config"
        and item.after is None
        and item.effective is not None
    }
    return EffectiveConfigs(
        {**defaults, **before},
        {**defaults, **fallbacks, **after},
        defaults.keys() - before.keys(),
        defaults.keys() - after.keys(),
    )


def list_kafka_defaults(facts: Facts) -> Mapping[str, str]:
    """Topic config -> Kafka's default in the release of this cluster."""
    return _list_defaults(cluster_facts.get_release(facts), EMPTY)


# Thousands of topics have the same ones.
@lru_cache
def _list_defaults(release: str, of_cluster: FrozenMap) -> Mapping[str, str]:
    """Topic config -> what takes effect without an override. release: of the brokers, empty if it
    is unknown."""
    own = {name: key.default for name, key in ALL_TOPIC_KEYS.items()}
    old = {
        key: value
        for key, (since, value) in OLD_DEFAULTS.items()
        if release and is_before(release, since)
    }
    return {**own, **old, **of_cluster}


class Retention(Struct, frozen=True):
    """The limits of a topic after a change."""

    ms: int | None
    """Older records are deleted; None if no record is deleted because of its age."""
    bytes: int | None
    """Larger partitions are cut; None if no record is deleted because of its partition's size."""


RETENTION_KEYS = ("retention.ms", "retention.bytes")
"""The topic configs of the fields of `Retention`."""


def read_retention(values: Mapping[str, str]) -> Retention:
    """The limits in these topic configs. One that is missing is no limit."""
    limits = (parse_integer(values.get(key, "-1")) for key in RETENTION_KEYS)
    return Retention(*(None if limit is None or limit < 0 else limit for limit in limits))


def find_new_retention(change: Change, facts: Facts) -> Retention:
    """The limits that delete records after the change, of one that can lose data."""
    after = find_effective(change, facts).after
    expires = "delete" in parse_items(after["cleanup.policy"])
    return read_retention(after) if expires else Retention(None, None)


def find_topic_unit(path: Path) -> str:
    """The unit of a topic's value: `ms` for `config.retention.ms`."""
    key = ALL_TOPIC_KEYS.get(path[1]) if len(path) == 2 and path[0] == "config" else None
    return key.unit if key is not None else ""


def list_fallbacks(facts: Facts, reported: FrozenMap = EMPTY) -> FrozenMap:
    """Path as text -> the value of a config of a topic without an override: the brokers', or
    Kafka's for those that brokers do not report.

    reported: config -> what brokers said when they were asked about it, which is all that is known
    without the right to read their configs.
    """
    return _make_fallbacks(
        cluster_facts.get_release(facts), KafkaFacts.of(facts).topic_defaults, reported
    )


# The same for thousands of topics.
@lru_cache
def _make_fallbacks(release: str, of_cluster: FrozenMap | None, reported: FrozenMap) -> FrozenMap:
    defaults = {} if of_cluster is None else _list_defaults(release, of_cluster)
    values = {key: config_value(key, value) for key, value in {**defaults, **reported}.items()}
    return FrozenMap({f"config.{key}": value for key, value in values.items() if value is not None})


def make_alter_step(
    change: Change,
    number: int,
    request: Request,
    put: Mapping[str, Value],
    gone: tuple[str, ...],
    paths: tuple[Path, ...],
    *,
    resource: str = "topic",
    name: str | None = None,
    secrets: Mapping[str, Value] = EMPTY,
) -> Step:
    """The step that sets `put` and `secrets` and removes `gone`: all of it or nothing.

    resource, name: as in the request; the default is the topic of the change.
    """
    # SET with the whole value even for lists: what APPEND and SUBTRACT (KIP-339) result in depends
    # on what others write meanwhile, so it would not be what was approved.
    payload: dict[str, Value] = {
        "resource": resource,
        "name": change.identity.key if name is None else name,
        "set": FrozenMap(put),
        "delete": gone,
        **({"secrets": FrozenMap(secrets)} if secrets else {}),
    }
    return make_step(
        change,
        number,
        request,
        payload,
        paths,
        weight=max(1, len(put) + len(gone) + len(secrets)),
        # A dry run knows no secrets, and whether one was stored cannot be read back.
        repeat=Repeat.NEVER if secrets else Repeat.SAFE,
        evidence=Evidence.LOCAL if secrets else Evidence.REMOTE,
    )


def repair_removal(
    step: Step, left_values: Mapping[Path, Value]
) -> tuple[FrozenMap, FrozenMap] | None:
    """The payload that sets these configs as they are, and the one that removes them again.

    A broker of Kafka 4 can show configs that the controller does not know: those of a deleted topic
    of the same name come back when the broker restarts. The controller then takes a removal for
    done, and writes no record that the broker could follow. A set and a removal are records.
    """
    if "delete" not in step.payload or any(path[0] != "config" for path in left_values):
        return None
    values = FrozenMap({path[1]: value for path, value in left_values.items()})
    payload = step.payload.without(["secrets"])
    return (
        payload.with_items({"set": values, "delete": ()}),
        payload.with_items({"set": EMPTY, "delete": tuple(sorted(values))}),
    )


def make_update_step(change: Change, number: int) -> Step | None:
    """The step for the configs that an update changes, or None if it changes none."""
    paths = paths_below(change, "config")
    if not paths:
        return None
    before, after = get_config(change.before), get_config(change.after)
    keys = [key for key in {**before, **after} if ("config", key) in paths or ("config",) in paths]
    put = {key: after[key] for key in keys if key in after}
    gone = tuple(sorted(key for key in keys if key not in after))
    return make_alter_step(change, number, ALTER_TOPIC_CONFIGS, put, gone, paths)


def name_missing_topic(identity: Identity) -> str:
    """What an object lacks whose topic does not exist, as `Absent` says it."""
    return f'topic "{identity.key}"' if identity.kind == KIND else ""


def _key(attributes: FrozenMap) -> str:
    topic = attributes.get("topic")
    if not isinstance(topic, str) or not topic:
        raise ValueError("a kafka_topic_config needs a topic: the name of the topic")
    return topic


def _import_key(text: str) -> str:
    if not text:
        raise ValueError("the import id of a kafka_topic_config is the name of its topic")
    return text


def _canonical(attributes: FrozenMap, _: Facts) -> FrozenMap:
    return attributes.with_items({"config": config_map(attributes.get("config"))})


def _target(declared: FrozenMap, observed: Observed | None, facts: Facts, keep: bool) -> FrozenMap:
    live = get_config(observed.attributes if observed else None)
    config = compute_target_config(declared.get("config"), live, facts, keep)
    return FrozenMap({"topic": declared["topic"], "config": config})


def _steps(change: Change, facts: Facts) -> tuple[Step, ...]:
    if change.action in SILENT:
        return ()
    if change.action is Action.DELETE:
        gone = tuple(
            key
            for key in sorted(get_config(change.before))
            if not is_foreign_config("topic", key, facts)
        )
        if not gone:
            return ()
        return (make_alter_step(change, 1, REMOVE_CONFIGS, EMPTY, gone, all_paths(change)),)
    if change.action is Action.CREATE:
        put = get_config(change.after)
        return (make_alter_step(change, 1, ALTER_TOPIC_CONFIGS, put, (), all_paths(change)),)
    step = make_update_step(change, 1)
    return () if step is None else (step,)


TYPE = ResourceType(
    name=KIND,
    schema=make_schema(
        "Config overrides of a topic that is created elsewhere. The plan shows and removes "
        "overrides of the topic that are not in the map.",
        AttributeSchema("topic", STRING, "Name of the topic.", required=True),
        AttributeSchema(
            "config",
            map_of(TEXT),
            "Topic configs by name; a list is a list or text with commas. null leaves a config as "
            "it is.",
            required=True,
            refuses=broker_rules.spelling_faults,
            keys=config_keys.list_topic_keys,
        ),
    ),
    key=_key,
    canonical=_canonical,
    target=_target,
    steps=_steps,
    import_key=_import_key,
    ours=select_declared,
    left=make_remainder("config"),
    part_of="kafka_topic",
    repair=repair_removal,
    unit=find_topic_unit,
    settings=True,
)


CLUSTER_CONFIG, BROKER_CONFIG = "kafka_cluster_config", "kafka_broker_config"
_WRITES = (Action.CREATE, Action.UPDATE, Action.DELETE)


class DefaultChange(Struct, frozen=True):
    """What becomes of the defaults of topics."""

    before: Mapping[str, str]
    """All topic configs without an override, before the change."""
    after: Mapping[str, str]
    """The same after the change."""
    paths: Mapping[str, Path]
    """Topic config -> the path of the broker config that changes its default."""
    unset_before: frozenset[str]
    """Topic configs whose default neither cluster nor broker sets before the change."""
    unset_after: frozenset[str]
    """The same after the change."""


@cache
def list_default_keys() -> Mapping[str, str]:
    """Broker config -> the topic config whose default it sets, of those that can be changed
    without a restart."""
    return {
        name: topic_key
        for name, topic_key in TOPIC_COUNTERPARTS.items()
        if topic_key in ALL_TOPIC_KEYS
        and (row := find_broker_key(name)) is not None
        and row.mode is UpdateMode.CLUSTER
    }


def list_default_paths(change: Change) -> Mapping[str, PathChange]:
    """Topic config -> what changes its default."""
    if change.action not in _WRITES or change.identity.kind not in (CLUSTER_CONFIG, BROKER_CONFIG):
        return {}
    keys = list_default_keys()
    return {
        keys[item.path[1]]: item
        for item in change.paths
        if len(item.path) == 2 and item.path[0] == "config" and item.path[1] in keys
    }


def find_default_change(
    change: Change, facts: Facts, overridden: Iterable[str] = ()
) -> DefaultChange:
    """The defaults on both sides of a change of the configs of cluster or broker.

    overridden: topic configs whose default some broker overrides, so that the default of one broker
    says nothing about that of the others.
    """
    kafka = list_kafka_defaults(facts)
    current = {**kafka, **(KafkaFacts.of(facts).topic_defaults or EMPTY)}
    current |= {key: kafka[key] for key in overridden}
    items = list_default_paths(change)
    before = {k: str(item.before) for k, item in items.items() if item.before is not None}
    after = {k: str(item.after) for k, item in items.items() if item.after is not None}
    below = {
        key: kafka[key] if item.effective is None else str(item.effective)
        for key, item in items.items()
        # Without a value of its own before, what takes effect now is what takes effect below it.
        if item.before is not None
    }
    return DefaultChange(
        {**current, **before},
        {**current, **below, **after},
        {key: item.path for key, item in items.items()},
        frozenset(items.keys() - before.keys()),
        frozenset(items.keys() - after.keys()),
    )
