"""In: the contract, and the REST API of Kafka Connect workers. Out: the provider `kafka_connect`.

Must not know: how plans are made, sent or recorded, and any other provider.
"""

from typing import TYPE_CHECKING

from kafkaform.core.lazy import load_on_use

# `validate` opens no session and judges few changes.
if TYPE_CHECKING:
    from . import documents, reaches, rules, session
else:
    __getattr__ = load_on_use(__name__)

__all__ = ["documents", "reaches", "rules", "session"]
