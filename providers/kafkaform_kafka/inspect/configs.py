"""Configs of topics, brokers, groups and client metrics, including defaults (KIP-248)."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial

from msgspec import Struct

from kafkaform.core.resource import Fault, FaultClass
from kafkaform.core.value import FrozenMap, Value

from ..protocol.config_keys import (
    ALL_TOPIC_KEYS,
    GROUP_KEYS,
    METRICS_KEYS,
    broker_keys,
    find_broker_key,
)
from ..protocol.faults import fault_of
from ..protocol.releases import (
    CLIENT_METRICS,
    GROUP_CONFIG_LISTING,
    GROUP_CONFIGS,
    Capability,
    explain_absence,
)
from ..wire import describe as wire
from ..wire.configs import list_config_resources
from ..wire.describe import ConfigRow, NameListing, ResourceRow
from .source import (
    TOPICS_HIDDEN,
    DescribeQuery,
    DescribeSource,
    add_suggestion,
    describe_fault,
    list_topic_names,
    make_read_error,
    require_feature,
)

AT_ONCE = 250
"""Resources in one request."""
SOURCES: Mapping[int, tuple[str, str]] = {
    0: ("UNKNOWN", "Unknown"),
    1: ("DYNAMIC_TOPIC_CONFIG", "Dynamic topic config"),
    2: ("DYNAMIC_BROKER_CONFIG", "Dynamic broker config"),
    3: ("DYNAMIC_DEFAULT_BROKER_CONFIG", "Dynamic default broker config"),
    4: ("STATIC_BROKER_CONFIG", "Static broker config"),
    5: ("DEFAULT_CONFIG", "Default config"),
    6: ("DYNAMIC_BROKER_LOGGER_CONFIG", "Dynamic broker logger config"),
    7: ("CLIENT_METRICS_CONFIG", "Client metrics config"),
    8: ("GROUP_CONFIG", "Group config"),
}
"""Number in the protocol -> its name there, and the words of KIP-248 for people."""

_GLOB = re.compile(r"[*?\[]")


def is_glob(text: str) -> bool:
    """Whether a text stands for several names; no name of Kafka's has such a character."""
    return _GLOB.search(text) is not None


def document_configs(source: DescribeSource, query: DescribeQuery) -> dict[str, Value]:
    """The members of the document `configs`."""
    require_feature(source.context, CONFIG_ENTITIES[query.entity_type].capability)
    # Full names are sent along (KIP-133), because a broker has hundreds of configs. Globs cannot
    # be.
    names, hidden = _list_entities(source, query)
    keys = None if not query.keys or any(map(is_glob, query.keys)) else query.keys
    rows = read_config_rows(source, query.entity_type, names, keys)
    faults = {name: fault for name in names if (fault := _find_fault(name, rows[name]))}
    if faults and query.exact and query.entity_type == "topics":
        topic_names = list_topic_names(source.context)
        faults = {name: add_suggestion(fault, name, topic_names) for name, fault in faults.items()}
    return {
        "entity_type": query.entity_type,
        "entities": tuple(
            _document_entity(name, rows[name], faults.get(name), query.keys) for name in names
        ),
        "complete": hidden is None,
        "hidden": hidden,
    }


def find_unknown(document: FrozenMap, keys: Sequence[str]) -> tuple[str, ...]:
    """The names and globs that match no config of Kafka and none of the described entities."""
    # Entities can have configs that Kafka does not define: those of plugins, and of listeners.
    kind = document["entity_type"]
    reported = {row["name"] for entity in document["entities"] for row in entity["configs"]}
    names = reported.union(CONFIG_ENTITIES[kind].known())
    return tuple(
        key
        for key in keys
        if not any(fnmatchcase(name, key) for name in names)
        and not (kind == "brokers" and find_broker_key(key))
    )


def select_own(document: FrozenMap) -> FrozenMap:
    """The document with only those configs that are set on each entity itself."""
    # All that brokers report about the default of brokers is set there, whatever its source.
    source = CONFIG_ENTITIES[document["entity_type"]].source
    entities = tuple(
        entity
        if entity["default"]
        else entity.with_items(
            {"configs": tuple(row for row in entity["configs"] if row["source"] == source)}
        )
        for entity in document["entities"]
    )
    return document.with_items({"entities": entities})


def _list_entities(
    source: DescribeSource, query: DescribeQuery
) -> tuple[tuple[str, ...], str | None]:
    """The names to describe, and what can be missing among them."""
    if query.default:
        return ("",), None
    if query.exact:
        return query.exact, None
    names, hidden = CONFIG_ENTITIES[query.entity_type].names(source)
    return tuple(name for name in names if fnmatchcase(name, query.name)), hidden


def _list_topic_names(source: DescribeSource) -> tuple[tuple[str, ...], str | None]:
    rows = source.require("Metadata", wire.describe_topics, None)
    return tuple(sorted(row.name for row in rows if row.code == 0)), TOPICS_HIDDEN


def _list_broker_names(source: DescribeSource) -> tuple[tuple[str, ...], str | None]:
    return source.context.facts.nodes, None


