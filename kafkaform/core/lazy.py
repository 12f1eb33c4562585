"""Load what few commands need when it is first used: the one loader, so it is short.

Tables name functions as `module:attribute`, because a key chooses one of them: commands, providers,
kinds of objects. A package whose modules most of its users do without loads them on first use:
`from ..render import text` becomes `from .. import render` and `render.text.inline(…)` (PEP 562).
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any


def load(reference: str) -> Any:
    """What is at `module:attribute`. Raises ImportError, AttributeError."""
    module, _, attribute = reference.partition(":")
    return getattr(import_module(module), attribute)


def load_on_use(package: str) -> Callable[[str], ModuleType]:
    """The `__getattr__` of a package: it imports a module of it that was not imported before.

    The package imports these modules under TYPE_CHECKING and has them in `__all__`, so type
    checkers know them.
    """

    def load_module(name: str) -> ModuleType:
        path = f"{package}.{name}"
        if not name.startswith("_"):
            try:
                return import_module(path)
            except ModuleNotFoundError as error:
                if error.name != path:
                    raise
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return load_module
