"""Parse and verify what has landed: snapshots, the register, and lines of audit logs.

In: landing files as bytes. Out: rows, and the reason for each file or line that is rejected. Must
not know: Delta tables, builds, answers.
"""

from typing import TYPE_CHECKING

from ...core.lazy import load_on_use

# It loads Spark and librdkafka, which only a build from a topic needs.
if TYPE_CHECKING:
    from . import topic_source
else:
    __getattr__ = load_on_use(__name__)

__all__ = ["topic_source"]
