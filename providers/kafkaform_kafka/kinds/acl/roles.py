"""`kafka_access`: what a client needs for its role, as the ACLs that it stands for.

Each role is what Kafka's own clients ask for (4.3) and no more. An idempotent producer needs no
right on the cluster since Kafka 2.8 (KIP-679); Describe follows from Read and Write, and is
written out all the same, as kafka-acls.sh does, so that rules made with it can be adopted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from kafkaform.core.address import render_key
from kafkaform.core.change import Change, Step
from kafkaform.core.diagnostics import Diagnostics
from kafkaform.core.resource import Declared, Facts, Identity, Observed
from kafkaform.core.schema import BOOL, STRING, AttributeSchema, make_schema, set_of
from kafkaform.core.value import FrozenMap
from kafkaform.provider.contract import ResourceType

from ...protocol import keys
from . import resource_type as acls
from .resource_type import ALLOW, CLUSTER, OPERATIONS, SUPPORTED, Acl

KIND = "kafka_access"
READS, WRITES = ("Read", "Describe"), ("Write", "Describe")
ROLES: Mapping[str, Mapping[str, Sequence[str]]] = {
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
"""Role -> resource type -> operations on each resource of it that the block names. The operations
of custom are the block's own."""
INTERNAL = ("Read", "Write", "Create", "Delete", "Describe")
"""What a Streams application does with its own topics, which its application id is a prefix of:
it makes them, and deletes records of those that it repartitions through."""

ARGUMENTS: Mapping[str, tuple[str, str]] = {
    "topics": ("Topic", "Literal"),
    "topic_prefixes": ("Topic", "Prefixed"),
    "group": ("Group", "Literal"),
    "groups": ("Group", "Literal"),
    "group_prefixes": ("Group", "Prefixed"),
    "transactional_ids": ("TransactionalID", "Literal"),
    "transactional_id_prefixes": ("TransactionalID", "Prefixed"),
}
"""Argument -> resource type and pattern type of what it names."""
NEEDS: Mapping[str, tuple[str, ...]] = {
    "producer": ("Topic",),
    "transactional_producer": ("Topic", "TransactionalID"),
    "consumer": ("Topic",),
    "streams": ("Group",),
    "connect": ("Topic", "Group"),
}
"""Role -> resource types of which it must name one: without them it would be of no use."""


def expand(declared: Declared) -> Sequence[Declared]:
    """The ACLs of a role, in order. Raises ValueError for arguments that do not fit the role."""
    given = declared.attributes
    _require_fitting(given)
    rules = sorted(set(_list_rules(given)))
    return [_make_child(declared, acl) for acl in rules]


def _make_child(declared: Declared, acl: Acl) -> Declared:
    name = keys.join((acl.operation, acl.resource_type, acl.resource_name, acl.pattern_type))
    return replace(
        declared,
        identity=Identity(declared.identity.instance, acls.KIND, acl.key),
        address=replace(declared.address, child=f"acl{render_key(name)}"),
        attributes=acl.attributes,
    )


def _list_rules(given: FrozenMap) -> Iterator[Acl]:
    role = given["role"]
    for kind, name, pattern in _list_resources(given):
        wanted = given["operations"] if role == "custom" else ROLES[role][kind]
        yield from _make_rules(given, wanted, kind, name, pattern)
        if role == "streams" and kind == "Group":
            yield from _make_rules(given, INTERNAL, "Topic", f"{name}-", "Prefixed")


def _make_rules(
    given: FrozenMap, operations: Sequence[str], kind: str, name: str, pattern: str
) -> Iterator[Acl]:
    for operation in operations:
        yield Acl(given["principal"], given["host"], operation, ALLOW, kind, name, pattern)


def _list_resources(given: FrozenMap) -> Iterator[tuple[str, str, str]]:
    """Resource type, name and pattern type of everything that the block is about."""
    if given["role"] == "admin" or given.get("cluster"):
        yield "Cluster", CLUSTER, "Literal"
    for argument, (kind, pattern) in ARGUMENTS.items():
        value = given.get(argument) or ()
        for name in (value,) if isinstance(value, str) else value:
            yield kind, name, pattern


