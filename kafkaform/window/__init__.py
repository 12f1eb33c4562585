"""A window on a folder, or on the folders of a repository: state, log, plans and fleet tables as
pages for a browser here.

In: a folder's files and stores. Out: pages, over HTTP on this computer only. Must not know: how
anything is written, locked, planned or applied.
"""

from typing import TYPE_CHECKING

from ..core.lazy import load_on_use

# Only `serve` needs them, and templates are slow to load.
if TYPE_CHECKING:
    from . import server, sources
else:
    __getattr__ = load_on_use(__name__)

__all__ = ["server", "sources"]
