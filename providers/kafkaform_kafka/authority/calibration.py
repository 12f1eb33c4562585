"""Checks whether the simulated authorizer can be trusted.

It compares the simulation's answers about our own principal with our rights as the cluster reports
them (KIP-430). The cluster reports rights only on what we may describe.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core.resource import Facts, Sweep

from ..protocol import keys, listings
from ..protocol.acl import CLUSTER, describe_acl, list_reported_operations
from .authorizer import (
    Access,
    AccessQuestion,
    AccessVerdict,
    Decision,
    DecisionRule,
    authorize,
    has_acl,
)
from .permissions import IDEMPOTENT

SHOWN = 3
"""Mismatches that a warning lists."""
ASKED = 500
"""Resources whose rights are compared."""


class OwnPrincipal(Struct, frozen=True):
    """Our own identity for the cluster."""

    principal: str | None
    """None if it is unknown."""
    root: bool | None
    """Whether it is a super user, None if that is unknown."""
    cluster: frozenset[str] | None
    """Our operations on the cluster, None if the cluster did not report them."""

    def access(self, access: Access) -> Access:
        """The authorizer for questions about ourselves, with what is known about us."""
        if self.root and self.principal is not None:
            return replace(access, super_users=frozenset({self.principal}))
        return replace(access, super_users=frozenset()) if self.root is False else access


def identify_self(before: Access, sweep: Sweep | None, facts: Facts) -> OwnPrincipal:
    """Our principal, and whether it is a super user."""
    cluster = list_rights(sweep).get(("Cluster", CLUSTER))
    me = OwnPrincipal(facts.principal, None, cluster or None)
    if before.super_users is not None and facts.principal is not None:
        return replace(me, root=facts.principal in before.super_users)
    if not cluster:
        return me
    # A super user may do everything, so a missing right is proof that we are not one. All rights,
    # although no ACL grants them, are proof that we are.
    if not cluster >= frozenset(list_reported_operations("Cluster")):
        return replace(me, root=False)
    return replace(me, root=True) if _exceeds_acls(before, facts.principal, sweep) else me


def _exceeds_acls(before: Access, principal: str | None, sweep: Sweep | None) -> bool:
    """True if the cluster reports a right that the ACLs do not grant."""
    alone = replace(before, super_users=frozenset())
    return any(
        authorize(alone, AccessQuestion(principal, None, operation, kind, name)).verdict
        is AccessVerdict.DENIED
        for (kind, name), operations in list(list_rights(sweep).items())[:ASKED]
        for operation in operations
    )


def acts_without_acls(before: Access, sweep: Sweep | None) -> bool:
    """True if the cluster reports rights of ours on a resource that no ACL covers."""
    return any(
        operations - {IDEMPOTENT} and not has_acl(before.index, kind, name)
        for (kind, name), operations in list_rights(sweep).items()
    )


def find_mismatches(before: Access, me: OwnPrincipal, sweep: Sweep | None) -> str:
    """The first few differences between the cluster and the simulation, in one sentence; empty if
    there are none."""
    differences = _compare_rights(me.access(before) if me.root is False else before, me, sweep)
    principal = me.principal or "the current principal"
    clauses = [
        f"{principal} {'may' if allowed else 'may not'} {', '.join(operations)} on {resource}, but "
        f"{reason} it {'may not' if allowed else 'may'}"
        for (resource, reason, allowed), operations in list(differences.items())[:SHOWN]
    ]
    if len(differences) > SHOWN:
        clauses.append(f"there are {len(differences) - SHOWN} more differences")
    return f"the cluster reports that {'; '.join(clauses)}" if clauses else ""


def _compare_rights(
    access: Access, me: OwnPrincipal, sweep: Sweep | None
) -> dict[tuple[str, str, bool], list[str]]:
    """(resource, reason of the simulation, the cluster's answer) -> operations."""
    differences: dict[tuple[str, str, bool], list[str]] = {}
    for (kind, name), reported in list(list_rights(sweep).items())[:ASKED]:
        operations = list_reported_operations(kind) if reported else ("Describe",)
        for operation in operations:
            decision = authorize(access, AccessQuestion(me.principal, None, operation, kind, name))
            says = AccessVerdict.ALLOWED if operation in reported else AccessVerdict.DENIED
            if decision.verdict not in (says, AccessVerdict.UNKNOWN):
                key = f"{kind} {name}", _describe_basis(decision), says is AccessVerdict.ALLOWED
                differences.setdefault(key, []).append(operation)
    return differences


def _describe_basis(decision: Decision) -> str:
    if decision.rule is DecisionRule.ACL and decision.acl is not None:
        return f"by {describe_acl(decision.acl)}"
    return {
        DecisionRule.SUPER_USER: "as a declared super user",
        DecisionRule.NO_ACL: "without any ACL on it",
    }.get(decision.rule, "by its ACLs")


def list_rights(sweep: Sweep | None) -> dict[tuple[str, str], frozenset[str]]:
    """(resource type, name) -> our operations as the cluster reports them."""
    listed = {}
    for item in sweep.items if sweep else ():
        kind, name = keys.split(item.identity.key)
        listed[kind, name] = frozenset(item.attributes[listings.HELD])
    return listed
