"""Names of resources in ACLs that match nothing, or something else than they seem to.

The broker stores them without a word. Kafka has one pattern besides the prefix: a literal name
that is `*` alone. Everywhere else a `*` is a character like any other, and topics cannot have it.
"""

from __future__ import annotations

from ...protocol import broker_rules

EVERYTHING = "*"
LITERAL, PREFIXED = "Literal", "Prefixed"


def resource_name_faults(resource_type: str, name: str, pattern_type: str) -> broker_rules.Faults:
    """Why no topic or user can ever match. Groups, transactional ids and tokens can be called
    anything."""
    if not name or (name, pattern_type) == (EVERYTHING, LITERAL):
        return
    if resource_type == "Topic":
        yield from _topic_faults(name, pattern_type)
    if resource_type == "User" and pattern_type == LITERAL and ":" not in name:
        yield (
            f'no user matches: a resource of the type User is a principal, and "{name}" is none',
            f"write User:{name}",
        )


def _topic_faults(name: str, pattern_type: str) -> broker_rules.Faults:
    stem = name.rstrip(EVERYTHING)
    if stem != name and not any(broker_rules.name_faults(f"{stem}x")):
        yield (
            f'no topic matches "{name}": its * is a character, and no topic has one in its name',
            f'use the name "{stem}" with the pattern type Prefixed'
            if stem
            else 'use the name "*" with the pattern type Literal',
        )
        return
    # A longer name can begin with "." and "..".
    longer = f"{name}x" if pattern_type == PREFIXED and name in (".", "..") else name
    for summary, advice in broker_rules.name_faults(longer):
        yield f"no topic matches: {summary}", advice


def resource_name_warnings(resource_type: str, name: str, pattern_type: str) -> broker_rules.Faults:
    """What can match and is rarely meant."""
    if resource_type in ("Topic", "Cluster") or not name.endswith(EVERYTHING):
        return
    if pattern_type == PREFIXED:
        yield f'the * of the prefix "{name}" is a character; Literal "*" is every resource', ""
    elif name != EVERYTHING:
        yield f'Literal "{name}" is that very name; a prefix has the pattern type Prefixed', ""
