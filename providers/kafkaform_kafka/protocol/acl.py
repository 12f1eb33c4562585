"""Kafka's ACLs: their words, the ACL itself, its key, and sentences about it; and what listings for
reviews are called, which name our own rights by the same operations.

Source: Kafka's AclEntry and StandardAuthorizer (4.3), KIP-290, KIP-430.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from ipaddress import IPv6Address
from operator import itemgetter
from typing import Any

from msgspec import Struct
from msgspec.structs import astuple

from kafkaform.core.value import FrozenMap

from . import keys

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
# The codes of AclOperation. 13 and 14 came with KIP-373, 15 with KIP-939.
OPERATION_NAMES: Mapping[int, str] = {
    3: "Read",
    4: "Write",
    5: "Create",
    6: "Delete",
    7: "Alter",
    8: "Describe",
    9: "ClusterAction",
    10: "DescribeConfigs",
    11: "AlterConfigs",
    12: "IdempotentWrite",
    13: "CreateTokens",
    14: "DescribeTokens",
    15: "TwoPhaseCommit",
}
OPERATIONS: Mapping[str, int] = {
    "All": 2,
    **{name: code for code, name in OPERATION_NAMES.items()},
}
LISTED_GROUPS = "kafka_consumer_group"
"""A listing for reviews, and what users of the contract call a group. No block declares one: a
group exists as long as it has members or offsets."""
LISTED_RIGHTS = "kafka_rights"
"""A listing for reviews, not a kind of object: our rights on the cluster and on topics, with keys
`Cluster|kafka-cluster` and `Topic|NAME`."""
HELD_OPERATIONS = "operations"
"""The attribute of a listed right with the names of the operations."""
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

CLUSTER = "kafka-cluster"
EVERYTHING = "*"
EVERYBODY = "User:*"
ALLOW, DENY = "Allow", "Deny"
LITERAL, PREFIXED = "Literal", "Prefixed"
# The highest character that is not a noncharacter: it sorts after every name with the same prefix.
OTHER = "\U0010fffd"
"""A name that no ACL contains: it stands for everybody, or everything, without an own ACL."""
SHOWN = 3
"""How many names are listed before the rest is counted."""

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
_read_fields = itemgetter(*NAMES)


def decode_operations(codes: Iterable[int]) -> tuple[str, ...]:
    """The names of these operations in the order of their codes, without unknown ones."""
    return tuple(OPERATION_NAMES[code] for code in sorted(codes) if code in OPERATION_NAMES)


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


def list_reported_operations(resource_type: str) -> tuple[str, ...]:
    """The operations that a broker includes in its report of our rights (KIP-430)."""
    hidden = UNLISTED.get(resource_type, frozenset())
    return tuple(name for name in SUPPORTED[resource_type] if name not in hidden)


# ── sentences ───────────────────────────────────────────────────────────────────────────


def describe_acl(acl: Acl) -> str:
    """`Allow User:app Write on topic "shop.orders" from any host`: all seven fields."""
    host = "any host" if acl.host == EVERYTHING else _quote_gaps(acl.host)
    principal = _quote_gaps(acl.principal)
    return f"{acl.permission} {principal} {acl.operation} on {_describe_resource(acl)} from {host}"


def describe_acl_key(key: str) -> str:
    """`describe_acl` of an identity's key, empty for another text."""
    try:
        return describe_acl(parse_acl_key(key))
    except ValueError:
        return ""


def _describe_resource(acl: Acl) -> str:
    noun = NOUNS.get(acl.resource_type, acl.resource_type)
    if acl.pattern_type == PREFIXED:
        return f"{noun}s with prefix {_quote(acl.resource_name)}"
    if acl.resource_name == EVERYTHING:
        return f"every {noun}"
    if (acl.resource_type, acl.resource_name) == ("Cluster", CLUSTER):
        return "the cluster"
    return f"{noun} {_quote(acl.resource_name)}"


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _quote_gaps(text: str) -> str:
    """The text, quoted if it has a blank: a principal must not read like the rest of the
    sentence."""
    return _quote(text) if not text or '"' in text or any(map(str.isspace, text)) else text


def describe_pattern(acl: Acl) -> str:
    """The resource pattern of the ACL in words."""
    if acl.pattern_type == PREFIXED and acl.resource_name:
        return f"{acl.resource_type} {acl.resource_name}* (prefix)"
    if acl.resource_name in (EVERYTHING, ""):
        return f"every {acl.resource_type}"
    return f"{acl.resource_type} {acl.resource_name}"


def describe_names(acl: Acl, names: Sequence[str], candidates: Sequence[str]) -> str:
    """The resources in words: the names in `found`, or the pattern with its exceptions."""
    kind = acl.resource_type
    if candidates[0] not in names:
        return f"{kind} {join_words([describe_name(name) for name in dict.fromkeys(names)])}"
    exceptions = [describe_name(name) for name in dict.fromkeys(candidates) if name not in names]
    return describe_pattern(acl) + (f", but not on {join_words(exceptions)}" if exceptions else "")


def describe_principals(principals: Sequence[str], candidates: Sequence[str]) -> str:
    """The principals in words: those in `found`, or everybody with exceptions."""
    if candidates[0] not in principals or not candidates[0].endswith(OTHER):
        return join_words(list(dict.fromkeys(principals)))
    exceptions = [
        principal for principal in dict.fromkeys(candidates) if principal not in principals
    ]
    return "everybody" + (f" except {join_words(exceptions)}" if exceptions else "")


def describe_name(name: str) -> str:
    """A resource name in words, with `*` for OTHER."""
    return f"{name.removesuffix(OTHER)}*" if name.endswith(OTHER) else name


def join_words(words: Sequence[str]) -> str:
    """`a, b, c and 4 more`."""
    # One more than SHOWN is listed whole: "and 1 more" would not be shorter.
    listed = [*words[:SHOWN]] if len(words) > SHOWN + 1 else [*words]
    hidden_count = len(words) - len(listed)
    return ", ".join(listed) + (f" and {hidden_count} more" if hidden_count else "")
