"""The providers that are installed, found through the entry-point group `kafkaform.providers`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

from ..core.diagnostics import suggest
from ..core.errors import ConfigurationError
from .contract import Provider
from .installed import Point as InstalledPoint
from .installed import installed

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    Point: TypeAlias = EntryPoint | InstalledPoint

GROUP = "kafkaform.providers"
_PARTS = tuple(name for name in vars(Provider) if not name.startswith("_"))
"""What the contract requires of a provider."""


class Registry:
    """Loads each provider when it is first asked for, and once. One registry serves one process
    and is handed to whoever needs providers."""

    def __init__(self, points: Iterable[Point] | None = None) -> None:
        """points: entry points instead of the installed ones."""
        self._points = tuple(installed(GROUP) if points is None else points)
        self._loaded: dict[str, Provider] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The names that `load` knows, sorted; nothing is loaded to find them."""
        return tuple(sorted({point.name for point in self._points}))

    def load(self, name: str) -> Provider:
        """The provider of this name. Raises ConfigurationError if no package or more than one
        offers it, or if its package cannot be imported or offers something else."""
        if name not in self._loaded:
            self._loaded[name] = _load(self._find(name))
        return self._loaded[name]

    def package(self, name: str) -> str:
        """The installed package that offers this provider, with its version."""
        return _package(self._find(name))

    def _find(self, name: str) -> Point:
        points = [point for point in self._points if point.name == name]
        if not points:
            raise _unknown(name, self.names)
        if len(points) > 1:
            offers = {(point.value, _package(point)): point for point in points}
            if len(offers) > 1:
                raise _contested(name, offers.values())
        return points[0]


def _load(point: Point) -> Provider:
    try:
        provider = point.load()
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(
            f'provider "{point.name}" of {_package(point)} cannot be loaded: {error}',
            f"Install {_package(point, version=False)} again, with its dependencies.",
        ) from error
    missing = [part for part in _PARTS if not hasattr(provider, part)]
    if missing:
        raise _broken(point, f"{point.value} is not a provider: it lacks {', '.join(missing)}")
    if provider.name != point.name:
        raise _broken(point, f'{point.value} calls itself "{provider.name}"')
    return provider  # type: ignore[no-any-return]  # an entry point has no static type


def _package(point: Point, version: bool = True) -> str:
    if point.dist is None:
        return f"module {point.module}"
    return f"{point.dist.name} {point.dist.version}" if version else point.dist.name


def _unknown(name: str, known: tuple[str, ...]) -> ConfigurationError:
    installed = ", ".join(known) or "none"
    install = f'Install the Python package that offers "{name}" in the group {GROUP}.'
    return ConfigurationError(
        f'there is no provider "{name}"; installed: {installed}', suggest(name, known) or install
    )


def _contested(name: str, offers: Iterable[Point]) -> ConfigurationError:
    packages = " and ".join(sorted(_package(point) for point in offers))
    return ConfigurationError(
        f'provider "{name}" is offered by {packages}', "Uninstall all of them but one."
    )


def _broken(point: Point, message: str) -> ConfigurationError:
    return ConfigurationError(
        f'provider "{point.name}" of {_package(point)} cannot be used: {message}',
        f"Ask the authors of {_package(point, version=False)}, or install another version of it.",
    )
