"""In: lines of a log. Out: those lines, durable and in order, or a refusal.

Must not know: what the lines say. `local` keeps a file beside the state, `objects` keeps the
appends as objects of a store.
"""

from typing import TYPE_CHECKING

from ...core.lazy import load_on_use

# Only a log in a store needs the client of stores.
if TYPE_CHECKING:
    from . import objects
else:
    __getattr__ = load_on_use(__name__)

__all__ = ["objects"]
