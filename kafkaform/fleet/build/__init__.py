"""Run one build: read what has landed, recompute the tables that it changes, publish the manifest.

In: landing files, options of a run. Out: the tables of a build on Delta Lake, made in the order of
their inputs. Must not know: how answers and reports read them, command lines.
"""

from typing import TYPE_CHECKING

from ...core.lazy import load_on_use

# They load Spark, which `fleet doctor` and `--help` do without.
if TYPE_CHECKING:
    from . import driver, intake
else:
    __getattr__ = load_on_use(__name__)

__all__ = ["driver", "intake"]