def _list_group_names(source: DescribeSource) -> tuple[tuple[str, ...], str | None]:
    """Groups with configs of their own, and groups that the brokers coordinate now."""
    # A group can have configs before its first member joins, and then no broker lists it (KIP-848).
    alone = explain_absence(GROUP_CONFIG_LISTING, source.context.facts)
    names = set() if alone else set(_list_resources(source, "group"))
    for node in source.context.facts.nodes:
        answer = source.ask("ListGroups", wire.list_groups, node, node=node)
        if isinstance(answer, NameListing) and not answer.code:
            names |= set(answer.names)
    hidden = "Kafka leaves out groups that this principal may not describe"
    return tuple(
        sorted(names)
    ), f"{hidden}, and groups without members: {alone}" if alone else hidden


def _list_metrics_names(source: DescribeSource) -> tuple[tuple[str, ...], str | None]:
    return _list_resources(source, "client_metrics"), None


def _list_resources(source: DescribeSource, resource: str) -> tuple[str, ...]:
    listing = source.require("ListConfigResources", list_config_resources, resource)
    if listing.code:
        raise make_read_error(fault_of("ListConfigResources", listing.code, ""))
    return tuple(sorted(listing.names))


class Entity(Struct, frozen=True):
    """A type of entities with configs."""

    resource: str
    """The resource type in the protocol."""
    source: str
    """The source of configs that are set on such an entity itself."""
    known: Callable[[], Collection[str]]
    """The configs of such an entity in Kafka 3.0 to 4.3."""
    names: Callable[[DescribeSource], tuple[tuple[str, ...], str | None]]
    """Lists the entities, and says what can be hidden among them."""
    capability: Capability | None = None
    """What a cluster must have for them, None if every one has it."""


CONFIG_ENTITIES: Mapping[str, Entity] = {
    "topics": Entity("topic", SOURCES[1][0], lambda: ALL_TOPIC_KEYS, _list_topic_names),
    "brokers": Entity("broker", SOURCES[2][0], broker_keys, _list_broker_names),
    "groups": Entity("group", SOURCES[8][0], lambda: GROUP_KEYS, _list_group_names, GROUP_CONFIGS),
    "client-metrics": Entity(
        "client_metrics", SOURCES[7][0], lambda: METRICS_KEYS, _list_metrics_names, CLIENT_METRICS
    ),
}
"""What is typed as --entity-type -> the type of entities."""
ENTITY_TYPES: Mapping[str, str] = {
    "topic": "topics",
    "broker": "brokers",
    "cluster": "brokers",
    "group": "groups",
    "client-metrics": "client-metrics",
}
"""Kind of an object with configs -> its entity type. `cluster` is the default of all brokers."""


def read_config_rows(
    source: DescribeSource,
    entity_type: str,
    names: Sequence[str],
    keys: Sequence[str] | None = None,
) -> Mapping[str, ResourceRow | Fault]:
    """Name -> configs of this entity, or the fault. keys: only these configs."""
    # A broker is asked for its own configs (KIP-226), any broker for all others; the empty name is
    # the default of all brokers, which every broker knows.
    rows: dict[str, ResourceRow | Fault] = {}
    nodes = source.context.facts.nodes
    if entity_type == "brokers":
        rows.update({name: _no_broker_fault(name) for name in names if name and name not in nodes})
        names = [name for name in names if name not in rows]
    for batch, node in _split_requests(entity_type, names):
        answer = source.ask(
            "DescribeConfigs",
            partial(wire.describe_all_configs, node=node, keys=keys),
            CONFIG_ENTITIES[entity_type].resource,
            batch,
            node=node,
        )
        for name in batch:
            rows[name] = (
                answer
                if isinstance(answer, Fault)
                else answer.get(name)
                or Fault("NO_ANSWER", "the broker left it out of its answer", FaultClass.DEFINITE)
            )
    return rows


def _split_requests(
    entity_type: str, names: Sequence[str]
) -> Iterator[tuple[Sequence[str], str | None]]:
    if entity_type == "brokers":
        yield from (((name,), name or None) for name in names)
        return
    for start in range(0, len(names), AT_ONCE):
        yield names[start : start + AT_ONCE], None


def _no_broker_fault(name: str) -> Fault:
    return Fault(
        "NO_BROKER",
        f"no live broker has the id {name}",
        FaultClass.DEFINITE,
        advice="`kafkaform describe brokers` lists the live brokers",
    )


def _find_fault(name: str, row: ResourceRow | Fault) -> Fault | None:
    """Why an entity has no configs to show, None if it has."""
    if isinstance(row, Fault):
        return row
    return fault_of("DescribeConfigs", row.code, name, row.message) if row.code else None


def _document_entity(
    name: str, row: ResourceRow | Fault, fault: Fault | None, keys: Sequence[str] = ()
) -> FrozenMap:
    told_rows = () if isinstance(row, Fault) else row.configs
    configs = [
        row for row in told_rows if not keys or any(fnmatchcase(row.name, key) for key in keys)
    ]
    return FrozenMap(
        name=name,
        default=not name,
        configs=tuple(map(_document_config, sorted(configs, key=lambda item: item.name))),
        error=describe_fault(fault),
    )


def _document_config(row: ConfigRow) -> FrozenMap:
    return FrozenMap(
        name=row.name,
        value=None if row.sensitive else row.value,
        sensitive=row.sensitive,
        read_only=row.read_only,
        source=SOURCES.get(row.source, SOURCES[0])[0],
    )
