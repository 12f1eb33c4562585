"""In: texts of schemas. Out: their normal form, what differs between two of them, and who can read
what was written with which.

Must not know: registries, requests, resource types.
"""

from typing import TYPE_CHECKING

from kafkaform.core.lazy import load_on_use

# Most commands show no schema.
if TYPE_CHECKING:
    from . import details
else:
    __getattr__ = load_on_use(__name__)

__all__ = ["details"]
