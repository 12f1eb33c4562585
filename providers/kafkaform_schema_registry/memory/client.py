"""What reaches a simulated registry, with the mishaps of a network."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from kafkaform.core.resource import Fault
from kafkaform.provider.http.exchange import (
    AnswerLost,
    Call,
    HttpAnswer,
    NotSent,
    make_transport_fault,
)

from .registry import SimulatedRegistry


class RegistryMishap(StrEnum):
    """What happens to one write."""

    UNSENT = "unsent"
    """The connection fails."""
    DROPPED = "dropped"
    """It is lost on its way, and nobody knows."""
    UNANSWERED = "unanswered"
    """It is executed, and its answer is lost."""


class SimulatedClient:
    """Calls a registry as one user. See `RegistryClient`.

    mishaps: what happens to coming writes, the next one first; every session of the registry
    shares them.
    """

    def __init__(
        self, registry: SimulatedRegistry, user: str, mishaps: list[RegistryMishap]
    ) -> None:
        self._registry = registry
        self._user = user
        self._mishaps = mishaps
        self._closed = False

    def ask_all(self, calls: Sequence[Call]) -> list[HttpAnswer | Fault]:
        return list(map(self._ask, calls))

    def prove(self) -> None:
        """Nothing can lead to another registry here."""

    def close(self) -> None:
        self._closed = True

    def _ask(self, call: Call) -> HttpAnswer | Fault:
        if self._closed:
            return make_transport_fault(NotSent("the session is closed"))
        mishap = self._mishaps.pop(0) if self._mishaps and not call.reads else None
        if mishap is RegistryMishap.UNSENT:
            return make_transport_fault(NotSent("the connection failed"))
        if mishap is RegistryMishap.DROPPED:
            return make_transport_fault(AnswerLost("the connection broke"))
        answer = self._registry.answer(call, self._user)
        if mishap is RegistryMishap.UNANSWERED:
            return make_transport_fault(AnswerLost("the connection broke"))
        return answer
