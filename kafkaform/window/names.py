"""What objects are called on pages, ACLs as sentences, and how their values are written.

Every page names objects with these functions, so that none has other words for the same object.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from kafkaform_kafka.kinds.quota.limits import entity_text
from kafkaform_kafka.kinds.quota.resource_type import KIND as QUOTA
from kafkaform_kafka.kinds.quota.resource_type import parse_entity_key
from kafkaform_kafka.protocol.acl import KIND as ACL
from kafkaform_kafka.protocol.acl import describe_acl, parse_acl_key

from ..core.change import Action, Path, PathChange
from ..core.resource import Identity
from ..core.value import FrozenMap
from ..provider.contract import ResourceType
from ..render.body import render_sides
from ..render.lines import render_brief
from ..render.parts import are_long
from ..render.text import SENSITIVE, mask_value
from ..state.model import Row
from .page import Cell, CellRow, make_id

Types = Mapping[str, ResourceType]
"""Resource type -> what its provider says of it."""


ACL_COLUMNS = ("ACL", "Addresses", "Owner")
_SENTENCES: Mapping[str, Callable[[str], str]] = {
    ACL: lambda key: describe_acl(parse_acl_key(key)),
    QUOTA: lambda key: entity_text(parse_entity_key(key)),
}
"""Resource type -> its key in words. Raises ValueError for a key that no such object has."""


def describe_object(identity: Identity) -> str:
    """What an object is called: an ACL as a sentence, a quota by whom it limits, others by key."""
    describe = _SENTENCES.get(identity.kind)
    try:
        return describe(identity.key) if describe else identity.key
    except ValueError:
        # A newer version can have written it, or somebody by hand.
        return identity.key


def link_object(identity: Identity, known: Collection[Identity] | None = None) -> Cell:
    """An object with a link to its page. known: the objects that have pages, None for all."""
    linked = known is None or identity in known
    return Cell(describe_object(identity), f"objects/{make_id(str(identity))}" if linked else "")


def make_acl_row(row: Row) -> CellRow:
    """A recorded ACL for a table with the columns `ACL_COLUMNS`."""
    addresses = Cell(", ".join(row.owners), style="code")
    return link_object(row.identity), addresses, Cell(row.owner or "")


def describe_paths(
    kind: str, action: str, paths: Collection[Mapping[str, Any]], types: Types
) -> tuple[str, ...]:
    """The paths of a record of a step, each with its values and their units: of a new object
    `partitions = 12`, otherwise `partitions: 6 → 12`. An ACL has no paths that its sentence does
    not say."""
    if kind == ACL:
        return ()
    find_unit = types[kind].unit if kind in types else None
    return tuple(_describe_path(one, action, find_unit) for one in paths)


def _describe_path(
    one: Mapping[str, Any], action: str, find_unit: Callable[[Path], str] | None
) -> str:
    if one["sensitive"]:
        return f"{one['path']} = {SENSITIVE}"
    # The first dot ends the name of the attribute (docs/formats/audit.md).
    attribute, dot, key = str(one["path"]).partition(".")
    path = (attribute, key) if dot else (attribute,) if attribute else ()
    unit = find_unit(path) if find_unit and path else ""
    item = PathChange(path, one["before"], one["after"], unit=unit)
    if path and action == Action.CREATE:
        return f"{one['path']} = {mask_value(item.after, False, unit)}"
    if not path or are_long(item.before, item.after):
        return render_brief(item)
    return f"{one['path']}: {render_sides(item, whole=True)}"


def list_values(row: Row, types: Types) -> Iterator[tuple[str, str]]:
    """Each recorded attribute, and each key of a map, with its value and unit."""
    find_unit = types[row.identity.kind].unit if row.identity.kind in types else None
    for name, item in sorted(row.attributes.items()):
        if isinstance(item, FrozenMap) and item:
            for key, inner in sorted(item.items()):
                unit = find_unit((name, key)) if find_unit else ""
                yield f"{name}.{key}", mask_value(inner, False, unit)
        else:
            yield name, mask_value(item, False, find_unit((name,)) if find_unit else "")
