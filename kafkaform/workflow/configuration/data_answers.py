"""Answer the data sources of a configuration while it is evaluated, each question once."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct, field

from ...core.canonical import digest
from ...core.errors import ConnectError
from ...core.resource import ProviderConfig
from ...core.value import FrozenMap
from ...provider.contract import Session
from .systems import Systems

Connect = Callable[[ProviderConfig], Session]
"""Opens a session for a provider instance. Raises KafkaformError."""


class DataAnswers(Struct, frozen=True):
    """Connects when the first question comes."""

    connect: Connect
    systems: Systems = field(default_factory=Systems)
    """The systems of all sessions that are opened for the configuration, here and elsewhere."""
    sessions: dict[str, Session] = field(default_factory=dict)
    """The open session of each provider instance."""
    # Kept, because a plan evaluates outputs a second time and must see the same answers.
    answers: dict[tuple[str, str, str], FrozenMap] = field(default_factory=dict)
    """The answers by instance, data source and digest of the arguments."""
    unreached: dict[str, ConnectError] = field(default_factory=dict)
    """The provider instances that could not be reached. They are not asked again: all questions of
    one command have to see the same."""

    def __call__(self, config: ProviderConfig, kind: str, arguments: FrozenMap) -> FrozenMap:
        """The answer of a data source. Raises KafkaformError."""
        question = (config.instance, kind, digest(arguments))
        if question not in self.answers:
            if config.instance in self.unreached:
                raise self.unreached[config.instance]
            if config.instance not in self.sessions:
                try:
                    session = self.systems.enter(config, self.connect(config))
                except ConnectError as error:
                    self.unreached[config.instance] = error
                    raise
                self.sessions[config.instance] = session
            session = self.sessions[config.instance]
            self.answers[question] = session.query(kind, arguments)
        return self.answers[question]

    def close(self) -> None:
        """End the sessions; a further question connects again."""
        while self.sessions:
            self.sessions.popitem()[1].close()
