"""The rules by which changes of a cluster are judged, by subject; `book.py` has them all.

In: changes, listings and facts. Out: findings, and the rows of the table. Must not know: how
changes are sent or shown.
"""

from typing import TYPE_CHECKING

from kafkaform.core.lazy import load_on_use

# Only what judges changes needs `book`, and only an apply the quota.
if TYPE_CHECKING:
    from . import book, quotas
else:
    __getattr__ = load_on_use(__name__)

__all__ = ["book", "quotas"]
