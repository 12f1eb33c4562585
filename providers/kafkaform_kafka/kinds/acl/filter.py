"""Selects ACLs by the arguments of a data source, as Kafka's AclBindingFilter does (KIP-290)."""

from __future__ import annotations

from kafkaform.core.value import FrozenMap

from ...protocol.acl import EVERYTHING, NAMES, PATTERN_TYPES, Acl

ANY, MATCH = "Any", "Match"
FILTERS = (*PATTERN_TYPES, ANY, MATCH)
_EXACT = (*(name for name in NAMES if name.startswith("acl_")), "resource_type")


def fits_arguments(acl: Acl, arguments: FrozenMap) -> bool:
    """True if the ACL fits every argument."""
    # Literal and Prefixed match exactly. Any, the default, matches both types with this very name.
    # Match also matches prefixes of the name, and the wildcard.
    attributes = acl.attributes
    filters = {name: value for name, value in arguments.items() if value is not None}
    if any(filters.get(name, attributes[name]) != attributes[name] for name in _EXACT):
        return False
    name, pattern_type = (
        filters.get("resource_name"),
        filters.get("resource_pattern_type_filter", ANY),
    )
    if pattern_type in PATTERN_TYPES and pattern_type != acl.pattern_type:
        return False
    if name is None or name == acl.resource_name:
        return True
    return pattern_type == MATCH and covers(acl, name)


def covers(acl: Acl, name: str) -> bool:
    """True if the ACL applies to the resource with this name."""
    if acl.pattern_type == "Prefixed":
        return name.startswith(acl.resource_name)
    return acl.resource_name in (name, EVERYTHING)
