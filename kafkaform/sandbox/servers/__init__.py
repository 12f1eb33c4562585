"""In: a sandbox whose brokers run. Out: a schema registry and Kafka Connect beside them.

Each is a real server on the loopback address, from pinned files.
Must not know: plans, providers, Kafka clients, terminals.
"""

from typing import TYPE_CHECKING

from ...core.lazy import load_on_use

# They load an HTTP client, which a sandbox of brokers alone does without.
if TYPE_CHECKING:
    from . import start
else:
    __getattr__ = load_on_use(__name__)

__all__ = ["start"]
