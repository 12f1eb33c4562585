"""The Kafka provider of kafkaform.

In: declared and observed attributes, and one Kafka cluster's answers to admin requests.
Out: resource types as data and pure functions, and sessions that read and write that cluster.
Must not know: HCL, state files, audit logs, rendering, or how the engine orders its batches.
"""

from typing import TYPE_CHECKING

from kafkaform.core.lazy import load_on_use

# A session loads the client, only plans need reviews, and only boundaries the reaches.
if TYPE_CHECKING:
    from . import reaches, review, session
else:
    __getattr__ = load_on_use(__name__)

__all__ = ["reaches", "review", "session"]
