"""`ResourceKind`: everything that the provider needs to know about one kind of object.

Each folder of `kinds/` exports its values as `KINDS`, and `resource_kinds.py` lists them. From that
list the provider, its sessions, the lock-out guard, `describe` and the simulated cluster build
their tables, so no other module names a kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from kafkaform.core.lazy import load
from kafkaform.core.resource import Observed
from kafkaform.core.value import FrozenMap
from kafkaform.provider.contract import ResourceType

from ..protocol.keys import SEPARATOR

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


def defer(package: str, target: str, *arguments: Any) -> Callable[[], Any]:
    """A function that imports and returns a value, so that `validate` does not load the clients.

    target: `module:NAME` in the package; arguments: what to call the value with, if it is a
    function.
    """

    def load_value() -> Any:
        value = load(f"{package}.{target}")
        return value(*arguments) if arguments else value

    return load_value


class ResourceKind(Struct, frozen=True):
    """One kind of object."""

    name: str
    type: ResourceType | None = None
    """None for a kind that only reviews read."""
    commanded: bool = False
    """True if only commands change it: no block declares it, and no state records it."""
    rights: KindRights | None = None
    """None if the lock-out guard has nothing to protect. ACLs have rules of their own."""
    connect: Callable[[], Requests] | None = None
    """Imports the functions that list, read and send it (see `defer`). None for a composite, which
    expands to objects of another kind."""
    simulate: Callable[[], SimulatedKind] | None = None
    """Imports its part of the simulated cluster."""
    document: Document | None = None
    """None if `describe` does not show it."""


def list_attributes(
    items: Sequence[Observed], _: str, fields: Mapping[str, str]
) -> tuple[FrozenMap, ...]:
    """The attributes of each object that fits. fields: attribute -> glob for its value."""
    return tuple(
        item.attributes
        for item in sort_by_fields(items)
        if all(fnmatchcase(str(item.attributes[name]), glob) for name, glob in fields.items())
    )


def sort_by_fields(items: Iterable[Observed]) -> list[Observed]:
    """Sorted by the fields of the key: `User:b` before `User:billing`."""
    # `|` is greater than all letters, so the plain text would put `User:billing|…` first.
    return sorted(items, key=lambda item: item.identity.key.replace(SEPARATOR, "\0"))
