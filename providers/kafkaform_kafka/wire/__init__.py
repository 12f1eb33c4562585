"""In: plain values for one admin request. Out: the answer, row by row, with every error code; and
the connection that carries it, or the cause why there is none.
Only this folder imports kafka-python, whose version is pinned because private parts of it are used.
Must not know: changes, plans, resource types, or what an error means for a plan.
"""

import sys
from importlib.util import find_spec, module_from_spec
from typing import TYPE_CHECKING, Any

from kafkaform.core.lazy import load_on_use

# Few plans need the messages about groups.
if TYPE_CHECKING:
    from . import groups
else:
    __getattr__ = load_on_use(__name__)

__all__ = ["groups"]


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


# Its `__init__` loads the consumer, the producer and the admin client, which nothing here uses.
defer_package("kafka")
