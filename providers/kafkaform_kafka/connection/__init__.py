"""In: a provider block, or the properties of a Java client. Out: settings for both Kafka clients,
login tokens, the proof of which cluster answered, and one sentence for a failed connection.
Must not know: resource types, admin requests beyond those that open a connection, plans.
"""

from typing import TYPE_CHECKING

from kafkaform.core.lazy import load_on_use

# `validate` opens no connection, and only logins with tokens load an HTTP client.
if TYPE_CHECKING:
    from . import settings, tokens
else:
    __getattr__ = load_on_use(__name__)

__all__ = ["settings", "tokens"]
