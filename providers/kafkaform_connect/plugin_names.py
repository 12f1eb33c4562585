"""The names by which workers know a plugin (PluginUtils.aliases of Kafka Connect)."""

from __future__ import annotations

from collections.abc import Iterable

SUFFIX = "Connector"


def list_aliases(class_: str) -> tuple[str, str, str]:
    """The full name of a connector's class, its simple name, and that without `Connector`."""
    simple = class_.rpartition(".")[2]
    return class_, simple, simple.removesuffix(SUFFIX)


def finds_plugin(name: str, classes: Iterable[str]) -> bool:
    """True if workers with these plugins find one by this name."""
    return any(name in list_aliases(one) for one in classes)


def is_same_plugin(name: str, other: str) -> bool:
    """True for two names that can be those of one plugin."""
    return name in list_aliases(other) or other in list_aliases(name)
