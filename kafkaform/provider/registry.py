"""Find providers: those of this package, and those that other packages offer as entry points."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ..core.diagnostics import suggest
from ..core.errors import ConfigurationError
from ..core.lazy import load
from ..version import VERSION
from .contract import OptionalParts, Provider

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from .commands import CommandGroup
    from .contract import Exporter, FileReader, Simulation

GROUP = "kafkaform.providers"
"""The entry-point group of other packages' providers."""
# No entry point can replace one of these: any package that is installed could then read passwords.
# And none is looked for, which takes longer than Python's own start.
BUILT_IN: Mapping[str, str] = {"kafka": "kafkaform_kafka.provider"}
"""The providers that come with kafkaform: name -> the module that has its `PROVIDER`."""
COMMANDS = ("kafkaform_connect.commands", "kafkaform_schema_registry.commands")
"""Modules that come with kafkaform, too: their `GROUPS` have what further providers add to
commands. Nothing else of these providers is loaded before a command asks a system."""
_PARTS = tuple(
    name for name in vars(Provider) if not name.startswith("_") and not hasattr(OptionalParts, name)
)
"""What the contract requires of a provider."""


class Offer(Struct, frozen=True):
    """A provider that can be loaded."""

    name: str
    """The name that `provider` blocks use."""
    value: str
    """Where it is: `module:attribute`."""
    load: Callable[[], Any]
    """Imports it."""
    package: str
    """The Python package that has it, with its version."""
    plain_package: str
    """The Python package without its version."""


class Registry:
    """Loads each provider when it is asked for first, and only once.

    One registry serves one process and is passed to whoever needs providers.
    """

    def __init__(
        self,
        points: Iterable[EntryPoint] | None = None,
        allowed: Collection[str] | None = None,
    ) -> None:
        """points: entry points instead of the installed ones; allowed: the names that can be
        loaded, all by default."""
        self._given = points
        self._allowed = allowed
        self._loaded: dict[str, Provider] = {}
        self.built_in = tuple(n for n in sorted(BUILT_IN) if allowed is None or n in allowed)
        """The names of the providers that come with kafkaform, sorted."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names that `load` knows, sorted. No provider is loaded to find them."""
        return tuple(sorted({*self.built_in, *(point.name for point in self._points)}))

    def load(self, name: str) -> Provider:
        """The provider with this name. Raises ConfigurationError if no package or several packages
        offer it, or if its package cannot be imported or offers something else."""
        if name not in self._loaded:
            self._loaded[name] = _load_provider(self._find_offer(name))
        return self._loaded[name]

    def load_commands(self, group: str) -> tuple[CommandGroup, ...]:
        """What the providers of this package add to the commands of this group. Other packages are
        not asked: finding them would slow down each of these commands."""
        providers = (self.load(name) for name in self.built_in)
        references = (provider.commands.get(group) for provider in providers)
        built_in = tuple(load(reference) for reference in references if reference is not None)
        further = (load(f"{module}:GROUPS").get(group) for module in COMMANDS)
        return (*built_in, *(commands for commands in further if commands is not None))

    def find_provider(self, group: str, name: str) -> str:
        """The provider that adds this command to the group."""
        return next(
            item.provider
            for item in self.load_commands(group)
            for command in item.commands
            if command.name == name
        )

    def load_simulation(self, name: str) -> Simulation:
        """How this provider simulates its system. Raises ConfigurationError if it cannot, and as
        `load` does."""
        reference = self.load(name).simulation
        if not reference:
            raise ConfigurationError(
                f'provider "{name}" of {self.describe_package(name)} cannot simulate its system, '
                "so `kafkaform test` cannot run this configuration",
                "Test the parts of the configuration that use other providers in a folder or "
                "module of their own.",
            )
        simulation: Simulation = load(reference)
        return simulation

    def load_readers(self, name: str) -> Mapping[str, Callable[[], FileReader]]:
        """What this provider reads files of other tools with: tool -> a function that imports its
        reader."""
        references = self.load(name).readers
        return {tool: partial(load, reference) for tool, reference in references.items()}

    def load_exporters(self, name: str) -> Mapping[str, Callable[[], Exporter]]:
        """How this provider writes its objects for other tools: tool -> a function that imports its
        exporter."""
        references = self.load(name).exporters
        return {tool: partial(load, reference) for tool, reference in references.items()}

    def describe_package(self, name: str) -> str:
        """The installed package that offers this provider, with its version."""
        return self._find_offer(name).package

    def _find_offer(self, name: str) -> Offer:
        if name in self.built_in:
            module = BUILT_IN[name]
            return Offer(
                name,
                f"{module}:PROVIDER",
                lambda: load(f"{module}:PROVIDER"),
                f"kafkaform {VERSION}",
                "kafkaform",
            )
        offers = [_offer_installed(point) for point in self._points if point.name == name]
        if not offers:
            raise _make_unknown_error(name, self.names)
        different = {(offer.value, offer.package): offer for offer in offers}
        if len(different) > 1:
            raise _make_ambiguous_error(name, different.values())
        return offers[0]

    @cached_property
    def _points(self) -> tuple[EntryPoint, ...]:
        """The entry points that can be loaded."""
        points = list_entry_points() if self._given is None else self._given
        allowed = self._allowed
        return tuple(
            point
            for point in points
            if point.name not in BUILT_IN and (allowed is None or point.name in allowed)
        )


