"""Find the roles that ACLs stand for, the opposite of `roles.expand`.

Only what equals a role is one: a resource on which a principal has one operation more or less than
the role stays with its own ACLs. So a role that was found has exactly the rules that are live.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kafkaform.core.value import FrozenMap, Value

from ...protocol import acl as acls
from ...protocol.acl import ALLOW, CLUSTER, parse_acl
from .roles import ARGUMENTS, INTERNAL, READS, ROLES, WRITES

Resource = tuple[str, str, str]
"""Resource type, name and pattern type."""
Rights = dict[Resource, frozenset[str]]
"""Resource -> the operations that a principal has on it."""
_ARGUMENTS = {pair: name for name, pair in ARGUMENTS.items() if name != "group"}
_READ = frozenset({"Read"})
_BOTH = frozenset({*READS, *WRITES})


def recognize_roles(objects: Sequence[tuple[str, FrozenMap]]) -> Sequence[FrozenMap]:
    """The arguments of the `kafka_access` blocks that stand for some of these objects."""
    rights: dict[tuple[str, str], dict[Resource, set[str]]] = defaultdict(dict)
    for kind, attributes in objects:
        if kind != acls.KIND or attributes["acl_permission_type"] != ALLOW:
            continue
        acl = parse_acl(attributes)
        resource = (acl.resource_type, acl.resource_name, acl.pattern_type)
        rights[acl.principal, acl.host].setdefault(resource, set()).add(acl.operation)
    return [
        FrozenMap({"principal": principal, **_say_host(host), **role})
        for (principal, host), resource_rights in sorted(rights.items())
        for role in _find_roles({name: frozenset(ops) for name, ops in resource_rights.items()})
    ]


def _say_host(host: str) -> Mapping[str, Value]:
    return {} if host == "*" else {"host": host}


def _find_roles(rights: Rights) -> Iterator[Mapping[str, Value]]:
    """The roles of one principal from one host."""
    streams = _take_streams(rights)
    reads = _select(rights, "Topic", frozenset(READS), _BOTH)
    writes = _select(rights, "Topic", frozenset(WRITES), _BOTH)
    groups = _select(rights, "Group", _READ)
    transactions = _select(rights, "TransactionalID", frozenset(WRITES))
    # Which application reads what is not known of several, so then a role `consumer` does.
    if len(streams) == 1 and not groups:
        own = [transaction for transaction in transactions if transaction[1].startswith(streams[0])]
        yield _make_role("streams", [*reads, *own], group=streams[0])
        transactions = [transaction for transaction in transactions if transaction not in own]
        reads = []
    else:
        for group in streams:
            yield _make_role("streams", (), group=group)
    workers = _select(rights, "Topic", frozenset(ROLES["connect"]["Topic"]))
    if workers and len(groups) == 1:
        yield _make_role("connect", [*workers, *groups])
        groups = []
    if reads:
        yield _make_role("consumer", [*reads, *groups])
    if writes and transactions:
        yield _make_role("transactional_producer", [*writes, *transactions])
    elif writes:
        yield _make_role("producer", writes)
    yield from _find_admin(rights)


def _take_streams(rights: Rights) -> list[str]:
    """The application ids of Streams applications, whose group and internal topics are taken out
    of the rights."""
    prefixes = []
    for kind, name, pattern in sorted(rights):
        group, internal = (kind, name, pattern), ("Topic", f"{name}-", "Prefixed")
        whole = kind == "Group" and pattern == "Literal" and rights[group] == _READ
        if whole and rights.get(internal) == frozenset(INTERNAL):
            prefixes.append(name)
    for name in prefixes:
        del rights["Group", name, "Literal"], rights["Topic", f"{name}-", "Prefixed"]
    return prefixes


def _find_admin(rights: Rights) -> Iterator[Mapping[str, Value]]:
    admin_operations = {kind: frozenset(operations) for kind, operations in ROLES["admin"].items()}
    if rights.get(("Cluster", CLUSTER, "Literal")) == admin_operations["Cluster"]:
        managed = [
            resource
            for kind, operations in admin_operations.items()
            if kind != "Cluster"
            for resource in _select(rights, kind, operations)
        ]
        yield _make_role("admin", managed)


def _select(rights: Rights, kind: str, *operations: frozenset[str]) -> list[Resource]:
    """The resources of a type on which the principal has exactly one of these sets of rights."""
    return sorted(
        resource for resource, ops in rights.items() if resource[0] == kind and ops in operations
    )


def _make_role(
    role: str, resources: Iterable[Resource], group: str | None = None
) -> Mapping[str, Value]:
    named: dict[str, list[str]] = defaultdict(list)
    for kind, name, pattern in resources:
        named[_ARGUMENTS[kind, pattern]].append(name)
    arguments: dict[str, Value] = {name: tuple(sorted(values)) for name, values in named.items()}
    if len(named["groups"]) == 1:
        arguments["group"] = named["groups"][0]
        del arguments["groups"]
    if group is not None:
        arguments["group"] = group
    return {"role": role, **arguments}
