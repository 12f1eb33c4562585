"""Compute who may do what, as the authorizer of each cluster would decide it.

In: the ACLs of each cluster. Out: rows about patterns and resources, and grants that deserve a
second look. Must not know: sessions, plans.
"""

from typing import TYPE_CHECKING

from ...core.lazy import load_on_use

# It loads Spark; `permission_rows` does without it.
if TYPE_CHECKING:
    from . import permissions
else:
    __getattr__ = load_on_use(__name__)

__all__ = ["permissions"]
