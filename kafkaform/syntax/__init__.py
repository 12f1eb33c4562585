"""In: HCL text, or values to be written as HCL.
Out: nodes with positions and diagnostics; formatted text.
Must not know: what a block means, values beyond literals, Kafka, files on disk."""

from typing import TYPE_CHECKING

from ..core.lazy import load_on_use

# Only programs and generated files write values.
if TYPE_CHECKING:
    from . import write
else:
    __getattr__ = load_on_use(__name__)

__all__ = ["write"]
