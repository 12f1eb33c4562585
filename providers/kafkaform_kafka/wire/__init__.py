"""In: plain values for one admin request. Out: the answer, row by row, with every error code; and
the connection that carries it, or the cause why there is none.
Only this folder imports kafka-python, whose version is pinned because private parts of it are used.
Must not know: changes, plans, resource types, or what an error means for a plan.
"""

from typing import TYPE_CHECKING

from kafkaform.core.lazy import load_on_use

from .package import defer_package

# Few plans need the messages about groups.
if TYPE_CHECKING:
    from . import groups
else:
    __getattr__ = load_on_use(__name__)

__all__ = ["groups"]

# Its `__init__` loads the consumer, the producer and the admin client, which nothing here uses.
defer_package("kafka")
