"""Which provider instance of a configuration reaches which cluster: each one a cluster of its own.

State and plan know an object by its provider instance. Two instances of one cluster would make two
objects of one: a plan that adopts it through the one destroys it through the other.
"""

from __future__ import annotations

from msgspec import Struct, field

from ...core.errors import ConfigurationError, OtherCluster
from ...core.resource import ProviderConfig
from ...provider.contract import Session


class Clusters(Struct, frozen=True):
    """The provider instances of one configuration that were opened. known: by instance, its block
    and the scope id that answered."""

    known: dict[str, tuple[ProviderConfig, str]] = field(default_factory=dict)

    def enter(self, block: ProviderConfig, session: Session) -> Session:
        """The session, which was just opened for this block; closed if it is refused, for which
        see `note`."""
        try:
            self.note(block, session.facts.scope_id)
        except (ConfigurationError, OtherCluster):
            session.close()
            raise
        return session

    def note(self, block: ProviderConfig, scope: str) -> None:
        """Remember who answered. Raises ConfigurationError if another instance has the same
        cluster, OtherCluster if this one had another cluster before."""
        for instance, (other, theirs) in self.known.items():
            if instance != block.instance and theirs == scope:
                raise ConfigurationError(
                    f"provider instances {_told(other)} and {_told(block)} are the same cluster, "
                    f"{scope}",
                    "An object of it could be recorded, changed and deleted twice. Correct the "
                    "addresses if two clusters are meant. Otherwise keep one of the two provider "
                    "blocks, let all resources and data sources use it, and take rows of the "
                    "other one out of the state with `kafkaform state rm`.",
                )
        _, before = self.known.get(block.instance, (block, scope))
        if before != scope:
            raise OtherCluster(
                f"provider instance {_told(block)} answered as cluster {before} at first, and "
                f"answers as cluster {scope} now",
                "Nothing was sent. Find out what leads to two clusters there, then run the same "
                "command again.",
            )
        self.known[block.instance] = block, scope


def _told(block: ProviderConfig) -> str:
    """Its name, its place and where it connects to."""
    servers = block.config.get("bootstrap_servers")
    named = ", ".join(map(str, servers)) if isinstance(servers, tuple) else str(servers or "")
    return f'"{block.instance}" ({", ".join(filter(None, (str(block.range), named)))})'
