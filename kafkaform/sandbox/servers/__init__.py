"""In: a sandbox whose brokers run. Out: a schema registry and Kafka Connect beside them.

Each is a real server on the loopback address, from pinned files.
Must not know: plans, providers, Kafka clients, terminals.
"""

from .connect import list_connect_versions
from .start import check_servers, start_servers

__all__ = ["check_servers", "list_connect_versions", "start_servers"]
