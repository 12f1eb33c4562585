"""Explain where the value of a config comes from: the document and the page of `explain config`."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kafkaform.core.diagnostics import suggest
from kafkaform.core.errors import KafkaformError
from kafkaform.core.resource import Fault
from kafkaform.core.value import FrozenMap, Value
from kafkaform.provider.page import Cells, Grid, Page, Prose

from ..kinds.context import ClusterContext, attempt, find_answering_node
from ..protocol import config_keys
from ..protocol.config_keys import BROKER_TIMES, UpdateMode
from ..protocol.faults import DESCRIBE, config_fault
from ..protocol.releases import CLIENT_METRICS, GROUP_CONFIGS
from ..wire.answers import ConfigEntry, Synonym
from ..wire.configs import describe_configs
from .cells import config_text
from .configs import SOURCES
from .source import add_suggestion, list_topic_names, require_feature

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
        raise KafkaformError(
            f"{_make_title(entity, name)} has no config {key}",
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


def _make_title(entity: str, name: str) -> str:
    return f"{entity} {name}" if name else "the cluster"


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
