"""What principals may do: all their operations on a resource in one look at its ACLs, before and
after a plan, and whether the cluster agrees with the simulated authorizer.

The list is the quick way to what `authorizer.decide` says about one operation after the other, for
those who know the principal, the host, and the rules that brokers do not report. The check compares
the answers about our own principal with our rights as the cluster reports them (KIP-430). The
cluster reports rights only on what we may describe.

A changed ACL can concern any number of principals, hosts and names. So the questions about it are
about one that no ACL names, which stands for all of these, and about those that other ACLs name,
because only they can differ.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import product

from msgspec import Struct, field
from msgspec.structs import replace

from kafkaform.core.resource import Facts, Sweep

from ..protocol import keys
from ..protocol.acl import (
    ALLOW,
    CLUSTER,
    DENY,
    EVERY_TOPIC,
    EVERYTHING,
    HELD_OPERATIONS,
    OPERATIONS,
    OTHER,
    PREFIXED,
    Acl,
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
    Bucket,
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
        listed[kind, name] = frozenset(item.attributes[HELD_OPERATIONS])
    return listed


# ── before and after a plan ─────────────────────────────────────────────────────────────

# A limit for plans of clusters with thousands of ACLs. A note says what was not asked about, and
# `find_deciding` has the ACLs by which the others can lose something.
NAMES, PRINCIPALS, HOSTS = 20, 10, 5
"""How many that other ACLs name are asked about for one ACL."""


class AccessPair(Struct, frozen=True):
    """The authorizer before and after a plan."""

    before: Access
    after: Access
    names: Mapping[tuple[str, str | None], Sequence[str]]
    """(Resource type, principal) -> the names of all patterns for which the principal has an ACL,
    sorted; OTHER follows a prefix. With None as the principal, the names of all patterns."""
    results: dict[AccessInquiry, ProbeResults] = field(default_factory=dict)
    """What was asked already: ACLs that differ in their operations have the same results."""


class AccessInquiry(Struct, frozen=True):
    """All that the questions about an ACL depend on, apart from the other ACLs."""

    principal: str
    host: str
    resource_type: str
    resource_name: str
    pattern_type: str
    topics: bool
    """Whether an operation that a right on the cluster allows on every topic is one of them."""
    idempotent: bool
    """Whether IdempotentWrite is one of them."""


class Probe(Struct, frozen=True):
    """One principal, host and resource name to ask about."""

    principal: str
    host: str
    name: str


class ProbeResults(Struct, frozen=True):
    """What the questions about one ACL have shown."""

    changed: Mapping[Probe, tuple[Set[str], Set[str]]]
    """What was asked, the most general question first -> the operations that are gained there, and
    those that are lost."""
    unasked: tuple[str, ...]
    """What was not asked about, such as `3 more names`."""


def pair_access(before: Access, after: Access) -> AccessPair:
    """Both authorizers with the names of their patterns."""
    names: dict[tuple[str, str | None], set[str]] = defaultdict(set)
    for index in (before.index, after.index):
        for table, end in ((index.literal, ""), (index.prefixed, OTHER)):
            for (kind, name), bucket in table.items():
                for principal in (None, *bucket):
                    names[kind, principal].add(name + end)
    return AccessPair(before, after, {key: sorted(prefixes) for key, prefixes in names.items()})


def ask_about(acl: Acl, operations: Sequence[str], worlds: AccessPair) -> ProbeResults:
    """What anybody gains and loses of these operations, and perhaps of others, where the ACL can
    decide."""
    inquiry = _make_inquiry(acl, operations)
    results = worlds.results.get(inquiry)
    if results is None:
        points, skipped = _choose_probes(inquiry, worlds)
        changed = {point: _compare_decisions(inquiry, point, worlds) for point in points}
        results = worlds.results[inquiry] = ProbeResults(changed, skipped)
    return results


def _make_inquiry(acl: Acl, operations: Sequence[str]) -> AccessInquiry:
    return AccessInquiry(
        acl.principal,
        acl.host,
        acl.resource_type,
        acl.resource_name,
        acl.pattern_type,
        acl.resource_type == "Topic" and not EVERY_TOPIC.isdisjoint(operations),
        acl.resource_type == "Cluster" and IDEMPOTENT in operations,
    )


def _compare_decisions(
    inquiry: AccessInquiry, point: Probe, worlds: AccessPair
) -> tuple[Set[str], Set[str]]:
    """The operations that are gained, and those that are lost."""
    before, after = (
        list_allowed(
            access,
            point.principal,
            point.host,
            inquiry.resource_type,
            point.name,
            topics=inquiry.topics,
            idempotent=inquiry.idempotent,
        )
        for access in (worlds.before, worlds.after)
    )
    return after - before, before - after


def _choose_probes(
    inquiry: AccessInquiry, worlds: AccessPair
) -> tuple[Iterable[Probe], tuple[str, ...]]:
    """The questions, so many that a plan of thousands of ACLs can ask them, and what is left."""
    # Sorted by name, so that a plan and its apply ask the same questions.
    all_names = list(_list_names(inquiry, worlds))
    names = all_names[: 1 + NAMES]
    near = [near_bucket for name in names for near_bucket in _find_buckets(worlds, inquiry, name)]
    all_principals, all_hosts = [inquiry.principal], [inquiry.host]
    if inquiry.principal == EVERYBODY:
        named = {principal for bucket in near for principal in bucket} - {EVERYBODY}
        all_principals = [f"User:{OTHER}", *sorted(named)]
    principals = all_principals[: 1 + PRINCIPALS]
    if inquiry.host == EVERYTHING:
        concerned = {*principals, EVERYBODY}
        near_hosts = {
            acl.host
            for bucket in near
            for principal in concerned
            for acl in bucket.get(principal, ())
        }
        all_hosts = [OTHER, *sorted(near_hosts - {EVERYTHING})]
    hosts = all_hosts[: 1 + HOSTS]
    counts = {
        "name": len(all_names) - len(names),
        "principal": len(all_principals) - len(principals),
        "host": len(all_hosts) - len(hosts),
    }
    skipped = tuple(f"{n} more {noun}{'s' if n > 1 else ''}" for noun, n in counts.items() if n)
    return (Probe(p, h, n) for n, p, h in product(names, principals, hosts)), skipped


def find_deciding(acl: Acl, operations: Sequence[str], worlds: AccessPair) -> set[Acl]:
    """The ACLs that decide after the plan about anybody and anything that this ACL concerns."""
    inquiry = _make_inquiry(acl, operations)
    after = AccessPair(worlds.after, worlds.after, worlds.names)
    buckets = [*_find_buckets(after, inquiry, next(_list_names(inquiry, worlds)))]
    for name in _find_names(worlds, inquiry, None) if _is_wide(inquiry) else ():
        buckets += _find_own(worlds.after, acl.resource_type, name)
    return {near_acl for bucket in buckets for acls in bucket.values() for near_acl in acls}


def _list_names(inquiry: AccessInquiry, worlds: AccessPair) -> Iterator[str]:
    """The most general name first, then those that another ACL can make an exception."""
    if not _is_wide(inquiry):
        yield inquiry.resource_name
        return
    general = _prefix(inquiry) + OTHER
    yield general
    for name in _find_exceptions(inquiry, worlds):
        # Kafka does not apply the wildcard to names that start with `*`.
        if name != general and not (general == OTHER and name.startswith(EVERYTHING)):
            yield name


def _is_wide(inquiry: AccessInquiry) -> bool:
    return inquiry.pattern_type == PREFIXED or inquiry.resource_name == EVERYTHING


def _prefix(inquiry: AccessInquiry) -> str:
    return inquiry.resource_name if inquiry.pattern_type == PREFIXED else ""


def _find_exceptions(inquiry: AccessInquiry, worlds: AccessPair) -> Sequence[str]:
    if inquiry.principal == EVERYBODY:
        return _find_names(worlds, inquiry, None)
    concerned = (inquiry.principal, EVERYBODY)
    return sorted(
        {name for principal in concerned for name in _find_names(worlds, inquiry, principal)}
    )


def _find_names(worlds: AccessPair, inquiry: AccessInquiry, principal: str | None) -> Sequence[str]:
    """The names of the patterns that the pattern of a wide ACL contains."""
    names, prefix = worlds.names.get((inquiry.resource_type, principal), ()), _prefix(inquiry)
    return names[bisect_left(names, prefix) : bisect_right(names, prefix + OTHER)]


def _find_own(access: Access, kind: str, name: str) -> Iterator[Bucket]:
    """The ACLs of the patterns of that name."""
    yield access.index.literal.get((kind, name), {})
    if name.endswith(OTHER):
        yield access.index.prefixed.get((kind, name.removesuffix(OTHER)), {})


def _find_buckets(worlds: AccessPair, inquiry: AccessInquiry, name: str) -> Iterator[Bucket]:
    """The ACLs that decide about this name, including those of the cluster and of other topics."""
    resources = [(inquiry.resource_type, name)]
    if inquiry.topics:
        resources.append(("Cluster", CLUSTER))
    for access, resource in product((worlds.before, worlds.after), resources):
        yield from find_covering(access.index, *resource)
    if inquiry.idempotent:
        yield _select_writers(worlds, inquiry.principal)


def _select_writers(worlds: AccessPair, principal: str) -> Bucket:
    """The ACLs of topics that decide about an idempotent producer (KIP-679)."""
    # For an ACL of everybody, writers whose ACLs do not change are skipped: they keep their right.
    writers_before, writers_after = (
        access.index.writers for access in (worlds.before, worlds.after)
    )
    near = {}
    for name in (
        {*writers_before, *writers_after} if principal == EVERYBODY else {principal, EVERYBODY}
    ):
        before, after = writers_before.get(name, ()), writers_after.get(name, ())
        every = principal != EVERYBODY or name == EVERYBODY or set(before) != set(after)
        near[name] = tuple(acl for acl in (*before, *after) if every or acl.permission == DENY)
    return {name: acls for name, acls in near.items() if acls}
