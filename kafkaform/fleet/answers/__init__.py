"""Answer `fleet history`, `status`, `query`, `who-can` and `unused` without a JVM.

In: the tables of a build. Out: rows and text. Must not know: Spark, command lines.
"""

from typing import TYPE_CHECKING

from ...core.lazy import load_on_use

# They load Arrow; `who_can` does without it.
if TYPE_CHECKING:
    from . import history, query, unused
else:
    __getattr__ = load_on_use(__name__)

__all__ = ["history", "query", "unused"]
