"""Configs of topics, brokers, groups and client metrics, including defaults (KIP-248), and where
the value of one comes from: the document and the page of `explain config`."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial

from msgspec import Struct

from kafkaform.core.diagnostics import suggest
from kafkaform.core.errors import KafkaformError
from kafkaform.core.resource import Fault, FaultClass
from kafkaform.core.text import Cells, Grid, Page, Prose
from kafkaform.core.value import FrozenMap, Value
from kafkaform.provider.commands import is_glob

from ..kinds.context import ClusterContext, attempt, find_answering_node
from ..protocol import config_keys
from ..protocol.cluster_facts import (
    CLIENT_METRICS,
    GROUP_CONFIG_LISTING,
    GROUP_CONFIGS,
    Capability,
    explain_absence,
)
from ..protocol.config_keys import (
    ALL_TOPIC_KEYS,
    BROKER_TIMES,
    GROUP_KEYS,
    METRICS_KEYS,
    UpdateMode,
    broker_keys,
    find_broker_key,
)
from ..protocol.faults import DESCRIBE, config_fault, fault_of
from ..wire import describe as wire
from ..wire.answers import ConfigEntry, Synonym
from ..wire.configs import describe_configs, list_config_resources
from ..wire.describe import ConfigRow, NameListing, ResourceRow
from .cells import config_text
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


_DEFAULT = 5
_LEVELS: Mapping[str, tuple[int, ...]] = {
    "topic": (1, 2, 3, 4, _DEFAULT),
    "broker": (2, 3, 4, _DEFAULT),
    "cluster": (3, 4, _DEFAULT),
    "group": (8, 2, 3, 4, _DEFAULT),
    "client-metrics": (7, _DEFAULT),
}
"""Entity -> the sources of its configs, the strongest first."""

ENTITIES = tuple(_LEVELS)
_RESOURCES = {"cluster": "broker", "client-metrics": "client_metrics"}
_FEATURES = {"group": GROUP_CONFIGS, "client-metrics": CLIENT_METRICS}
_KINDS = ("", "BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE", "LIST", "CLASS", "PASSWORD")
"""The types of ConfigDef, by their number in the protocol (KIP-569)."""

_CHANGES = {
    UpdateMode.CLUSTER: "for one broker, or for all of them",
    UpdateMode.BROKER: "for one broker",
    UpdateMode.LISTENER: "for one listener of one broker: listener.name.LISTENER.{key}",
    UpdateMode.READ_ONLY: "in server.properties, with a restart",
}


# Kafka's documentation of a config is HTML, because it is written for a web page.
_TAG, _BREAK = re.compile(r"</?[a-z][^<>]*>"), re.compile(r"<(br/?|/?p|/?ul|/?li)>")


def explain_config(context: ClusterContext, entity: str, name: str, key: str) -> FrozenMap:
    """The document: the value of the config, its type and documentation, how it can be changed, and
    its levels, the strongest first. A level without a value has `set` false. name: "" for the
    cluster.

    Raises KafkaformError for an object that cannot be read, and for a key that it does not have.
    """
    require_feature(context, _FEATURES.get(entity))
    # The weaker levels depend on the broker that answers: server.properties can differ.
    broker = name if entity == "broker" else find_answering_node(context)
    entries = _read_entries(context, entity, broker if entity == "cluster" else name, broker)
    entry = entries.get(key)
    if entry is None:
        place = f"{entity} {name}" if name else "the cluster"
        raise KafkaformError(
            f"{place} has no config {key}",
            suggest(key, entries) or "Configs of plugins are only listed where they are set.",
        )
    synonyms = [*_list_synonyms(context, entity, entry, broker)]
    levels = tuple(_describe_levels(entity, entry, synonyms))
    winner = next((level for level in levels if level["wins"]), None)
    return FrozenMap(
        format_version="1.0",
        kind="config_explanation",
        cluster_id=context.facts.scope_id,
        entity=entity,
        name=name or None,
        key=key,
        value=_effective_value(entity, entry, winner),
        sensitive=entry.sensitive,
        type=_KINDS[entry.kind] if entry.kind < len(_KINDS) and entry.kind else None,
        documentation=html.unescape(_TAG.sub("", _BREAK.sub(" ", entry.doc))) or None,
        changed=_describe_change(entity, entry),
        read_only=_describe_change(entity, entry) == _CHANGES[UpdateMode.READ_ONLY],
        broker=broker,
        levels=levels,
    )


def _read_entries(
    context: ClusterContext, entity: str, name: str, broker: str
) -> Mapping[str, ConfigEntry]:
    if entity == "broker" and name not in context.facts.nodes:
        live = ", ".join(context.facts.nodes)
        raise KafkaformError(f"broker {name} is not live", f"The live brokers are {live}.")
    return _describe_entries(context, _RESOURCES.get(entity, entity), name, broker)


def _describe_entries(
    context: ClusterContext,
    resource: str,
    name: str,
    broker: str,
    keys: Sequence[str] | None = None,
) -> Mapping[str, ConfigEntry]:
    answers = attempt(
        DESCRIBE,
        lambda: describe_configs(
            context.wire,
            resource,
            [name],
            context.timeout,
            keys=keys,
            synonyms=True,
            docs=True,
            node=broker or None,
        ),
        broker,
    )
    if isinstance(answers, Fault):
        raise KafkaformError(answers.message, answers.advice)
    answer = answers[name]
    if answer.code:
        fault = config_fault(DESCRIBE, resource, name, answer.code, answer.message)
        if resource == "topic":
            fault = add_suggestion(fault, name, list_topic_names(context))
        raise KafkaformError(f"{resource} {name} cannot be read: {fault.message}", fault.advice)
    return {entry.name: entry for entry in answer.configs or ()}


def _list_synonyms(
    context: ClusterContext, entity: str, entry: ConfigEntry, broker: str
) -> Iterator[Synonym]:
    """The values of all levels, the strongest first."""
    # Brokers have configs for one time in several units (log.retention.ms, .minutes, .hours). Kafka
    # lists these neither as synonyms of the topic's config nor of each other. The first of them
    # that is set at any level counts, so that a static .ms wins over a dynamic .hours.
    topic = next((key for key, names in BROKER_TIMES.items() if entry.name in dict(names)), None)
    family = BROKER_TIMES.get(entry.name) if entity == "topic" else BROKER_TIMES.get(topic or "")
    if family is None:
        yield from entry.synonyms
        return
    yield from (item for item in entry.synonyms if entity == "topic" and item.source == 1)
    names = [name for name, _ in family]
    relatives = _describe_entries(context, "broker", broker, broker, names)
    hidden = 2 if entity == "cluster" else 0
    for name in names[names.index(entry.name) if entry.name in names else 0 :]:
        own = relatives[name].synonyms if name in relatives else ()
        yield from (item for item in own if item.name == name and item.source != hidden)


def _describe_levels(
    entity: str, entry: ConfigEntry, synonyms: Iterable[Synonym]
) -> Iterator[FrozenMap]:
    sources = _LEVELS[entity]
    level_synonyms = [item for item in synonyms if item.source in sources]
    if not level_synonyms and entry.value is not None and entry.source in sources:
        level_synonyms = [Synonym(entry.name, entry.value, entry.source)]
    missing = [
        source for source in sources if source not in {item.source for item in level_synonyms}
    ]
    rows = [(item, index == 0) for index, item in enumerate(level_synonyms)]
    rows += [(Synonym(entry.name, None, source), False) for source in missing]
    strength = {source: index for index, source in enumerate(sources)}
    if sorted(ranks := [strength[item.source] for item in level_synonyms]) == ranks:
        # Only if the levels are in order: else a config in another unit beats a stronger level.
        rows.sort(key=lambda row: strength[row[0].source])
    for item, wins in rows:
        yield _describe_level(entry, item, wins=wins, present=item.source not in missing)


def _describe_level(entry: ConfigEntry, item: Synonym, *, wins: bool, present: bool) -> FrozenMap:
    """One level. The value of a sensitive config is None although it is set."""
    source, title = SOURCES.get(item.source, SOURCES[0])
    value: Value = None if entry.sensitive else item.value
    return FrozenMap(source=source, title=title, key=item.name, value=value, set=present, wins=wins)


def _effective_value(entity: str, entry: ConfigEntry, winner: FrozenMap | None) -> Value:
    """The value that takes effect, in the unit of the config; None if brokers never report it, or
    if a config in another unit is set instead."""
    # The value that a broker reports is its own, which says nothing about the default of the
    # cluster.
    if entity == "cluster":
        return winner["value"] if winner else None
    return None if entry.sensitive else entry.value


def _describe_change(entity: str, entry: ConfigEntry) -> str:
    """How the config can be changed, in a few words."""
    # Kafka does not report the update mode (KIP-226), so a table has it. `read_only` alone does not
    # distinguish a broker's own setting from that of all brokers.
    if entity not in ("broker", "cluster"):
        return f"for each {entity}" if entity != "client-metrics" else "for each subscription"
    row = config_keys.find_broker_key(entry.name)
    if row is None:
        return _CHANGES[UpdateMode.READ_ONLY] if entry.source > 3 else _CHANGES[UpdateMode.CLUSTER]
    return _CHANGES[row.mode].format(key=entry.name)


SENSITIVE = "(sensitive)"
_HEADER = ("", "SOURCE", "CONFIG", "VALUE")


def config_page(document: FrozenMap) -> Page:
    """The page of a document of `explain config`."""
    name = f" {document['name']}" if document["name"] else ""
    yield f"{document['key']} of {document['entity']}{name}"
    yield ""
    yield Grid((_HEADER, *map(_render_row, _mask_levels(document))))
    yield ""
    if not any(level["wins"] for level in document["levels"]):
        yield "Nothing sets it, and it has no default."
    if document["type"]:
        yield f"Type: {document['type'].lower()}"
    yield f"Can be changed: {document['changed']}"
    if document["sensitive"]:
        yield "Brokers never report its value."
    if document["documentation"]:
        yield ""
        yield Prose(document["documentation"])


def _mask_levels(document: FrozenMap) -> Iterator[FrozenMap]:
    for level in document["levels"]:
        hidden = document["sensitive"] and level["set"]
        yield level.with_items({"value": SENSITIVE}) if hidden else level


def _render_row(level: FrozenMap) -> Cells:
    if not level["set"]:
        return "", level["title"], "", "-"
    value = _render_value(level["key"], level["value"])
    return "→" if level["wins"] else "", level["title"], level["key"], value


def _render_value(key: str, value: str | None) -> str:
    if value is None:
        return "null"
    return config_text(key, value) if value else '""'
