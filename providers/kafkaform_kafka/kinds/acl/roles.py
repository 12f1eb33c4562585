"""`kafka_access`: a role, which expands to the ACLs that a client needs for its work.

Each role has the rights that Kafka's own clients need (4.3) and no more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from kafkaform.core.address import render_key
from kafkaform.core.change import Change, Step
from kafkaform.core.resource import Declared, Facts, Identity, Observed
from kafkaform.core.schema import BOOL, STRING, AttributeSchema, make_schema, set_of
from kafkaform.core.value import FrozenMap, Value
from kafkaform.provider.contract import ResourceType

from ...protocol import acl as acls
from ...protocol import keys
from ...protocol.acl import ALLOW, CLUSTER, NOUNS, OPERATIONS, SUPPORTED, Acl, parse_acl

KIND = "kafka_access"
# Read and Write imply Describe. It is here all the same, because kafka-acls.sh creates it too, so
# that its ACLs can be adopted.
READS, WRITES = ("Read", "Describe"), ("Write", "Describe")
ROLES: Mapping[str, Mapping[str, Sequence[str]]] = {
    # No IdempotentWrite on the cluster: since Kafka 2.8, Write on a topic is enough (KIP-679).
    "producer": {"Topic": WRITES},
    "transactional_producer": {"Topic": WRITES, "TransactionalID": WRITES},
    "consumer": {"Topic": READS, "Group": ("Read",)},
    "streams": {"Topic": READS, "Group": ("Read",), "TransactionalID": WRITES},
    "connect": {
        "Topic": ("Read", "Write", "Create", "Describe"),
        "Group": ("Read",),
        "TransactionalID": WRITES,
    },
    "admin": {
        "Cluster": ("Alter", "AlterConfigs", "Describe", "DescribeConfigs"),
        "Topic": ("Create", "Delete", "Alter", "AlterConfigs", "Describe", "DescribeConfigs"),
        "Group": ("Delete", "AlterConfigs", "Describe", "DescribeConfigs"),
        "TransactionalID": ("Describe",),
    },
    "custom": {},
}
"""Role -> resource type -> operations on each resource that the block names. For custom, the block
lists the operations."""
# Delete is for the records of repartition topics, which Streams purges after use.
INTERNAL = ("Read", "Write", "Create", "Delete", "Describe")
"""Operations of a Streams application on its internal topics, which start with its application
id."""

ARGUMENTS: Mapping[str, tuple[str, str]] = {
    "topics": ("Topic", "Literal"),
    "topic_prefixes": ("Topic", "Prefixed"),
    "group": ("Group", "Literal"),
    "groups": ("Group", "Literal"),
    "group_prefixes": ("Group", "Prefixed"),
    "transactional_ids": ("TransactionalID", "Literal"),
    "transactional_id_prefixes": ("TransactionalID", "Prefixed"),
}
"""Argument -> resource type and pattern type of the resources that it names."""
NEEDS: Mapping[str, tuple[str, ...]] = {
    "producer": ("Topic",),
    "transactional_producer": ("Topic", "TransactionalID"),
    "consumer": ("Topic",),
    "streams": ("Group",),
    "connect": ("Topic", "Group"),
}
"""Role -> resource types of which the block must name at least one resource."""


def expand(declared: Declared) -> Sequence[Declared]:
    """The ACLs of a role, sorted. Raises ValueError for arguments that do not fit the role."""
    arguments = declared.attributes
    _require_fitting(arguments)
    rules = sorted(set(_list_rules(arguments)))
    return [_make_child(declared, acl) for acl in rules]


def _make_child(declared: Declared, acl: Acl) -> Declared:
    name = keys.join((acl.operation, acl.resource_type, acl.resource_name, acl.pattern_type))
    return replace(
        declared,
        identity=Identity(declared.identity.instance, acls.KIND, acl.key),
        address=replace(declared.address, child=f"acl{render_key(name)}"),
        attributes=acl.attributes,
    )


def _list_rules(arguments: FrozenMap) -> Iterator[Acl]:
    role = arguments["role"]
    for kind, name, pattern in _list_resources(arguments):
        operations = arguments["operations"] if role == "custom" else ROLES[role][kind]
        yield from _make_rules(arguments, operations, kind, name, pattern)
        if role == "streams" and kind == "Group":
            yield from _make_rules(arguments, INTERNAL, "Topic", f"{name}-", "Prefixed")


def _make_rules(
    arguments: FrozenMap, operations: Sequence[str], kind: str, name: str, pattern: str
) -> Iterator[Acl]:
    for operation in operations:
        yield Acl(arguments["principal"], arguments["host"], operation, ALLOW, kind, name, pattern)


def _list_resources(arguments: FrozenMap) -> Iterator[tuple[str, str, str]]:
    """Resource type, name and pattern type of all resources that the block names."""
    if arguments["role"] == "admin" or arguments.get("cluster"):
        yield "Cluster", CLUSTER, "Literal"
    for argument, (kind, pattern) in ARGUMENTS.items():
        value = arguments.get(argument) or ()
        for name in (value,) if isinstance(value, str) else value:
            yield kind, name, pattern


def _require_fitting(arguments: FrozenMap) -> None:
    role = arguments["role"]
    named = {kind for kind, _, _ in _list_resources(arguments)}
    if role == "custom":
        _require_custom(arguments, named)
        return
    for argument in ("operations", "cluster"):
        if arguments.get(argument):
            raise ValueError(f'{argument} is only for role = "custom", not for the role {role}')
    for argument, (kind, pattern) in ARGUMENTS.items():
        if arguments.get(argument) and kind not in ROLES[role]:
            raise ValueError(f"the role {role} does not use {argument}: remove it")
        if arguments.get(argument) and (role, kind, pattern) == ("streams", "Group", "Prefixed"):
            raise ValueError("the role streams needs its whole application id: set group")
    for kind in NEEDS.get(role, ()):
        if kind not in named:
            fitting = [argument for argument, (of_kind, _) in ARGUMENTS.items() if of_kind == kind]
            raise ValueError(f"the role {role} needs {' or '.join(fitting)}")


def _require_custom(arguments: FrozenMap, named: set[str]) -> None:
    operations = arguments.get("operations") or ()
    if not operations:
        raise ValueError('role = "custom" needs operations, such as ["Read"]')
    if not named:
        raise ValueError(f'role = "custom" needs one of {", ".join(ARGUMENTS)}, cluster')
    for kind in sorted(named):
        for operation in operations:
            if operation != "All" and operation not in SUPPORTED[kind]:
                elsewhere = f", or a separate block for the {NOUNS[kind]}"
                raise ValueError(
                    f"'{operation}' is not a {NOUNS[kind]} operation; use All, "
                    f"{', '.join(SUPPORTED[kind])}{elsewhere if operation in OPERATIONS else ''}"
                )


# ── type ────────────────────────────────────────────────────────────────────────────────
# A plan contains no roles, only their ACLs: a role has no identity of its own in the cluster.


def _key(_: FrozenMap) -> str:
    raise ValueError(f"a {KIND} has no key: plans contain its ACLs")


def _canonical(attributes: FrozenMap, _: Facts) -> FrozenMap:
    return attributes


def _target(declared: FrozenMap, _: Observed | None, __: Facts, ___: bool) -> FrozenMap:
    return declared


def _steps(_: Change, __: Facts) -> tuple[Step, ...]:
    return ()


TYPE = ResourceType(
    name=KIND,
    schema=make_schema(
        "The ACLs that a principal needs for its role. Several roles can need the same ACL; it is "
        "deleted with the last of them. The import id is the block's own address: the import takes "
        "over those of its ACLs that exist.",
        AttributeSchema("principal", STRING, "The principal: User:NAME.", required=True),
        AttributeSchema(
            "host", STRING, "The client's IP address, or * for all hosts.", default="*"
        ),
        AttributeSchema(
            "role",
            STRING,
            "What the principal does. producer writes to topics; transactional_producer also uses "
            "transactional_ids; consumer reads topics as a member of group; streams reads topics "
            "and uses internal topics that start with group, its application id (use a separate "
            "block with the role producer for the topics that it writes to); connect is a Connect "
            "worker: topics are its config, offset and status topics, group is its group.id (use "
            "separate blocks for the topics of its connectors); admin manages the cluster and the "
            "topics and groups that the block names, without reading or writing records; custom "
            "has the operations of the block.",
            required=True,
            choices=tuple(ROLES),
        ),
        AttributeSchema("topics", set_of(STRING), "Topics by name; * for all."),
        AttributeSchema("topic_prefixes", set_of(STRING), "Topics by the start of their names."),
        AttributeSchema("group", STRING, "A consumer group."),
        AttributeSchema("groups", set_of(STRING), "Consumer groups by name; * for all."),
        AttributeSchema(
            "group_prefixes", set_of(STRING), "Consumer groups by the start of their names."
        ),
        AttributeSchema(
            "transactional_ids", set_of(STRING), "Transactional ids by name; * for all."
        ),
        AttributeSchema(
            "transactional_id_prefixes",
            set_of(STRING),
            "Transactional ids by the start of their names.",
        ),
        AttributeSchema(
            "operations",
            set_of(STRING),
            'The operations on everything that the block names, with role = "custom".',
        ),
        AttributeSchema(
            "cluster", BOOL, 'true: the operations apply to the cluster, with role = "custom".'
        ),
        conflicts=(("group", "groups"),),
    ),
    key=_key,
    canonical=_canonical,
    target=_target,
    steps=_steps,
    import_key=str,
    expand=expand,
    named_by=("principal", "role"),
    shareable=True,
)


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
        FrozenMap({"principal": principal, **({} if host == "*" else {"host": host}), **role})
        for (principal, host), resource_rights in sorted(rights.items())
        for role in _find_roles({name: frozenset(ops) for name, ops in resource_rights.items()})
    ]


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
