"""The plugins of simulated workers, and what they have against a configuration.

The texts of errors are those of Kafka's ConfigDef and SinkConnectorConfig.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct

from ..connector import CLASS, NAME
from ..definitions import list_aliases

_INTEGER = re.compile(r"[+-]?\d+")


class Key(Struct, frozen=True):
    """The definition of one config."""

    name: str
    type: str = "STRING"
    default: str | None = None
    required: bool = False
    least: int | None = None
    """The smallest value of a number."""
    choices: tuple[str, ...] = ()


class SimulatedPlugin(Struct, frozen=True):
    """A connector's plugin."""

    class_: str
    type: str
    keys: tuple[Key, ...] = ()
    """Its own configs, beyond those of every connector."""
    version: str = "4.3.1"


COMMON = (
    Key(NAME, required=True),
    Key(CLASS, required=True),
    Key("tasks.max", "INT", "1", least=1),
    Key("key.converter", "CLASS"),
    Key("value.converter", "CLASS"),
    Key("header.converter", "CLASS"),
    Key("transforms", "LIST", ""),
    Key("predicates", "LIST", ""),
    Key("errors.retry.timeout", "LONG", "0"),
    Key("errors.tolerance", default="none", choices=("none", "all")),
)
"""Configs of every connector (ConnectorConfig), as far as the simulation has them."""
SINK = (Key("topics", "LIST", ""), Key("topics.regex", default=""))

FILE = "org.apache.kafka.connect.file"
PLUGINS = (
    SimulatedPlugin(
        f"{FILE}.FileStreamSourceConnector",
        "source",
        (Key("file"), Key("topic", required=True), Key("batch.size", "INT", "2000")),
    ),
    SimulatedPlugin(f"{FILE}.FileStreamSinkConnector", "sink", (Key("file"),)),
)
"""The connectors of Kafka's `connect-file`."""

GUARDED = SimulatedPlugin(
    "kafkaform.simulated.GuardedSinkConnector",
    "sink",
    (Key("pin", "PASSWORD"), Key("host", default="localhost")),
)
"""Has a secret whose name does not say so."""


def find_plugin(name: str, plugins: tuple[SimulatedPlugin, ...]) -> SimulatedPlugin | None:
    """The plugin that workers find by this name."""
    return next((plugin for plugin in plugins if name in list_aliases(plugin.class_)), None)


def list_keys(plugin: SimulatedPlugin) -> tuple[Key, ...]:
    """All configs that a plugin knows; its own come first."""
    return (*plugin.keys, *COMMON, *(SINK if plugin.type == "sink" else ()))


def find_errors(plugin: SimulatedPlugin, config: Mapping[str, str]) -> dict[str, list[str]]:
    """Config -> what is wrong with it."""
    errors: dict[str, list[str]] = {}
    for key in list_keys(plugin):
        for message in _check_value(key, config.get(key.name)):
            errors.setdefault(key.name, []).append(message)
    if plugin.type == "sink":
        for message in _check_topics(config):
            for name in ("topics", "topics.regex"):
                errors.setdefault(name, []).append(message)
    return errors


def _check_value(key: Key, value: str | None) -> Iterator[str]:
    if value is None:
        if key.required:
            yield (f'Missing required configuration "{key.name}" which has no default value.')
        return
    check = _CHECKS.get(key.type)
    if check is not None:
        yield from check(key, value)
    if key.choices and value not in key.choices:
        allowed = ", ".join(key.choices)
        yield (
            f"Invalid value {value} for configuration {key.name}: String must be one of "
            f"(case insensitive): {allowed.upper()}"
        )


def _check_number(key: Key, value: str) -> Iterator[str]:
    if not _INTEGER.fullmatch(value.strip()):
        yield (
            f"Invalid value {value} for configuration {key.name}: Not a number of type {key.type}"
        )
    elif key.least is not None and int(value) < key.least:
        yield (
            f"Invalid value {value} for configuration {key.name}: Value must be at least "
            f"{key.least}"
        )


_CHECKS: Mapping[str, Callable[[Key, str], Iterator[str]]] = {
    "INT": _check_number,
    "LONG": _check_number,
}


def _check_topics(config: Mapping[str, str]) -> Iterator[str]:
    topics, regex = bool(config.get("topics", "").strip()), bool(config.get("topics.regex"))
    if topics and regex:
        yield ("topics and topics.regex are mutually exclusive options, but both are set.")
    elif not topics and not regex:
        yield "Must configure one of topics or topics.regex"
