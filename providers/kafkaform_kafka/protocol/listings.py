"""Short because it is what listings for reviews are called, and how they name our own rights: by
the operation names that ACLs use."""

from __future__ import annotations

from collections.abc import Iterable

GROUPS = "kafka_consumer_group"
"""A listing for reviews, and what users of the contract call a group. No block declares one: a
group exists as long as it has members or offsets."""
RIGHTS = "kafka_rights"
"""A listing for reviews, not a kind of object: our rights on the cluster and on topics, with keys
`Cluster|kafka-cluster` and `Topic|NAME`."""
HELD = "operations"
"""The attribute with the names of the operations."""

# The codes of AclOperation. 13 and 14 came with KIP-373, 15 with KIP-939.
OPERATIONS = {
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


def decode_operations(codes: Iterable[int]) -> tuple[str, ...]:
    """The names of these operations in the order of their codes, without unknown ones."""
    return tuple(OPERATIONS[code] for code in sorted(codes) if code in OPERATIONS)
