"""Operations as bits of one number, which is how the permission tables hold them.

Bits are stored: a new operation gets a new number, and none is ever given again. They are the
protocol's codes of the operations (AclOperation of Kafka 4.3).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kafkaform_kafka.authority.authorizer import ALL, IMPLIED_BY, OPERATIONS, SUPPORTED
from kafkaform_kafka.authority.authorizer import EVERY_TOPIC as EVERY_TOPIC
from kafkaform_kafka.kinds.acl.resource_type import ALLOW
from kafkaform_kafka.kinds.acl.resource_type import CLUSTER as CLUSTER

from ...core.errors import UsageError

BITS: Mapping[str, int] = OPERATIONS
"""Operation -> its bit. The bit of `All` is used while masks are made, and in no table."""
ASKED: Mapping[str, tuple[str, ...]] = SUPPORTED
"""Resource type -> the operations that are ever asked of it: what a super user may do."""

ON_CLUSTER = "Cluster:"
"""Before an operation: an ACL of the cluster that decides about every topic. It stands among the
ACLs of topics while masks are made, and in no table."""
ABOVE = 16
"""By so much the bits of what the cluster decides about topics are higher. It is asked before the
topic, so that a DENY on the topic takes none of it."""

MASKS: Mapping[str, str] = {
    "effective_mask": "effective",
    "unknown_mask": "unknown",
    "allow_mask": "allow",
    "deny_mask": "deny",
}
"""Column of bits -> what the same is called in words."""

SPELLED: Mapping[str, str] = {
    "topic": "Topic",
    "group": "Group",
    "cluster": "Cluster",
    "transactional_id": "TransactionalID",
    "delegation_token": "DelegationToken",
    "user": "User",
}
"""Resource type as people type it -> as ACLs have it."""


def make_mask(operations: Iterable[str]) -> int:
    """One number for these operations."""
    return sum(1 << BITS[name] for name in set(operations))


def list_operations(mask: int) -> tuple[str, ...]:
    """The operations of a mask, in the order of their bits."""
    return tuple(name for name, bit in BITS.items() if mask >> bit & 1)


def make_given_mask(operation: str, permission: str) -> int:
    """What an ACL with this operation decides, `All` itself among it: an ALLOW implies others, a
    DENY does not."""
    if operation.startswith(ON_CLUSTER):
        word = operation.removeprefix(ON_CLUSTER)
        return make_mask(EVERY_TOPIC if word == ALL else EVERY_TOPIC & {word}) << ABOVE
    if operation == ALL:
        return make_mask(BITS)
    implied = (name for name, by in IMPLIED_BY.items() if permission == ALLOW and operation in by)
    return make_mask((operation, *implied))


def make_asked_mask(resource_type: str) -> int:
    """Everything that is ever asked of such a resource."""
    return make_mask(ASKED[resource_type])


def parse_resource(text: str) -> tuple[str, str]:
    """`topic/orders` -> ("Topic", "orders"). Raises UsageError for anything else."""
    word, slash, name = text.partition("/")
    kind = SPELLED.get(word.lower())
    if kind == "Cluster" and not slash:
        return kind, CLUSTER
    if kind is None or not name:
        raise UsageError(
            f'"{text}" names no resource',
            f"Write TYPE/NAME, like topic/orders; types are {', '.join(SPELLED)}.",
        )
    return kind, name


def parse_operation(text: str, resource_type: str) -> str:
    """`READ`, `read` or `describe_configs` -> `Read`, `DescribeConfigs`. Raises UsageError for
    what is never asked of such a resource."""
    wanted = text.replace("_", "").lower()
    for name in ASKED[resource_type]:
        if name.lower() == wanted:
            return name
    raise UsageError(
        f'Kafka never asks for "{text}" on a {resource_type}',
        f"Ask for one of {', '.join(ASKED[resource_type])}.",
    )


def parse_principal(text: str) -> str:
    """`User:ci` as it is. Raises UsageError for a name without its type, which no ACL can have."""
    kind, colon, name = text.partition(":")
    if kind and colon and name:
        return text
    raise UsageError(f'"{text}" names no principal', f"Write TYPE:NAME, like User:{name or kind}.")
