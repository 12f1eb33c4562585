"""In: declared, observed and recorded worlds. Out: a plan as data, and its waves of batches.

Must not know: HCL, terminals, the audit log, Kafka.
"""

from typing import TYPE_CHECKING

from ..core.lazy import load_on_use

# `validate` does without the plan.
if TYPE_CHECKING:
    from . import lifecycle, rules
else:
    __getattr__ = load_on_use(__name__)

__all__ = ["lifecycle", "rules"]
