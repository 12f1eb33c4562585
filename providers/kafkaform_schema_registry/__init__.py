"""In: provider blocks, subjects and schemas. Out: a provider for registries that speak the API of
Confluent's Schema Registry: Confluent's own, Karapace, Redpanda's and Apicurio's.

Must not know: Kafka's protocol, plans, state files.
"""

from typing import TYPE_CHECKING

from kafkaform.core.lazy import load_on_use

# `validate` opens no session, and few folders have a boundary.
if TYPE_CHECKING:
    from . import reaches, session
else:
    __getattr__ = load_on_use(__name__)

__all__ = ["reaches", "session"]
