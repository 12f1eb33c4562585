"""Load modules of a package without its `__init__`. Alone, because it runs before them."""

from __future__ import annotations

import sys
from importlib.util import find_spec, module_from_spec
from typing import Any


def defer_package(name: str) -> None:
    """Let the `__init__` of a package run when somebody asks for an attribute that it sets. Its
    modules can be imported meanwhile. Raises ModuleNotFoundError."""
    if name in sys.modules:
        return
    spec = find_spec(name)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    package, loader = module_from_spec(spec), spec.loader

    def run_init(attribute: str) -> Any:
        del package.__getattr__
        loader.exec_module(package)
        return getattr(package, attribute)

    package.__getattr__ = run_init  # type: ignore[method-assign]  # of this module only (PEP 562)
    sys.modules[name] = package
