"""The clusters and states of a fleet, apart from the readers of the two files that can list them:
fleet.hcl and kafkaform.hcl."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from ...core.resource import ProviderConfig
from ...core.secret import PartialRepr
from ...provider.contract import Provider
from ..configuration.repository import RepositoryFolder


class ClusterEntry(Struct, frozen=True):
    """A cluster."""

    name: str
    settings: ProviderConfig
    """How to connect."""
    provider: Provider


class StateEntry(PartialRepr, frozen=True):
    """A state."""

    _unshown = frozenset({"variables"})

    name: str
    location: str | None
    """A path or URL. None: as the configuration in `folder`, or the repository, says."""
    folder: Path | None
    var_files: tuple[str, ...] = ()
    """Paths relative to the folder."""
    variables: tuple[str, ...] = ()
    """`NAME=TEXT`."""
    place: RepositoryFolder | None = None
    """What the repository says about the folder, if the repository lists the state."""
