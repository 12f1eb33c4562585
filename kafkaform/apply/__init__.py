"""In: an approved plan, sessions, state and journal. Out: the world changed as planned, on record.

Must not know: HCL, how anything is shown, Kafka.
"""

from typing import TYPE_CHECKING

from ..core.lazy import load_on_use

# Flags and `validate` need no secret of a provider.
if TYPE_CHECKING:
    from . import secrets
else:
    __getattr__ = load_on_use(__name__)

__all__ = ["secrets"]
