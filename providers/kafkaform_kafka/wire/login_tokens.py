"""Give kafka-python the tokens with which it logs in (SASL/OAUTHBEARER, KIP-255)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka.errors import KafkaConnectionError
from kafka.net.sasl.oauth import AbstractTokenProvider

from kafkaform.core.errors import ConnectError

if TYPE_CHECKING:
    from kafkaform.provider.http.tokens import TokenSource


class TokenProvider(AbstractTokenProvider):  # type: ignore[misc]  # kafka-python has no types
    """Gives a token for each login of a connection."""

    # kafka-python asks again at every re-authentication, which brokers with
    # connections.max.reauth.ms demand before a token expires (KIP-368).

    def __init__(self, tokens: TokenSource) -> None:
        super().__init__()
        self._tokens = tokens

    def token(self) -> str:
        """The text of a valid token. Raises KafkaConnectionError if there is none."""
        # A connection error is tried again, and the endpoint may work then. An authentication error
        # would be final: the client never connects to that broker again.
        try:
            return self._tokens.get_token().text.reveal()
        except ConnectError as error:
            raise KafkaConnectionError(error.message) from None
