"""`kafka_access`: a role, which expands to the ACLs that a client needs for its work.

Each role has the rights that Kafka's own clients need (4.3) and no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from kafkaform.core.address import render_key
from kafkaform.core.change import Change, Step
from kafkaform.core.resource import Declared, Facts, Identity, Observed
from kafkaform.core.schema import BOOL, STRING, AttributeSchema, make_schema, set_of
from kafkaform.core.value import FrozenMap
from kafkaform.provider.contract import ResourceType

from ...protocol import acl as acls
from ...protocol import keys
from ...protocol.acl import ALLOW, CLUSTER, NOUNS, OPERATIONS, SUPPORTED, Acl

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
            raise ValueError(f"the role {role} needs {' or '.join(_list_arguments(kind))}")


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


def _list_arguments(kind: str) -> Iterator[str]:
    return (argument for argument, (argument_kind, _) in ARGUMENTS.items() if argument_kind == kind)


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
)
