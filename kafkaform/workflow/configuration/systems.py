"""Make sure that each provider instance of a configuration reaches a system of its own.

State and plan know an object by its provider instance. With two instances of one system, a plan
could adopt an object through one of them and destroy it through the other.
"""

from __future__ import annotations

from msgspec import Struct, field

from ...core.errors import ConfigurationError, OtherSystem
from ...core.resource import ProviderConfig
from ...core.words import Words
from ...provider.contract import Session


class Systems(Struct, frozen=True):
    """The provider instances of one configuration that were opened."""

    known: dict[str, tuple[ProviderConfig, str]] = field(default_factory=dict)
    """Instance -> its block, and the scope id that answered."""

    def enter(self, block: ProviderConfig, session: Session) -> Session:
        """Accept a session that was just opened for this block, or close it and raise as `note`
        does."""
        try:
            self.note(block, session.facts.scope_id, session.words)
        except (ConfigurationError, OtherSystem):
            session.close()
            raise
        return session

    def note(self, block: ProviderConfig, scope: str, words: Words) -> None:
        """Remember which system answered. Raises ConfigurationError if another instance has the
        same system, OtherSystem if this instance had another system before."""
        system = words.system
        for instance, (config, recorded_scope) in self.known.items():
            if instance != block.instance and recorded_scope == scope:
                raise ConfigurationError(
                    f"provider instances {_describe_block(config, words)} and "
                    f"{_describe_block(block, words)} are the "
                    f"same {system}, {scope}",
                    "An object of it could be recorded, changed and deleted twice. Correct the "
                    f"addresses if two {system}s are meant. Otherwise keep one of the two provider "
                    "blocks, let all resources and data sources use it, and take rows of the "
                    "other one out of the state with `kafkaform state rm`.",
                )
        # A DNS name or a proxy can lead to another system when a command connects a second time.
        _, before = self.known.get(block.instance, (block, scope))
        if before != scope:
            raise OtherSystem(
                f"provider instance {_describe_block(block, words)} answered as {system} "
                f"{before} at first, "
                f"and answers as {system} {scope} now",
                f"Nothing was sent. Find out what leads to two {system}s there, then run the same "
                "command again.",
            )
        self.known[block.instance] = block, scope


def _describe_block(block: ProviderConfig, words: Words) -> str:
    """The name of a block, its place, and where it connects to."""
    address = block.config.get(words.address)
    named = ", ".join(map(str, address)) if isinstance(address, tuple) else str(address or "")
    return f'"{block.instance}" ({", ".join(filter(None, (str(block.range), named)))})'
