"""What each kind of object hands to the provider, so that nobody else has to know its name.

A folder of `kinds/` exports its `KINDS`, and `resource_kinds.py` has one line for each folder. From
that list the provider, sessions, the guard against lock-outs, `describe` and the simulated cluster
build their tables.
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
    from ..simulation.simulated_kind import SimulatedKind


class KindRights(Struct, frozen=True):
    """The operations that ACLs must allow on one kind's objects, all on one resource type."""

    resource_type: str
    """Topic, Group or Cluster; a topic or group has the name of the object's key."""
    sees: tuple[str, ...] = ()
    """By which a plan sees an object."""
    changes: tuple[str, ...] = ()
    """By which a plan changes an object. Delete is left out: to deny it to oneself is a
    protection, not an accident."""
    deletes: str = ""
    """What a delete needs: it leaves after new ACLs have been made."""


Rows = Callable[[Sequence[Observed], str, Mapping[str, str]], Sequence[FrozenMap]]
"""Objects, a glob for names, globs by field -> what is shown of those that fit."""


class Document(Struct, frozen=True):
    """What `describe` shows of the objects of one kind."""

    name: str
    """What is typed after `describe`; also the document's member with the rows."""
    rows: Rows
    hidden: str
    """What a listing that is not complete may hide."""


class ResourceKind(Struct, frozen=True):
    """All that the provider has to know of one kind of object."""

    name: str
    type: ResourceType | None = None
    """None for what is only read, for reviews."""
    commanded: bool = False
    """Only a command changes it: no block declares it, and no state records it."""
    rights: KindRights | None = None
    """None: no right on it is guarded. ACLs guard their own."""
    connect: Callable[[], Requests] | None = None
    """Imports what lists, reads and sends it: that loads the Kafka clients, which `validate` must
    not. None for a composite, which stands for objects of another kind."""
    simulate: Callable[[], SimulatedKind] | None = None
    """Imports its part of the simulated cluster."""
    document: Document | None = None
    """None: `describe` does not know it."""
