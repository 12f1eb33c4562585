"""Finds resource names in ACLs that match nothing, or something else than they seem to.

Brokers store such ACLs without an error. Besides prefixes, Kafka has one pattern: the literal name
`*` (KIP-290). In any other name, `*` is an ordinary character, which topic names cannot contain.
"""

from __future__ import annotations

from ...protocol import broker_rules

EVERYTHING = "*"
LITERAL, PREFIXED = "Literal", "Prefixed"


def resource_name_faults(resource_type: str, name: str, pattern_type: str) -> broker_rules.Faults:
    """Names that no topic or user can ever have."""
    # Groups, transactional ids and tokens can have any name, so nothing is certain there.
    if not name or (name, pattern_type) == (EVERYTHING, LITERAL):
        return
    if resource_type == "Topic":
        yield from _topic_faults(name, pattern_type)
    if resource_type == "User" and pattern_type == LITERAL and ":" not in name:
        yield (
            f"no user matches: a resource of type User is a principal, and '{name}' is not one",
            f"write User:{name}",
        )


def _topic_faults(name: str, pattern_type: str) -> broker_rules.Faults:
    stem = name.rstrip(EVERYTHING)
    if stem != name and not any(broker_rules.name_faults(f"{stem}x")):
        yield (
            f"no topic matches '{name}': the * is an ordinary character here, and topic names "
            "cannot contain it",
            f"use the name '{stem}' with the pattern type Prefixed"
            if stem
            else "use the name '*' with the pattern type Literal",
        )
        return
    # "." and ".." are no topic names, but longer names can start with them.
    longer = f"{name}x" if pattern_type == PREFIXED and name in (".", "..") else name
    for summary, advice in broker_rules.name_faults(longer):
        yield f"no topic matches: {summary}", advice


def resource_name_warnings(resource_type: str, name: str, pattern_type: str) -> broker_rules.Faults:
    """Names that can match something, but rarely what was meant."""
    if resource_type in ("Topic", "Cluster") or not name.endswith(EVERYTHING):
        return
    if pattern_type == PREFIXED:
        yield (
            f"the * in the prefix '{name}' is an ordinary character; '*' with the pattern type "
            "Literal means every resource",
            "",
        )
    elif name != EVERYTHING:
        yield (
            f"'{name}' with the pattern type Literal means exactly this name; for a prefix, use "
            "the pattern type Prefixed",
            "",
        )
