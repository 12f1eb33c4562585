"""The simulated Connect cluster of `kafkaform test`: what a `simulate "kafka_connect"` block can
set."""

from __future__ import annotations

from kafkaform.core.clock import Clock
from kafkaform.core.schema import STRING, AttributeSchema, make_schema, set_of
from kafkaform.core.value import FrozenMap
from kafkaform.provider.simulation import Simulation

from .plugins import PLUGINS, SimulatedPlugin, find_plugin
from .provider import ConnectMemoryProvider
from .workers import NEWEST, SimulatedWorkers

SETTINGS = make_schema(
    "The simulated Connect cluster of a test file.",
    AttributeSchema(
        "plugins",
        set_of(STRING),
        "The classes of the connectors that are installed. Default: every one that is asked for.",
    ),
    AttributeSchema(
        "version",
        STRING,
        "The version of Kafka that the workers run; older ones lack some states.",
        default=NEWEST,
    ),
)


def make_provider(settings: FrozenMap, scope: str, clock: Clock) -> ConnectMemoryProvider:
    """The provider of a new Connect cluster. scope: its id."""
    named = settings.get("plugins") or ()
    plugins = tuple(_make_plugin(str(class_)) for class_ in sorted(named))
    version = str(settings.get("version") or NEWEST)
    workers = SimulatedWorkers(clock, scope, version=version, plugins=plugins)
    return ConnectMemoryProvider(workers, scope=scope)


def _make_plugin(class_: str) -> SimulatedPlugin:
    """A plugin with the configs of every connector; those of Kafka's own have theirs, too."""
    kind = "sink" if "Sink" in class_ else "source"
    return find_plugin(class_, PLUGINS) or SimulatedPlugin(class_, kind)


SIMULATION = Simulation(SETTINGS, make_provider)
