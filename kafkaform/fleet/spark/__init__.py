"""Start Spark quickly, and write tables with Delta Lake.

In: a Java, jars, a root. Out: a Spark session, and tables in Delta Lake. Must not know: what the
tables mean.
"""

from typing import TYPE_CHECKING

from ...core.lazy import load_on_use

# It loads Spark; `session` starts it only when it is needed.
if TYPE_CHECKING:
    from . import store
else:
    __getattr__ = load_on_use(__name__)

__all__ = ["store"]