def _require_fitting(given: FrozenMap) -> None:
    role = given["role"]
    named = {kind for kind, _, _ in _list_resources(given)}
    if role == "custom":
        _require_custom(given, named)
        return
    for argument in ("operations", "cluster"):
        if given.get(argument):
            raise ValueError(f'{argument} belongs to role = "custom"; the role {role} has its own')
    for argument, (kind, pattern) in ARGUMENTS.items():
        if given.get(argument) and kind not in ROLES[role]:
            raise ValueError(f"the role {role} has no use for {argument}: take it out")
        if given.get(argument) and (role, kind, pattern) == ("streams", "Group", "Prefixed"):
            raise ValueError("the role streams needs its application id whole: name it in group")
    for kind in NEEDS.get(role, ()):
        if kind not in named:
            raise ValueError(f"the role {role} needs {' or '.join(_list_arguments(kind))}")


def _require_custom(given: FrozenMap, named: set[str]) -> None:
    operations = given.get("operations") or ()
    if not operations:
        raise ValueError('role = "custom" needs operations, such as ["Read"]')
    for operation in operations:
        if operation not in OPERATIONS:
            raise ValueError(f'"{operation}" is no operation; there are {", ".join(OPERATIONS)}')
    if not named:
        raise ValueError(f'role = "custom" needs one of {", ".join(ARGUMENTS)}, cluster')
    for kind in sorted(named):
        for operation in operations:
            if operation != "All" and operation not in SUPPORTED[kind]:
                raise ValueError(
                    f"{operation} means nothing on {kind}, which knows "
                    f"{', '.join(SUPPORTED[kind])}; give that its own block"
                )


def _list_arguments(kind: str) -> Iterator[str]:
    return (argument for argument, (known, _) in ARGUMENTS.items() if known == kind)


# ── type ────────────────────────────────────────────────────────────────────────────────
# A plan never sees a role, only its parts, which are of the type kafka_acl.


def _key(_: FrozenMap) -> str:
    raise ValueError(f"a {KIND} is known by its address, and a plan by its ACLs")


def _canonical(attributes: FrozenMap, _: Facts) -> FrozenMap:
    return attributes


def _target(declared: FrozenMap, _: Observed | None, __: Facts, ___: bool) -> FrozenMap:
    return declared


def _check(_: Change, __: Facts) -> Diagnostics:
    return ()


def _steps(_: Change, __: Facts) -> tuple[Step, ...]:
    return ()


TYPE = ResourceType(
    name=KIND,
    schema=make_schema(
        "What a principal needs for its role, as the ACLs that it stands for. An ACL that several "
        "roles stand for goes with the last of them. The import id is the block's own address: "
        "it takes over those of its ACLs that are there.",
        AttributeSchema("principal", STRING, "Who: User:NAME.", required=True),
        AttributeSchema(
            "host", STRING, "From where: one IP address, or * for everywhere.", default="*"
        ),
        AttributeSchema(
            "role",
            STRING,
            "What the principal does. producer writes topics; transactional_producer also uses "
            "transactional_ids; consumer reads topics, as a member of group; streams reads topics "
            "and keeps its own topics, which group, its application id, is a prefix of (what it "
            "writes is a block with the role producer); connect is a worker: topics are its "
            "config, offset and status topics, group is its group.id (what its connectors read "
            "and write are blocks of their own); admin changes the cluster and the topics and "
            "groups that are named, without reading or writing records; custom has operations.",
            required=True,
            choices=tuple(ROLES),
        ),
        AttributeSchema("topics", set_of(STRING), "Topics by name; * for all."),
        AttributeSchema("topic_prefixes", set_of(STRING), "Topics whose names begin so."),
        AttributeSchema("group", STRING, "A consumer group."),
        AttributeSchema("groups", set_of(STRING), "Consumer groups; * for all."),
        AttributeSchema("group_prefixes", set_of(STRING), "Consumer groups whose names begin so."),
        AttributeSchema("transactional_ids", set_of(STRING), "Transactional ids; * for all."),
        AttributeSchema(
            "transactional_id_prefixes", set_of(STRING), "Transactional ids that begin so."
        ),
        AttributeSchema(
            "operations",
            set_of(STRING),
            'With role = "custom": what may be done with everything that the block names.',
        ),
        AttributeSchema(
            "cluster", BOOL, 'With role = "custom": the operations hold for the cluster.'
        ),
        conflicts=(("group", "groups"),),
    ),
    key=_key,
    canonical=_canonical,
    target=_target,
    check=_check,
    steps=_steps,
    import_key=str,
    expand=expand,
)
