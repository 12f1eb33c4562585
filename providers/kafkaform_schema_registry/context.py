"""What every request needs to know: the registry, who asks, and who answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from kafkaform.core.resource import Facts, Fault
from kafkaform.provider.http.exchange import Call, HttpAnswer


class RegistryClient(Protocol):
    """What reaches a registry: `HttpClient`, or that of the simulated one."""

    def ask_all(self, calls: Sequence[Call]) -> list[HttpAnswer | Fault]:
        """The answer to each call, in order; a Fault for one that got none. Raises OtherSystem."""

    def prove(self) -> None:
        """Ask which registry answers, if registries of this kind say so. Raises OtherSystem."""

    def close(self) -> None:
        """Later calls are not sent."""


class RegistryContext(Struct, frozen=True):
    """One session."""

    instance: str
    """The provider instance."""
    client: RegistryClient
    facts: Facts

    def ask(self, call: Call) -> HttpAnswer | Fault:
        """The answer to one call."""
        return self.client.ask_all([call])[0]
