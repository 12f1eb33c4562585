"""`ResourceKind`: everything that the provider needs to know about one kind of object.

Each folder of `kinds/` exports its values as `KINDS`, and `resource_kinds.py` lists them. From that
list the provider, its sessions, the lock-out guard, `describe` and the simulated cluster build
their tables, so no other module names a kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from kafkaform.core.resource import Observed
from kafkaform.core.value import FrozenMap
from kafkaform.provider.contract import ResourceType

if TYPE_CHECKING:
    from ..cluster.context import Requests
    from ..simulation.controller import SimulatedKind


class KindRights(Struct, frozen=True):
    """The operations that ACLs must allow on the objects of one kind, all on one resource type.

    The lock-out guard blocks plans that take these from the principal that runs them.
    """

    resource_type: str
    """Topic, Group or Cluster; the name of the topic or group is the object's key."""
    sees: tuple[str, ...] = ()
    """Operations that a plan needs to read an object."""
    # Without Delete: somebody who denies it to his own principal protects the object on purpose.
    changes: tuple[str, ...] = ()
    """Operations that a plan needs to change an object."""
    deletes: str = ""
    """The operation that a delete needs. Deletes leave after new ACLs have taken effect."""


Rows = Callable[[Sequence[Observed], str, Mapping[str, str]], Sequence[FrozenMap]]
"""Objects, a glob for names, globs by field -> a row for each object that fits."""


class Document(Struct, frozen=True):
    """The table that `describe` shows for one kind."""

    name: str
    """The word after `describe`; also the document's member with the rows."""
    rows: Rows
    hidden: str
    """What to say if the listing is not complete."""


class ResourceKind(Struct, frozen=True):
    """One kind of object."""

    name: str
    type: ResourceType | None = None
    """None for a kind that only reviews read."""
    commanded: bool = False
    """True if only commands change it: no block declares it, and no state records it."""
    rights: KindRights | None = None
    """None if the lock-out guard has nothing to protect. ACLs have rules of their own."""
    # A function, so that `validate` does not load the Kafka clients.
    connect: Callable[[], Requests] | None = None
    """Imports the functions that list, read and send it. None for a composite, which expands to
    objects of another kind."""
    simulate: Callable[[], SimulatedKind] | None = None
    """Imports its part of the simulated cluster."""
    document: Document | None = None
    """None if `describe` does not show it."""
