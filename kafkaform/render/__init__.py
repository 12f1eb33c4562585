"""In: a plan, diagnostics, outcomes and progress events. Out: text, Markdown and JSON lines.

Must not know: HCL, systems, files, how a plan is made, or any word that belongs to Kafka alone.
"""

from typing import TYPE_CHECKING

from ..core.lazy import load_on_use

# `validate` and `fmt` render nothing if all is well.
if TYPE_CHECKING:
    from . import diagnostics, judgement, text
else:
    __getattr__ = load_on_use(__name__)

__all__ = ["diagnostics", "judgement", "text"]
