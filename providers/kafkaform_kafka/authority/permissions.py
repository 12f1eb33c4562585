"""Lists all operations that a principal may execute on a resource, in one look at its ACLs, and
checks whether the simulated authorizer can be trusted.

The list is the quick way to what `authorizer.decide` says about one operation after the other, for
those who know the principal, the host, and the rules that brokers do not report. The check compares
the answers about our own principal with our rights as the cluster reports them (KIP-430). The
cluster reports rights only on what we may describe.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core.resource import Facts, Sweep

from ..protocol import keys, listings
from ..protocol.acl import (
    ALLOW,
    CLUSTER,
    EVERYTHING,
    OPERATIONS,
    describe_acl,
    list_reported_operations,
)
from .authorizer import (
    ALL,
    EVERYBODY,
    IMPLIED_BY,
    Access,
    AccessQuestion,
    AccessVerdict,
    Decision,
    DecisionRule,
    authorize,
    decide,
    find_covering,
    has_acl,
)

# Delete on a topic permits two things: to delete the topic, for which Delete on the cluster is
# enough, and to delete records (KIP-107), which needs the right on the topic.
RECORDS = "Delete of records"
IDEMPOTENT = "IdempotentWrite"

_EVERY = frozenset(OPERATIONS)
_NONE: frozenset[str] = frozenset()
_DENIED: Mapping[str, frozenset[str]] = {
    name: _EVERY if name == ALL else frozenset({name}) for name in OPERATIONS
}
"""Operation -> the operations that a DENY of it refuses."""
_ALLOWED: Mapping[str, frozenset[str]] = {
    name: denied | {implied for implied, by in IMPLIED_BY.items() if name in by}
    for name, denied in _DENIED.items()
}
"""Operation -> the operations that an ALLOW of it permits."""


def list_allowed(
    access: Access,
    principal: str,
    host: str,
    resource_type: str,
    name: str,
    *,
    topics: bool,
    idempotent: bool,
) -> Set[str]:
    """The operations that Kafka executes.

    topics: whether to look also at rights on the cluster that apply to every topic; idempotent:
    whether to look also for a topic that the principal may write to. What is not declared of the
    authorizer counts as Kafka's default.
    """
    own = _list_authorized(access, principal, host, resource_type, name)
    if resource_type == "Topic" and topics:
        whole = _list_authorized(access, principal, host, "Cluster", CLUSTER)
        return own | (whole & access.every_topic) | ({RECORDS} if "Delete" in own else _NONE)
    if resource_type == "User" and principal == name:
        return _EVERY
    if resource_type == "Cluster" and idempotent and IDEMPOTENT not in own:
        question = AccessQuestion(principal, host, IDEMPOTENT, resource_type, name)
        return (
            own | {IDEMPOTENT} if decide(access, question).verdict is AccessVerdict.ALLOWED else own
        )
    return own


def _list_authorized(
    access: Access, principal: str, host: str, resource_type: str, name: str
) -> Set[str]:
    """The operations that `authorize` allows."""
    if access.super_users and principal in access.super_users:
        return _EVERY
    buckets = find_covering(access.index, resource_type, name)
    if not buckets:
        return _EVERY if access.allow_if_no_acl else _NONE
    allowed: set[str] = set()
    denied: set[str] = set()
    for bucket in buckets:
        for subject in (principal, EVERYBODY):
            for acl in bucket.get(subject, ()):
                if acl.host not in (EVERYTHING, host):
                    continue
                if acl.permission == ALLOW:
                    allowed |= _ALLOWED[acl.operation]
                else:
                    denied |= _DENIED[acl.operation]
    return allowed - denied


SHOWN = 3
"""Mismatches that a warning lists."""
ASKED = 500
"""Resources whose rights are compared."""


# ── the check ───────────────────────────────────────────────────────────────────────────


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
