"""In: an open session. Out: documents that describe a cluster or explain why it behaves as it does.
Nothing is changed. Must not know: plans, state, terminals.
"""

from typing import TYPE_CHECKING

from kafkaform.core.lazy import load_on_use

# The messages are slow to load, and each command needs a few of them.
if TYPE_CHECKING:
    from . import group_details, groups, transactions
else:
    __getattr__ = load_on_use(__name__)

__all__ = ["group_details", "groups", "transactions"]
