"""grant_findings of one cluster, ACL by ACL, as the documentation puts it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kafkaform.fleet.access.acl_masks import find_shadows
from kafkaform.fleet.access.permission_rows import SPELLED
from kafkaform.fleet.landed.register import Register
from kafkaform_kafka.protocol.acl import Acl

from ..kit.fleet.access_worlds import World, owner, shown, table

Finding = tuple[str, str, str, str, str | None]
"""finding, severity, subject, resource, owner"""
WORDS = {kind: word for word, kind in SPELLED.items()}
LOW = ("Describe", "DescribeConfigs", "DescribeTokens")
MEDIUM = ("Read", "IdempotentWrite", "TwoPhaseCommit")


def findings(world: World, cluster: Mapping[str, Any], register: Register) -> set[Finding]:
    owners = {who: one.name for one in reversed(register.owners) for who in one.principals}
    found: set[Finding] = set()
    for acl in world.acls:
        pattern = shown(acl.resource_name, acl.pattern_type)
        resource = f"{WORDS[acl.resource_type]}/{pattern}"
        for name, severity in _of_acl(acl, world, cluster["coverage"], register):
            who = owners.get(acl.principal) or owner(acl)
            found.add((name, severity, acl.key, resource, who))
    for name, severity, who in _of_principals(world, cluster["coverage"], register, owners):
        found.add((name, severity, who, "", owners.get(who)))
    for who in _of_quotas(world, cluster["coverage"], register, owners):
        found.add(("quota_of_nobody", "low", f"user={who}", "", "team-q"))
    if world.allow_if_no_acl:
        found.add(("open_by_default", "high", "User:*", "", None))
    return found


def _of_acl(
    acl: Acl, world: World, coverage: Mapping[str, str], register: Register
) -> Iterator[tuple[str, str]]:
    everything = (acl.resource_name, acl.pattern_type) in (("*", "Literal"), ("", "Prefixed"))
    if acl.permission == "Allow":
        risk = "low" if acl.operation in LOW else "high"
        risk = "medium" if acl.operation in MEDIUM else risk
        if everything and acl.principal == "User:*":
            risk = "medium" if risk == "low" else "high"
        if acl.principal == "User:*":
            yield "any_principal", risk
        elif acl.host == "*" and any(
            (one.principal, one.permission) == (acl.principal, "Allow") and one.host != "*"
            for one in world.acls
        ):
            yield "any_host", "low"
        if acl.operation == "All":
            yield "any_operation", "high" if acl.resource_type == "Cluster" else "medium"
        every_topic = acl.resource_type == "Cluster" and acl.operation in ("Create", "Delete")
        if everything or every_topic:
            yield "any_resource", risk
        if everything:
            pass
        elif (
            acl.pattern_type == "Prefixed"
            and len(acl.resource_name) <= register.settings.short_prefix
        ):
            yield "short_prefix", "medium"
    if acl.key in {row["key"] for row in find_shadows(table(world.acls)).to_pylist()}:
        yield "shadowed", "low"
    names = {
        "Topic": (world.topics, "kafka_topic"),
        "Group": (world.groups, "group_usage"),
    }
    if acl.resource_type in names and not everything and acl.operation != "Create":
        there, kind = names[acl.resource_type]
        exact = acl.pattern_type == "Literal"
        matches = acl.resource_name.__eq__ if exact else lambda n: n.startswith(acl.resource_name)
        if coverage.get(kind) == "complete" and not any(map(matches, there)):
            yield "matches_nothing", "low"


def _of_principals(
    world: World, coverage: Mapping[str, str], register: Register, owners: Mapping[str, str]
) -> Iterator[tuple[str, str, str]]:
    logins = {f"User:{name}" for name in world.users}
    known = {*owners, *register.principals}
    for who in {acl.principal for acl in world.acls} - {"User:*"}:
        if coverage.get("kafka_user_scram_credential") != "complete" or who in logins:
            continue
        if (known or logins) and who not in known and who not in (world.super_users or ()):
            yield "unknown_principal", "medium", who
        if logins and who in owners and who.startswith("User:"):
            yield "no_login", "low", who


def _of_quotas(
    world: World, coverage: Mapping[str, str], register: Register, owners: Mapping[str, str]
) -> Iterator[str]:
    known = {*owners, *register.principals}
    seen = {coverage.get(kind) for kind in ("kafka_acl", "kafka_user_scram_credential")}
    for user in world.quotas:
        others = {*known, *(world.super_users or ()), *(acl.principal for acl in world.acls)}
        judged = seen == {"complete"} and (known or world.users)
        if user and judged and user not in world.users and f"User:{user}" not in others:
            yield user
