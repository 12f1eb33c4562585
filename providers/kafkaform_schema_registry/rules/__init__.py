"""The rules by which changes of a registry are judged, by subject; `book.py` has them all.

In: changes, answers of the registry and facts. Out: findings, and the rows of the table. Must not
know: how changes are sent or shown.
"""

from typing import TYPE_CHECKING

from kafkaform.core.lazy import load_on_use

# Most commands judge nothing.
if TYPE_CHECKING:
    from . import book
else:
    __getattr__ = load_on_use(__name__)

__all__ = ["book"]
