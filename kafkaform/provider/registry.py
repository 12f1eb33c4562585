"""The providers: those of this package, and those that other packages offer as entry points."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ..core.diagnostics import suggest
from ..core.errors import ConfigurationError
from ..version import VERSION
from .contract import Provider

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from .commands import CommandGroup

GROUP = "kafkaform.providers"
"""The entry-point group of other packages' providers."""
BUILT_IN: Mapping[str, str] = {"kafka": "kafkaform_kafka.provider"}
"""The providers that come with kafkaform: name -> the module that has its `PROVIDER`. No entry
point can replace one, and none is looked for: that takes longer than Python's own start."""
_PARTS = tuple(name for name in vars(Provider) if not name.startswith("_"))
"""What the contract requires of a provider."""


class Offer(Struct, frozen=True):
    """A provider that can be loaded. value: where it is, `module:attribute`; package: the Python
    package that has it, with its version; plain_package: without."""

    name: str
    value: str
    load: Callable[[], Any]
    package: str
    plain_package: str


class Registry:
    """Loads each provider when it is first asked for, and once. One registry serves one process
    and is handed to whoever needs providers."""

    def __init__(
        self,
        points: Iterable[EntryPoint] | None = None,
        allowed: Collection[str] | None = None,
    ) -> None:
        """points: entry points instead of the installed ones; allowed: the names that may be
        loaded, all by default."""
        self._given = points
        self._allowed = allowed
        self._loaded: dict[str, Provider] = {}

    @property
    def built_in(self) -> tuple[str, ...]:
        """The names of the providers that come with kafkaform, sorted."""
        return tuple(sorted(filter(self._allows, BUILT_IN)))

    @property
    def names(self) -> tuple[str, ...]:
        """The names that `load` knows, sorted; no provider is loaded to find them."""
        return tuple(sorted({*self.built_in, *(point.name for point in self._points)}))

    def load(self, name: str) -> Provider:
        """The provider of this name. Raises ConfigurationError if no package or more than one
        offers it, or if its package cannot be imported or offers something else."""
        if name not in self._loaded:
            self._loaded[name] = _load_provider(self._find_entry_point(name))
        return self._loaded[name]

    def load_commands(self, group: str) -> tuple[CommandGroup, ...]:
        """What the built-in providers add to `describe`, `explain` or `alter`. Other packages are
        not asked: finding them would slow down each of these commands."""
        providers = (self.load(name) for name in self.built_in)
        places = (getattr(provider, "commands", {}).get(group) for provider in providers)
        return tuple(_import_attribute(place) for place in places if place is not None)

    def describe_package(self, name: str) -> str:
        """The installed package that offers this provider, with its version."""
        return self._find_entry_point(name).package

    def _find_entry_point(self, name: str) -> Offer:
        if name in self.built_in:
            return _offer_built_in(name)
        offers = [_offer_installed(point) for point in self._points if point.name == name]
        if not offers:
            raise _make_unknown_error(name, self.names)
        different = {(offer.value, offer.package): offer for offer in offers}
        if len(different) > 1:
            raise _make_ambiguous_error(name, different.values())
        return offers[0]

    @cached_property
    def _points(self) -> tuple[EntryPoint, ...]:
        """The entry points that may be loaded."""
        found = list_entry_points() if self._given is None else self._given
        return tuple(
            point for point in found if self._allows(point.name) and point.name not in BUILT_IN
        )

    def _allows(self, name: str) -> bool:
        return self._allowed is None or name in self._allowed


def list_entry_points() -> Iterable[EntryPoint]:
    """The providers that other packages offer."""
    # It loads seventy modules, which a configuration without such a provider does not need.
    from importlib.metadata import entry_points  # noqa: PLC0415  # see above

    return entry_points(group=GROUP)


def _offer_built_in(name: str) -> Offer:
    module = BUILT_IN[name]
    place, package = f"{module}:PROVIDER", f"kafkaform {VERSION}"
    return Offer(name, place, partial(_import_attribute, place), package, "kafkaform")


def _import_attribute(place: str) -> Any:
    """What is at `module:attribute`."""
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)


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
    missing = [part for part in _PARTS if not hasattr(provider, part)]
    if missing:
        raise _make_broken_error(
            offer, f"{offer.value} is not a provider: it lacks {', '.join(missing)}"
        )
    if provider.name != offer.name:
        raise _make_broken_error(offer, f'{offer.value} calls itself "{provider.name}"')
    return provider  # type: ignore[no-any-return]  # an entry point has no static type


def _make_unknown_error(name: str, known: tuple[str, ...]) -> ConfigurationError:
    installed = ", ".join(known) or "none"
    install = f'Install the Python package that offers "{name}" in the group {GROUP}.'
    return ConfigurationError(
        f'there is no provider "{name}"; installed: {installed}', suggest(name, known) or install
    )


def _make_ambiguous_error(name: str, offers: Iterable[Offer]) -> ConfigurationError:
    packages = " and ".join(sorted(offer.package for offer in offers))
    return ConfigurationError(
        f'provider "{name}" is offered by {packages}', "Uninstall all of them but one."
    )


def _make_broken_error(offer: Offer, message: str) -> ConfigurationError:
    return ConfigurationError(
        f'provider "{offer.name}" of {offer.package} cannot be used: {message}',
        f"Ask the authors of {offer.plain_package}, or install another version of it.",
    )