def list_entry_points() -> Iterable[EntryPoint]:
    """The entry points of the providers that other packages offer."""
    return _read_entry_points(tuple(sys.path))


# An editor asks again with each key that is pressed.
@cache
def _read_entry_points(path: tuple[str, ...]) -> Iterable[EntryPoint]:
    # It loads seventy modules, which a configuration without such a provider does not need.
    from importlib.metadata import entry_points  # noqa: PLC0415  # see above

    return entry_points(group=GROUP)


def _offer_installed(point: EntryPoint) -> Offer:
    if point.dist is None:
        plain = package = f"module {point.module}"
    else:
        plain, package = point.dist.name, f"{point.dist.name} {point.dist.version}"
    return Offer(point.name, point.value, point.load, package, plain)


def _load_provider(offer: Offer) -> Provider:
    try:
        provider = offer.load()
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(
            f'provider "{offer.name}" of {offer.package} cannot be loaded: {error}',
            f"Install {offer.plain_package} again, with its dependencies.",
        ) from error
    missing = [attribute for attribute in _PARTS if not hasattr(provider, attribute)]
    if missing:
        raise _make_broken_error(
            offer, f"{offer.value} is not a provider: it lacks {', '.join(missing)}"
        )
    if not issubclass(type(provider), OptionalParts):
        raise _make_broken_error(
            offer,
            f"{offer.value} does not inherit from {OptionalParts.__module__}.OptionalParts",
        )
    if provider.name != offer.name:
        raise _make_broken_error(offer, f'{offer.value} calls itself "{provider.name}"')
    return provider  # type: ignore[no-any-return]  # an entry point has no static type


def _make_unknown_error(name: str, names: tuple[str, ...]) -> ConfigurationError:
    installed = ", ".join(names) or "none"
    install = f'Install the Python package that offers "{name}" in the group {GROUP}.'
    return ConfigurationError(
        f'there is no provider "{name}"; installed: {installed}', suggest(name, names) or install
    )


def _make_ambiguous_error(name: str, offers: Iterable[Offer]) -> ConfigurationError:
    packages = " and ".join(sorted(offer.package for offer in offers))
    return ConfigurationError(
        f'provider "{name}" is offered by {packages}', "Uninstall all but one of them."
    )


def _make_broken_error(offer: Offer, message: str) -> ConfigurationError:
    return ConfigurationError(
        f'provider "{offer.name}" of {offer.package} cannot be used: {message}',
        f"Ask the authors of {offer.plain_package}, or install another version of it.",
    )
