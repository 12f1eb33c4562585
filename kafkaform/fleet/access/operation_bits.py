"""Operations as bits of one number, as the permission tables store them.

Bits are stored, so none is ever reused. They are the protocol's codes of the operations
(AclOperation of Kafka 4.3).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kafkaform_kafka.authority.authorizer import ALL, IMPLIED_BY
from kafkaform_kafka.protocol.acl import ALLOW, OPERATIONS, SUPPORTED
from kafkaform_kafka.protocol.acl import CLUSTER as CLUSTER
from kafkaform_kafka.protocol.acl import EVERY_TOPIC as EVERY_TOPIC

from ...core.errors import UsageError

BITS: Mapping[str, int] = OPERATIONS
"""Operation -> its bit. The bit of `All` is used while masks are computed, and in no table."""
ASKED: Mapping[str, tuple[str, ...]] = SUPPORTED
"""Resource type -> the operations that Kafka ever asks of it: what a super user may do."""

ON_CLUSTER = "Cluster:"
"""Prefix of the operation of an ACL of the cluster that decides about every topic. Such rows are
among the ACLs of topics while masks are computed, and in no table."""
ABOVE = 16
"""How much higher the bits are of what the cluster decides about topics. The broker asks the
cluster first, so a DENY on the topic takes none of these."""

MASKS: Mapping[str, str] = {
    "effective_mask": "effective",
    "unknown_mask": "unknown",
    "allow_mask": "allow",
    "deny_mask": "deny",
}
"""Column of bits -> the column of words."""

SPELLED: Mapping[str, str] = {
    "topic": "Topic",
    "group": "Group",
    "cluster": "Cluster",
    "transactional_id": "TransactionalID",
    "delegation_token": "DelegationToken",
    "user": "User",
}
"""Resource type as people write it -> as ACLs have it."""


def make_mask(operations: Iterable[str]) -> int:
    """Return these operations as one number."""
    return sum(1 << BITS[name] for name in set(operations))


def list_operations(mask: int) -> tuple[str, ...]:
    """Return the operations of a mask, in the order of their bits."""
    return tuple(name for name, bit in BITS.items() if mask >> bit & 1)


def make_given_mask(operation: str, permission: str) -> int:
    """Return what an ACL with this operation decides, including `All` itself. An ALLOW implies
    other operations; a DENY does not."""
    if operation.startswith(ON_CLUSTER):
        word = operation.removeprefix(ON_CLUSTER)
        return make_mask(EVERY_TOPIC if word == ALL else EVERY_TOPIC & {word}) << ABOVE
    if operation == ALL:
        return make_mask(BITS)
    implied = (name for name, by in IMPLIED_BY.items() if permission == ALLOW and operation in by)
    return make_mask((operation, *implied))


def make_asked_mask(resource_type: str) -> int:
    """Return everything that Kafka ever asks of such a resource."""
    return make_mask(ASKED[resource_type])


def parse_resource(text: str) -> tuple[str, str]:
    """`topic/orders` -> ("Topic", "orders"). Raises UsageError for anything else."""
    word, slash, name = text.partition("/")
    kind = SPELLED.get(word.lower())
    if kind == "Cluster" and not slash:
        return kind, CLUSTER
    if kind is None or not name:
        raise UsageError(
            f'"{text}" is not a resource',
            f"Write TYPE/NAME, such as topic/orders. The types are {', '.join(SPELLED)}.",
        )
    return kind, name


def parse_operation(text: str, resource_type: str) -> str:
    """`READ`, `read` or `describe_configs` -> `Read`, `DescribeConfigs`. Raises UsageError for an
    operation that Kafka never asks of such a resource."""
    wanted = text.replace("_", "").lower()
    for name in ASKED[resource_type]:
        if name.lower() == wanted:
            return name
    raise UsageError(
        f'Kafka never asks for "{text}" on a {resource_type}',
        f"Ask for one of {', '.join(ASKED[resource_type])}.",
    )


def parse_principal(text: str) -> str:
    """Check a principal such as `User:ci`. Raises UsageError for a name without its type, which no
    ACL can have."""
    kind, colon, name = text.partition(":")
    if kind and colon and name:
        return text
    raise UsageError(
        f'"{text}" is not a principal', f"Write TYPE:NAME, such as User:{name or kind}."
    )
