"""Chooses the questions about one changed ACL: which principals, hosts and names are asked about.

An ACL can concern any number of them. So the questions are about one that no ACL names, which
stands for all of these, and about those that other ACLs name, because only they can differ.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from msgspec import Struct

from ..kinds.acl.resource_type import CLUSTER, DENY, EVERY_TOPIC, EVERYTHING, Acl
from .acl_words import OTHER
from .authorizer import EVERYBODY, PREFIXED, Access, Bucket, find_covering
from .permissions import IDEMPOTENT

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


class Probe(Struct, frozen=True):
    """One principal, host and resource name to ask about."""

    principal: str
    host: str
    name: str


class Probes(Struct, frozen=True):
    """The questions about one ACL."""

    points: tuple[Probe, ...]
    """The most general one first."""
    left: tuple[str, ...]
    """What is not asked about, such as `3 more names`."""


def pair_access(before: Access, after: Access) -> AccessPair:
    """Both authorizers with the names of their patterns."""
    names: dict[tuple[str, str | None], set[str]] = defaultdict(set)
    for index in (before.index, after.index):
        for table, end in ((index.literal, ""), (index.prefixed, OTHER)):
            for (kind, name), bucket in table.items():
                for who in (None, *bucket):
                    names[kind, who].add(name + end)
    return AccessPair(before, after, {key: sorted(found) for key, found in names.items()})


def choose_probes(acl: Acl, operations: Sequence[str], worlds: AccessPair) -> Probes:
    """The questions about this ACL, so many that a plan of thousands of ACLs can ask them."""
    # Sorted by name, so that a plan and its apply ask the same questions.
    all_names = list(_list_names(acl, worlds))
    names = all_names[: 1 + NAMES]
    near = [found for name in names for found in _find_buckets(worlds, acl, operations, name)]
    all_principals, all_hosts = [acl.principal], [acl.host]
    if acl.principal == EVERYBODY:
        named = {who for bucket in near for who in bucket} - {EVERYBODY}
        all_principals = [f"User:{OTHER}", *sorted(named)]
    principals = all_principals[: 1 + PRINCIPALS]
    if acl.host == EVERYTHING:
        asked = {*principals, EVERYBODY}
        found = (one for bucket in near for who in asked for one in bucket.get(who, ()))
        all_hosts = [OTHER, *sorted({one.host for one in found} - {EVERYTHING})]
    hosts = all_hosts[: 1 + HOSTS]
    counts = {
        "name": len(all_names) - len(names),
        "principal": len(all_principals) - len(principals),
        "host": len(all_hosts) - len(hosts),
    }
    left = tuple(f"{n} more {what}{'s' if n > 1 else ''}" for what, n in counts.items() if n)
    return Probes(tuple(Probe(p, h, n) for n, p, h in product(names, principals, hosts)), left)


def find_deciding(acl: Acl, operations: Sequence[str], worlds: AccessPair) -> set[Acl]:
    """The ACLs that decide after the plan about anybody and anything that this ACL concerns."""
    after, kind = AccessPair(worlds.after, worlds.after, worlds.names), acl.resource_type
    buckets = [*_find_buckets(after, acl, operations, next(_list_names(acl, worlds)))]
    for name in _find_names(worlds, acl, None) if _is_wide(acl) else ():
        buckets += _find_own(worlds.after, kind, name)
    return {one for bucket in buckets for found in bucket.values() for one in found}


def _list_names(acl: Acl, worlds: AccessPair) -> Iterator[str]:
    """The most general name first, then those that another ACL can make an exception."""
    if not _is_wide(acl):
        yield acl.resource_name
        return
    general = _prefix(acl) + OTHER
    yield general
    for name in _find_exceptions(acl, worlds):
        # Kafka does not apply the wildcard to names that start with `*`.
        if name != general and not (general == OTHER and name.startswith(EVERYTHING)):
            yield name


def _is_wide(acl: Acl) -> bool:
    return acl.pattern_type == PREFIXED or acl.resource_name == EVERYTHING


def _prefix(acl: Acl) -> str:
    return acl.resource_name if acl.pattern_type == PREFIXED else ""


def _find_exceptions(acl: Acl, worlds: AccessPair) -> Sequence[str]:
    if acl.principal == EVERYBODY:
        return _find_names(worlds, acl, None)
    concerned = (acl.principal, EVERYBODY)
    return sorted({name for who in concerned for name in _find_names(worlds, acl, who)})


def _find_names(worlds: AccessPair, acl: Acl, principal: str | None) -> Sequence[str]:
    """The names of the patterns that the pattern of a wide ACL contains."""
    known, prefix = worlds.names.get((acl.resource_type, principal), ()), _prefix(acl)
    return known[bisect_left(known, prefix) : bisect_right(known, prefix + OTHER)]


def _find_own(access: Access, kind: str, name: str) -> Iterator[Bucket]:
    """The ACLs of the patterns of that name."""
    yield access.index.literal.get((kind, name), {})
    if name.endswith(OTHER):
        yield access.index.prefixed.get((kind, name.removesuffix(OTHER)), {})


def _find_buckets(
    worlds: AccessPair, acl: Acl, operations: Sequence[str], name: str
) -> Iterator[Bucket]:
    """The ACLs that decide about this name, including those of the cluster and of other topics."""
    resources = [(acl.resource_type, name)]
    if acl.resource_type == "Topic" and not EVERY_TOPIC.isdisjoint(operations):
        resources.append(("Cluster", CLUSTER))
    for access, resource in product((worlds.before, worlds.after), resources):
        yield from find_covering(access.index, *resource)
    if acl.resource_type == "Cluster" and IDEMPOTENT in operations:
        yield _select_writers(worlds, acl.principal)


def _select_writers(worlds: AccessPair, principal: str) -> Bucket:
    """The ACLs of topics that decide about an idempotent producer (KIP-679)."""
    # For an ACL of everybody, writers whose ACLs do not change are skipped: they keep their right.
    one, other = (access.index.writers for access in (worlds.before, worlds.after))
    near = {}
    for who in {*one, *other} if principal == EVERYBODY else {principal, EVERYBODY}:
        before, after = one.get(who, ()), other.get(who, ())
        every = principal != EVERYBODY or who == EVERYBODY or set(before) != set(after)
        near[who] = tuple(acl for acl in (*before, *after) if every or acl.permission == DENY)
    return {who: found for who, found in near.items() if found}
