"""The names that a connector has or works with, for the boundary of a folder.

The workers log in for their connectors, often with wide rights. So what no config says counts as
every topic: which topics a source writes to, and which topics of another cluster are meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kafkaform.core.resource import Reach
from kafkaform.core.value import EMPTY, FrozenMap

from .connector import (
    ELSEWHERE,
    GROUP,
    KIND,
    MIRROR,
    NAMING,
    OFFSETS_FROM,
    TARGETS,
    is_sink,
    list_topics,
    list_uses,
)
from .connector_offsets import OFFSETS_KIND

_NAMES = (".topic", ".topic.name")
"""The end of further configs with the name of one topic, such as Debezium's for the history of a
schema, signals and notifications, and Confluent's for reports."""
_HEARTBEATS = ("topic.heartbeat.prefix", "heartbeat.topics.prefix")
"""Configs with what Debezium writes before the prefix of a connector, for its heartbeats."""
_DEBEZIUM = "io.debezium."
_PREFIX = "topic.prefix"
_ROUTES = (".replacement", ".topic.replacement", ".topic.format")
"""The end of configs with which transformations such as RegexRouter send records to other
topics."""
_ROUTING = re.compile("topic|rout", re.IGNORECASE)
"""What the classes of transformations are called that choose the topic of a record."""
_SINK = re.compile("(?!.*source).*sink.*", re.IGNORECASE)
"""What the classes of sinks are called."""
_PLAIN = re.compile(r"[\w-]|\\[.\-]", re.ASCII)
_QUANTIFIERS = "*?{"


def list_reaches(kind: str, attributes: FrozenMap) -> tuple[Reach, ...] | None:
    """See `kafkaform.provider.contract.Provider`."""
    if kind == OFFSETS_KIND:
        name = str(attributes.get("connector"))
        return (Reach("connectors", name, f'the connector "{name}"', ("connector",)),)
    return tuple(dict.fromkeys(_reach_connector(attributes))) if kind == KIND else None


def _reach_connector(attributes: FrozenMap) -> Iterator[Reach]:
    config = attributes.get("config") or EMPTY
    name = str(attributes.get("name"))
    yield Reach("connectors", name, f'the connector "{name}"', ("name",))
    if source := attributes.get(OFFSETS_FROM):
        yield Reach("connectors", str(source), f'the connector "{source}"', (OFFSETS_FROM,))
    if str(attributes.get("class") or "").startswith(MIRROR) or not ELSEWHERE.isdisjoint(config):
        text = "topics of another cluster, which could be any"
        yield Reach("topics", "*", text, ("class",))
        return
    for use in list_uses(attributes):
        if use.kind == GROUP:
            # `connect-NAME` belongs to a connector whose name was judged already.
            if use.key != f"connect-{name}":
                yield Reach("groups", use.key, f'the group "{use.key}"', ("config",))
        elif use.pattern:
            text = f'every topic that fits "{use.key}"'
            yield Reach("topics", find_literal_start(use.key) + "*", text, ("config",))
        else:
            yield Reach("topics", use.key, f'the topic "{use.key}"', ("config",))
    yield from _reach_more_topics(config)
    yield from _reach_hidden_topics(attributes, config)
    plugin = str(attributes.get("class") or "")
    # A source ignores `topics`, so anybody can give it some to let it look like a sink.
    if not (is_sink(attributes) and _SINK.fullmatch(plugin.rpartition(".")[2])):
        yield from _reach_targets(plugin, config)
        yield from _reach_routes(config)


def _reach_more_topics(config: FrozenMap) -> Iterator[Reach]:
    for key in config:
        if key in _HEARTBEATS:
            text = f'every topic whose name begins with "{config[key]}."'
            yield Reach("topics", f"{config[key]}.*", text, ("config", key))
        elif key.endswith(_NAMES) and key not in NAMING:
            for topic in list_topics(config, key):
                yield Reach("topics", topic, f'the topic "{topic}"', ("config", key))


def _reach_hidden_topics(attributes: FrozenMap, config: FrozenMap) -> Iterator[Reach]:
    """Configs that name topics or a group in a way that only the workers can read: secrets, and
    references for their config providers (`${file:PATH:KEY}`)."""
    secrets = {*(attributes.get("secret_config") or ()), *(attributes.get("secret_keys") or ())}
    for key in sorted(secrets):
        if _names_objects(key):
            yield Reach("topics", "*", f'"{key}" is a secret, which could name any', ("config",))
    for key, value in config.items():
        if _names_objects(key) and "${" in str(value):
            text = f'"{key}" has a value that only the workers can read, which could name any'
            yield Reach("topics", "*", text, ("config", key))


def _names_objects(key: str) -> bool:
    return (
        key in (*NAMING, "topics", "topics.regex", "consumer.override.group.id", _PREFIX)
        or key in _HEARTBEATS
        or key.endswith((*_NAMES, *_ROUTES))
        or key.startswith("transforms.")
        and key.endswith(".regex")
    )


def _reach_targets(plugin: str, config: FrozenMap) -> Iterator[Reach]:
    """Where a source writes, as far as its configs say."""
    prefix = config.get(_PREFIX)
    if prefix:
        # Debezium writes to PREFIX.SCHEMA.TABLE, others put the name of a table behind the prefix.
        start = f"{prefix}." if plugin.startswith(_DEBEZIUM) else str(prefix)
        text = f'every topic whose name begins with "{start}"'
        yield Reach("topics", f"{start}*", text, ("config", _PREFIX))
    elif not any(config.get(key) for key in TARGETS):
        text = "topics that no config of the connector names, which could be any"
        yield Reach("topics", "*", text, ("config",))


def _reach_routes(config: FrozenMap) -> Iterator[Reach]:
    """Where transformations send the records of a source."""
    routed = set()
    for key, value in config.items():
        if key.startswith("transforms.") and key.endswith(_ROUTES):
            routed.add(key.split(".")[1])
            start = re.split(r"[$%{]", str(value), maxsplit=1)[0]
            text = f'the topics that "{key}" leads to'
            yield Reach("topics", start if start == value else f"{start}*", text, ("config", key))
    for key, value in config.items():
        _, _, alias = key.removesuffix(".type").partition("transforms.")
        if (
            key == f"transforms.{alias}.type"
            and alias not in routed
            and _ROUTING.search(str(value))
        ):
            text = f'the topics that "{key}" leads to, which could be any'
            yield Reach("topics", "*", text, ("config", key))


def find_literal_start(pattern: str) -> str:
    """The text with which everything begins that fits a regular expression; empty if it cannot be
    told: for `shop\\.(a|b).*`, it is `shop.`."""
    if "|" in pattern and not _is_alternation_nested(pattern):
        return ""
    start, position = "", 0
    while (match := _PLAIN.match(pattern, position)) is not None:
        if pattern[match.end() : match.end() + 1] in (*_QUANTIFIERS,):
            break
        start += match[0].removeprefix("\\")
        position = match.end()
    return start


def _is_alternation_nested(pattern: str) -> bool:
    """Whether every `|` is between parentheses."""
    depth, escaped, in_class = 0, False, False
    for character in pattern:
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif in_class:
            in_class = character != "]"
        elif character == "[":
            in_class = True
        elif character in "()":
            depth += 1 if character == "(" else -1
        elif character == "|" and depth <= 0:
            return False
    return True
