"""`kafka_acl`: one ACL. All seven fields are its identity, so it is created or deleted, never
updated.

Source: Kafka's AclEntry and StandardAuthorizer (4.3). Brokers accept ACLs that can never match
anything; `rules/acls.py` refuses them.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv6Address
from operator import itemgetter
from typing import Any

from msgspec import Struct
from msgspec.structs import astuple, replace

from kafkaform.core.change import Action, Change, Evidence, Request, Step
from kafkaform.core.resource import Facts, Observed
from kafkaform.core.schema import STRING, AttributeSchema, make_schema
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform.provider.contract import ResourceType

from ...protocol import keys, rights
from ..request_order import (
    CREATE_ACLS,
    DELETE_ALLOW_ACLS,
    DELETE_ALLOW_AHEAD,
    DELETE_DENY_ACLS,
    DELETE_DENY_AHEAD,
)
from ..steps import all_paths, make_step

KIND = "kafka_acl"
RESOURCE_TYPES: Mapping[str, int] = {
    "Topic": 2,
    "Group": 3,
    "Cluster": 4,
    "TransactionalID": 5,
    "DelegationToken": 6,
    "User": 7,
}
NOUNS: Mapping[str, str] = {
    "Topic": "topic",
    "Group": "group",
    "Cluster": "cluster",
    "TransactionalID": "transactional id",
    "DelegationToken": "delegation token",
    "User": "user",
}
"""Resource type -> its noun in messages."""
OPERATIONS: Mapping[str, int] = {
    "All": 2,
    **{name: code for code, name in rights.OPERATIONS.items()},
}
PERMISSIONS: Mapping[str, int] = {"Allow": 3, "Deny": 2}
# Any (1) and Match (2) exist only in filters (KIP-290): we send neither, so that a delete cannot
# match more than the ACL that the plan shows.
PATTERN_TYPES: Mapping[str, int] = {"Literal": 3, "Prefixed": 4}
"""Word in the schema -> code of the protocol."""

SUPPORTED: Mapping[str, tuple[str, ...]] = {
    "Topic": (
        "Read",
        "Write",
        "Create",
        "Delete",
        "Alter",
        "Describe",
        "DescribeConfigs",
        "AlterConfigs",
    ),
    "Group": ("Read", "Delete", "Describe", "DescribeConfigs", "AlterConfigs"),
    "Cluster": (
        "Create",
        "Delete",
        "Alter",
        "Describe",
        "ClusterAction",
        "DescribeConfigs",
        "AlterConfigs",
        "IdempotentWrite",
    ),
    "TransactionalID": ("Write", "Describe", "TwoPhaseCommit"),
    "DelegationToken": ("Describe",),
    "User": ("CreateTokens", "DescribeTokens"),
}
"""Resource type -> the operations that Kafka checks on it; All means these."""
# AclEntry.supportedOperations lacks them, so a broker leaves them out of authorized operations.
UNLISTED: Mapping[str, frozenset[str]] = {
    "Cluster": frozenset({"Delete"}),
    "TransactionalID": frozenset({"TwoPhaseCommit"}),
}
"""Resource type -> operations that Kafka checks, but never reports as ours."""
# ControllerApis asks the authorizer about the cluster first and accepts a yes, so not even a DENY
# on the topic stops a principal with this right on the cluster.
EVERY_TOPIC = frozenset({"Create", "Delete"})
"""Operations whose right on the cluster applies to every topic."""


def list_reported_operations(resource_type: str) -> tuple[str, ...]:
    """The operations that a broker includes in its report of our rights (KIP-430)."""
    hidden = UNLISTED.get(resource_type, frozenset())
    return tuple(name for name in SUPPORTED[resource_type] if name not in hidden)


CLUSTER = "kafka-cluster"
EVERYTHING = "*"
ALLOW, DENY = "Allow", "Deny"
DELETE_FIRST = "delete_first"

_DELETES: Mapping[str, Request] = {ALLOW: DELETE_ALLOW_ACLS, DENY: DELETE_DENY_ACLS}
"""Permission -> the request that deletes the ACL."""
_AHEAD: Mapping[str, int] = {ALLOW: DELETE_ALLOW_AHEAD, DENY: DELETE_DENY_AHEAD}
"""Permission -> the phase of the delete with `acl_order = "delete_first"`."""


class Acl(Struct, frozen=True, order=True):
    """One ACL, every field spelled as in the schema."""

    principal: str
    host: str
    operation: str
    permission: str
    resource_type: str
    resource_name: str
    pattern_type: str

    @property
    def fields(self) -> tuple[str, ...]:
        """All fields in the order of the key."""
        return astuple(self)

    @property
    def key(self) -> str:
        """The identity's key, and the import id."""
        return keys.join(self.fields)

    @property
    def pattern(self) -> str:
        """The key of its resource pattern."""
        return keys.join((self.resource_type, self.resource_name, self.pattern_type))

    @property
    def attributes(self) -> FrozenMap:
        """The attributes of a `kafka_acl` block."""
        return FrozenMap(zip(NAMES, self.fields, strict=True))


