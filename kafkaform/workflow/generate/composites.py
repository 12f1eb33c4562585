"""Find the composite blocks that stand for some of the live objects."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from ...core.address import Address
from ...core.diagnostics import Range
from ...core.resource import Declared, Identity
from ...core.value import FrozenMap
from ...provider.contract import ResourceType
from .arguments import fill_defaults
from .blocks import UndeclaredObject

_NOWHERE = Range("", 1, 1, 1, 1)


def gather_composites(
    objects: Sequence[UndeclaredObject], types: Mapping[str, ResourceType]
) -> tuple[list[UndeclaredObject], frozenset[Identity]]:
    """The composites, and the objects that they stand for."""
    by_instance: dict[str, list[UndeclaredObject]] = defaultdict(list)
    for item in objects:
        by_instance[item.identity.instance].append(item)
    composites: list[UndeclaredObject] = []
    covered = set[Identity]()
    for instance, items in sorted(by_instance.items()):
        identities = {item.identity for item in items}
        known = [(i.identity.kind, _fill(i, types[i.identity.kind])) for i in items]
        for kind in types.values():
            for arguments in kind.gather(known) if kind.gather is not None else ():
                parts = set(_expand(kind, instance, arguments))
                # A composite that stands for more than what is live would create the rest.
                if parts and parts <= identities:
                    key = f"{len(composites):06}"
                    identity = Identity(instance, kind.name, key)
                    composites.append(UndeclaredObject(identity, arguments, None))
                    covered |= parts
    return composites, frozenset(covered)


def _fill(item: UndeclaredObject, kind: ResourceType) -> FrozenMap:
    return fill_defaults(item.arguments, kind.schema)


def _expand(kind: ResourceType, instance: str, arguments: FrozenMap) -> Iterable[Identity]:
    if kind.expand is None:
        return
    identity = Identity(instance, kind.name, "")
    address = Address(type=kind.name, name="new")
    whole = fill_defaults(arguments, kind.schema)
    for component in kind.expand(Declared(identity, address, whole, _NOWHERE)):
        yield component.identity
