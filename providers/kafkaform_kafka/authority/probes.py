"""Asks what may be done before and after a plan by those whom a changed ACL concerns.

An ACL can concern any number of principals, hosts and names. So the questions are about one that no
ACL names, which stands for all of these, and about those that other ACLs name, because only they
can differ.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import product

from msgspec import Struct, field

from ..protocol.acl import CLUSTER, DENY, EVERY_TOPIC, EVERYTHING, OTHER, PREFIXED, Acl
from .authorizer import EVERYBODY, Access, Bucket, find_covering
from .permissions import IDEMPOTENT, list_allowed

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