NAMES = (
    "acl_principal",
    "acl_host",
    "acl_operation",
    "acl_permission_type",
    "resource_type",
    "resource_name",
    "resource_pattern_type_filter",
)
"""The attributes in the order of `Acl`'s fields and of the key."""
_NAMES = frozenset(NAMES)
_read_fields = itemgetter(*NAMES)


def parse_acl(attributes: Mapping[str, Any]) -> Acl:
    """The ACL with these attributes."""
    return Acl(*_read_fields(attributes))


def parse_acl_key(key: str) -> Acl:
    """The ACL of an identity's key. Raises ValueError for any other text."""
    fields = keys.split(key)
    if len(fields) != len(NAMES):
        raise ValueError(f"the import id of a {KIND} is {'|'.join(NAMES)}")
    acl = Acl(*fields)
    for word, words in (
        (acl.operation, OPERATIONS),
        (acl.permission, PERMISSIONS),
        (acl.resource_type, RESOURCE_TYPES),
        (acl.pattern_type, PATTERN_TYPES),
    ):
        if word not in words:
            raise ValueError(f"'{word}' is not one of {', '.join(words)}")
    return acl


def is_known(acl: Acl) -> bool:
    """False for an ACL with a code that is newer than this version: it is never touched."""
    return (
        acl.operation in OPERATIONS
        and acl.permission in PERMISSIONS
        and acl.resource_type in RESOURCE_TYPES
        and acl.pattern_type in PATTERN_TYPES
    )


def format_java_address(address: IPv6Address) -> str:
    """The text of Inet6Address.getHostAddress: always eight groups, without leading zeros."""
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return ":".join(f"{int(group, 16):x}" for group in address.exploded.split(":"))


# ── requests ────────────────────────────────────────────────────────────────────────────


def _steps(change: Change, facts: Facts) -> tuple[Step, ...]:
    # `group` keeps the ACLs of one resource pattern in one request, which takes effect as a whole:
    # where allow.everyone.if.no.acl.found is true, the first ALLOW alone would lock out everybody
    # else. `rank` puts DENY before ALLOW.
    if change.action is Action.CREATE:
        request, acl = CREATE_ACLS, parse_acl(change.after or EMPTY)
    elif change.action is Action.DELETE:
        acl = parse_acl(change.before or EMPTY)
        request = _DELETES[acl.permission]
        if facts.values.get("acl_order") == DELETE_FIRST:
            request = replace(request, ahead=_AHEAD[acl.permission])
    else:
        return ()
    step = make_step(
        change,
        1,
        request,
        acl.attributes,
        all_paths(change),
        weight=1,
        evidence=Evidence.LOCAL,
    )
    return (replace(step, group=acl.pattern, rank=1 if acl.permission == ALLOW else 0),)


# ── type ────────────────────────────────────────────────────────────────────────────────


def _target(declared: FrozenMap, _: Observed | None, __: Facts, ___: bool) -> FrozenMap:
    if declared.keys() == _NAMES:
        return declared
    return FrozenMap({name: declared[name] for name in NAMES})


FIELDS = (
    AttributeSchema(
        "resource_name",
        STRING,
        "Name of the resource, or a prefix; * for all resources of the type; kafka-cluster for the "
        "cluster.",
        aliases=("acl_resource_name",),
    ),
    AttributeSchema(
        "resource_type",
        STRING,
        "Type of the resource.",
        choices=tuple(RESOURCE_TYPES),
        aliases=("acl_resource_type",),
    ),
    AttributeSchema("acl_principal", STRING, "The principal: User:NAME, or User:* for everybody."),
    AttributeSchema("acl_host", STRING, "The client's IP address, or * for all hosts."),
    AttributeSchema(
        "acl_operation",
        STRING,
        "The operation that is allowed or denied.",
        choices=tuple(OPERATIONS),
    ),
    AttributeSchema("acl_permission_type", STRING, "Allow or Deny.", choices=tuple(PERMISSIONS)),
)
"""The attributes that an ACL and a filter for ACLs have in common."""

TYPE = ResourceType(
    name=KIND,
    schema=make_schema(
        "One access rule. All attributes together identify the rule: if you change one, kafkaform "
        "creates the new rule and then deletes the old one. The import id is "
        "acl_principal|acl_host|acl_operation|acl_permission_type|resource_type|resource_name|"
        "resource_pattern_type_filter.",
        *(replace(attribute, required=True) for attribute in FIELDS),
        AttributeSchema(
            "resource_pattern_type_filter",
            STRING,
            "Literal if resource_name is a name, Prefixed if it is a prefix.",
            default="Literal",
            choices=tuple(PATTERN_TYPES),
        ),
    ),
    key=lambda attributes: parse_acl(attributes).key,
    canonical=lambda attributes, _: attributes,
    target=_target,
    steps=_steps,
    import_key=lambda text: parse_acl_key(text).key,
    belongs_to=lambda attributes, principal: attributes["acl_principal"] == principal,
    named_by=("acl_principal", "acl_operation", "resource_type", "resource_name"),
    # Error 54: without an authorizer, brokers refuse to list ACLs instead of listing none.
    switched_off=frozenset({"SECURITY_DISABLED"}),
)
