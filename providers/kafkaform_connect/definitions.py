"""What plugins are called (PluginUtils.aliases of Kafka Connect), what they declare as the rules of
connectors see it, and what workers know besides.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafkaform.core.resource import Coverage, CoverageKind, Depth, Fault, Identity, Observed, Sweep
from kafkaform.core.value import FrozenMap

from .answers import Definition

SUFFIX = "Connector"
_LISTING = "kafka_connect_definition:"

GIVEN = frozenset(
    {
        "config.action.reload",
        "connector.plugin.version",
        "errors.deadletterqueue.context.headers.enable",
        "errors.deadletterqueue.topic.name",
        "errors.deadletterqueue.topic.replication.factor",
        "errors.log.enable",
        "errors.log.include.messages",
        "errors.retry.delay.max.ms",
        "errors.retry.timeout",
        "errors.tolerance",
        "exactly.once.support",
        "header.converter",
        "header.converter.plugin.version",
        "key.converter",
        "key.converter.plugin.version",
        "offsets.storage.topic",
        "predicates",
        "tasks.max",
        "tasks.max.enforce",
        "topic.creation.groups",
        "topics",
        "topics.regex",
        "transaction.boundary",
        "transaction.boundary.interval.ms",
        "transforms",
        "value.converter",
        "value.converter.plugin.version",
    }
)
"""Configs of every connector, or of every source or sink (ConnectorConfig, SourceConnectorConfig,
SinkConnectorConfig). Workers of some versions leave them out of what a plugin declares."""
FREE = (
    "admin.override.",
    "consumer.override.",
    "header.converter.",
    "key.converter.",
    "predicates.",
    "producer.override.",
    "topic.creation.",
    "transforms.",
    "value.converter.",
)
"""How configs begin that are for other parts than the connector's plugin."""
MIRROR_FREE = ("admin.", "consumer.", "producer.", "source.", "target.")
"""How configs begin that MirrorMaker's connectors hand to their clients (MirrorConnectorConfig)."""


def name_listing(class_: str) -> str:
    """The kind that only rules list: what the plugin with this name declares."""
    return f"{_LISTING}{class_}"


def read_listing(kind: str) -> str | None:
    """The plugin of such a kind, None for any other kind."""
    return kind.removeprefix(_LISTING) if kind.startswith(_LISTING) else None


def make_listing(instance: str, class_: str, depth: Depth, definition: Definition | Fault) -> Sweep:
    """The listing of what a plugin declares: `configs`, all of it, and `passwords`, which are
    secrets. definition: without names if no worker tells it; a Fault if nobody answered."""
    kind = name_listing(class_)
    if isinstance(definition, Fault):
        return Sweep(kind, depth, (), Coverage(CoverageKind.FAILED, definition))
    items: tuple[Observed, ...] = ()
    if definition.names:
        attributes = FrozenMap(
            configs=tuple(sorted(definition.names)), passwords=tuple(sorted(definition.passwords))
        )
        items = (Observed(Identity(instance, kind, class_), attributes),)
    return Sweep(kind, depth, items, Coverage(CoverageKind.COMPLETE), whole=True)


def list_aliases(class_: str) -> tuple[str, str, str]:
    """The full name of a connector's class, its simple name, and that without `Connector`."""
    simple = class_.rpartition(".")[2]
    return class_, simple, simple.removesuffix(SUFFIX)


def finds_plugin(name: str, classes: Iterable[str]) -> bool:
    """True if workers with these plugins find one by this name."""
    return any(name in list_aliases(plugin_class) for plugin_class in classes)


def is_same_plugin(name: str, other_name: str) -> bool:
    """True for two names that can be those of one plugin."""
    return name in list_aliases(other_name) or other_name in list_aliases(name)
