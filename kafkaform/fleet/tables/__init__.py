"""Define every table, and read builds without Spark.

In: the table definitions (`tables.txt`), manifests of builds, files of Delta Lake. Out: columns and
keys, the version of each table that belongs to a build, rows. Must not know: how a table's rows are
computed.
"""

from typing import TYPE_CHECKING

from ...core.lazy import load_on_use

# delta-rs and Arrow take half a second to load.
if TYPE_CHECKING:
    from . import reader
else:
    __getattr__ = load_on_use(__name__)

__all__ = ["reader"]
