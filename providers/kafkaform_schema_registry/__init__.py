"""In: provider blocks, subjects and schemas. Out: a provider for registries that speak the API of
Confluent's Schema Registry: Confluent's own, Karapace, Redpanda's and Apicurio's.

Must not know: Kafka's protocol, plans, state files.
"""

from typing import TYPE_CHECKING

from kafkaform.core.lazy import load_on_use

# `validate` opens no session.
if TYPE_CHECKING:
    from . import documents, session
else:
    __getattr__ = load_on_use(__name__)

__all__ = ["documents", "session"]
