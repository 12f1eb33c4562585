"""The data sources: a connector that somebody else manages, and the plugins of the workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from kafkaform.core.diagnostics import suggest
from kafkaform.core.errors import KafkaformError
from kafkaform.core.resource import Absent, Failed, Fault, FaultClass, Hidden, Identity, Reading
from kafkaform.core.schema import (
    STRING,
    AttributeSchema,
    ObjectSchema,
    list_of,
    make_schema,
    map_of,
    object_of,
)
from kafkaform.core.value import FrozenMap

from .connector import KIND, identity_key
from .rest import Plugin

PLUGINS = "kafka_connect_plugins"
_PLUGIN = {"class": STRING, "type": STRING, "version": STRING}

DATA: Mapping[str, ObjectSchema] = {
    KIND: make_schema(
        "A connector that something else manages. Its secrets are not shown.",
        AttributeSchema("name", STRING, "Name of the connector.", required=True),
        AttributeSchema("class", STRING, "Its plugin, `connector.class`.", computed=True),
        AttributeSchema("config", map_of(STRING), "Its configs.", computed=True),
        AttributeSchema(
            "secret_keys",
            map_of(STRING),
            "The configs that are set to a secret, without their values.",
            computed=True,
        ),
        AttributeSchema("state", STRING, "running, paused, stopped or starting.", computed=True),
        AttributeSchema(
            "failures", map_of(STRING), "What has failed: `connector`, `tasks`.", computed=True
        ),
    ),
    PLUGINS: make_schema(
        "The plugins that the workers have.",
        AttributeSchema(
            "type",
            STRING,
            "Only plugins of this type: source, sink, converter, header_converter, transformation "
            "or predicate.",
        ),
        AttributeSchema(
            "plugins", list_of(object_of(_PLUGIN)), "The plugins, by class.", computed=True
        ),
    ),
}


class Answers(Struct, frozen=True):
    """How a session answers what data sources ask."""

    instance: str
    read: Callable[[Identity], Reading]
    list_plugins: Callable[[], tuple[Plugin, ...]]
    """Raises RequestFailed."""


def answer_query(answers: Answers, data: str, arguments: FrozenMap) -> FrozenMap:
    """The computed attributes of a data source. Raises KafkaformError with advice."""
    answer = _ANSWERS.get(data)
    if answer is None:
        advice = suggest(data, DATA) or f"There are {' and '.join(DATA)}."
        raise KafkaformError(f"there is no data source {data}", advice)
    return answer(answers, arguments)


def _answer_connector(answers: Answers, arguments: FrozenMap) -> FrozenMap:
    name = str(arguments["name"])
    try:
        identity_key(name)
    except ValueError as error:
        raise KafkaformError(f"data {KIND}: {error}", "Correct the name.") from None
    reading = answers.read(Identity(answers.instance, KIND, name))
    if isinstance(reading, Absent | Hidden | Failed):
        if isinstance(reading, Hidden):
            cause, advice = f"cannot be seen: {reading.right} is missing", f"Grant {reading.right}."
        elif isinstance(reading, Failed):
            cause, advice = f"could not be read: {reading.fault.message}", reading.fault.advice
        else:
            cause, advice = "does not exist", "Look for a typing error, or create it first."
        raise KafkaformError(f"the connector {name} {cause}", advice or "Run the command again.")
    names = ("class", "config", "secret_keys", "state", "failures")
    return FrozenMap({attribute: reading.attributes[attribute] for attribute in names})


def _answer_plugins(answers: Answers, arguments: FrozenMap) -> FrozenMap:
    plugin_type = arguments.get("type")
    plugins = [plugin for plugin in answers.list_plugins() if plugin_type in (None, plugin.type)]
    rows = sorted((plugin.class_, plugin.type, plugin.version) for plugin in plugins)
    return FrozenMap(
        plugins=tuple(
            FrozenMap({"class": class_, "type": kind, "version": version})
            for class_, kind, version in rows
        )
    )


_ANSWERS: Mapping[str, Callable[[Answers, FrozenMap], FrozenMap]] = {
    KIND: _answer_connector,
    PLUGINS: _answer_plugins,
}


def make_query_error(subject: str, fault: Fault) -> KafkaformError:
    """The error of a query that got no answer."""
    right = " (the right is missing)" if fault.kind is FaultClass.PERMISSION else ""
    return KafkaformError(f"{subject}: {fault.message}{right}", fault.advice or "Run it again.")
