"""Whether the simulated authorizer can be believed: what it says of the principal that we run as
is held against what the cluster itself says that we may do.

The cluster lists the operations only of what we may describe; of anything else it says nothing.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core.resource import Facts, Sweep

from ..kinds.acl.resource_type import CLUSTER, list_reported_operations
from ..protocol import keys, rights
from .authorizer import Access, AccessQuestion, AccessVerdict, Decision, DecisionRule, authorize
from .effects import describe_acl

SHOWN = 3
ASKED = 500
"""Resources of which the rights are compared."""
CAUSES = (
    "Likely causes: an authorizer of another class, a super user that authorizer { super_users } "
    "lacks, or a principal mapping (then declare principal)"
)


class OwnPrincipal(Struct, frozen=True):
    """principal: whom the cluster takes us for, None if that is not known; root: whether that is
    a super user, None if it cannot be told; cluster: what we may do with the cluster, None if it
    did not say."""

    principal: str | None
    root: bool | None
    cluster: frozenset[str] | None

    def access(self, access: Access) -> Access:
        """The authorizer with what is known about ourselves, for questions about ourselves."""
        if self.root and self.principal is not None:
            return replace(access, super_users=frozenset({self.principal}))
        return replace(access, super_users=frozenset()) if self.root is False else access


def identify_self(before: Access, sweep: Sweep | None, facts: Facts) -> OwnPrincipal:
    """Who we are. A super user may do everything; who may do everything although no ACL says so
    is one."""
    cluster = list_rights(sweep).get(("Cluster", CLUSTER))
    me = OwnPrincipal(facts.principal, None, cluster or None)
    if before.super_users is not None and facts.principal is not None:
        return replace(me, root=facts.principal in before.super_users)
    if not cluster:
        return me
    if not cluster >= frozenset(list_reported_operations("Cluster")):
        return replace(me, root=False)
    return replace(me, root=True) if _exceeds_acls(before, facts.principal, sweep) else me


def _exceeds_acls(before: Access, principal: str | None, sweep: Sweep | None) -> bool:
    """Whether we may do something that nobody may to whom the ACLs do not give it."""
    alone = replace(before, super_users=frozenset())
    return any(
        authorize(alone, AccessQuestion(principal, None, operation, kind, name)).verdict
        is AccessVerdict.DENIED
        for (kind, name), held in list(list_rights(sweep).items())[:ASKED]
        for operation in held
    )


def find_mismatches(before: Access, me: OwnPrincipal, sweep: Sweep | None) -> tuple[str, ...]:
    """Where cluster and simulation say different things, the first few in words."""
    found = _compare_rights(me.access(before) if me.root is False else before, me, sweep)
    if not found:
        return ()
    who = me.principal or "the principal that we run as"
    more = len(found) - SHOWN
    said = [
        f"the cluster says that {who} {'may' if allowed else 'may not'} {', '.join(operations)} "
        f"on {what}, but {why} it {'may not' if allowed else 'may'}"
        for (what, why, allowed), operations in list(found.items())[:SHOWN]
    ]
    rest = f"; and so on for {more} more" if more > 0 else ""
    return (f"{'; '.join(said)}{rest}. {CAUSES}",)


def _compare_rights(
    access: Access, me: OwnPrincipal, sweep: Sweep | None
) -> dict[tuple[str, str, bool], list[str]]:
    """(resource, what the simulation rests on, what the cluster says) -> operations."""
    found: dict[tuple[str, str, bool], list[str]] = {}
    for (kind, name), held in list(list_rights(sweep).items())[:ASKED]:
        asked = list_reported_operations(kind) if held else ("Describe",)
        for operation in asked:
            decision = authorize(access, AccessQuestion(me.principal, None, operation, kind, name))
            says = AccessVerdict.ALLOWED if operation in held else AccessVerdict.DENIED
            if decision.verdict not in (says, AccessVerdict.UNKNOWN):
                key = f"{kind} {name}", _describe_basis(decision), says is AccessVerdict.ALLOWED
                found.setdefault(key, []).append(operation)
    return found


def _describe_basis(decision: Decision) -> str:
    if decision.rule is DecisionRule.ACL and decision.acl is not None:
        return f"by {describe_acl(decision.acl)}"
    return {
        DecisionRule.SUPER_USER: "as a declared super user",
        DecisionRule.NO_ACL: "where no ACL is",
    }.get(decision.rule, "by its ACLs")


def list_rights(sweep: Sweep | None) -> dict[tuple[str, str], frozenset[str]]:
    """(resource type, name) -> the operations that the cluster says we may do."""
    listed = {}
    for item in sweep.items if sweep else ():
        kind, name = keys.split(item.identity.key)
        listed[kind, name] = frozenset(item.attributes[rights.HELD])
    return listed
