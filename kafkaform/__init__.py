"""kafkaform: plan and apply for Apache Kafka.

Programs find its functions here, and what these take, give and raise (docs/library.md). They are
loaded when one of them is first used: `import kafkaform` alone costs nothing.
"""

from importlib import import_module

from . import version

__version__ = version.VERSION

TYPE_CHECKING = False  # as that of `typing`, which takes time to load
if TYPE_CHECKING:
    from .workflow.library import *  # noqa: F403  # it exports nothing else
    from .workflow.library import __all__ as __all__
else:

    def __getattr__(name: str) -> object:
        # `from .. import render` asks here for the package, before Python looks for it itself.
        if not name.startswith("__"):
            try:
                return import_module(f"{__name__}.{name}")
            except ModuleNotFoundError as error:
                if error.name != f"{__name__}.{name}":
                    raise
        library = import_module(f"{__name__}.workflow.library")
        if name != "__all__" and name not in library.__all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = member = getattr(library, name)
        return member

    def __dir__() -> list[str]:
        return [*globals(), *__getattr__("__all__")]
