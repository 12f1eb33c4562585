"""In: results, events and questions. Out: text or JSON lines, and answers from the keyboard. Must
not know: which command runs."""

from typing import TYPE_CHECKING

from ...core.lazy import load_on_use

# rich is slow to load, and only a bug of ours needs a report.
if TYPE_CHECKING:
    from . import bars, bug_report
else:
    __getattr__ = load_on_use(__name__)

__all__ = ["bars", "bug_report"]
