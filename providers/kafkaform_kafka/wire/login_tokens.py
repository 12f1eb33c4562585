"""Hands login tokens to kafka-python."""

from __future__ import annotations

from kafka.errors import KafkaConnectionError
from kafka.net.sasl.oauth import AbstractTokenProvider

from kafkaform.core.errors import ConnectError

from ..connection.tokens import TokenSource


class TokenProvider(AbstractTokenProvider):  # type: ignore[misc]  # kafka-python has no types
    """Asked at every login of a connection, also at the repeated ones of KIP-368."""

    def __init__(self, tokens: TokenSource) -> None:
        super().__init__()
        self._tokens = tokens

    def token(self) -> str:
        """Raises KafkaConnectionError: another attempt may find the endpoint in good health,
        whereas a failed login is final for this client."""
        try:
            return self._tokens.get_token().text.reveal()
        except ConnectError as error:
            raise KafkaConnectionError(error.message) from None
