"""In: a state and the version that it follows. Out: that state, durable in one place; or a refusal.

Must not know: what the rows mean. `local` keeps a file beside the configuration, `objects` an
object in a store.
"""

from typing import TYPE_CHECKING

from ...core.lazy import load_on_use

# Only a state in a store needs the client of stores.
if TYPE_CHECKING:
    from . import objects, obstores
else:
    __getattr__ = load_on_use(__name__)

__all__ = ["objects", "obstores"]
