"""The simulated systems of one test file: one for each provider instance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct, field

from ...core.clock import SimulatedClock
from ...core.diagnostics import Diagnostic, Diagnostics, suggest
from ...core.errors import ConfigurationError, KafkaformError
from ...core.resource import ProviderConfig
from ...core.value import FrozenMap
from ...language.declare.blocks import Header
from ...language.tests.suites import evaluate_settings, name_instance
from ...language.values.faults import make_error
from ...provider.contract import Provider, Session
from ...provider.registry import Registry
from ...syntax.nodes import Block


class SimulatedSystems(Struct, frozen=True):
    """Makes each system when it is asked for first; nothing exists in it then."""

    registry: Registry
    clock: SimulatedClock
    settings: Mapping[str, FrozenMap]
    """Provider instance -> the settings of its system, for instances with a `simulate` block."""
    made: dict[str, Provider] = field(default_factory=dict)
    """Provider instance -> the provider of its system."""

    def get_provider(self, config: ProviderConfig) -> Provider:
        """The provider whose sessions lead to the system of this instance. Raises
        ConfigurationError if the provider cannot simulate its system."""
        if config.instance not in self.made:
            simulation = self.registry.load_simulation(config.name)
            settings = self.settings.get(config.instance)
            if settings is None:
                settings, _ = evaluate_settings(None, simulation.settings)
            assert settings is not None  # defaults have no faults
            scope = f"simulated-{config.instance}"
            self.made[config.instance] = simulation.make(settings, scope, self.clock)
        return self.made[config.instance]

    def connect(self, config: ProviderConfig) -> Session:
        """Open a session for a data source."""
        return self.get_provider(config).open(config.instance, config.config, {})


def read_settings(
    blocks: Iterable[Block], registry: Registry, aliases: Iterable[str]
) -> tuple[Mapping[str, FrozenMap], Diagnostics]:
    """Provider instance -> the settings of its `simulate` block, and the faults of all blocks.

    aliases: the provider instances with an alias that the configuration declares.
    """
    settings_by_instance: dict[str, FrozenMap] = {}
    faults: list[Diagnostic] = []
    instances = tuple(aliases)
    for block in blocks:
        instance = name_instance(block)
        wrong = list(_find_unknown(block, instance, instances))
        faults += wrong
        if wrong:
            continue
        try:
            schema = registry.load_simulation(block.labels[0].text).settings
        except ConfigurationError as error:
            faults.append(_place_error(block, error))
            continue
        settings, problems = evaluate_settings(block, schema)
        faults += problems
        if settings is not None:
            settings_by_instance[instance] = settings
    return settings_by_instance, tuple(faults)


def _find_unknown(block: Block, instance: str, instances: tuple[str, ...]) -> Iterator[Diagnostic]:
    if "." in instance and instance not in instances:
        advice = suggest(instance, instances)
        yield make_error(Header(block), f"There is no provider instance {instance}", advice=advice)


def _place_error(block: Block, error: KafkaformError) -> Diagnostic:
    return make_error(Header(block), error.message, advice=error.advice)
